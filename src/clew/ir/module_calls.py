"""Calls of modules that a capture has entered: what each was given and returned. Nodes by the module that made them.

While a program is recorded, ``note_call`` marks the nodes that went into a call of a module and those that came out of
it; the marks are notes of the nodes (``meta["module_calls"]``), so that copies, passes and saved graphs have them.
``calls_of`` puts them together again: for a path, one ``ModuleCall`` for each call that the graph still holds. A module
that stays one node is a call by itself. Always holds: nests of a call are those of the program, with nodes in the place
of values; what the graph has no node for is an ``Unheld``, and None where the node is gone because nobody needs it.

``find`` gives the nodes that meet all of some conditions, those of nested graphs included: the module that made them,
what they do, their source line, their name or the user's variable. A module path is a pattern of names between dots:
``*`` stands within a name, ``**`` for any number of names. A node is inside of every module of its ``nn_module_stack``;
a call of a module that stays one node is inside of that one too. ``node_of`` gives what a module returned.
"""

from __future__ import annotations

import difflib
import fnmatch
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from clew.errors import GraphError, a_or_an
from clew.ir.arguments import BASE_TYPES, leaves, nested_graphs, rebuilt_tuple
from clew.ir.control_flow import control_of, inputs_of
from clew.ir.effects import resolve
from clew.ir.node import Node
from clew.ir.spellings import forms_of, operations_of

if TYPE_CHECKING:
    from clew.ir.graph import Graph

MARKS = "module_calls"
_PLAIN = frozenset(BASE_TYPES)


# ---- what a call is given and gives ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a node in a nest, by its number in the call."""

    number: int


@dataclass(frozen=True, slots=True)
class Unheld:
    """A value without a node that a call was given or gave, by its class."""

    kind: str


@dataclass(frozen=True, slots=True)
class Record:
    """A dict of a class of its own, such as the outputs of transformers' models."""

    kind: type
    items: dict[Any, Any]

    def made(self) -> Any:
        """An object of the class with these items: only what is a keyword of its constructor can be given to that."""
        is_named = all(isinstance(key, str) for key in self.items)
        return self.kind(**self.items) if is_named and hasattr(self.kind, "__dataclass_fields__") else dict(self.items)


def mapped(nest: Any, change: Callable[[Any], Any]) -> Any:
    """The nest with ``change`` applied to its leaves; lists and dicts are plain ones."""
    if isinstance(nest, Record):
        return Record(nest.kind, {key: mapped(item, change) for key, item in nest.items.items()})
    if isinstance(nest, tuple):
        return rebuilt_tuple(nest, [mapped(item, change) for item in nest])
    if isinstance(nest, list):
        return [mapped(item, change) for item in nest]
    if isinstance(nest, dict):
        return {key: mapped(item, change) for key, item in nest.items()}
    return change(nest)


def as_returned(nest: Any) -> Any:
    """A nest of values as a program has it: records are objects of their classes."""
    if isinstance(nest, Record):
        return Record(nest.kind, {key: as_returned(item) for key, item in nest.items.items()}).made()
    if isinstance(nest, tuple):
        return rebuilt_tuple(nest, [as_returned(item) for item in nest])
    if isinstance(nest, list):
        return [as_returned(item) for item in nest]
    return {key: as_returned(item) for key, item in nest.items()} if isinstance(nest, dict) else nest


