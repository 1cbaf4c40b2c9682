"""``report``: which values may share memory, what writes to what, and when each value dies.

A captured program comes in and is not run; a ``Report`` comes out. It is built on what is known of operations: what
computes or copies gives memory of its own, what nobody knows may give back any of its arguments and may write to them.
So nothing is missing: two values that share memory in some run are told to share it, and so is every write; that they
may is all that is said. Results of branches and loops may be anything that their bodies may give back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from clew.ir.arguments import Reference, bodies_of, leaves
from clew.ir.control_flow import Branch, Loop, control_of, inputs_of
from clew.ir.effects import effect_of, resolve, sets_state
from clew.ir.graph import Graph
from clew.ir.guards import guard
from clew.ir.guests import Effect, guest_of
from clew.ir.interpreter import last_uses
from clew.ir.node import Node
from clew.ir.types import ArrayType, ScalarType, Type
from clew.tools.costs import FREE, TABLE, operation_of
from clew.tools.tables import table
from clew.tools.verify import program_of
from clew.tools.watching import line_of, memory_in

COPIES = frozenset(
    """clone cat concat concatenate stack hstack vstack dstack column_stack repeat repeat_interleave tile roll one_hot
    embedding gather index_select masked_fill masked_select where tril triu tril_indices triu_indices nonzero argwhere
    zeros ones full empty arange range linspace logspace eye zeros_like ones_like full_like empty_like new_zeros
    new_ones new_full new_empty new_tensor tensor rand randn randint randperm rand_like randn_like randint_like
    multinomial item tolist size dim numel ndim len is_floating_point is_complex finfo iinfo is_compiling is_exporting
    is_tracing""".split()
)
"""What moves elements into memory of its own, or gives no array at all."""
VIEWS = frozenset(
    """view view_as t T mT transpose permute swapaxes swapdims moveaxis movedim squeeze unsqueeze expand_dims expand
    expand_as broadcast_to select narrow split chunk unbind tensor_split detach diagonal unfold alias
    identity""".split()
)
"""What never has memory of its own."""
MAY_RETURN_INPUT = frozenset(
    """dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout einsum interpolate upsample positive encoder
    decoder transformer nan_to_num broadcast_tensors""".split()
)
"""What computes, but gives back what it was given where there is nothing to compute, or a view of it."""
_FREE = frozenset(FREE.split())

Memories = frozenset[Node]


@dataclass(frozen=True)
class Alias:
    """A value that may lie in the memory of others."""

    node: str
    shares_with: tuple[str, ...]
    line: str


@dataclass(frozen=True)
class Write:
    """A node that may write, and to what: arguments, attributes of the module, or values of the program."""

    node: str
    effect: str
    arguments: tuple[str, ...]
    state: tuple[str, ...]
    values: tuple[str, ...]
    line: str


@dataclass(frozen=True)
class Lifetime:
    """A value: the node that uses it last, and the node after which its memory is free; empty if that leaves."""

    node: str
    type: str
    last_use: str
    freed_after: str
    line: str


@dataclass(frozen=True)
class Report:
    """What is known of the memory of a program. Prints as three tables."""

    name: str
    aliases: list[Alias]
    writes: list[Write]
    lifetimes: list[Lifetime]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        sections: dict[str, Sequence[Alias | Write | Lifetime]] = {
            "values that may share memory": self.aliases,
            "writes": self.writes,
            "lifetimes": self.lifetimes,
        }
        lines = [f"{self.name}: {len(self.aliases)} aliases, {len(self.writes)} writes, {len(self.lifetimes)} values"]
        for title, rows in sections.items():
            lines += ["", f"{title}:", table(list(map(_shown, rows))) or "none"]
        return "\n".join(lines)


def _shown(row: Alias | Write | Lifetime) -> dict[str, Any]:
    found = {key.replace("_", " "): value for key, value in vars(row).items()}
    return {key: ", ".join(value) if isinstance(value, tuple) else value for key, value in found.items()}


def report(captured: Any) -> Report:
    """Tell which values of a captured program may share memory, what writes to what, and when each value dies."""
    program = program_of(captured)
    found = Sharing(program.graph, getattr(program, "root", program))
    return Report(
        name=getattr(program, "__name__", type(program).__name__),
        aliases=list(_aliases(found)),
        writes=list(_writes(found)),
        lifetimes=list(_lifetimes(program.graph, found)),
    )


# ---- who shares memory with whom -------------------------------------------------------------------------------------


class Sharing:
    """The memories that each value may lie in, named by the nodes that made them: inputs, attributes, calls."""

    def __init__(self, graph: Graph, root: Any) -> None:
        self.root = root
        self.graph = graph
        self.memories: dict[Node, Memories] = {}
        self.states: dict[Any, Node] = {}
        """The first node that reads each memory of the module's."""
        self._go_through(graph, None)

    def of(self, value: Any) -> Memories:
        """The memories that a nest of nodes may lie in."""
        found = (self.memories.get(leaf, frozenset()) for leaf in leaves(value) if isinstance(leaf, Node))
        return frozenset().union(*found)

    def _go_through(self, graph: Graph, given: list[Memories] | None) -> Memories:
        """Find the memories of all nodes of a graph whose inputs lie in these; those that it gives back come out."""
        inputs = iter(given or ())
        for node in graph.nodes:
            if node.op == "placeholder":
                memories = frozenset({node}) if given is None else next(inputs)
            elif node.op == "get_attr":
                memories = self._of_attribute(node)
            elif node.op == "output":
                return self.of(node.args)
            else:
                memories = self._of_call(node)
            self.memories[node] = memories | self.memories.get(node, frozenset())
        return frozenset()

    def _of_attribute(self, node: Node) -> Memories:
        held = memory_in(resolve(self.root, str(node.target)))
        return frozenset(self.states.setdefault(key, node) for key in held) or frozenset({node})

    def _of_call(self, node: Node) -> Memories:
        control = control_of(node)
        if isinstance(control, Branch):
            given = [self.of(operand) for operand in control.operands]
            return frozenset().union(*(self._go_through(body, given) for body in control.bodies))
        if isinstance(control, Loop):
            return self._of_loop(control)
        for body in bodies_of(node):
            everything = self.of((node.args, node.kwargs))
            everything |= self._go_through(body, [everything for _ in inputs_of(body)])
            self.memories[node] = everything
        name = self._name(node)
        if is_number(node.value_type) or name == "setitem":
            return frozenset()
        if self.makes_memory(node):
            return frozenset({node})
        shared = self.of(node.args[:1] if name == "getitem" else (node.args, node.kwargs))
        is_view = name in VIEWS or (name == "getitem" and _is_basic(node.args[1])) or _writes_to_first(node)
        return shared if shared and is_view else shared | {node}

    def _of_loop(self, loop: Loop) -> Memories:
        """Rounds are gone through until nothing new is found: what one gives back the next may be given."""
        carried, before = self.of(loop.carried), None
        around = [self.of(operand) for operand in loop.operands]
        items = [self.of(loop.iterable)] if loop.is_for else []
        while carried != before:
            before = carried
            given = [carried for _ in loop.carried]
            if loop.test is not None:
                self._go_through(loop.test, [*given, *around])
            carried |= self._go_through(loop.body, [*given, *items, *around])
        return carried

    def _name(self, node: Node) -> str:
        module = resolve(self.root, str(node.target)) if node.op == "call_module" else None
        found = guest_of(node.target) if node.op == "call_function" else None
        return operation_of(node, module, "torch" if found is None else found.package)[0]

    def makes_memory(self, node: Node) -> bool:
        """Whether a call gives memory of its own for certain."""
        name = self._name(node)
        if name not in TABLE or name in MAY_RETURN_INPUT or node.kwargs.get("copy") is False:
            return False
        return not self.written_arguments(node) and (name in COPIES or name not in _FREE)

    def written_arguments(self, node: Node) -> list[Any]:
        """The arguments that a call may write to."""
        effect = effect_of(node, self.root)
        if effect not in (Effect.WRITE, Effect.UNKNOWN) or control_of(node) is not None:
            return []
        if effect is Effect.UNKNOWN:
            return [node.args, node.kwargs]
        if node.op == "call_module":
            module = resolve(self.root, str(node.target))
            return list(node.args[:1]) if getattr(module, "inplace", False) else []
        if node.kwargs.get("out") is not None:
            return [node.kwargs["out"]]
        return [node.args, node.kwargs] if sets_state(node.target) else _first_written(node)


