"""A graph as text: typed, one node a line, stable, and read back by ``parse`` as an equal graph.

    graph(%x: f32[2, n, 512], %flag = True) {
      %linear: f32[2, n, 4] = module layer1.0.linear(%x)
      %relu = function torch.nn.functional.relu(%linear, inplace=False)
      return (%relu, {'flag': %flag})
    } where {
      size %x.shape[1] equals 7
    }

Behind ``where`` stand the guards that are checked before the graph runs. A graph comes in and is left as it is. No
string in it can break out of its line. Objects that no name reaches print as ``@0``, ``@1`` and are listed in a comment
at the top; ``text_and_objects`` hands them over for ``parse``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from typing import Any

from clew.errors import TextError
from clew.ir.annotations import annotation_text
from clew.ir.collector import CollectorPaused
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Expression, Guard
from clew.ir.literals import Speller
from clew.ir.lookup import name_for
from clew.ir.node import Node
from clew.ir.order import listed
from clew.ir.source import SourceLine
from clew.ir.types import ObjectType, Type, parse_type, type_of

WORDS = {
    "placeholder": "placeholder",
    "get_attr": "attr",
    "call_function": "function",
    "call_method": "method",
    "call_module": "module",
    "output": "output",
}
"""The opcodes as the text writes them."""

_WIDTH = 100
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*", re.ASCII)
_PARAMETER = re.compile(r"\*{0,2}[A-Za-z_]\w*", re.ASCII)
_UNQUOTED_PLACE = re.compile(r"[^\s'\"]+")


def to_text(graph: Graph, *, sources: bool = False) -> str:
    """The canonical text of a graph; with ``sources`` each node's file and line stand behind it."""
    return text_and_objects(graph, sources=sources)[0]


def text_and_objects(graph: Graph, *, sources: bool = False) -> tuple[str, dict[str, Any]]:
    """The canonical text, and the objects that ``parse`` needs for what it writes as ``@0``, ``@1``, ..."""
    writer = _Writer(sources)
    try:
        with CollectorPaused():
            body = writer.graph(graph)
    except RecursionError as error:
        raise TextError("this graph is nested too deeply to be written", fixes=["sys.setrecursionlimit"]) from error
    listed = [f"# {mark}: {_described(value)}" for mark, value in writer.objects.items()]
    return "\n".join([*listed, body]), writer.objects


def _bare(pattern: re.Pattern[str], name: str) -> str:
    """The name itself where it reads back as itself, otherwise in quotes."""
    return name if pattern.fullmatch(name) and name.isprintable() else repr(name)


class _References(dict[Node, str]):
    """How nodes are written where their values are used."""

    __slots__ = ()

    def note(self, nodes: list[Node]) -> None:
        """Find out about all nodes of a graph; their names are plain as a rule, which is asked of all at once."""
        names = [node.name for node in nodes]
        if all(map(str.isidentifier, names)) and "".join(names).isascii():
            self.update(zip(nodes, [f"%{name}" for name in names], strict=True))

    def __missing__(self, node: Node) -> str:
        found = self[node] = f"%{_bare(_NAME, node.name)}"
        return found


def _described(value: Any) -> str:
    """What an object is, in a few words that are the same in every run."""
    kind = type(value)
    known = type_of(value)
    if isinstance(known, ObjectType):
        name = getattr(value, "__qualname__", None)
        words = (
            f"{kind.__qualname__} {getattr(value, '__module__', None)}.{name}" if isinstance(name, str) else known.name
        )
    else:
        words = f"{kind.__module__}.{kind.__qualname__} {known}"
    return words if words.isprintable() else repr(words)


