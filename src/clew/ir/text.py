"""A graph as text: typed, one node a line, stable, and read back by ``parse`` as an equal graph.

    graph(%x: f32[2, n, 512], %flag = True) {
      %linear: f32[2, n, 4] = module layer1.0.linear(%x)
      %relu = function torch.nn.functional.relu(%linear, inplace=False)
      return (%relu, {'flag': %flag})
    } where {
      size %x.shape[1] equals 7
    }

Behind ``where`` stand the guards; a line ``state:`` stands before the first write of the program's state. No string in
a graph can break out of its line. Objects that no name reaches print as ``@0``, ``@1`` and are listed in a comment at
the top; ``text_and_objects`` hands them over for ``parse``. Reading runs nothing of the text; what comes out keeps the
rules of ``verify``, or a TextError names the line.
"""

from __future__ import annotations

import keyword
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from clew.errors import NotAllowed, TextError, a_or_an
from clew.ir.arguments import nested_graphs
from clew.ir.effects import FIRST_WRITE
from clew.ir.gc_pause import CollectorPaused
from clew.ir.graph import Graph
from clew.ir.guards import KINDS, TESTS, Attribute, Call, Expression, Guard
from clew.ir.literals import STRING, AnnotationReader, Speller, annotation_text
from clew.ir.names import DOTTED, name_for
from clew.ir.node import Node, listed
from clew.ir.permissions import FRAMEWORKS, Permissions
from clew.ir.source import SourceLine
from clew.ir.types import ObjectType, Type, parse_type, read_type, type_of

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
_STATE = "state:"
"""Stands on a line of its own before the first node that writes state."""
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
            if node._meta is not None and FIRST_WRITE in node._meta:
                lines.append(f"{indent}{_STATE}\n{indent}{self.node(node)}")
                continue
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


# ---- reading ---------------------------------------------------------------------------------------------------------

_TAKEN = frozenset(keyword.kwlist) | frozenset(
    "torch tree inf nan device pytree NoneType float complex getattr slice range set frozenset list tuple dict "
    "int bool str bytes".split()
)
"""Names that generated code writes itself: a node of such a name would hide what the code means."""

_OPCODES = {word: opcode for opcode, word in WORDS.items()}
_WORDS = ", ".join(_OPCODES)
_NODE = re.compile(rf"%(?:([A-Za-z_]\w*)|({STRING}))", re.ASCII)
_READ_PARAMETER = re.compile(rf"(\*{{0,2}}[A-Za-z_]\w*)|({STRING})", re.ASCII)
_READ_PATH = re.compile(rf"([A-Za-z_]\w*(?:\.\w+)*)|({STRING})", re.ASCII)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_FROM = re.compile(r"[ \t]+from\b")
_COLON = re.compile(r"[ \t]*:[ \t]*")
_AS = re.compile(r"[ \t]+as\b")
_RETURN = re.compile(r"return\b")
_GRAPH = re.compile(r"graph\b")
_PLACE = rf"[^\s'\"]+|{STRING}"
_SOURCE = re.compile(
    rf"[ \t]*# (?P<file>{_PLACE}):(?P<line>\d{{1,9}})(?: in (?P<function>{_PLACE}))?[ \t]*(?=\r?\n|$)", re.ASCII
)
_WHERE = re.compile(r"[ \t]*where[ \t]*\{")
_SPOKEN = re.compile(r"(attr|function|method)[ \t]+")
_MEMBER = re.compile(r"\.([A-Za-z_]\w*)", re.ASCII)
_LATER_WORD = re.compile(r"[ \t]+([a-z]+)\b")
_LINE_END = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|$)")


