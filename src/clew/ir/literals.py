"""Values and type annotations as text, and back.

``Speller`` writes any value that may stand in an argument of a node as a Python expression that evaluates to an equal
one. Names of classes and functions are asked of ``name_of``, so that the writer decides how they are reached; no
``repr`` is trusted unchecked. ``Reader`` reads such text without evaluating it: names are looked up by ``lookup``, and
only constructors that do nothing but hold what they are given are called (see ``may_construct``). ``AnnotationReader``
reads types too, such as ``list[int]`` or ``int | None``. A fault in the text is a TextError that shows the line.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import inspect
import keyword
import math
import operator
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from clew.errors import NotAllowed, TextError
from clew.ir.arguments import Reference
from clew.ir.guests import guest_of
from clew.ir.names import DOTTED, OPEN_PACKAGES, NotFound, find, name_for

NameOf = Callable[[Any], str]

_LARGE = 10**15
"""Integers below are surely short enough to be written in base 10."""


class Speller:
    """Writes values as expressions; ``name_of`` gives the name of whatever is not spelled out."""

    __slots__ = ("name_of", "node_name")

    def __init__(self, name_of: NameOf, node_name: Callable[[Any], str]) -> None:
        self.name_of = name_of
        self.node_name = node_name

    def spell(self, value: Any) -> str:
        """The expression of one value, nested ones included."""
        kind = type(value)
        if kind is int and -_LARGE < value < _LARGE:
            return repr(value)
        writer = _WRITERS.get(kind)
        if writer is not None:
            return writer(self, value)
        if isinstance(value, Reference):
            return self.node_name(value)
        return self._unusual(value)

    def _unusual(self, value: Any) -> str:
        if isinstance(value, enum.Enum):
            return self._enum(value)
        guest = guest_of(value)
        known = None if guest is None else guest.spell(value, self.name_of)
        if known is not None:
            return known
        for base in (tuple, list, dict, int, float, str):
            if isinstance(value, base):
                return self._derived(value, base)
        if not isinstance(value, type) and is_plain_dataclass(type(value)):
            return self._dataclass(value)
        return self.name_of(value)

    def _enum(self, value: enum.Enum) -> str:
        kind = self.name_of(type(value))
        name = value.name
        is_identifier = type(name) is str and name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
        if is_identifier and name in type(value).__members__:
            return f"{kind}.{name}"
        return f"{kind}({self.spell(value.value)})"

    def _derived(self, value: Any, base: type) -> str:
        """A value of a class that derives from one of Python's own."""
        if type(value).__module__ == "clew.ir.arguments":
            return _WRITERS[base](self, base(value))
        if is_named_tuple(type(value)):
            return f"{self.name_of(type(value))}({', '.join(map(self.spell, value))})"
        if is_plain_container(type(value)) and not getattr(value, "__dict__", None):
            return f"{self.name_of(type(value))}({_WRITERS[base](self, base(value))})"
        return self.name_of(value)

    def _dataclass(self, value: Any) -> str:
        """A dataclass by its fields, unless it has been given more than these, or fewer."""
        names = [field.name for field in dataclasses.fields(value)]
        if not all(hasattr(value, name) for name in names) or set(getattr(value, "__dict__", ())) - set(names):
            return self.name_of(value)
        inner = ", ".join(f"{name}={self.spell(getattr(value, name))}" for name in names)
        return f"{self.name_of(type(value))}({inner})"


def is_plain_dataclass(kind: type) -> bool:
    """True when the constructor does nothing but set the fields, so that it rebuilds a value from them."""
    if "__dataclass_fields__" not in vars(kind) or not vars(kind)["__dataclass_params__"].init:
        return False
    if hasattr(kind, "__post_init__") or any("__new__" in vars(base) for base in kind.__mro__[:-1]):
        return False
    # The constructor may take InitVars beside the fields, whose values are not kept anywhere.
    return set(inspect.signature(kind).parameters) == {field.name for field in dataclasses.fields(kind)}


def is_named_tuple(kind: type) -> bool:
    """True for classes made by namedtuple or NamedTuple, which take their fields one by one."""
    return issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple)


def is_plain_container(kind: type) -> bool:
    """True for a class that is made of a tuple, list or dict just as that is made of another."""
    if kind is collections.OrderedDict:
        return True
    for base in (tuple, list, dict):
        if issubclass(kind, base):
            return kind.__init__ is base.__init__ and kind.__new__ is base.__new__
    return False


STRING = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""
"""The pattern of a quoted string as ``repr`` writes it: on one line, in either quotes."""

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SHORT_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t", "0": "\0"}


def unquote(token: str) -> str:
    """The string that a quoted one means; ValueError for an escape that ``repr`` never writes."""
    inner = token[1:-1]
    return _ESCAPE.sub(_escaped, inner) if "\\" in inner else inner


def _escaped(match: re.Match[str]) -> str:
    short = match[4]
    if short is None:
        number = int(match[1] or match[2] or match[3], 16)
        if number > sys.maxunicode:
            raise ValueError(f"there is no character {match[0]}")
        return chr(number)
    if short not in _SHORT_ESCAPES:
        raise ValueError(f"unknown escape \\{short}")
    return _SHORT_ESCAPES[short]