def _first_written(node: Node) -> list[Any]:
    """What a function or method that writes writes to, as torch says: its first argument, and statistics of norms."""
    found = [leaf for leaf in leaves((node.args, node.kwargs)) if isinstance(leaf, Reference)]
    return found if "norm" in str(getattr(node.target, "__name__", node.target)) else list(node.args[:1]) or found


def _writes_to_first(node: Node) -> bool:
    """Whether a call gives back the array that it was called on, written to."""
    return node.op == "call_method" and node.target.endswith("_") and not node.target.endswith("__")


def _is_basic(index: Any) -> bool:
    """Whether an index takes a part of an array, or of a nest, without copying it."""
    numbers = (int, str, slice, type(None), type(...))
    return all(
        is_number(leaf.value_type) if isinstance(leaf, Node) else isinstance(leaf, numbers) for leaf in leaves(index)
    )


def is_number(kind: Type | None) -> bool:
    """Whether a type is that of a plain value of Python, which lies in no array's memory."""
    return isinstance(kind, ScalarType)


# ---- the three reports -----------------------------------------------------------------------------------------------


def _aliases(sharing: Sharing) -> Iterable[Alias]:
    for node, memories in sharing.memories.items():
        others = tuple(sorted(_name_of(one) for one in memories if one is not node))
        if others and node.op != "placeholder":
            yield Alias(node.name, others, line_of(node))


