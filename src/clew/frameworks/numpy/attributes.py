"""Attributes of arrays, as a program reads and sets them, and what may be asked of an array at all.

Shapes, ranks and dtypes are values of the graph (``facts.py``). Sizes are traced numbers; views (``T``) are arrays.
Ways to the memory itself (``data``, ``ctypes``, the array interface) are refused.
"""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy

from clew.errors import CaptureError
from clew.frameworks.numpy import facts
from clew.frameworks.numpy.array_proxy import Reliance, TracedArray, TracedPython, is_traced, relying
from clew.frameworks.numpy.opaque_calls import cannot_follow
from clew.ir.arguments import leaves
from clew.ir.effects import pure
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder

_SIZES = frozenset("shape size nbytes strides".split())
_VIEWS = frozenset("T mT real imag".split())
_FIXED = frozenset("dtype ndim itemsize device".split())
_MEMORY = frozenset("data ctypes base __dlpack__ __dlpack_device__ __array_interface__ __array_struct__".split())
_BY_NUMBERS = frozenset({"__array_interface__", "__array_struct__", "__array_wrap__", "__array_finalize__"})
_REFUSED_METHODS = frozenset("resize setflags dump tofile __setstate__ __reduce__".split())
_SET = frozenset({"real", "imag", "flat"})
_LITERALS = (str, bytes, bool, int, float, complex, type(None), type(...), type, range, enum.Enum, ModuleType)


def check_followed(value: Any) -> None:
    """Raise for an array whose elements are objects, which nobody watches."""
    if isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.hasobject:
        raise CaptureError(
            "an array of Python objects cannot be followed",
            why="what happens to the objects in it would not be seen",
            fixes=("use an array of numbers, or a list",),
        )


def check_arguments(recorder: NumpyRecorder, nest: Any, written: Iterable[Any]) -> None:
    """Raise if a call is given what a node cannot hold, or writes where nobody looks."""
    for array in written:
        if type(array) is not TracedArray or array.recorder is not recorder:
            raise cannot_follow("a result that is written to an array which the capture does not follow")
    for leaf in leaves(nest):
        if is_traced(leaf):
            if leaf.recorder is not recorder and isinstance(leaf, TracedArray):
                raise cannot_follow("an array that an earlier capture left behind")
        elif not isinstance(leaf, _LITERALS) and not callable(leaf):
            known = type(leaf) is numpy.ndarray or isinstance(leaf, (numpy.generic, numpy.dtype))
            known = known or isinstance(leaf, (numpy.random.Generator, numpy.random.RandomState))
            if not known and not recorder.takes(leaf):
                raise cannot_follow(f"a call of NumPy with a {type(leaf).__name__}")


def check_method(name: str) -> None:
    """Raise for methods that change what cannot be changed again, or that write to files."""
    if name in _REFUSED_METHODS:
        raise cannot_follow(f"the method {name} of an array")


def attribute(recorder: NumpyRecorder, traced: Any, name: str) -> Any:
    """An attribute of what a proxy stands for."""
    plain = traced.plain
    if not recorder.open:  # it was left somewhere, and is unchanged
        return getattr(plain, name)
    if type(traced) is facts.TracedDtype and not name.startswith("__"):
        return facts.dtype_attribute(recorder, traced, name)
    if name in _BY_NUMBERS and not isinstance(traced, TracedArray):
        raise AttributeError(name)  # so that NumPy asks for the number by __array__
    if name in _MEMORY and isinstance(plain, numpy.ndarray):
        recorder.check_used()
        raise cannot_follow(f"reading {name} of an array")
    if name.startswith("__") and name not in ("__array_namespace__",):
        raise AttributeError(f"{type(plain).__name__!r} object has no attribute {name!r}")
    if not hasattr(plain, name):
        recorder.show_class(traced)
    found = getattr(plain, name)
    if name in _FIXED and not isinstance(traced, TracedPython):
        return _fact(recorder, traced, name, found)
    recorder.check_used()
    if name == "__array_namespace__":
        return found
    if name == "flags":
        return Flags(traced)
    if name == "flat":
        return Flat(traced)
    if callable(found):
        return functools.partial(_call_method, traced, name)
    place = recorder.create(getattr, (recorder.argument(traced), name), is_result=name in _VIEWS)
    if name == "shape" and recorder.traces_facts:
        return facts.shape(found, place, recorder, plain if recorder.is_given(plain) else None)
    if name == "strides" and recorder.traces_facts:
        recorder.guard(recorder.create(getattr, (recorder.argument(traced), "ndim")), plain.ndim)
    return relying(recorder.result(found, place), traced.reliance if name in _VIEWS else Reliance.NOTHING)