def _integer(speller: Speller, value: int) -> str:
    # Python refuses to write or read very long numbers in base 10, because that takes quadratic time.
    return repr(value) if value.bit_length() < 10_000 else hex(value)


def _number(speller: Speller, value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        return "float('nan')"
    return "float('inf')" if value > 0 else "float('-inf')"


def _complex(speller: Speller, value: complex) -> str:
    return f"complex({_number(speller, value.real)}, {_number(speller, value.imag)})"


def _tuple(speller: Speller, value: tuple[Any, ...]) -> str:
    inner = ", ".join(map(speller.spell, value))
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def _list(speller: Speller, value: list[Any]) -> str:
    return f"[{', '.join(map(speller.spell, value))}]"


def _dict(speller: Speller, value: dict[Any, Any]) -> str:
    return f"{{{', '.join(f'{speller.spell(key)}: {speller.spell(item)}' for key, item in value.items())}}}"


def _set(speller: Speller, value: set[Any] | frozenset[Any]) -> str:
    inner = ", ".join(sorted(map(speller.spell, value)))
    if isinstance(value, frozenset):
        return f"frozenset([{inner}])"
    return f"{{{inner}}}" if value else "set()"


def _slice(speller: Speller, value: slice) -> str:
    return f"slice({speller.spell(value.start)}, {speller.spell(value.stop)}, {speller.spell(value.step)})"


def _plain(speller: Speller, value: Any) -> str:
    return repr(value)


_WRITERS: dict[type, Callable[[Speller, Any], str]] = {
    int: _integer,
    bool: _plain,
    str: _plain,
    bytes: _plain,
    type(None): _plain,
    type(...): lambda speller, value: "...",
    range: _plain,
    float: _number,
    complex: _complex,
    tuple: _tuple,
    list: _list,
    dict: _dict,
    set: _set,
    frozenset: _set,
    slice: _slice,
}


# ---- reading: the text and the place in it ---------------------------------------------------------------------------

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANKS = " \t\r\n#"  # the empty string, which stands for the end of the text, is in it too
_WIDTH = 120


class Scanner:
    """A text and the place in it up to which it has been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def skip(self) -> str:
        """Pass over blanks, line breaks and comments; the character that comes next, empty at the end."""
        first = self.text[self.place : self.place + 1]
        if first not in _BLANKS:
            return first
        self.place = _BLANK.match(self.text, self.place).end()  # type: ignore[union-attr]
        return self.text[self.place : self.place + 1]

    def accept(self, characters: str) -> bool:
        """Pass over ``characters`` if they come next; otherwise stay, before the blanks as well."""
        place = self.place
        if not self.text.startswith(characters, place):
            if self.text[place : place + 1] not in _BLANKS:
                return False
            self.skip()
            if not self.text.startswith(characters, self.place):
                self.place = place
                return False
        self.place += len(characters)
        return True

    def expect(self, characters: str, expected: str = "") -> None:
        """Pass over ``characters``; an error if something else comes next."""
        if not self.accept(characters):
            self.skip()
            raise self.error(expected or f"'{characters}'")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Pass over what ``pattern`` matches here, if it does; blanks are not skipped."""
        match = pattern.match(self.text, self.place)
        if match is not None:
            self.place = match.end()
        return match

    def take(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """Pass over blanks and what ``pattern`` matches; an error if it does not."""
        self.skip()
        match = self.match(pattern)
        if match is None:
            raise self.error(expected)
        return match

    def line_at(self, place: int) -> str:
        """``line 3: %x = ...``: the line around a place, with its number."""
        number = self.text.count("\n", 0, place) + 1
        start = self.text.rfind("\n", 0, place) + 1
        end = self.text.find("\n", place)
        line = self.text[start : len(self.text) if end < 0 else end].strip()
        shown = line if line.isprintable() else repr(line)
        return f"line {number}: {shown if len(shown) <= _WIDTH else shown[:_WIDTH] + '...'}"

    def error(self, expected: str, place: int | None = None) -> TextError:
        """The error that something else than ``expected`` stands here."""
        place = self.place if place is None else place
        rest = self.text[place : place + 30].partition("\n")[0]
        found = (
            repr(rest) if rest.strip() else "the end of the line" if place < len(self.text) else "the end of the text"
        )
        return self.fault(f"expected {expected}, found {found}", place)

    def fault(self, what: str, place: int | None = None, *, why: str = "", fixes: Sequence[str] = ()) -> TextError:
        """An error at a place of the text: the present one, if none is given."""
        where = self.line_at(self.place if place is None else place)
        number = where.partition(":")[0]
        return TextError(f"{number}: {what}", where=where, why=why, fixes=fixes)


# ---- reading values --------------------------------------------------------------------------------------------------

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

    def __init__(self, text: str, objects: Mapping[str, Any] | None = None, find: Callable[[str], Any] = find) -> None:
        super().__init__(text)
        self.objects: Mapping[str, Any] = {} if objects is None else objects
        self._find = find
        """Gives what a name stands for, or says that there is no such thing, or that it may not be named."""
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
                self._named[name] = self._find(name)
            except NotFound as error:
                raise self.fault(f"{name} is not known: {error}", place, fixes=["correct the name"]) from error
            except NotAllowed as error:
                raise self.fault(error.what, place, why=error.why, fixes=error.fixes) from None
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


# ---- annotations -----------------------------------------------------------------------------------------------------


class _Unnamed(LookupError):
    """A part of an annotation that no name reaches."""


def annotation_text(annotation: Any) -> str | None:
    """The text of an annotation that reads back as an equal one; None if there is none."""
    try:
        text = _written(annotation)
        reader = AnnotationReader(text)
        found = reader.annotation()
    except (_Unnamed, TextError):
        return None
    return text if not reader.skip() and type(found) is type(annotation) and found == annotation else None


def _name(value: Any) -> str:
    name = name_for(value)
    if name is None:
        raise _Unnamed(repr(value))
    return name


def _type_name(kind: Any) -> str:
    name = _name(kind)
    return name.removeprefix("builtins.") if isinstance(kind, type) else name


_speller = Speller(_name, _name)


def _written(annotation: Any) -> str:
    if annotation is type(None):
        return "None"
    if annotation is ...:
        return "..."
    if isinstance(annotation, str):
        return repr(annotation)
    if isinstance(annotation, typing.ForwardRef):
        return repr(annotation.__forward_arg__)
    if isinstance(annotation, list):
        return f"[{_joined(annotation)}]"
    if isinstance(annotation, types.UnionType):
        return " | ".join(map(_written, annotation.__args__))
    name = getattr(annotation, "_name", None)
    if isinstance(name, str) and getattr(typing, name, None) is annotation:
        return f"typing.{name}"  # typing's special forms, such as typing.List, know their own names
    origin = typing.get_origin(annotation)
    return _type_name(annotation) if origin is None else _subscripted(annotation, origin)


def _joined(annotations: Any) -> str:
    return ", ".join(map(_written, annotations))


def _subscripted(annotation: Any, origin: Any) -> str:
    arguments = typing.get_args(annotation)
    if origin is typing.Union:
        if len(arguments) == 2 and arguments[1] is type(None):
            return f"typing.Optional[{_written(arguments[0])}]"
        return f"typing.Union[{_joined(arguments)}]"
    if origin is typing.Literal:
        return f"typing.Literal[{', '.join(map(_speller.spell, arguments))}]"
    if origin is typing.Annotated:
        return f"typing.Annotated[{', '.join([_written(arguments[0]), *map(_speller.spell, arguments[1:])])}]"
    name = getattr(annotation, "_name", None)
    if isinstance(annotation, types.GenericAlias) or not isinstance(name, str) or not hasattr(typing, name):
        return f"{_type_name(origin)}[{_joined(arguments) or '()'}]"
    return f"typing.{name}[{_joined(arguments) or '()'}]"


def _may_subscript(kind: Any) -> bool:
    """True for what makes a type of other types when it is subscripted, and nothing else."""
    if isinstance(kind, type) and issubclass(kind, typing.Generic):
        return True
    module = getattr(kind, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in OPEN_PACKAGES


class AnnotationReader(Reader):
    """Reads annotations, besides values."""

    def annotation(self) -> Any:
        """A Python type: names, subscripted ones, and unions with ``|``."""
        start = self.place
        found = self.single_annotation()
        while self.accept("|"):
            other = self.single_annotation()
            try:
                found = operator.or_(found, other)
            except TypeError as error:
                raise self.fault(f"these types form no union: {error}", start) from error
        return found

    def single_annotation(self) -> Any:
        first = self.skip()
        if first in ("'", '"'):
            return self.string()
        if first == ".":
            return self.ellipsis()
        if first == "[":
            return self.annotations("[", "]")
        if first == "(":
            return tuple(self.annotations("(", ")"))
        if first == "@":
            return self.subscripted(self.given()[0])
        match = self.take(DOTTED, "a type")
        if match[0] == "None":
            return type(None)
        name = match[0] if "." in match[0] else f"builtins.{match[0]}"
        return self.subscripted(self.find(name, match.start()))

    def annotations(self, opening: str, closing: str) -> list[Any]:
        self.expect(opening)
        found = []
        while not self.accept(closing):
            found.append(self.annotation())
            if not self.accept(","):
                self.expect(closing, f"',' or '{closing}'")
                break
        return found

    def subscripted(self, base: Any) -> Any:
        start = self.place
        if not self.text.startswith("[", self.place):
            return base
        if not _may_subscript(base):
            raise self.fault("this type takes no types in brackets", start)
        if base is typing.Literal:
            items = self.list_value()
        elif base is typing.Annotated:
            self.expect("[")
            items = [self.annotation()]
            items += self.items("]")[0] if self.accept(",") else []
        else:
            items = self.annotations("[", "]")
        try:
            return base[items[0] if len(items) == 1 else tuple(items)]
        except TypeError as error:
            raise self.fault(f"these types do not fit together: {error}", start) from error
