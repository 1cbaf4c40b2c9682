"""Reads values from text: the inverse of ``literals``.

In comes text; out come the values that it spells. Nothing is evaluated: names are looked up by ``lookup``, and the
only things called are constructors that do nothing but hold what they are given (see ``may_construct``). Objects that
no name reaches stand as ``@0``, ``@1`` and are handed in by the caller.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from clew.ir import lookup
from clew.ir.literals import STRING, is_named_tuple, is_plain_container, is_plain_dataclass, unquote
from clew.ir.lookup import DOTTED
from clew.ir.scanner import Scanner

_OBJECT = re.compile(r"@\d+", re.ASCII)
_MEMBERS = re.compile(r"(?:\.[A-Za-z_]\w*)*", re.ASCII)
_STRING = re.compile(STRING)
_BYTES = re.compile(f"b({STRING})")
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+(\.\d*)?([eE][+-]?\d+)?)", re.ASCII)
_KEYWORD = re.compile(rf"(?:([A-Za-z_]\w*)|({STRING}))[ \t]*=(?!=)", re.ASCII)

_CONSTANTS = {"True": True, "False": False, "None": None}
_BUILTINS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind for kind in (complex, float, slice, range, set, frozenset)
}
VOUCHED = frozenset(
    "torch.device torch.Size torch.finfo torch.iinfo numpy.dtype numpy.bool numpy.float16 numpy.float32 numpy.float64 "
    "numpy.int8 numpy.int16 numpy.int32 numpy.int64 numpy.uint8 numpy.uint16 numpy.uint32 numpy.uint64".split()
)
"""Classes of frameworks that only hold what they are given, by the names under which they are written."""


def may_construct(kind: Any, name: str) -> bool:
    """True for the classes that text may call: they do nothing but hold what they are given."""
    if name in VOUCHED:
        return True
    if not isinstance(kind, type):
        return False
    return issubclass(kind, enum.Enum) or is_named_tuple(kind) or is_plain_container(kind) or is_plain_dataclass(kind)


class Reader(Scanner):
    """Reads one value after another from a text."""

    def __init__(self, text: str, objects: Mapping[str, Any] | None = None, modules: Collection[str] = ()) -> None:
        super().__init__(text)
        self.objects: Mapping[str, Any] = {} if objects is None else objects
        self.modules = modules
        self._named: dict[str, Any] = {}

    def value(self) -> Any:
        """Any value: what a node may take as an argument."""
        first = self.skip()
        read = _BY_FIRST.get(first)
        if read is not None:
            return read(self)
        match = self.match(_BYTES)
        if match is not None:
            return self.bytes_of(match)
        match = self.match(DOTTED)
        if match is None:
            raise self.error("a value")
        return self.named_value(match)

    def named_value(self, match: re.Match[str]) -> Any:
        name = match[0]
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name == "graph" and self.skip() == "(":
            return self.nested_graph()
        if name in _BUILTINS and self.skip() == "(":
            return self.constructed(_BUILTINS[name], match)
        found = self.find(name, match.start())
        if self.text.startswith("(", self.place):
            if not may_construct(found, name):
                self.refuse_call(match)
            return self.constructed(found, match)
        return found

    def refuse_call(self, match: re.Match[str]) -> NoReturn:
        raise self.fault(
            f"{match[0]} may not be called in a value",
            match.start(),
            why="reading a graph runs no code; only enums, dataclasses, named tuples and plain containers are built",
            fixes=["make the call a node: %name = function " + match[0] + "(...)"],
        )

    def constructed(self, kind: Callable[..., Any], match: re.Match[str]) -> Any:
        self.expect("(")
        args, kwargs = self.arguments(")")
        try:
            return kind(*args, **kwargs)
        except Exception as error:
            raise self.fault(f"{match[0]} cannot be built of these values: {error}", match.start()) from error

    def object_value(self) -> Any:
        """An object that the caller gave, or one made by it if it is a class."""
        found, match = self.given()
        if self.text.startswith("(", self.place):
            if not may_construct(found, ""):
                self.refuse_call(match)
            return self.constructed(found, match)
        return found

    def given(self) -> tuple[Any, re.Match[str]]:
        """The object of a mark such as ``@0``, or a member of it: ``@0.RED``."""
        match = self.take(_OBJECT, "an object such as @0")
        if match[0] not in self.objects:
            raise self.fault(
                f"the object {match[0]} is not given",
                match.start(),
                why="no name reaches it, so the text alone cannot hold it",
                fixes=["pass it: text, objects = text_and_objects(graph); parse(text, objects=objects)"],
            )
        found = self.objects[match[0]]
        members = self.match(_MEMBERS)
        for atom in members[0].split(".")[1:] if members is not None else ():
            if not isinstance(found, type) or not hasattr(found, atom):
                raise self.fault(f"{match[0]} is not a class with a member {atom!r}", match.start())
            found = getattr(found, atom)
        return found, match

    def node(self) -> Any:
        """The node of a ``%name``; graphs know how, plain values have none."""
        raise self.error("a value without nodes")

    def nested_graph(self) -> Any:
        """The graph whose word ``graph`` has been read; graphs know how."""
        raise self.error("a value without graphs")

    def number(self) -> int | float:
        match = _NUMBER.match(self.text, self.place)
        if match is None:
            raise self.error("a number")
        self.place = match.end()
        text = match[0]
        try:
            if "0x" in text:
                return int(text, 16)
            return int(text) if match[1] is None and match[2] is None else float(text)
        except ValueError as error:
            raise self.fault(str(error), match.start()) from error

    def string(self) -> str:
        match = self.take(_STRING, "a string in quotes on one line")
        return self.unquoted(match[0], match.start())

    def unquoted(self, token: str, place: int) -> str:
        try:
            return unquote(token)
        except ValueError as error:
            raise self.fault(f"this is not a string: {error}", place) from error

    def bytes_of(self, match: re.Match[str]) -> bytes:
        try:
            return self.unquoted(match[1], match.start()).encode("latin-1")
        except UnicodeEncodeError as error:
            raise self.fault("bytes hold no characters above \\xff", match.start()) from error

    def ellipsis(self) -> Any:
        self.expect("...", "a value")
        return ...

    def tuple_value(self) -> tuple[Any, ...]:
        start = self.place
        self.expect("(")
        items, has_comma = self.items(")")
        if len(items) == 1 and not has_comma:
            raise self.fault("a tuple of one value needs a comma: (value,)", start)
        return tuple(items)

    def list_value(self) -> list[Any]:
        self.expect("[")
        return self.items("]")[0]

    def items(self, closing: str) -> tuple[list[Any], bool]:
        """Values up to the closing bracket, and whether a comma stands before it."""
        found: list[Any] = []
        while self.skip() != closing:
            found.append(self.value())
            if not self.accept(","):
                self.expect(closing, f"',' or '{closing}'")
                return found, False
        self.place += 1
        return found, True

    def braces(self) -> Any:
        """A dict, or a set if the first item has no colon."""
        self.expect("{")
        start = self.place
        if self.accept("}"):
            return {}
        first = self.value()
        try:
            if self.skip() == ":":
                return self.entries(first)
            items = [first]
            if self.accept(","):
                items += self.items("}")[0]
            else:
                self.expect("}", "',' or '}'")
            return set(items)
        except TypeError as error:
            raise self.fault(f"a key cannot be held: {error}", start) from error

    def entries(self, key: Any) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        while True:
            self.expect(":")
            if key in found:
                raise self.fault(f"the key {key!r} stands twice")
            found[key] = self.value()
            if not self.accept(","):
                self.expect("}", "',' or '}'")
                return found
            if self.accept("}"):
                return found
            key = self.value()

    def arguments(self, closing: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments up to the closing bracket."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        while (first := self.skip()) != closing:
            # No value that starts like a keyword argument starts with a sign or bracket.
            keyword = None if first in _BY_FIRST and first not in "'\"" else self.match(_KEYWORD)
            if keyword is not None:
                self.keyword_argument(keyword, kwargs)
            elif kwargs:
                raise self.error("a keyword argument, because one stands before this")
            else:
                args.append(self.value())
            if not self.accept(","):
                self.expect(closing, f"',' or '{closing}'")
                return tuple(args), kwargs
        self.place += 1
        return tuple(args), kwargs

    def keyword_argument(self, match: re.Match[str], kwargs: dict[str, Any]) -> None:
        name = match[1] or self.unquoted(match[2], match.start())
        if name in kwargs:
            raise self.fault(f"the keyword {name!r} is given twice", match.start())
        kwargs[name] = self.value()

    def find(self, name: str, place: int) -> Any:
        """The object with a dotted name."""
        if name not in self._named:
            try:
                self._named[name] = lookup.find(name, self.modules)
            except lookup.NotFound as error:
                package = name.partition(".")[0]
                raise self.fault(
                    f"{name} is not known: {error}",
                    place,
                    fixes=[f"import {package} before, or pass modules=({package!r},)", "correct the name"],
                ) from error
        return self._named[name]


_BY_FIRST: dict[str, Callable[[Reader], Any]] = {
    "%": lambda reader: reader.node(),  # looked up late, because reading a graph overrides it
    "@": Reader.object_value,
    "'": Reader.string,
    '"': Reader.string,
    "(": Reader.tuple_value,
    "[": Reader.list_value,
    "{": Reader.braces,
    ".": Reader.ellipsis,
    **dict.fromkeys("-0123456789", Reader.number),
}
