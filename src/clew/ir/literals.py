"""Plain values as Python expressions that evaluate back to equal values.

In comes any value that may stand in an argument of a node; out comes source text. Names of classes and functions in
it are asked of ``name_of``, so that the writer decides how they are reached. Nothing is ever printed by a ``repr``
that was not checked: an object without a safe spelling goes through ``name_of`` as an object of its own.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import inspect
import keyword
import math
import re
import sys
from collections.abc import Callable
from typing import Any

from clew.ir.arguments import Reference
from clew.ir.guests import guest_of

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