@dataclass(frozen=True, eq=False)
class Shape:
    """What one call was given and gave, with slots in the place of nodes."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


@dataclass(frozen=True)
class Mark:
    """The note of a node that a call was given or gave. Marks of the same call are equal, whichever run made them."""

    path: str
    number: int = field(compare=False)
    shape: Shape = field(compare=False)


class Noted(Protocol):
    """A node, or what will become one and keeps notes for it."""

    @property
    def meta(self) -> dict[str, Any]:
        """Its notes."""


class _Describing:
    """Replaces values by slots; ``node_for`` gives the node of a value, or None."""

    def __init__(self, node_for: Callable[[Any], Noted | None]) -> None:
        self.node_for = node_for
        self.slots: dict[Noted, Slot] = {}

    def of(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is tuple:
            return tuple([self.of(item) for item in value])
        node = self.node_for(value)
        if node is not None:
            return self.slots.setdefault(node, Slot(len(self.slots)))
        if kind is list:
            return [self.of(item) for item in value]
        if isinstance(value, dict):
            items = {key: self.of(item) for key, item in dict.items(value)}
            return items if kind is dict else Record(kind, items)
        if isinstance(value, tuple) and hasattr(value, "_make"):
            return rebuilt_tuple(value, [self.of(item) for item in value])
        if kind is Record:
            return Record(value.kind, self.of(value.items))
        return value if kind is Unheld else Unheld(kind.__name__)


def note_call(
    key: str,
    path: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Any,
    node_for: Callable[[Any], Noted | None],
) -> None:
    """Mark the nodes that a call of a module was given, and those of what it returned."""
    describing = _Describing(node_for)
    shape = Shape(describing.of(args), describing.of(kwargs), describing.of(result))
    for node, slot in describing.slots.items():
        node.meta[MARKS] = {**node.meta.get(MARKS, {}), key: Mark(path, slot.number, shape)}


# ---- calls of a graph ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ModuleCall:
    """One call of a module in a graph."""

    key: str
    """The path, and from the second call on ``@1``, ``@2``: the name of the call in ``nn_module_stack``."""
    path: str
    graph: Graph
    """The graph that holds what was returned: the outermost one, or a body of control flow."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any

    @property
    def number(self) -> int:
        """Which call of the module it is, counted from 1."""
        return 1 + int(self.key[len(self.path) + 1 :] or 0)

    @property
    def is_value(self) -> bool:
        """Whether no call of a module is meant, but one value of the graph, by its node: see ``value_at``."""
        return self.key.startswith(_VALUE)

    @property
    def is_one_node(self) -> bool:
        """Whether the module is called as a whole."""
        node = self.result
        is_call = isinstance(node, Node) and node.op == "call_module"
        return is_call and next(reversed(stack_of(node)), None) == self.key and node.args == self.args

    @property
    def results(self) -> list[Node]:
        """The nodes of what was returned, each once."""
        return list(dict.fromkeys(leaf for leaf in held_in(self.result) if isinstance(leaf, Node)))

    def contains(self, node: Node) -> bool:
        """Whether a node was recorded inside of this call."""
        return self.key in stack_of(node)


_VALUE = "%"
"""Begins the key of a value, which no path of a module does."""


def value_at(graph: Graph, node: Node) -> ModuleCall:
    """One value of a graph in the words of calls: it is all that is returned, and nothing was recorded inside."""
    graphs = [graph, *nested_graphs(graph)]
    place = next((place for place, one in enumerate(graphs) if one is node.graph), None)
    if place is None or node not in node.graph.nodes:
        raise GraphError(f"the node {node.name!r} is of another graph, or was erased")
    if node.op in ("placeholder", "output"):
        what = "an input" if node.op == "placeholder" else "the end"
        raise GraphError(f"the node {node.name!r} is {what} of the graph, and computes nothing")
    path = _VALUE + node.name
    return ModuleCall(f"{path}@{place}" if place else path, path, node.graph, (), {}, node)


def value_named(graph: Graph, name: str) -> Node | None:
    """The one value that has a name, as a node or as the variable of the user that it was assigned to."""
    found = [node for node in find(graph, None, None, None, None, name) if node.op not in ("placeholder", "output")]
    exact = [node for node in found if node.name == name] or found
    if len(exact) > 1:
        names = ", ".join(node.name for node in exact[:6])
        raise GraphError(
            f"{name!r} is the name of {len(exact)} values: {names}", fixes=["give a node: graph.find(name=...)"]
        )
    return exact[0] if exact else None


def call_named(graph: Graph, key: str) -> list[ModuleCall]:
    """The calls with a key, of which there is one in each body that holds the call; or the value with this key."""
    path, _, number = key.partition("@")
    if not key.startswith(_VALUE):
        return calls_at(graph, path, int(number or 0) + 1)
    body = [graph, *nested_graphs(graph)][int(number or 0)]
    return [value_at(graph, node) for node in body.nodes if node.name == path[len(_VALUE) :]]


def held_in(nest: Any) -> Iterable[Any]:
    """The leaves of a nest, those of records too."""
    for leaf in leaves(nest):
        if isinstance(leaf, Record):
            yield from held_in(leaf.items)
        else:
            yield leaf


