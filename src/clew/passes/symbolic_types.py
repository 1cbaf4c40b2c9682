"""Types with symbols: sizes inside of a program in terms of the sizes of its inputs, ``f32[batch, length, 64]``.

A graph or a captured torch program comes in, whose types are those of an example; it is changed in place and returned
with types whose dimensions are numbers, where the weights and literals of the program decide them, or expressions of
the inputs' sizes. ``names`` calls these as the user does; a number there means a size that stays as it is. The rules
are those of the capture (``frameworks/torch/sizes``), judged against the example; a size that no rule knows gets a name
of its own, that of its node. Nothing but types is changed: text, tables, views and the parts that ``extract`` and
``split`` make show them.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from clew.capture.guards.sizes import (
    ARITHMETIC,
    Opaque,
    Size,
    Symbol,
    atoms_of,
    compare,
    in_example,
    of_atom,
)
from clew.errors import GraphError
from clew.frameworks.torch.sizes.rules import Several
from clew.frameworks.torch.sizes.table import answer_of
from clew.ir.control_flow import Branch, Loop, control_of, inputs_of, returned
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.types import ArrayType, ScalarType
from clew.passes.program import ProgramT, graph_in, opened

Names = Mapping[str, Sequence[str | int]]


def symbolic_types(program: ProgramT, names: Names | None = None) -> ProgramT:
    """The program with symbols in its types; it is changed in place and returned.

    ``names`` are the sizes of inputs by the inputs' names: ``{"tokens": ("batch", "length")}``. One name in two places
    is one size. Sizes of other inputs are called by the input and the place: ``tokens_0``.
    """
    graph = graph_in(program)
    if any(isinstance(size, str) for node in inputs_of(graph) for size in getattr(node.value_type, "shape", ())):
        return program  # it has symbols, and an example can no longer be told from them
    _check_names(graph, names or {})
    with opened(program):
        sizes = _Sizes(dict(names or {}))
        sizes.enter(graph, {})
        for node, shape in sizes.shapes.items():
            kind = node.value_type
            assert isinstance(kind, ArrayType)
            node.value_type = ArrayType(kind.dtype, tuple(map(sizes.text, shape)), kind.device)
    return program


def _check_names(graph: Graph, names: Names) -> None:
    known = [str(node.target) for node in inputs_of(graph) if isinstance(node.value_type, ArrayType)]
    for name in names:
        if name not in known:
            raise GraphError(f"no input that is an array is called {name!r}", fixes=[f"the inputs: {', '.join(known)}"])


class _Sizes:
    """The sizes of the arrays and numbers of a graph and of those inside of it, as the shape rules ask for them."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.shapes: dict[Node, tuple[Size, ...]] = {}
        self.is_assuming = False
        self.unranked: dict[Node, Any] = {}
        self._numbers: dict[Node, Size | None] = {}
        self._several: dict[Node, Sequence[Any]] = {}
        self._symbols: dict[str, Symbol] = {}
        self._called: dict[Symbol, str] = {}
        self._sides: dict[Node, list[Any]] = {}
        self._own_symbols: dict[tuple[Node, int], Size] = {}

    # ---- going over the graph ----------------------------------------------------------------------------------------

    def enter(self, graph: Graph, given: dict[Node, tuple[Size, ...]]) -> None:
        """Find the sizes of a graph, of whose inputs these are known."""
        self.shapes.update(given)
        for node in graph.nodes:
            if node in given:
                continue
            if node.op == "placeholder":
                self._input(node)
            elif node.op == "get_attr":
                self._attribute(node)
            elif node.op != "output":
                self._call(node)

    def _input(self, node: Node) -> None:
        if not isinstance(node.value_type, ArrayType):
            return
        wanted = self.names.get(str(node.target))
        real = node.value_type.shape
        if wanted is not None and len(wanted) != len(real):
            raise GraphError(
                f"the input {node.target} has {len(real)} sizes, and {len(wanted)} names are given for them",
                fixes=[f"give as many: {node.value_type}"],
            )
        if wanted is None:
            self.shapes[node] = tuple(self._own_sizes(node))
        else:
            self.shapes[node] = tuple(self._named(one, size, node) for one, size in zip(wanted, real, strict=True))

    def _named(self, name: str | int, real: Any, node: Node) -> Size:
        if isinstance(name, int):
            if name != real:
                raise GraphError(f"a size of {node.name} is {real} in the example, and is said to be {name}")
            return name
        found = self._symbols.get(name)
        if found is not None and found.example != real:
            raise GraphError(
                f"two sizes are called {name!r}, and are {found.example} and {real} in the example",
                fixes=["give them different names"],
            )
        return self._symbol(name, real)

    def _symbol(self, name: str, example: int | None) -> Size:
        found = self._symbols.get(name)
        if found is None:
            found = self._symbols[name] = Symbol((name, None), example)
            self._called[found] = name
        return of_atom(found)

    def _attribute(self, node: Node) -> None:
        value = resolve(node.graph.owning_module, str(node.target))
        if isinstance(node.value_type, ArrayType) and hasattr(value, "shape"):
            self.shapes[node] = tuple(map(int, value.shape))

    def _call(self, node: Node) -> None:
        control = control_of(node)
        if control is not None:
            self._control(node, control)
            return
        answer = answer_of(self, node, lambda path: resolve(node.graph.owning_module, path))  # type: ignore[arg-type]
        if not isinstance(node.value_type, ArrayType):
            self._several[node] = answer if isinstance(answer, Several) else ()
            return
        real, said = node.value_type.shape, self._said(node, answer)
        known = said if said is not None and self._agrees(said, real) else [None] * len(real)
        self.shapes[node] = tuple(
            self._own_size(node, place) if found is None else found for place, found in enumerate(known)
        )

    def _said(self, node: Node, answer: Any) -> Sequence[Size | None] | None:
        source = node.args[0] if node.target is operator.getitem else None
        if isinstance(source, Node) and not isinstance(source.value_type, ArrayType):
            place = node.args[1]
            if source in self._sides:
                return self._joined(source, place)
            several = self._several.get(source, ())
            return several[place] if type(place) is int and -len(several) <= place < len(several) else None
        if node.target is getattr and node.args[0] in self.shapes:
            shape, turned = self.shapes[node.args[0]], {"mT": -2, "mH": -2, "T": 0, "H": 0, "data": None}
            if node.args[1] in turned:
                start = turned[node.args[1]]
                return shape if start is None else (*shape[:start], *shape[start:][::-1])
        return None if isinstance(answer, Several) else answer

    def _agrees(self, said: Sequence[Size | None], real: Sequence[Any]) -> bool:
        """Whether a rule is right about the example."""
        try:
            pairs = [(in_example(one), size) for one, size in zip(said, real, strict=True) if one is not None]
        except (LookupError, ValueError, TypeError):  # another rank, or a number of which no example is known
            return False
        return all(one == size or not isinstance(size, int) for one, size in pairs)

    def _control(self, node: Node, control: Branch | Loop) -> None:
        item = (None,) if isinstance(control, Loop) and control.is_for else ()
        before = () if isinstance(control, Branch) else (*[None] * len(control.carried), *item)
        given = [*before, *control.operands]
        for body in control.bodies:
            pairs = zip(inputs_of(body), given, strict=True)
            known = {own: self.shapes[one] for own, one in pairs if isinstance(one, Node) and one in self.shapes}
            self.enter(body, known)
        self._sides[node] = [returned(body) for body in control.bodies] if isinstance(control, Branch) else []
        if isinstance(node.value_type, ArrayType):
            self.shapes[node] = tuple(one for one in self._own(node))

    def _own(self, node: Node) -> list[Size]:
        shapes = [self.shapes.get(side) for side in self._sides[node] if isinstance(side, Node)]
        if shapes and shapes[0] is not None and all(shape == shapes[0] for shape in shapes):
            return list(shapes[0])
        return self._own_sizes(node)

    def _own_sizes(self, node: Node) -> list[Size]:
        kind = node.value_type
        return [self._own_size(node, at) for at in range(len(kind.shape) if isinstance(kind, ArrayType) else 0)]

    def _own_size(self, node: Node, place: int) -> Size:
        """A size that no rule knows: it is called as its node, and like no other size."""
        known = self._own_symbols.get((node, place))
        if known is None:
            name, kind = f"{node.name}_{place}", node.value_type
            while name in self._symbols:
                name += "_"
            real = kind.shape[place] if isinstance(kind, ArrayType) else None
            known = self._own_symbols[node, place] = self._symbol(name, real if isinstance(real, int) else None)
        return known

    def _joined(self, source: Node, place: Any) -> Sequence[Size] | None:
        """The shape of an item that all sides of a branch agree on."""
        sides = self._sides[source]
        items = [side[place] if isinstance(side, tuple) and type(place) is int else None for side in sides]
        shapes = [self.shapes.get(one) if isinstance(one, Node) else None for one in items]
        return shapes[0] if shapes and all(shape is not None and shape == shapes[0] for shape in shapes) else None

    # ---- what the rules ask ------------------------------------------------------------------------------------------

    def shape_of(self, node: Node) -> tuple[Size, ...]:
        """The sizes of an array."""
        if node not in self.shapes:
            self.shapes[node] = tuple(self._own_sizes(node))
        return self.shapes[node]

    def shape_of_attribute(self, tensor: Any) -> tuple[Size, ...]:
        """The sizes of a weight, which are numbers here."""
        return tuple(map(int, tensor.shape))

    def number(self, node: Node) -> Size | None:
        """The whole number that a node stands for, as far as it follows from sizes."""
        if node not in self._numbers:
            self._numbers[node] = self._computed(node)
        return self._numbers[node]

    def _computed(self, node: Node) -> Size | None:
        if node.value_type != ScalarType("int"):
            return None
        found = self._read(node)
        if found is None and node.op == "call_function" and node.target in ARITHMETIC and len(node.args) == 2:
            left, right = (one if type(one) is int else self.number(one) for one in node.args)
            if left is not None and right is not None:
                found = ARITHMETIC[node.target](left, right)
        return self._symbol(node.name, None) if found is None else found

    def _read(self, node: Node) -> Size | None:
        """The size that a node reads: ``x.shape[1]``, ``x.size(1)``, ``len(x)``."""
        source, place = node.args[0] if node.args else None, node.args[1] if len(node.args) > 1 else None
        if node.target is operator.getitem and isinstance(source, Node) and source.target is getattr:
            source, name = source.args
            return self._at(source, place) if name == "shape" else None
        if node.op == "call_method" and node.target == "size":
            return self._at(source, place)
        return self._at(source, 0) if node.target is len else None

    def _at(self, source: Any, place: Any) -> Size | None:
        shape = self.shapes.get(source, ()) if isinstance(source, Node) else ()
        return shape[place] if type(place) is int and -len(shape) <= place < len(shape) else None

    def example(self, size: Size) -> int:
        """What a size is in the example."""
        return in_example(size)

    def is_one(self, size: Size) -> bool:
        """Whether a size is one in the example."""
        return in_example(size) == 1

    def is_held(self, size: Size) -> bool:
        """Whether a size is that of a weight, all of which are numbers here."""
        return False

    def is_held_symbol(self, symbol: Symbol) -> bool:
        """Likewise."""
        return False

    def relies_on(self, function: Any, left: Size, right: Size) -> bool:
        """Whether a comparison always holds."""
        return bool(compare(function, left, right))

    # ---- text --------------------------------------------------------------------------------------------------------

    def text(self, size: Size) -> int | str:
        """A size as a type has it."""
        if isinstance(size, int):
            return size
        parts = [self._term(factor, atoms_of(one)) for one, factor in size.terms.items()]
        return " + ".join(sorted(parts, key=lambda part: part.lstrip("-").isdigit())).replace("+ -", "- ")

    def _term(self, factor: Any, atoms: list[Any]) -> str:
        names = [self._atom(atom) for atom in atoms]
        return "*".join(names if factor == 1 and names else [str(factor), *names])

    def _atom(self, atom: Symbol | Opaque) -> str:
        if isinstance(atom, Symbol):
            return self._called.get(atom, repr(atom))
        args = [str(self.text(one)) for one in atom.args]
        if atom.kind in ("min", "max"):
            return f"{atom.kind}({', '.join(args)})"
        bare = [one if one.isidentifier() or one.isdigit() else f"({one})" for one in args]
        return f"({f' {atom.kind} '.join(bare)})"
