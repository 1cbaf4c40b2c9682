"""Stand-ins for NumPy's arrays, its numbers, and the Python numbers that come out of them.

A stand-in holds the value of the example and its node, and answers with the class of the value when asked for its own.
It is no array for C code, so whatever is not recorded has to ask it for its data, which is seen: ``__array__`` and the
conversions of numbers are the only ways out. All work is done by the recorder that the stand-in belongs to.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy

from clew.capture.bytecode.statements import is_only_shown
from clew.capture.recording.recorder import Scalar
from clew.ir.source import user_frame

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder

_BINARY = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor".split()
_COMPARING = "lt le gt ge eq ne".split()
_UNARY = "neg abs pos invert".split()
_PYTHON = {bool: "TracedBool", int: "TracedInt", float: "TracedFloat", complex: "TracedComplex"}


class Traced(Scalar):
    """What all stand-ins have in common."""

    __slots__ = ("__weakref__", "place", "plain", "recorder")
    recorder: NumpyRecorder
    __class__ = property(lambda self: type(self.plain))  # type: ignore[assignment]
    __array_priority__ = 1e6

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
        return self._shown(repr)

    def __str__(self) -> str:
        return self._shown(str)

    def __format__(self, spec: str) -> str:
        return self._shown(lambda value: format(value, spec))

    def _shown(self, function: Callable[[Any], str]) -> str:
        """Python wants the text: what is only shown to people needs no guard."""
        if self.recorder.running and not is_only_shown(user_frame(3), self.recorder.paths is None):
            self.recorder.reveal(self)
        return function(self.plain)

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


def _updating(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return self.recorder.update(function, self, other)

    return method


def _computing(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *rest: Any) -> Any:
        return self.recorder.operate(function, self, *rest)

    return method


for _name in _BINARY:
    setattr(Traced, f"__{_name.strip('_')}__", _operating(getattr(operator, _name), False))
    setattr(Traced, f"__r{_name.strip('_')}__", _operating(getattr(operator, _name), True))
for _name in _COMPARING:
    setattr(Traced, f"__{_name}__", _operating(getattr(operator, _name), False))
for _name in _UNARY:
    setattr(Traced, f"__{_name}__", _computing(getattr(operator, _name)))
for _name in ("ceil", "floor", "trunc"):
    setattr(Traced, f"__{_name}__", _computing(getattr(math, _name)))
Traced.__round__ = _computing(round)  # type: ignore[attr-defined]


def _divmod(self: Any, other: Any) -> Any:
    return self // other, self % other


def _reflected_divmod(self: Any, other: Any) -> Any:
    return other // self, other % self


setattr(Traced, "__divmod__", _divmod)  # noqa: B010 - so that the checker of types does not take it for an operand
setattr(Traced, "__rdivmod__", _reflected_divmod)  # noqa: B010


class Indexed(Traced):
    """A stand-in that can be indexed and walked: of an array, or of a number of NumPy's."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return self.recorder.item(self, key)

    def __copy__(self) -> Any:
        return self.recorder.method(self, "copy", (), {})

    def __deepcopy__(self, memo: Any) -> Any:
        return self.recorder.method(self, "copy", (), {})

    def __setattr__(self, name: str, value: Any) -> None:
        self.recorder.set_attribute(self, name, value)


class TracedArray(Indexed):
    """Stands for an array."""

    __slots__ = ()

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


for _name in _BINARY:
    setattr(TracedArray, f"__i{_name.strip('_')}__", _updating(getattr(operator, f"i{_name.strip('_')}")))


class Items:
    """Walks along the first axis of an array; its length is relied on as soon as the walk begins."""

    def __init__(self, array: TracedArray) -> None:
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
    """Stands for a number of NumPy's, ``numpy.float64`` say."""

    __slots__ = ()
    __hash__ = _Hashed.__hash__


class TracedPython(_Hashed, Traced):
    """Stands for a number of Python's."""

    __slots__ = ()
    __hash__ = _Hashed.__hash__


class TracedList(Traced):
    """Stands in a call for a list that a loop of the graph has filled, of whatever length it will be."""

    __slots__ = ()
    __class__ = property(lambda self: TracedList)  # type: ignore[assignment]  # no list, which would be walked


TracedBool, TracedInt, TracedFloat, TracedComplex = (
    type(name, (TracedPython,), {"__slots__": (), "__hash__": _Hashed.__hash__}) for name in _PYTHON.values()
)
_CLASSES = {bool: TracedBool, int: TracedInt, float: TracedFloat, complex: TracedComplex}


def stand_in(plain: Any, place: Any, recorder: NumpyRecorder, own: Any = None) -> Any:
    """The stand-in of an array or number, of the class ``own`` if the recorder has one for it."""
    kind = type(plain)
    own = own or _CLASSES.get(kind) or (TracedGeneric if issubclass(kind, numpy.generic) else TracedArray)
    return _made(own, plain, place, recorder)


def whole_list(plain: list[Any], place: Any, recorder: NumpyRecorder) -> Any:
    """The stand-in of a whole list."""
    return _made(TracedList, plain, place, recorder)


def _made(own: Any, plain: Any, place: Any, recorder: NumpyRecorder) -> Any:
    made: Any = object.__new__(own)
    put = object.__setattr__
    put(made, "plain", plain)
    put(made, "place", place)
    put(made, "recorder", recorder)
    return made


def is_traced(value: Any) -> bool:
    """Whether a value is a stand-in, whatever it answers when asked for its class."""
    return issubclass(type(value), Traced)
