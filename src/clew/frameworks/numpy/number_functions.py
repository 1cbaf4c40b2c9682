"""Builtins and functions of ``math`` that keep a traced number traced: ``int(n)``, ``len(x)``, ``math.sqrt(n)``.

Python's own would force the number into a plain one, and so freeze it. For the time of a capture, calls in the
program's functions come here instead. A value that is no stand-in goes on to the original, in every thread.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from clew.capture.patches import Patches
from clew.capture.recording.list_proxies import ListProxy, StateListProxy, TupleProxy
from clew.capture.state.reachable import attribute_names
from clew.frameworks.numpy.array_proxy import TracedArray, TracedFloat, TracedInt, TracedPython, is_traced
from clew.frameworks.numpy.opaque_calls import cannot_follow

_NAMES = (
    "sqrt exp log log2 log10 log1p expm1 pow sin cos tan asin acos atan atan2 sinh cosh tanh fmod fabs copysign hypot "
    "isqrt gcd lcm isnan isinf isfinite degrees radians erf erfc gamma lgamma"
)
_MATH = {name: getattr(math, name) for name in _NAMES.split()}


def install(patches: Patches, functions: list[FunctionType]) -> None:
    """Lead calls of functions of ``math`` to the functions of this file."""
    for name in _MATH:
        patches.in_dict(vars(math), name, _keeping)
    for function in functions:
        for name in attribute_names(function.__code__) & _MATH.keys():
            if function.__globals__.get(name) is _MATH[name]:
                patches.in_dict(function.__globals__, name, _keeping)


def _keeping(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numbers that is recorded when one of them is a stand-in."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        number = next((value for value in args if is_traced(value)), None)
        if number is None or kwargs or number.recorder.depth:
            return original(*args, **kwargs)
        return number.recorder.operate(original, *args)

    return function


def _converting(kind: type, own: type | None) -> Callable[..., Any]:
    """``int``, ``float``, ``complex`` or ``bool``: a number of that kind is itself, all else is converted by a call."""

    def convert(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs or not is_traced(args[0]):
            return kind(*args, **kwargs)
        recorder, is_own = args[0].recorder, own is not None and type(args[0]) is own
        return args[0] if is_own and recorder.is_surely(args[0], kind) else recorder.operate(kind, args[0])

    return convert


def _length(value: Any) -> Any:
    if is_traced(value) and value.has_items:
        return value.recorder.operate(len, value)
    if type(value) is ListProxy and value.is_whole and not value.recorder.depth:
        return value.length()
    if type(value) is StateListProxy:
        return value.length()
    return len(value)


def _class_of(*args: Any) -> Any:
    is_stand_in = len(args) == 1 and (
        is_traced(args[0]) or isinstance(args[0], (StateListProxy, ListProxy, TupleProxy))
    )
    if is_stand_in and is_traced(args[0]):
        args[0].recorder.show_class(args[0])
    return args[0].__class__ if is_stand_in else type(*args)


def _choosing(original: Callable[..., Any]) -> Callable[..., Any]:
    """``max`` or ``min``: recorded for Python's numbers of one kind, of which some are traced."""

    def choose(*args: Any, **kwargs: Any) -> Any:
        values = args[0] if len(args) == 1 and type(args[0]) in (list, tuple) else args
        number = next((value for value in values if isinstance(value, TracedPython)), None) if len(values) > 1 else None
        if number is None or kwargs or len({value.__class__ for value in values}) > 1:
            return original(*args, **kwargs)
        return number.recorder.operate(original, *values)

    return choose


def _refusing(original: Callable[..., Any]) -> Callable[..., Any]:
    """``memoryview`` and ``bytes``, which look at the memory of an array."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if args and is_traced(args[0]) and isinstance(args[0], TracedArray):
            raise cannot_follow(f"{original.__name__} of an array")
        return original(*args, **kwargs)

    return refuse


def _range(*args: Any) -> Any:
    """``range``: the number of steps is relied on, but where they begin and how wide they are stays general."""
    number = next((value for value in args if is_traced(value)), None)
    whole = all(type(value) is int or type(value) is TracedInt for value in args)
    if number is None or not whole:
        return builtins.range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    recorder = number.recorder
    plain = builtins.range(*recorder.concrete((start, stop, step)))
    if not recorder.open:  # a piece of the program runs on plain values
        return plain
    if not is_traced(start) and not is_traced(step) and step == 1 and len(plain) > 0:
        return builtins.range(start, operator.index(stop))
    steps = recorder.create(builtins.range, recorder.argument(args))
    recorder.guard(recorder.create(len, (steps,)), len(plain))
    return Steps(start, stop, step, len(plain))


class Steps:
    """A range of which some numbers are traced: it can be walked, counted and indexed."""

    __class__ = property(lambda self: range)  # type: ignore[assignment]

    def __init__(self, start: Any, stop: Any, step: Any, count: int) -> None:
        self.start, self.stop, self.step = start, stop, step
        self._items = [start + step * index for index in builtins.range(count)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __contains__(self, value: Any) -> bool:
        return any(item == value for item in self._items)


BUILTINS: dict[str, Callable[..., Any]] = {
    "int": _converting(int, TracedInt),
    "float": _converting(float, TracedFloat),
    "complex": _converting(complex, None),
    "bool": _converting(bool, None),
    "len": _length,
    "max": _choosing(max),
    "min": _choosing(min),
    "range": _range,
    "type": _class_of,
    "memoryview": _refusing(memoryview),
    "bytes": _refusing(bytes),
    "bytearray": _refusing(bytearray),
}
"""What stands for each builtin."""