def _name_of(memory: Node) -> str:
    return f"self.{memory.target}" if memory.op == "get_attr" else memory.name


def _writes(sharing: Sharing) -> Iterable[Write]:
    for node in sharing.memories:
        effect = effect_of(node, sharing.root)
        if effect not in (Effect.WRITE, Effect.UNKNOWN) or control_of(node) is not None or node.target is guard:
            continue
        memories = sharing.of(sharing.written_arguments(node))
        inputs = tuple(sorted(one.name for one in memories if one.op == "placeholder"))
        state = {f"self.{one.target}" for one in memories if one.op == "get_attr"}
        if node.op == "call_module":
            state |= set(_state_of(node, sharing.root))
        inside = (one.name for one in memories if one.op not in ("placeholder", "get_attr") and one is not node)
        yield Write(node.name, effect.value, inputs, tuple(sorted(state)), tuple(sorted(inside)), line_of(node))


def _state_of(node: Node, root: Any) -> Iterable[str]:
    """The arrays of a module that calling it may write to: its buffers."""
    module = resolve(root, str(node.target))
    for name, _ in getattr(module, "named_buffers", tuple)():
        yield f"self.{node.target}.{name}"


def _lifetimes(graph: Graph, sharing: Sharing) -> Iterable[Lifetime]:
    """The values of a graph, then those of the graphs inside of it."""
    nodes = list(graph.nodes)
    ends = {used: user for user, freed in last_uses(nodes).items() for used in freed}
    place = {node: number for number, node in enumerate(nodes)}
    freed: dict[Node, int] = {}
    for node in nodes:
        for memory in sharing.memories.get(node, ()):
            freed[memory] = max(freed.get(memory, 0), place[ends.get(node, node)])
    for node in nodes:
        kind = node.value_type
        if node.op in ("placeholder", "get_attr", "output") or is_number(kind) or node.target is guard:
            continue
        memories = sharing.memories[node]
        outside = any(one.op in ("placeholder", "get_attr") or one not in place for one in memories)
        after = None if outside or not memories else nodes[max(freed[one] for one in memories)]
        end = "" if after is None or after.op == "output" else after.name
        last, shown = ends.get(node), str(kind) if isinstance(kind, ArrayType) else ""
        yield Lifetime(node.name, shown, "" if last is None else last.name, end, line_of(node))
        for body in bodies_of(node):
            yield from _lifetimes(body, sharing)