def _fact(recorder: NumpyRecorder, traced: Any, name: str, found: Any) -> Any:
    """The rank or dtype of an array: a value of the graph, or plain."""
    if not recorder.traces_facts or name == "device":
        return found
    place = recorder.create(getattr, (recorder.argument(traced), name))
    return facts.dtype(found, place, recorder) if name == "dtype" else recorder.result(found, place)


def is_size(node: Node) -> bool:
    """Whether a value is a size or the rank of an array."""
    if node.target is operator.getitem and isinstance(node.args[0], Node) and type(node.args[1]) is int:
        return node.args[0].target is getattr and node.args[0].args[1] == "shape"
    return node.target is getattr and node.args[1] in ("ndim", "size", "itemsize", "nbytes")


def _call_method(traced: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    return traced.recorder.method(traced, name, args, kwargs)


def set_attribute(recorder: NumpyRecorder, array: Any, name: str, value: Any) -> None:
    """Writing through a view is a write; another shape or dtype for an array itself is refused."""
    recorder.check_used()
    recorder.show_class(array)
    if name not in _SET or not isinstance(array, TracedArray):
        if not hasattr(array.plain, name):
            setattr(array.plain, name, recorder.concrete(value))  # which raises the error that the program would get
        raise cannot_follow(f"setting {name} of an array")
    recorder.record("call_function", setattr, (array, name, value), {}, written=(array,))


class Flags:
    """The flags of an array: each that is read is a traced truth."""

    def __init__(self, array: Any) -> None:
        object.__setattr__(self, "_array", array)

    def __getattr__(self, name: str) -> Any:
        recorder, plain = self._array.recorder, getattr(self._array.plain.flags, name)
        recorder.check_used()
        flags = recorder.create(getattr, (recorder.argument(self._array), "flags"))
        return recorder.result(plain, recorder.create(getattr, (flags, name)))

    def __getitem__(self, name: str) -> Any:
        recorder, plain = self._array.recorder, self._array.plain.flags[name]
        recorder.check_used()
        flags = recorder.create(getattr, (recorder.argument(self._array), "flags"))
        return recorder.result(plain, recorder.create(operator.getitem, (flags, name)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise cannot_follow("setting a flag of an array")

    def __setitem__(self, name: str, value: Any) -> None:
        raise cannot_follow("setting a flag of an array")


@pure
def flat_item(array: Any, key: Any) -> Any:
    """Items of an array by their place in one row."""
    return array.flat[key]


def set_flat_item(array: Any, key: Any, value: Any) -> None:
    """Write to items of an array by their place in one row."""
    array.flat[key] = value


class Flat:
    """``x.flat``: the elements in one row, read and written where they are, and an iterator that begins anew then."""

    __class__ = property(lambda self: numpy.flatiter)  # type: ignore[assignment]

    def __init__(self, array: Any) -> None:
        self._array = array
        self.index = 0

    @property
    def base(self) -> Any:
        """The array."""
        return self._array

    @property
    def coords(self) -> tuple[int, ...]:
        """Where the next element stands."""
        shape = tuple(operator.index(size) for size in self._array.shape)
        return tuple(int(place) for place in numpy.unravel_index(self.index, shape))

    def copy(self) -> Any:
        """The elements as an array of their own."""
        return self._array.flatten()

    def __getitem__(self, key: Any) -> Any:
        self.index = 0
        return self._array.recorder.record("call_function", flat_item, (self._array, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        self.index = 0
        arguments = (self._array, key, value)
        self._array.recorder.record("call_function", set_flat_item, arguments, {}, (self._array,))

    def __len__(self) -> int:
        return operator.index(self._array.size)

    def __iter__(self) -> Flat:
        return self

    def __next__(self) -> Any:
        place = self.index
        if place >= len(self):
            raise StopIteration
        found = self[place]
        self.index = place + 1
        return found

    def __eq__(self, other: object) -> bool:
        raise cannot_follow("the comparison of a flat iterator")

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = object.__hash__

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise cannot_follow("the flat iterator of an array as an array")


def _rank(value: Any) -> Any:
    return 0 if isinstance(value, TracedPython) else value.ndim


def _shape(value: Any) -> Any:
    return () if isinstance(value, TracedPython) else value.shape


ANSWERS: dict[Callable[..., Any], Callable[[Any], Any]] = {numpy.ndim: _rank, numpy.shape: _shape}
"""Functions that only tell a fact."""