class _Writer:
    """Writes one graph, nested ones included; remembers the objects that it could not name."""

    def __init__(self, sources: bool) -> None:
        self.sources = sources
        self.objects: dict[str, Any] = {}
        self._marks: dict[int, str] = {}  # by id; ``objects`` keeps what they mark alive
        self._spelled: dict[int, tuple[str, Any]] = {}
        self._annotations: dict[int, tuple[str, Any]] = {}
        self._types: dict[Type, str] = {}
        self._indent = ""
        self._references = _References()
        self.spell = Speller(self.name_of, self._references.__getitem__).spell

    def graph(self, graph: Graph) -> str:
        """The graph from its first word to its closing brace, lines after the first indented."""
        nodes = listed(graph)
        self._references.note(nodes)
        count = 0
        while count < len(nodes) and _fits_header(nodes[count]):
            count += 1
        outside, self._indent = self._indent, self._indent + "  "
        header = self.header(nodes[:count])
        lines = self.lines(nodes[count:])
        if self.sources:
            lines = [line + self.source(node) for line, node in zip(lines, nodes[count:], strict=True)]
        checked = [f"{self._indent}{self.guard(one)}" for one in graph.guards.entry]
        self._indent = outside
        closing = ["}"] if not checked else ["} where {", *checked, f"{outside}}}"]
        return "\n".join([f"graph({header}) {{", *lines, f"{outside}{closing[0]}", *closing[1:]])

    def guard(self, one: Guard) -> str:
        """A guard: its kind, the expression that it looks at, the test, and what that expects."""
        reason = f" because {one.reason!r}" if one.reason else ""
        label = f" says {one.label!r}" if one.label else ""
        place = f"  # {_place(one.source)}" if self.sources and one.source is not None else ""
        return f"{one.kind} {self.expression(one.subject)} {one.test} {self.spell(one.expected)}{reason}{label}{place}"

    def expression(self, found: Expression) -> str:
        """What a guard looks at: ``%x.shape[0]``, ``attr layer.training``, ``function operator.gt(%n, 1)``."""
        if isinstance(found, Attribute):
            return f"attr {_bare(_PATH, found.path)}"
        if not isinstance(found, Call):
            return self.spell(found)
        of_input = bool(found.args) and isinstance(found.args[0], (Node, Call)) and not _is_spoken(found.args[0])
        if of_input and found.function is getattr and len(found.args) == 2 and _NAME.fullmatch(str(found.args[1])):
            return f"{self.expression(found.args[0])}.{found.args[1]}"
        if of_input and found.function is operator.getitem and len(found.args) == 2:
            return f"{self.expression(found.args[0])}[{self.expression(found.args[1])}]"
        args = ", ".join(map(self.expression, found.args))
        if isinstance(found.function, str):
            return f"method {_bare(_PATH, found.function)}({args})"
        return f"function {self.name_of(found.function)}({args})"

    def header(self, nodes: list[Node]) -> str:
        """The inputs: on one line where they fit, otherwise one a line, each with its source."""
        inputs = [self.parameter(node) for node in nodes]
        origins = [self.source(node) for node in nodes]
        line = ", ".join(inputs)
        is_one_line = "\n" not in line and len(line) + len(self._indent) <= _WIDTH
        if is_one_line and not any(origins):
            return line
        rows = [f"{self._indent}{text},{origin}" for text, origin in zip(inputs, origins, strict=True)]
        return "\n".join(["", *rows, self._indent[2:]])

    def parameter(self, node: Node) -> str:
        target = "" if node.target == node.name else f" from {_bare(_PARAMETER, node.target)}"
        default = f" = {self.spell(node.args[0])}" if node.args else ""
        return f"{self._references[node]}{target}{self.types(node)}{default}"

    def lines(self, nodes: list[Node]) -> list[str]:
        """The nodes, one a line; nearly all are calls of functions without keywords, which are written here."""
        references, spell, spelled, indent = self._references, self.spell, self._spelled, self._indent
        lines = []
        for node in nodes:
            target = spelled.get(id(node.target))
            if target is None or node.op != "call_function" or node.kwargs:
                lines.append(indent + self.node(node))
                continue
            words = [references[item] if type(item) is Node else spell(item) for item in node.args]
            types = "" if node.value_type is None and node.type is None else self.types(node)
            lines.append(f"{indent}{references[node]}{types} = function {target[0]}({', '.join(words)})")
        return lines

    def node(self, node: Node) -> str:
        op = node.op
        if op == "output" and node.name == node.target == "output" and len(node.args) == 1 and not node.kwargs:
            return f"return {self.spell(node.args[0])}{self.types(node)}"
        target = self.name_of(node.target) if op == "call_function" else _bare(_PATH, node.target)
        words = [*map(self.spell, node.args), *self.keywords(node)]
        arguments = "" if op == "get_attr" and not words else f"({', '.join(words)})"
        return f"{self._references[node]}{self.types(node)} = {WORDS[op]} {target}{arguments}"

    def keywords(self, node: Node) -> Iterator[str]:
        for name, value in node.kwargs.items():
            if not isinstance(name, str):
                raise TextError(f"node {node.name} has the keyword argument {name!r}, which is not a string")
            yield f"{_bare(_NAME, name)}={self.spell(value)}"

    def types(self, node: Node) -> str:
        """What is known of the node's value, and the annotation that a user gave it."""
        known = "" if node.value_type is None else f": {self.value_type(node)}"
        return known if node.type is None else f"{known} as {self.annotation(node.type)}"

    def value_type(self, node: Node) -> str:
        found = node.value_type
        assert found is not None
        text = self._types.get(found)
        if text is None:
            text = self._types[found] = str(found)
            if parse_type(text) != found:
                raise TextError(f"node {node.name} has the type {found!r}, which cannot be read back from {text!r}")
        return text

    def annotation(self, annotation: Any) -> str:
        known = self._annotations.get(id(annotation))
        if known is None:
            text = annotation_text(annotation) or self.mark(annotation)
            known = self._annotations[id(annotation)] = (text, annotation)
        return known[0]

    def name_of(self, value: Any) -> str:
        """The name of a value that is not spelled out, its text if it is a graph, or a mark such as ``@0``."""
        known = self._spelled.get(id(value))
        if known is None:
            if isinstance(value, Graph):
                return self.graph(value)
            known = self._spelled[id(value)] = (name_for(value) or self.mark(value), value)
        return known[0]

    def mark(self, value: Any) -> str:
        mark = self._marks.get(id(value))
        if mark is None:
            mark = self._marks[id(value)] = f"@{len(self.objects)}"
            self.objects[mark] = value
        return mark

    def source(self, node: Node) -> str:
        return "" if not self.sources or node.source is None else f"  # {_place(node.source)}"


def _is_spoken(found: Expression) -> bool:
    """Whether an expression is written with a word before it, so that nothing can be hung on its end."""
    if not isinstance(found, Call):
        return isinstance(found, Attribute)
    return found.function not in (getattr, operator.getitem) or not found.args or _is_spoken(found.args[0])


def _fits_header(node: Node) -> bool:
    return node.op == "placeholder" and len(node.args) <= 1 and not node.kwargs


def _place(source: SourceLine) -> str:
    """``model.py:12 in forward``."""
    place = f"{_bare(_UNQUOTED_PLACE, source.filename)}:{source.lineno}"
    return f"{place} in {_bare(_UNQUOTED_PLACE, source.function)}" if source.function else place
