"""Reads a graph from its text: the inverse of ``text``.

In comes a text, out comes a new graph, or a TextError that names the line and what was expected there. Nothing in the
text is run, and only what is loaded already, or known to be harmless, is looked up (see ``lookup`` and ``reader``).
The graph that comes out keeps the rules of ``verify``.
"""

from __future__ import annotations

import keyword
import operator
import re
from collections.abc import Collection, Mapping
from typing import Any

from clew.errors import TextError, a_or_an
from clew.ir.annotations import AnnotationReader
from clew.ir.collector import CollectorPaused
from clew.ir.graph import Graph
from clew.ir.guards import KINDS, TESTS, Attribute, Call, Expression, Guard
from clew.ir.literals import STRING
from clew.ir.lookup import DOTTED
from clew.ir.node import Node
from clew.ir.source import SourceLine
from clew.ir.text import WORDS
from clew.ir.types import Type, read_type

_TAKEN = frozenset(keyword.kwlist) | frozenset(
    "torch tree inf nan device pytree NoneType float complex getattr slice range set frozenset list tuple dict "
    "int bool str bytes".split()
)
"""Names that generated code writes itself: a node of such a name would hide what the code means."""

_OPCODES = {word: opcode for opcode, word in WORDS.items()}
_WORDS = ", ".join(_OPCODES)
_NODE = re.compile(rf"%(?:([A-Za-z_]\w*)|({STRING}))", re.ASCII)
_PARAMETER = re.compile(rf"(\*{{0,2}}[A-Za-z_]\w*)|({STRING})", re.ASCII)
_PATH = re.compile(rf"([A-Za-z_]\w*(?:\.\w+)*)|({STRING})", re.ASCII)
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


def parse(text: str, *, objects: Mapping[str, Any] | None = None, modules: Collection[str] = ()) -> Graph:
    """The graph that prints as ``text``.

    ``objects`` holds what the text writes as ``@0``, ``@1``, ...: see ``text_and_objects``. ``modules`` names packages
    that may be imported for the sake of names in the text, besides those that are imported already.
    """
    if not isinstance(text, str):
        raise TextError(f"parse takes the text of a graph, not {a_or_an(text)}")
    reader = _GraphReader(text, objects, modules)
    try:
        with CollectorPaused():
            return reader.whole()
    except RecursionError as error:
        raise reader.fault("this is nested too deeply to be read") from error


class _GraphReader(AnnotationReader):
    """Reads graphs; ``graph`` is the innermost one that is being read and ``nodes`` its nodes by name."""

    graph: Graph
    nodes: dict[str, Node]

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
        self.header()
        self.expect("{")
        self.statements()
        if self.match(_WHERE) is not None:
            self.guards()
        found = self.graph
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
            target = self.quoted_or_bare(_PARAMETER, "the name of a parameter")
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
            if self.match(_RETURN) is not None:
                node = self.returned()
            else:
                node = self.assigned()
            if self.text.startswith("\n", self.place):
                self.place += 1
            else:
                self.source(node)
                self.line_end("the end of the line")

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
        target = self.function() if opcode == "call_function" else self.quoted_or_bare(_PATH, "a target")
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
            found = self.find(match[0], start)
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
            found.append(self.guard())
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
            return Attribute(self.quoted_or_bare(_PATH, "a path"))
        target = self.function() if word[1] == "function" else self.quoted_or_bare(_PATH, "the name of a method")
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
