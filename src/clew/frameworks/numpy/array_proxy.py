"""Proxies for NumPy's arrays, its numbers, and the Python numbers that come out of them.

A proxy holds the value of the example and its node, and answers with the class of the value when asked for its own.
It is no array for C code, so whatever is not recorded has to ask it for its data, which is seen: ``__array__`` and the
conversions of numbers are the only ways out. All work is done by the recorder that the proxy belongs to.
"""

from __future__ import annotations

import enum
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy

from clew.capture.bytecode.statements import is_only_shown
from clew.capture.guards.notes import Variable
from clew.capture.location import MISSING, Location
from clew.capture.python.messages import marked
from clew.capture.recording.numbers import BINARY, operator_methods
from clew.capture.recording.recorder import Scalar
from clew.capture.state.containers import CODE, SIMPLE, contents, follows, refill
from clew.capture.state.snapshot import Part
from clew.ir.source import user_frame

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder


SLOTS = ("__weakref__", "place", "plain", "recorder", "reliance")
"""What a proxy holds."""
_PYTHON = {bool: "TracedBool", int: "TracedInt", float: "TracedFloat", complex: "TracedComplex"}


class Reliance(enum.IntEnum):
    """What the class of a value, or whatever else a program has seen, depends on."""

    NOTHING = 0
    NUMBERS = 1
    """On numbers among the arguments being numbers, and not arrays."""
    RANK = 2
    """And on ranks."""
    DTYPE = 3
    """And on dtypes."""


def _class_of(traced: Any) -> Any:
    """The class of what a proxy stands for; a program that asks for it relies on it."""
    asking = sys._getframe(1).f_globals.get("__name__", "")
    if not asking.startswith("clew."):
        traced.recorder.show_class(traced)
    return type(traced.plain)


