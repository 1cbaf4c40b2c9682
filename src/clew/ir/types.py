"""Types of values: ``f32[2, n, 512]`` for arrays, Python's scalars, and nests of these.

A type is a small immutable object that prints itself and is parsed back from that by ``parse_type``. A dimension is a
number, or the name of a size that is not fixed. The device is printed when it is not the CPU: ``f32[2]@cuda:0``.
A dtype, size, device or class whose name could be taken for something else is printed in quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from clew.errors import TextError
from clew.ir.arguments import immutable_dict, immutable_list
from clew.ir.guests import guest_of
from clew.ir.literals import STRING, unquote

Dimension = int | str

SHORT_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8",
    "complex128": "c128", "complex64": "c64", "complex32": "c32", "bool": "bool",
}  # fmt: skip
LONG_DTYPES = {short: long for long, short in SHORT_DTYPES.items()}


_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TERM = r"-?\(*\w+\)*"
_SIZE = re.compile(rf"(?!-?\d+ *[\],]){_TERM}(?: ?[-+*/%]{{1,2}} ?{_TERM})*", re.ASCII)
_DEVICE = re.compile(r"\w+(?::\w+)*", re.ASCII)
_CLASS = re.compile(r"\w+(?:\.(?:\w+|<locals>))*", re.ASCII)


def _bare(pattern: re.Pattern[str], name: str) -> str:
    """The name itself where it reads back as itself, otherwise in quotes."""
    return name if pattern.fullmatch(name) else repr(name)


class Type:
    """The root of all types. Equal types print the same and the reverse."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ArrayType(Type):
    """An array: its dtype by its full name, its shape, its device."""

    dtype: str
    shape: tuple[Dimension, ...]
    device: str = "cpu"

    def __str__(self) -> str:
        place = "" if self.device == "cpu" else f"@{_bare(_DEVICE, self.device)}"
        return f"{_dtype(self.dtype)}[{', '.join(map(_size, self.shape))}]{place}"


def _dtype(name: str) -> str:
    short = SHORT_DTYPES.get(name)
    if short is not None:
        return short
    return repr(name) if name in LONG_DTYPES else _bare(_WORD, name)


def _size(size: Dimension) -> str:
    if not isinstance(size, str):
        return str(size)
    return repr(size) if size.removeprefix("-").isdigit() else _bare(_SIZE, size)


@dataclass(frozen=True, slots=True)
class ScalarType(Type):
    """A plain Python value: int, float, bool, complex, str, bytes or None."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """A tuple of values."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.items))
        return f"({inner},)" if len(self.items) == 1 else f"({inner})"