def parse(text: str, *, objects: Mapping[str, Any] | None = None, allow: Collection[str] = ()) -> Graph:
    """The graph that prints as ``text``.

    ``objects`` holds what the text writes as ``@0``, ``@1``, ...: see ``text_and_objects``. A text may name functions
    on arrays of the frameworks. ``allow`` names more: packages, which are imported where they are needed, or full names
    of functions and classes.
    """
    if not isinstance(text, str):
        raise TextError(f"parse takes the text of a graph, not {a_or_an(text)}")
    named = (allow,) if isinstance(allow, str) else tuple(allow)
    return parse_with(text, {} if objects is None else objects, Permissions(named, "parse(text", FRAMEWORKS))


def parse_with(text: str, objects: Mapping[str, Any], permissions: Permissions) -> Graph:
    """The graph of a text that may name only what these permissions allow."""
    reader = _GraphReader(text, objects, permissions.find, permissions.left_out)
    graph = _read(reader)
    for one in (graph, *nested_graphs(graph)):
        for part in (*one.nodes, *one.guards.entry):
            try:
                permissions.check(part)
            except NotAllowed as error:
                place = reader.places.get(id(part), 0)
                raise reader.fault(error.what, place, why=error.why, fixes=error.fixes) from None
    return graph


def _read(reader: _GraphReader) -> Graph:
    try:
        with CollectorPaused():
            return reader.whole()
    except RecursionError as error:
        raise reader.fault("this is nested too deeply to be read") from error


