"""A graph as boxes: one box for each call of a module and each body of control flow, and steps inside of them.

A captured program or a graph comes in; a ``Picture`` comes out: a tree of boxes and steps with a number each, and the
edges between them. Equal boxes that follow each other are found, so that they can be shown as one; long lists of steps
are cut into sections, so that no box has too many parts to be laid out at once. Always holds: each node of the graph,
those of bodies included, is one step or one box; an edge begins at what makes a value and ends at what takes it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from clew.errors import ClewError
from clew.ir.arguments import Reference, leaves
from clew.ir.control_flow import Branch, Loop, control_of, inputs_of
from clew.ir.effects import resolve
from clew.ir.format import format_argument, format_target
from clew.ir.graph import Graph
from clew.ir.guards import is_guard
from clew.ir.module_calls import stack_of
from clew.ir.node import Node
from clew.ir.shared_memory import written_array
from clew.ir.types import ArrayType, ScalarType
from clew.tools.verify import program_of

SECTION = 64
"""About how many parts a section of a long list has."""
LONGEST = 150
"""How many parts a box may have before they are put into sections."""

FACTS = frozenset("shape ndim dtype device requires_grad is_cuda size dim numel len".split())
"""Attributes, methods and functions that ask about an array and compute nothing."""


@dataclass(eq=False)
class Step:
    """A node that is drawn as one step."""

    number: int
    node: Node
    is_minor: bool = False
    """Whether it is left out unless asked for: sizes, dtypes, inputs that nobody uses, guards."""


@dataclass(eq=False)
class Box:
    """Steps and boxes that belong together."""

    number: int
    label: str
    path: str
    kind: str
    role: str = "module"
    """``module``, ``control`` (a branch or a loop), ``body`` (one of its bodies) or ``section``."""
    node: Node | None = None
    """The node that the box is, for control flow and for a module that has a graph of its own."""
    items: list[Step | Box] = field(default_factory=list)
    copies: int = 1
    """How many equal boxes begin here, this one included; those after it in the list have 0."""

    @property
    def is_minor(self) -> bool:
        """Whether there is nothing in it but minor steps."""
        return self.node is None and all(item.is_minor for item in self.items)

    def steps(self) -> Iterator[Step]:
        """All steps inside, in their order."""
        for item in self.items:
            if isinstance(item, Step):
                yield item
            else:
                yield from item.steps()


@dataclass
class Picture:
    """The boxes of a program, and what leads where."""

    name: str
    program: Any
    graph: Graph
    root: Box
    edges: list[tuple[int, int]]
    numbers: dict[Node, int]
    parts: list[Step | Box]
    """All steps and boxes, by their numbers."""
    parents: list[int]
    """The number of the box around each of them; that of the outermost is -1."""

    @functools.cached_property
    def code(self) -> tuple[str, dict[Node, tuple[int, int]]]:
        """The generated code, and the first and last line of it in which each node of the program is written."""
        return _code(self.graph, bool(getattr(self.program, "_inlines", False)))


def picture_of(captured: Any) -> Picture:
    """The boxes of a captured program or a graph."""
    program = program_of(captured)
    graph: Graph = program.graph
    name = getattr(program, "__name__", None) or type(program).__name__
    found = _Drawing(program, graph, str(name)).picture()
    for part in found.parts:
        if isinstance(part, Box) and part.role == "control" and part.node in found.code[1]:
            first = found.code[0].splitlines()[found.code[1][part.node][0] - 1].strip()
            if first.startswith(part.kind):
                part.label = first.removesuffix(":")
    return found


def _code(graph: Graph, inlines: bool) -> tuple[str, dict[Node, tuple[int, int]]]:
    try:
        code = graph.python_code("self", shown=True, inline=inlines)
    except ClewError as error:
        return f"# {error}", {}
    nodes, texts = list(graph.nodes), code.src.split("\n")
    lines: dict[Node, tuple[int, int]] = {}
    for number, place in (code._lineno_map or {}).items():
        line = number + code._prologue_start
        if place is None or place >= len(nodes) or texts[line - 1].lstrip().startswith("#"):
            continue
        lines[nodes[place]] = (lines.get(nodes[place], (line, line))[0], line)
    for node in reversed(nodes):  # what has no line of its own is written where it is used
        used = [lines[user] for user in node.users if user in lines]
        if node not in lines and node.op != "placeholder" and used:
            lines[node] = min(used)
    return code.src, lines


class _Drawing:
    """Makes the boxes of one graph."""

    def __init__(self, program: Any, graph: Graph, name: str) -> None:
        self.program, self.graph, self.name = program, graph, name
        self.holder = getattr(program, "root", program)
        self.parts: list[Step | Box] = []
        self.edges: list[tuple[int, int]] = []
        self.numbers: dict[Node, int] = {}
        self.writers: dict[Node, Node] = {}
        """What has written to an array last: who reads the array from then on reads that."""

    def picture(self) -> Picture:
        root = self.box(self.name, "", self.name)
        self.fill(root, self.graph, self.holder)
        _fold(root, _Signatures(self.numbers, self.holder))
        self.cut(root)
        parents = [-1] * len(self.parts)
        for part in self.parts:
            for item in part.items if isinstance(part, Box) else ():
                parents[item.number] = part.number
        return Picture(self.name, self.program, self.graph, root, self.edges, self.numbers, self.parts, parents)

    def box(self, label: str, path: str, kind: str, role: str = "module", node: Node | None = None) -> Box:
        found = Box(len(self.parts), label, path, kind, role, node)
        self.parts.append(found)
        return found

    def fill(self, outer: Box, graph: Graph, holder: Any) -> None:
        """Put the nodes of a graph into boxes for the modules that they were recorded in."""
        inside: dict[tuple[str, ...], Box] = {(): outer}
        around = outer.path
        for node in graph.nodes:
            calls = _calls(node, around)
            box = outer
            for depth, (_, path, kind) in enumerate(calls, 1):
                key = tuple(name for name, _, _ in calls[:depth])
                if key not in inside:
                    inside[key] = self.box(_tail(path, box.path), path, kind)
                    box.items.append(inside[key])
                box = inside[key]
            self.add(box, node, holder)

    def add(self, box: Box, node: Node, holder: Any) -> None:
        """One node: a step, or a box where it holds graphs."""
        control = control_of(node)
        inner = _graph_called(node, holder)
        if control is None and inner is None:
            part: Step | Box = Step(len(self.parts), node, _is_minor(node))
            self.parts.append(part)
        elif inner is not None:
            path = f"{box.path}.{node.target}".lstrip(".")
            part = self.box(str(node.target), path, type(inner[0]).__name__, node=node)
        else:
            part = self.box(*_words(control, node), role="control", node=node)
        box.items.append(part)
        self.numbers[node] = part.number
        if control is None and inner is None:
            self.link(node._inputs, part.number)
            array = written_array(node)
            if array is not None:
                self.writers[array] = node
        elif inner is not None:
            self.fill(part, inner[1], inner[0])  # type: ignore[arg-type]
            self.lead(node.args, inner[1], part.number)
            self.link(node.kwargs.values(), part.number)
        else:
            self.bodies(part, control, holder)  # type: ignore[arg-type]

    def bodies(self, box: Box, control: Branch | Loop, holder: Any) -> None:
        """The bodies of control flow, each in a box inside of the one for all."""
        names: tuple[str, ...] = ("if true", "if false")
        values: tuple[Any, ...] = control.operands
        if isinstance(control, Branch):
            self.link([control.predicate], box.number)
        else:
            item = (control.iterable,) if control.is_for else ()
            names = ("body",) if control.is_for else ("while", "body")
            values = (*control.carried, *item, *control.operands)
        for label, body in zip(names, control.bodies, strict=True):
            inner = self.box(label, box.path, label, "body")
            box.items.append(inner)
            self.fill(inner, body, holder)
            self.lead(values, body, inner.number)

    def lead(self, values: Any, body: Graph, border: int) -> None:
        """Values go to the inputs of a graph, in their order; what has no input there goes to the border of its box."""
        inputs = inputs_of(body)
        for place, value in enumerate(values):
            end = self.numbers[inputs[place]] if place < len(inputs) else border
            self.link([value], end)

    def link(self, values: Any, end: int) -> None:
        for leaf in leaves(list(values)):
            if isinstance(leaf, Reference) and leaf in self.numbers:
                self.edges.append((self.numbers[self.writers.get(leaf, leaf)], end))  # type: ignore[arg-type, index]

    def cut(self, box: Box) -> None:
        """Put the parts of a box with too many of them into sections, and so on inside."""
        for item in box.items:
            if isinstance(item, Box):
                self.cut(item)
        while sum(not item.is_minor and getattr(item, "copies", 1) > 0 for item in box.items) > LONGEST:
            box.items = [*self.sections(box)]

    def sections(self, box: Box) -> Iterator[Box]:
        """The parts of a box in sections; they are cut where few values cross."""
        items, start, size = box.items, 0, max(SECTION, len(box.items) // LONGEST + 1)
        crossing = _crossing(items, self.edges)
        while start < len(items):
            low, high = start + size * 3 // 4, min(start + size * 5 // 4, len(items))
            end = len(items) if high >= len(items) else min(range(low, high), key=crossing.__getitem__)
            while end < len(items) and getattr(items[end], "copies", 1) == 0:
                end += 1
            section = self.box(f"steps {start + 1}–{end}", box.path, "section", "section")
            section.items = items[start:end]
            start = end
            yield section


def _crossing(items: list[Step | Box], edges: list[tuple[int, int]]) -> list[int]:
    """For each place of a list how many values are made before it and used behind it."""
    place = {number: at for at, item in enumerate(items) for number in _numbers(item)}
    last: dict[int, int] = {}
    for begin, end in edges:
        if begin in place and end in place:
            last[begin] = max(last.get(begin, 0), place[end])
    change = [0] * (len(items) + 2)
    for begin, until in last.items():
        change[place[begin] + 1] += 1
        change[until + 1] -= 1
    found, alive = [], 0
    for step in change:
        alive += step
        found.append(alive)
    return found


def _numbers(item: Step | Box) -> Iterator[int]:
    yield item.number
    for inner in item.items if isinstance(item, Box) else ():
        yield from _numbers(inner)


def _calls(node: Node, around: str) -> list[tuple[str, str, str]]:
    """The calls of modules that a node is inside of, those around ``around`` left out: key, path and class of each."""
    found = _recorded_in(node)
    if not found and node.op not in ("placeholder", "output") and not stack_of(node):
        found = _shared([_recorded_in(other) for other in (*node._inputs, *node.users)])
    return [call for call in found if call[1] and call[1] != around and not around.startswith(f"{call[1]}.")]


def _recorded_in(node: Node) -> list[tuple[str, str, str]]:
    """The calls of modules that a node was recorded in, without the one that it is itself."""
    found = [
        (key, path, getattr(kind, "__name__", str(kind).rpartition(".")[2]))
        for key, (path, kind) in stack_of(node).items()
    ]
    if found and node.op == "call_module" and found[-1][1] == node.target:
        found.pop()
    return found


def _shared(stacks: list[list[tuple[str, str, str]]]) -> list[tuple[str, str, str]]:
    """What all stacks begin with: a node that a pass has put between nodes of a module is inside of it."""
    found = []
    for calls in zip(*stacks, strict=False):
        if len(set(calls)) > 1:
            break
        found.append(calls[0])
    return found


def _tail(path: str, around: str) -> str:
    """A path as seen from the box around it."""
    return path[len(around) + 1 :] if around and path.startswith(f"{around}.") else path


def _graph_called(node: Node, holder: Any) -> tuple[Any, Graph] | None:
    """The module with a graph of its own that a node calls, and that graph."""
    if node.op != "call_module":
        return None
    module = resolve(holder, str(node.target))
    graph = getattr(module, "graph", None)
    return (module, graph) if isinstance(graph, Graph) else None


def _words(control: Branch | Loop | None, node: Node) -> tuple[str, str, str]:
    """The label, path and kind of a box for control flow."""
    if isinstance(control, Branch):
        return f"if {format_argument(control.predicate).lstrip('%')}", "", "if"
    assert control is not None
    if control.is_for:
        return f"for … in {format_argument(control.iterable).lstrip('%')}", "", "for"
    return "while", "", "while"


def _is_minor(node: Node) -> bool:
    """Whether a node only asks about values, is an input that nobody uses, a plain value, or a guard."""
    if node.op == "placeholder":
        return not node.users
    if node.op in ("output", "call_module"):
        return False
    is_plain = isinstance(node.value_type, ScalarType)
    if is_guard(node) or (node.op == "get_attr" and is_plain):
        return True
    asked = node.args[1] if node.target is getattr and len(node.args) > 1 else _short(node)
    from_arrays = any(isinstance(used.value_type, ArrayType) for used in node._inputs)
    is_fact = asked in FACTS or (is_plain and (not from_arrays or str(node.value_type) in ("int", "bool")))
    return is_fact and not isinstance(node.value_type, ArrayType)


def _short(node: Node) -> str:
    """The last word of what a node calls."""
    return format_target(node.target).rpartition(".")[2]


# ---- equal boxes -----------------------------------------------------------------------------------------------------


class _Signatures:
    """What boxes do, as values that can be compared."""

    def __init__(self, numbers: dict[Node, int], holder: Any) -> None:
        self.numbers, self.holder = numbers, holder

    def of(self, box: Box) -> Any:
        """Equal for boxes that do the same to whatever comes into them."""
        return self._box(box, box.path, {})

    def _box(self, box: Box, path: str, places: dict[Any, int]) -> Any:
        label = box.label if box.path == path else _tail(box.path, path)
        inside = tuple(
            self._box(item, path, places) if isinstance(item, Box) else self._step(item.node, path, places)
            for item in box.items
        )
        given = () if box.node is None else self._arguments(box.node, path, places)
        if box.node is not None:
            places[box.node] = len(places)
        return (box.role, box.kind, "" if box.path == path else label, inside, given)

    def _step(self, node: Node, path: str, places: dict[Any, int]) -> Any:
        target = node.target if isinstance(node.target, str) else id(node.target)
        if node.op in ("call_module", "get_attr"):
            target = _tail(node.target, path)
        settings = self._settings(node)
        given = self._arguments(node, path, places)
        places[node] = len(places)
        return (node.op, target, given, str(node.value_type), settings)

    def _arguments(self, node: Node, path: str, places: dict[Any, int]) -> str:
        """The arguments as text: nodes by when they were first seen, here or outside."""
        found = []
        for leaf in leaves([list(node.args), dict(node.kwargs)]):
            if isinstance(leaf, Reference):
                found.append(f"%{places.setdefault(leaf, len(places))}")
            else:
                found.append("graph" if isinstance(leaf, Graph) else f"{type(leaf).__name__} {format_argument(leaf)}")
        return " ".join(found)

    def _settings(self, node: Node) -> str:
        module = resolve(self.holder, str(node.target)) if node.op == "call_module" else None
        describe = getattr(module, "extra_repr", None)
        return "" if describe is None else f"{type(module).__name__}({describe()})"


def _fold(box: Box, signatures: _Signatures) -> None:
    """Mark runs of equal boxes, at each depth; minor steps between them do not count."""
    boxes = [item for item in box.items if isinstance(item, Box)]
    for inner in boxes:
        _fold(inner, signatures)
    first: Box | None = None
    known: Any = None
    for item in box.items:
        if isinstance(item, Step):
            first = first if item.is_minor else None
            continue
        found = signatures.of(item) if item.role == "module" and item.path else None
        if first is not None and found is not None and found == known:
            first.copies += 1
            item.copies = 0
        else:
            first, known = (item, found) if found is not None else (None, None)