@dataclass(frozen=True, slots=True)
class ListType(Type):
    """A list of values."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True, slots=True)
class DictType(Type):
    """A dict with string keys, in order."""

    items: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return f"{{{', '.join(f'{key!r}: {value}' for key, value in self.items)}}}"


@dataclass(frozen=True, slots=True)
class ObjectType(Type):
    """Any other value, by the dotted name of its class."""

    name: str

    def __str__(self) -> str:
        return f"<{_bare(_CLASS, self.name)}>"


_SCALARS = {
    int: "int",
    float: "float",
    bool: "bool",
    complex: "complex",
    str: "str",
    bytes: "bytes",
    type(None): "None",
}


def type_of(value: Any) -> Type:
    """The type of a concrete value."""
    kind = type(value)
    if kind in _SCALARS:
        return ScalarType(_SCALARS[kind])
    if kind is tuple:
        return TupleType(tuple(map(type_of, value)))
    if kind in (list, immutable_list):
        return ListType(tuple(map(type_of, value)))
    if kind in (dict, immutable_dict) and all(isinstance(key, str) for key in value):
        return DictType(tuple((key, type_of(item)) for key, item in value.items()))
    guest = guest_of(value)
    known = None if guest is None else guest.type_of(value)
    return known if isinstance(known, Type) else ObjectType(f"{kind.__module__}.{kind.__qualname__}")


_STRING = re.compile(STRING)
_INTEGER = re.compile(r"-?\d+(?= *[\],])", re.ASCII)


def parse_type(text: str) -> Type:
    """The type that prints as ``text``."""
    found, end = read_type(text, 0)
    if text[end:].strip():
        raise TextError(f"{text!r} is not a type: {text[end:].strip()!r} is left over")
    return found


def read_type(text: str, place: int) -> tuple[Type, int]:
    """The type that stands at ``place`` in a longer text, and where it ends."""
    reader = _TypeReader(text, place)
    return reader.one(), reader.place


class _TypeReader:
    """Reads one type from a text, piece by piece; ``place`` is where it has come to."""

    def __init__(self, text: str, place: int) -> None:
        self.text = text
        self.place = place

    def one(self) -> Type:
        opening = self.accept("([{<")
        if opening == "(":
            return TupleType(self.several(")"))
        if opening == "[":
            return ListType(self.several("]"))
        if opening == "{":
            return DictType(self.entries())
        if opening == "<":
            name = self.name(_CLASS, "the name of a class")
            self.expect(">")
            return ObjectType(name)
        return self.named()

    def named(self) -> Type:
        quoted = self.peek() in "'\""
        name = self.name(_WORD, "a type")
        if not self.directly("["):
            if quoted or name not in _SCALARS.values():
                raise self.error("the shape of an array: [")
            return ScalarType(name)
        dtype = name if quoted else LONG_DTYPES.get(name, name)
        shape = self.shape()
        device = self.name(_DEVICE, "a device") if self.directly("@") else "cpu"
        return ArrayType(dtype, shape, device)

    def shape(self) -> tuple[Dimension, ...]:
        sizes: list[Dimension] = []
        while not self.accept("]"):
            self.peek()
            number = _INTEGER.match(self.text, self.place)
            if number is None:
                sizes.append(self.name(_SIZE, "a size"))
            else:
                sizes.append(self.integer(number[0]))
                self.place = number.end()
            self.comma("]")
        return tuple(sizes)

    def integer(self, digits: str) -> int:
        try:
            return int(digits)
        except ValueError as error:  # Python refuses to read very long numbers
            raise self.error("a size") from error

    def several(self, closing: str) -> tuple[Type, ...]:
        items: list[Type] = []
        while not self.accept(closing):
            items.append(self.one())
            self.comma(closing)
        return tuple(items)

    def entries(self) -> tuple[tuple[str, Type], ...]:
        items: list[tuple[str, Type]] = []
        while not self.accept("}"):
            if self.peek() not in "'\"":
                raise self.error("a key in quotes")
            key = self.name(_WORD, "a key in quotes")
            self.expect(":")
            items.append((key, self.one()))
            self.comma("}")
        return tuple(items)

    def peek(self) -> str:
        """The next character that is not a blank; a line break never stands inside a type."""
        while self.text[self.place : self.place + 1] in (" ", "\t"):
            self.place += 1
        return self.text[self.place : self.place + 1] or "\n"

    def accept(self, characters: str) -> str:
        found = self.peek()
        if found not in characters:
            return ""
        self.place += 1
        return found

    def directly(self, character: str) -> bool:
        """Like ``accept``, but blanks before the character are left to whoever reads on behind the type."""
        return self.text.startswith(character, self.place) and bool(self.accept(character))

    def expect(self, character: str) -> None:
        if not self.accept(character):
            raise self.error(character)

    def comma(self, closing: str) -> None:
        if self.peek() != closing:
            self.expect(",")

    def name(self, pattern: re.Pattern[str], expected: str) -> str:
        """A bare name of the given shape, or any name in quotes."""
        is_quoted = self.peek() in "'\""
        match = (_STRING if is_quoted else pattern).match(self.text, self.place)
        if match is None:
            raise self.error(expected)
        try:
            found = unquote(match[0]) if is_quoted else match[0]
        except ValueError as error:
            raise self.error(expected) from error
        self.place = match.end()
        return found

    def error(self, expected: str) -> TextError:
        rest = self.text[self.place : self.place + 40].partition("\n")[0]
        return TextError(f"this is not a type: expected {expected}, found {rest or 'the end of the line'!r}")