class _GraphReader(AnnotationReader):
    """Reads graphs; ``graph`` is the innermost one that is being read and ``nodes`` its nodes by name.

    ``left_out`` gives what stands for a function that a graph inside of another calls and that may not be named.
    """

    graph: Graph
    nodes: dict[str, Node]

    def __init__(
        self,
        text: str,
        objects: Mapping[str, Any],
        find: Callable[[str], Any],
        left_out: Callable[[str], Any] = lambda name: None,
    ) -> None:
        super().__init__(text, objects, find)
        self.left_out = left_out
        self.depth = 0
        self.places: dict[int, int] = {}
        """Where nodes and guards, by id, stand in the text."""

    def whole(self) -> Graph:
        self.skip()
        if self.match(_GRAPH) is None:
            raise self.error("the word 'graph'")
        found = self.nested_graph()
        if self.skip():
            raise self.error("the end of the text")
        return found

    def nested_graph(self) -> Graph:
        """A graph whose first word has been read."""
        outside = getattr(self, "graph", None), getattr(self, "nodes", None)
        self.graph, self.nodes = Graph(), {}
        self.depth += 1
        self.header()
        self.expect("{")
        self.statements()
        if self.match(_WHERE) is not None:
            self.guards()
        found = self.graph
        self.depth -= 1
        self.graph, self.nodes = outside  # type: ignore[assignment]
        return found

    # ---- inputs --------------------------------------------------------------------------------------------------

    def header(self) -> None:
        self.expect("(")
        while not self.accept(")"):
            node = self.parameter()
            has_comma = self.accept_on_line(",")
            self.source(node)
            if not has_comma and not self.accept(","):
                self.expect(")", "',' or ')'")
                break

    def accept_on_line(self, character: str) -> bool:
        """Pass over a character if it is the next on this line; a comment behind it is not skipped."""
        place = self.place
        if self.accept(character) and "\n" not in self.text[place : self.place]:
            return True
        self.place = place
        return False

    def parameter(self) -> Node:
        name, start = self.new_name()
        target = name
        if self.match(_FROM) is not None:
            target = self.quoted_or_bare(_READ_PARAMETER, "the name of a parameter")
        value_type, annotation = self.types()
        args = (self.value(),) if self.accept_on_line("=") else ()
        return self.add("placeholder", target, args, {}, (name, start, value_type, annotation))

    # ---- nodes ---------------------------------------------------------------------------------------------------

    def statements(self) -> None:
        """Nodes up to the closing brace, one a line."""
        if not self.text.startswith("}", self.place):
            self.line_end("the end of the line behind '{'")
        while not self.accept("}"):
            self.skip()
            if self.graph._root._prev.op == "output":
                raise self.fault(
                    "nothing may stand behind the output of a graph, and two outputs neither",
                    fixes=["move the line before it; to return several values return a tuple"],
                )
            is_first_write = self.is_state()
            if self.match(_RETURN) is not None:
                node = self.returned()
            else:
                node = self.assigned()
            if is_first_write:
                node.meta[FIRST_WRITE] = True
            if self.text.startswith("\n", self.place):
                self.place += 1
            else:
                self.source(node)
                self.line_end("the end of the line")

    def is_state(self) -> bool:
        """Whether the line says that from the next one on state is written; it is passed over."""
        if not self.text.startswith(_STATE, self.place):
            return False
        self.place += len(_STATE)
        self.line_end(f"the end of the line behind {_STATE!r}")
        self.skip()
        return True

    def returned(self) -> Node:
        start = self.place
        value = self.value()
        return self.add("output", "output", (value,), {}, ("output", start, *self.types()))

    def assigned(self) -> Node:
        name, start = self.new_name()
        value_type, annotation = self.types()
        self.expect("=")
        word = self.take(_WORD, f"one of {_WORDS}")
        opcode = _OPCODES.get(word[0])
        if opcode is None:
            raise self.fault(f"unknown operation {word[0]!r}: expected one of {_WORDS}", word.start())
        target = self.function() if opcode == "call_function" else self.quoted_or_bare(_READ_PATH, "a target")
        if self.text.startswith("(", self.place):
            self.place += 1
            args, kwargs = self.arguments(")")
        elif opcode == "get_attr":
            args, kwargs = (), {}
        else:
            raise self.error("'(' and the arguments")
        return self.add(opcode, target, args, kwargs, (name, start, value_type, annotation))

    def function(self) -> Any:
        if self.skip() == "@":
            start = self.place
            found = self.given()[0]
        else:
            match = self.take(DOTTED, "the full name of a function")
            start = match.start()
            if "." not in match[0]:
                raise self.error("the full name of a function, such as torch.relu or builtins.len", start)
            found = self.left_out(match[0]) if self.depth > 1 else None
            found = self.find(match[0], start) if found is None else found
        if not callable(found):
            raise self.fault(f"a function is expected, but this is {a_or_an(found)}", start)
        return found

    def add(
        self, opcode: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], known: tuple[Any, ...]
    ) -> Node:
        """Add a node under exactly the name that the text gives it."""
        name, start, value_type, annotation = known
        if name in self.nodes:
            raise self.fault(
                f"the name %{name} is given twice", start, fixes=["names in a graph are unique: rename one"]
            )
        if name in _TAKEN or not _WORD.fullmatch(name):
            raise self.fault(
                f"no node can be named %{name}",
                start,
                why="the names of nodes are identifiers, and neither keywords nor words that generated code needs",
                fixes=[f"%{self.graph._names.create_name(name)} would do"],
            )
        node = self.graph._append_exact(opcode, name, target, args, kwargs, annotation)
        if value_type is not None:
            node.value_type = value_type
        self.nodes[name] = node
        self.places[id(node)] = start
        return node

    def new_name(self) -> tuple[str, int]:
        match = self.take(_NODE, "a node such as %x")
        return match[1] or self.unquoted(match[2], match.start()), match.start()

    def node(self) -> Node:
        match = _NODE.match(self.text, self.place)
        if match is None:
            raise self.error("a node such as %x")
        self.place = match.end()
        name = match[1] or self.unquoted(match[2], match.start())
        found = self.nodes.get(name)
        if found is None:
            raise self.undefined(name, match.start())
        return found

    def undefined(self, name: str, place: int) -> TextError:
        later = re.compile(rf"^[ \t]*%{re.escape(name)}[ \t:=]", re.MULTILINE).search(self.text, place)
        if later is None:
            return self.fault(f"%{name} is not defined in this graph", place, fixes=["define it above this line"])
        number = self.text.count("\n", 0, later.end()) + 1
        why = f"it is defined only in line {number}, and nodes run in the order in which they stand"
        return self.fault(f"%{name} is used before it is defined", place, why=why, fixes=["move its line up"])

    def quoted_or_bare(self, pattern: re.Pattern[str], expected: str) -> str:
        match = self.take(pattern, expected)
        return match[1] if match[1] is not None else self.unquoted(match[2], match.start())

    # ---- guards --------------------------------------------------------------------------------------------------

    def guards(self) -> None:
        """Guards up to the closing brace, one a line."""
        found: list[Guard] = []
        self.line_end("the end of the line behind '{'")
        while not self.accept("}"):
            self.skip()
            start = self.place
            found.append(self.guard())
            self.places[id(found[-1])] = start
            self.line_end("the end of the line")
        self.graph.guards = found

    def guard(self) -> Guard:
        kind = self.one_of(KINDS, "the kind of a guard")
        subject = self.expression()
        test = self.one_of(tuple(TESTS), "the test of a guard")
        expected = self.value()
        told = {word: self.worded(word) for word in ("because", "says")}
        source = self.place_in_comment()
        return Guard(subject, test, expected, kind, source, told["because"], told["says"])

    def one_of(self, words: tuple[str, ...], expected: str) -> str:
        self.skip()
        match = self.take(_WORD, expected)
        if match[0] not in words:
            raise self.fault(f"{match[0]!r} is not {expected}: expected one of {', '.join(words)}", match.start())
        return match[0]

    def worded(self, word: str) -> str:
        """A text behind a word, if the word is there."""
        place = self.place
        match = self.match(_LATER_WORD)
        if match is None or match[1] != word:
            self.place = place
            return ""
        self.skip()
        return self.string()

    def expression(self) -> Expression:
        """What a guard looks at."""
        self.skip()
        word = self.match(_SPOKEN)
        if word is None:
            found = self.value()
            while (after := self.match(_MEMBER)) is not None or self.text.startswith("[", self.place):
                if after is not None:
                    found = Call(getattr, (found, after[1]))
                else:
                    self.expect("[")
                    found = Call(operator.getitem, (found, self.expression()))
                    self.expect("]")
            return found
        if word[1] == "attr":
            return Attribute(self.quoted_or_bare(_READ_PATH, "a path"))
        target = self.function() if word[1] == "function" else self.quoted_or_bare(_READ_PATH, "the name of a method")
        self.expect("(")
        args: list[Expression] = []
        while self.skip() != ")":
            args.append(self.expression())
            if not self.accept(","):
                break
        self.expect(")", "',' or ')'")
        return Call(target, tuple(args))

    # ---- what is known of a node ---------------------------------------------------------------------------------

    def types(self) -> tuple[Type | None, Any]:
        """The type of the value and the annotation, where they are given."""
        value_type = annotation = None
        if self.text.startswith(" = ", self.place):  # the most frequent case by far
            return None, None
        if self.match(_COLON) is not None:
            try:
                value_type, self.place = read_type(self.text, self.place)
            except TextError as error:
                raise self.fault(error.what) from error
        if self.match(_AS) is not None:
            annotation = self.annotation()
        return value_type, annotation

    def source(self, node: Node) -> None:
        """The place in the user's program, if the comment that ends the line is one."""
        found = self.place_in_comment()
        if found is not None:
            node.source = found

    def place_in_comment(self) -> SourceLine | None:
        match = self.match(_SOURCE)
        if match is None:
            return None
        filename, function = (self.plain(match[group] or "", match.start()) for group in ("file", "function"))
        return SourceLine(filename, int(match["line"]), function)

    def plain(self, word: str, place: int) -> str:
        return self.unquoted(word, place) if word[:1] in ("'", '"') else word

    def line_end(self, expected: str) -> None:
        if self.match(_LINE_END) is None:
            raise self.error(expected)
