"""Functions that are made anew for each call and do the same: lambdas, inner functions, partials, bound methods.

Two have the same fingerprint if they run the same code in the same module and hold the same: equal plain values, else
the very same objects, in closures, defaults and fixed arguments. The object of a bound method does not count where it
is followed as an input.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import CellType, FunctionType, MethodType
from typing import Any

from clew.capture.patches import own_code, own_defaults
from clew.capture.state.containers import SIMPLE, same_part

_DEPTH = 4


class _Same:
    """An object that only itself is equal to."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and other.value is self.value

    __hash__ = None  # type: ignore[assignment]


class FunctionFingerprint:
    """A function as it was during the capture."""

    def __init__(self, function: Any, follows_owner: bool) -> None:
        self.function = function
        self.follows_owner = follows_owner
        self.fingerprint = self.of(function)

    def of(self, function: Any) -> Any:
        """What must be equal in a function that does the same."""
        if type(function) is MethodType and self.follows_owner:
            return MethodType, _fingerprint(function.__func__, _DEPTH)
        return _fingerprint(function, _DEPTH)

    def __repr__(self) -> str:
        return getattr(self.function, "__qualname__", None) or repr(self.function)


class FunctionState:
    """The code and the defaults of a function as they were: both can be set anew, and the function stays the same."""

    __slots__ = ("code", "defaults", "function", "named")

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.code = own_code(function)
        self.defaults = own_defaults(function)
        self.named = None if function.__kwdefaults__ is None else dict(function.__kwdefaults__)

    @classmethod
    def of(cls, value: Any) -> FunctionState | None:
        """That of a function, or of the one in a static method, a class method or a property; None for a class."""
        function = getattr(value, "__func__", getattr(value, "fget", value))
        return cls(function) if type(function) is FunctionType else None

    def has_changed(self) -> bool:
        """Whether the function has another code, or a default that is another object and no equal plain value."""
        if own_code(self.function) is not self.code:
            return True
        now, named = own_defaults(self.function), self.function.__kwdefaults__
        if now is not self.defaults and not _same_values(now or (), self.defaults or ()):
            return True
        if named is None or self.named is None:
            return bool(named) or bool(self.named)
        return list(named) != list(self.named) or not _same_values(tuple(named.values()), tuple(self.named.values()))

    def __deepcopy__(self, memo: dict[int, Any]) -> FunctionState:
        return self  # a copied graph calls the same function


class PartialState:
    """The function and the arguments of a partial as they were."""

    __slots__ = ("args", "function", "held", "keywords")

    def __init__(self, held: functools.partial[Any]) -> None:
        self.held = held
        self.function, self.args, self.keywords = held.func, held.args, dict(held.keywords)

    def has_changed(self) -> bool:
        """Whether it holds other objects now, and no equal plain values."""
        now = self.held
        if now.func is not self.function or list(now.keywords) != list(self.keywords):
            return True
        values = (*now.args, *now.keywords.values())
        return not _same_values(values, (*self.args, *self.keywords.values()))

    def __deepcopy__(self, memo: dict[int, Any]) -> PartialState:
        return self


class ClassWithout:
    """A class that has had no attributes of some names."""

    __slots__ = ("count", "kind", "names")

    def __init__(self, kind: type, names: frozenset[str]) -> None:
        self.kind = kind
        self.names = names
        self.count = len(vars(kind))

    def has_changed(self) -> bool:
        """Whether the class has one of them now; what it got otherwise does not count."""
        held = vars(self.kind)
        if len(held) == self.count:
            return False
        if not self.names.isdisjoint(held):
            return True
        self.count = len(held)
        return False

    def __deepcopy__(self, memo: dict[int, Any]) -> ClassWithout:
        return self


def _same_values(now: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    return len(now) == len(before) and all(map(same_part, now, before))


def has_fingerprint(value: Any) -> bool:
    """Whether another function may stand for this one, if it is like it: it carries no attributes of its own."""
    return type(value) is MethodType or (type(value) in (FunctionType, functools.partial) and not vars(value))


def cells_of(value: Any, depth: int = _DEPTH) -> Iterator[CellType]:
    """The variables of closures that a function, and those that it holds, may set."""
    if type(value) is MethodType:
        value = value.__func__
    parts: tuple[Any, ...] = ()
    if type(value) is functools.partial:
        parts = (value.func, *value.args, *value.keywords.values())
    elif type(value) is FunctionType:
        yield from value.__closure__ or ()
        parts = (*map(_content, value.__closure__ or ()), *(value.__defaults__ or ()))
    elif type(value) is tuple:
        parts = value
    for part in parts if depth else ():
        yield from cells_of(part, depth - 1)


def _fingerprint(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in (float, complex):  # a zero has a sign, and no NaN is equal to itself
        return kind, repr(value)
    if kind in SIMPLE:
        return kind, value
    if depth == 0:
        return _Same(value)
    if kind is tuple:
        return tuple, [_fingerprint(part, depth - 1) for part in value]
    if kind is MethodType:
        return kind, _fingerprint(value.__func__, depth), _Same(value.__self__)
    if kind is functools.partial and not vars(value):
        held = (value.args, tuple(value.keywords), tuple(value.keywords.values()))
        return kind, _fingerprint(value.func, depth - 1), _fingerprint(held, depth)
    if kind is not FunctionType or vars(value):
        return _Same(value)
    named = value.__kwdefaults__ or {}
    fixed = (value.__defaults__ or (), tuple(named), tuple(named.values()))
    closure = tuple(map(_content, value.__closure__ or ()))
    return kind, _Same(value.__code__), _Same(value.__globals__), _fingerprint((fixed, closure), depth)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return _Same