def stack_of(node: Node) -> dict[str, tuple[str, Any]]:
    """The modules inside of which a node was recorded: path and class by the name of the call."""
    found: dict[str, tuple[str, Any]] = (node._meta or {}).get("nn_module_stack") or {}
    return found


def all_calls(graph: Graph) -> Iterator[ModuleCall]:
    """The calls of modules that a graph holds, those of bodies of control flow too; each graph's own in their order."""
    graphs = [graph, *nested_graphs(graph)]
    origins = {inner: outer for one in graphs for inner, outer in _operands_in(one)}
    for one in graphs:
        yield from _calls_in(one, origins)


def _operands_in(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """The inputs of the bodies of branches and loops, each with the node around it whose value it has."""
    for node in graph.nodes:
        control = control_of(node)
        if control is not None and control.operands:
            for body in control.bodies:
                inputs = inputs_of(body)[-len(control.operands) :]
                pairs = zip(inputs, control.operands, strict=False)
                yield from ((inner, outer) for inner, outer in pairs if isinstance(outer, Node))


def _calls_in(graph: Graph, origins: dict[Node, Node]) -> Iterator[ModuleCall]:
    marked: dict[str, tuple[Mark, dict[int, Node]]] = {}
    found: dict[str, ModuleCall] = {}
    for node in graph.nodes:
        for key, mark in (node._meta or {}).get(MARKS, {}).items():
            known = marked.setdefault(key, (mark, {}))
            known[1].setdefault(mark.number, node)
        if node.op == "call_module":
            key, (path, _) = next(reversed(stack_of(node).items()), ("", ("", None)))
            if path == node.target:
                found[key] = ModuleCall(key, path, graph, node.args, dict(node.kwargs), node)
    _note_operands(graph, origins, marked)
    for key, (mark, nodes) in marked.items():
        call = _filled(key, mark, nodes, graph)
        if call is not None:
            found[key] = call
    yield from found.values()


def _note_operands(graph: Graph, origins: dict[Node, Node], marked: dict[str, tuple[Mark, dict[int, Node]]]) -> None:
    """Note the inputs of a body for what calls in it are given from around it."""
    for node in inputs_of(graph):
        outer = origins.get(node)
        while outer is not None:
            for key, mark in (outer._meta or {}).get(MARKS, {}).items():
                if key in marked:
                    marked[key][1].setdefault(mark.number, node)
            outer = origins.get(outer)


def _filled(key: str, mark: Mark, nodes: dict[int, Node], graph: Graph) -> ModuleCall | None:
    """A call with its nodes; None if nothing of what it returned is in the graph."""
    parts = mapped((mark.shape.args, mark.shape.kwargs, mark.shape.result), lambda leaf: _node(leaf, nodes))
    call = ModuleCall(key, mark.path, graph, *parts)
    return call if call.results else None


def _node(leaf: Any, nodes: dict[int, Node]) -> Any:
    return nodes.get(leaf.number) if isinstance(leaf, Slot) else leaf


def nearest(paths: Iterable[str], wanted: str) -> str:
    """The paths that somebody may have meant, as an advice."""
    known = list(dict.fromkeys(path for path in paths if path))
    last = wanted.rpartition(".")[2]
    near = difflib.get_close_matches(wanted, known, 4, 0.6)
    near += [path for path in known if path.rpartition(".")[2] == last and path not in near]
    near = (near or known)[:8]
    return f"the nearest of the graph's modules: {', '.join(near)}" if near else "the graph knows no modules"


def not_returned(path: str, call: int | None, graph: Graph) -> GraphError:
    """The error for a module of whose result the graph has no node."""
    nodes = [node for one in (graph, *nested_graphs(graph)) for node in one.nodes]
    known = [found for node in nodes for found, _ in stack_of(node).values()]
    if path not in known:
        return GraphError(f"the graph has no node of the module {path!r}", fixes=[nearest(known, path)])
    if call is not None and call > 1:
        return GraphError(
            f"the graph has no call {call} of the module {path!r}",
            fixes=["give the number of one of its calls, from 1 on"],
        )
    return GraphError(
        f"the graph has no node for what the module {path!r} returned",
        why="it returned no values of this graph, or they were edited away",
        fixes=[f"keep the module as one call: clew.trace(..., leaves={path!r})"],
    )


# ---- addressing: nodes by the module that made them, what they do, their line, their name or the user's variable -----


def find(
    graph: Any, module: str | None, op: Any, kind: type | str | None, line: str | int | None, name: str | None
) -> list[Node]:
    """The nodes of ``graph`` that meet all conditions that are not None."""
    nodes = [node for one in (graph, *nested_graphs(graph)) for node in one.nodes]
    wanted = None if module is None else path_pattern(module)
    return [
        node
        for node in nodes
        if (wanted is None or any(wanted.fullmatch(path) for path, _ in stack_of(node).values()))
        and (op is None or does(node, op, graph.owning_module))
        and (kind is None or any(_is_kind(found, kind) for _, found in stack_of(node).values()))
        and (line is None or _is_at(node, line))
        and (name is None or _is_named(node, name))
    ]


@functools.lru_cache(maxsize=256)
def path_pattern(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern of module paths."""
    names = [".*" if one == "**" else re.escape(one).replace(r"\*", "[^.]*") for one in pattern.split(".")]
    return re.compile(r"\.".join(names))


def does(node: Node, op: Any, root: Any) -> bool:
    """Whether a node does what ``op`` says: a function however it is spelled, a class of modules, an opcode, a name.

    ``root`` has the modules, of which graphs inside of a graph do not know.
    """
    if isinstance(op, str):
        return op in (node.op, node.target) or any(form.operation == op for form in forms_of(node))
    if isinstance(op, type) and node.op == "call_module":
        return isinstance(resolve(root, str(node.target)), op)
    if node.op == "call_function" and node.target == op:
        return True
    wanted = operations_of(op)
    return any((form.framework, form.operation) in wanted for form in forms_of(node))


def _is_kind(found: Any, kind: type | str) -> bool:
    """Whether a class, which is a name in what was loaded, is meant by a class, its name, or its qualified name."""
    if isinstance(found, type) and isinstance(kind, type):
        return issubclass(found, kind)
    names = [_qualified(one) for one in found.__mro__] if isinstance(found, type) else [str(found)]
    wanted = kind if isinstance(kind, str) else _qualified(kind)
    return any(name == wanted or (isinstance(kind, str) and name.endswith(f".{kind}")) for name in names)


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_named(node: Node, name: str) -> bool:
    """Whether a node, or the user's variable that its value was assigned to, has a name."""
    variable = None if node.source is None else node.source._variable
    return fnmatch.fnmatchcase(node.name, name) or variable == name


def _is_at(node: Node, line: str | int) -> bool:
    """Whether a node comes from a line, given as a number or as ``model.py:12``."""
    if node.source is None:
        return False
    if isinstance(line, int):
        return node.source.lineno == line
    return f"/{node.source.filename}:{node.source.lineno}".endswith(f"/{line}")


def calls_at(graph: Any, path: str, call: int | None = None) -> list[ModuleCall]:
    """The calls of the modules whose paths fit a pattern, all of them or the one of this number.

    A call inside of control flow is there once for each body that holds it. The error names the nearest paths.
    """
    if not isinstance(path, str):
        raise GraphError(
            f"a module is addressed by its path, and this is {a_or_an(path)}", fixes=["'encoder.layer.1', or a pattern"]
        )
    wanted = path_pattern(path)
    fitting = [one for one in all_calls(graph) if wanted.fullmatch(one.path)]
    found = [one for one in fitting if call is None or one.number == call]
    if not found and not any(MARKS in (node._meta or {}) for node in graph.nodes):
        found = _guessed(graph, path, call or 1)
    if not found:
        raise not_returned(path, call, graph)
    return found


def _guessed(graph: Any, path: str, call: int) -> list[ModuleCall]:
    """A call in a graph that another tool has recorded: its value is the only one that leaves the module."""
    key = path if call == 1 else f"{path}@{call - 1}"
    inside = {node for node in graph.nodes if key in stack_of(node) and node.op != "get_attr"}
    leaving = [node for node in graph.nodes if node in inside and not inside.issuperset(node.users)]
    given = tuple(Unheld("value") for _ in leaving)
    return [ModuleCall(key, path, graph, given, {}, leaving[0])] if len(leaving) == 1 else []


def node_of(graph: Any, path: str, call: int = 1) -> Any:
    """What a module returned in its first call, or another one: a node, or the nest of nodes that it returned."""
    found = calls_at(graph, path, call)[0].result
    return as_returned(found)