class Traced(Scalar):
    """What all proxies have in common; ``reliance`` is what it depends on whether it stands for an array."""

    __slots__ = ()
    recorder: NumpyRecorder
    reliance: Reliance
    is_of_python = False
    has_items = False
    """Whether it is the proxy of an array, which has a length."""
    __class__ = property(_class_of)  # type: ignore[assignment]
    __array_priority__ = 1e6

    def relied_on(self) -> Any:
        """The number itself, on which the capture relies from now on; what is no number stays as it is."""
        kinds = (((bool, numpy.bool_), bool), ((int, numpy.integer), operator.index), ((float, numpy.floating), float))
        forced = next((force for kind, force in kinds if isinstance(self.plain, kind)), None)
        return self if forced is None else self.recorder.forced(forced, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return self.recorder.ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self.recorder.call(function, args, kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.recorder.escape(self, dtype)

    def __bool__(self) -> bool:
        return bool(self.recorder.asked(self))

    def __int__(self) -> int:
        return int(self.recorder.forced(int, self))

    def __float__(self) -> float:
        return float(self.recorder.forced(float, self))

    def __complex__(self) -> complex:
        return complex(self.recorder.forced(complex, self))

    def __index__(self) -> int:
        return int(self.recorder.forced(operator.index, self))

    def __repr__(self) -> str:
        return self._shown(repr, "{!r}")

    def __str__(self) -> str:
        return self._shown(str, "{}")

    def __format__(self, spec: str) -> str:
        return self._shown(lambda value: format(value, spec), f"{{:{spec}}}")

    def _shown(self, function: Callable[[Any], str], field: str) -> str:
        """Python wants the text: what is only shown to people needs no guard."""
        recorder, frame = self.recorder, user_frame(3)
        mark = marked(frame, field, self) if recorder.running else None
        if mark is None and recorder.running and not is_only_shown(frame, recorder.paths is None):
            recorder.reveal(self)
        return mark or function(self.plain)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.recorder.reveal(self)
        return self.plain.__reduce_ex__(protocol)

    def __sizeof__(self) -> int:
        self.recorder.reveal(self)
        return int(self.plain.__sizeof__())

    def __getattr__(self, name: str) -> Any:
        return self.recorder.attribute(self, name)

    def __dir__(self) -> list[str]:
        return dir(self.plain)


def _operating(function: Callable[..., Any], reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not self.recorder.can_operate(self, other):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        return self.recorder.operate(function, left, right)

    return method


def _replacing(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """``n += 1`` of a number, which makes another one, and does not write."""

    def method(self: Any, other: Any) -> Any:
        if not self.recorder.can_operate(self, other):
            return NotImplemented
        self.recorder.rely_on_memory(self)
        return self.recorder.operate(function, self, other)

    return method


def _updating(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return self.recorder.update(function, self, other)

    return method


def _computing(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *rest: Any) -> Any:
        return self.recorder.operate(function, self, *rest)

    return method


for _name, _method in operator_methods(_operating, _computing).items():
    setattr(Traced, _name, _method)
for _name in BINARY:
    setattr(Traced, f"__i{_name.strip('_')}__", _replacing(getattr(operator, _name)))


class Indexed(Traced):
    """A proxy that can be indexed and walked: of an array, or of a number of NumPy's."""

    __slots__ = SLOTS

    def __getitem__(self, key: Any) -> Any:
        return self.recorder.item(self, key)

    def __copy__(self) -> Any:
        return self.recorder.method(self, "copy", (), {})

    def __deepcopy__(self, memo: Any) -> Any:
        return self.recorder.method(self, "copy", (), {})

    def __setattr__(self, name: str, value: Any) -> None:
        self.recorder.set_attribute(self, name, value)


class TracedArray(Indexed):
    """A proxy of an array."""

    __slots__ = ()
    has_items = True

    def __setitem__(self, key: Any, value: Any) -> None:
        self.recorder.set_item(self, key, value)

    def __len__(self) -> int:
        return int(self.recorder.forced(len, self))

    def __iter__(self) -> Iterator[Any]:
        return Items(self)

    def __contains__(self, value: Any) -> Any:
        return self.recorder.operate(operator.contains, self, value)

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'numpy.ndarray'")


for _name in BINARY:
    setattr(TracedArray, f"__i{_name.strip('_')}__", _updating(getattr(operator, f"i{_name.strip('_')}")))


class Items:
    """Walks along the first axis of an array; its length is relied on as soon as the walk begins."""

    def __init__(self, array: Any) -> None:
        if array.plain.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        self._array, self._place, self._count = array, 0, -1

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        if self._count < 0:
            self._count = len(self._array)
        if self._place >= self._count:
            raise StopIteration
        self._place += 1
        return self._array[self._place - 1]


class _Hashed:
    """Numbers are keys: what a number is as a key is what it is."""

    __slots__ = ()

    def __hash__(self) -> int:
        self.recorder.reveal(self)  # type: ignore[attr-defined]
        return hash(self.plain)  # type: ignore[attr-defined]


class TracedGeneric(_Hashed, Indexed):
    """A proxy of a number of NumPy's, ``numpy.float64`` say."""

    __slots__ = ()
    __hash__ = _Hashed.__hash__

    def __iter__(self) -> Iterator[Any]:
        self.recorder.show_class(self)
        return iter(self.plain)  # which raises the error that the program would get


class TracedPython(_Hashed, Traced):
    """A proxy of a number of Python's."""

    __slots__ = SLOTS
    is_of_python = True
    __hash__ = _Hashed.__hash__


class TracedList(Traced):
    """Stands in a call for a list that a loop of the graph has filled, of whatever length it will be."""

    __slots__ = SLOTS
    __class__ = property(lambda self: TracedList)  # type: ignore[assignment]  # no list, which would be walked


TracedBool, TracedInt, TracedFloat, TracedComplex = (
    type(name, (TracedPython,), {"__slots__": (), "__hash__": _Hashed.__hash__}) for name in _PYTHON.values()
)
_CLASSES = {bool: TracedBool, int: TracedInt, float: TracedFloat, complex: TracedComplex}


_NUMBERS = (bool, int, float, complex, numpy.generic)


def stand_in(plain: Any, place: Any, recorder: NumpyRecorder, own: Any = None) -> Any:
    """The proxy of an array or number, of the class ``own`` if the recorder has one for it."""
    kind = type(plain)
    if recorder.code.gets_plain_numbers and recorder.running and issubclass(kind, _NUMBERS):
        recorder.guard(place, plain)
        return plain
    own = own or _CLASSES.get(kind) or (TracedGeneric if issubclass(kind, numpy.generic) else TracedArray)
    return made_stand_in(own, plain, place, recorder)


def whole_list(plain: list[Any], place: Any, recorder: NumpyRecorder) -> Any:
    """The proxy of a whole list."""
    return made_stand_in(TracedList, plain, place, recorder)


def made_stand_in(own: Any, plain: Any, place: Any, recorder: NumpyRecorder) -> Any:
    """A proxy of this class."""
    made: Any = object.__new__(own)
    put = object.__setattr__
    put(made, "plain", plain)
    put(made, "place", place)
    put(made, "recorder", recorder)
    put(made, "reliance", Reliance.RANK)
    return made


def relying(value: Any, reliance: Reliance) -> Any:
    """The proxy, of which it is known what its class depends on."""
    if issubclass(type(value), Traced):
        object.__setattr__(value, "reliance", reliance)
    elif type(value) is tuple:
        for item in value:
            relying(item, reliance)
    return value


def is_traced(value: Any) -> bool:
    """Whether a value is a proxy, whatever it answers when asked for its class."""
    return issubclass(type(value), Traced)


_DEPTH = 5
"""How many containers and objects deep arrays are looked for."""


class Places:
    """The places of one run in which proxies are."""

    def __init__(self, recorder: NumpyRecorder, depth: int = _DEPTH) -> None:
        self.recorder = recorder
        self.depth = depth
        self._seen: dict[int, Any] = {}
        self._swaps: list[tuple[Location, Any, Any]] = []
        """Where proxies were put, what was there, and the proxy."""
        self._defaults: list[tuple[FunctionType, Any]] = []

    def enter(self, variables: Iterable[Variable], functions: Iterable[Any], owners: Iterable[Any]) -> None:
        """Put proxies in the place of the arrays that these hold, directly or in containers and objects."""
        for variable in variables:
            self._variable(variable)
        for function in functions:
            self._default_values(function)
        for owner in owners:
            if not isinstance(owner, (type, ModuleType, FunctionType)) and not is_traced(owner):
                self._inside(owner, self.depth)

    def _variable(self, variable: Variable) -> None:
        value = variable.get()
        if value is MISSING or isinstance(value, CODE):
            return
        new = self._replaced(value, self.depth)
        if new is not value:
            variable.put(new)
            self._swaps.append((variable, value, new))

    def _default_values(self, function: Any) -> None:
        before = getattr(function, "__defaults__", None)
        if before and isinstance(function, FunctionType):
            after = tuple(self._replaced(value, self.depth) for value in before)
            if any(new is not old for new, old in zip(after, before, strict=True)):
                function.__defaults__ = after
                self._defaults.append((function, before))

    def _replaced(self, value: Any, depth: int) -> Any:
        """The value with proxies in the place of arrays; containers and objects are changed in place."""
        if type(value) in SIMPLE or depth == 0 or is_traced(value) or isinstance(value, numpy.generic):
            return value
        if self.recorder.is_array(value):
            has_objects = type(value) is numpy.ndarray and value.dtype.hasobject
            return value if has_objects else self.recorder.constant(value)
        if isinstance(value, tuple):
            items = [self._replaced(item, depth - 1) for item in value]
            if any(new is not old for new, old in zip(items, value, strict=True)):
                return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
            return value
        self._inside(value, depth)
        return value

    def _inside(self, value: Any, depth: int) -> None:
        if id(value) in self._seen or not follows(value) or id(value) in self.recorder.objects:
            return
        self._seen[id(value)] = value
        if isinstance(value, (set, deque)) and not hasattr(value, "__dict__"):
            return
        parts = contents(value)
        changed = {key: self._replaced(part, depth - 1) for key, part in parts.items()}
        swapped = {key: new for key, new in changed.items() if new is not parts[key]}
        if swapped:
            refill(value, changed)
            for key, new in swapped.items():
                self._swaps.append((Part("", value, key), parts[key], new))

    def leave(self) -> None:
        """Put the arrays back where the program has left their proxies."""
        for where, old, new in reversed(self._swaps):
            if where.get() is new:
                where.put(old)
        for function, before in self._defaults:
            function.__defaults__ = before
        self._swaps, self._defaults, self._seen = [], [], {}

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """For a call that stays whole the arrays themselves are in their places."""
        active = [(where, old, new) for where, old, new in self._swaps if where.get() is new]
        for where, old, _ in reversed(active):
            where.put(old)
        try:
            yield
        finally:
            for where, old, new in active:
                if where.get() is old:
                    where.put(new)
