"""Python's own functions on traced numbers: operators, ``math.sqrt(n)``, ``max(a, b)``, ``range(n)``.

Python's own would force a number into a plain one, and so freeze it. For the time of a capture, calls in the program's
functions come here instead; what a framework adds for its arrays stands in its ``number_functions``. A value that is no
proxy goes on to the original, in every thread. What always holds: the result is the one of the original, and the graph
holds the same call on nodes.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from clew.capture.bytecode.call_sites import original_of
from clew.capture.bytecode.instructions import called_at, instructions_at
from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.recording.list_proxies import ListProxy
from clew.capture.recording.recorder import Scalar

Function = Callable[..., Any]

BINARY = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor".split()
_COMPARING = "lt le gt ge eq ne".split()
_UNARY = {name: getattr(operator, name) for name in ("neg", "abs", "pos", "invert")}
_UNARY |= {name: getattr(math, name) for name in ("ceil", "floor", "trunc")} | {"round": round}
_MATH = (
    "sqrt exp log log2 log10 log1p expm1 pow sin cos tan asin acos atan atan2 sinh cosh tanh fmod fabs copysign hypot "
    "isqrt gcd lcm isnan isinf isfinite degrees radians erf erfc gamma lgamma"
).split()


def operator_methods(
    binary: Callable[[Function, bool], Function], unary: Callable[[Function], Function]
) -> dict[str, Any]:
    """The methods that a class has for Python's operators: ``binary`` makes one of a function and of whether the
    operands change places, ``unary`` one that may be given more, such as digits to round to."""
    found: dict[str, Any] = {"__divmod__": _divmod, "__rdivmod__": _reflected_divmod}
    for name in BINARY:
        bare, function = name.strip("_"), getattr(operator, name)
        found |= {f"__{bare}__": binary(function, False), f"__r{bare}__": binary(function, True)}
    found |= {f"__{name}__": binary(getattr(operator, name), False) for name in _COMPARING}
    return found | {f"__{name}__": unary(function) for name, function in _UNARY.items()}


def _divmod(self: Any, other: Any) -> Any:
    return self // other, self % other


def _reflected_divmod(self: Any, other: Any) -> Any:
    return other // self, other % self


def install(patches: Patches) -> None:
    """Let the functions of ``math`` keep numbers traced."""
    for name in _MATH:
        patches.in_dict(vars(math), name, noted(_keeping))


def _keeping(original: Function) -> Function:
    """A function of numbers that is recorded when one of them is traced."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        number = next((value for value in args if issubclass(type(value), Scalar)), None)
        if number is None or kwargs:
            return original(*args, **kwargs)
        return (number.recorder.owner or number.recorder).operate(original, *args)

    return function


def choosing(original: Function, is_nest: Callable[[Any], bool]) -> Function:
    """``max`` or ``min``: recorded for numbers of one kind, alone or in a nest, of which some are traced."""

    def choose(*args: Any, **kwargs: Any) -> Any:
        values = args[0] if len(args) == 1 and is_nest(args[0]) else args
        number = next((value for value in values if is_of_python(value)), None)
        if number is None or kwargs or len(values) < 2 or len({value.__class__ for value in values}) > 1:
            return original(*args, **kwargs)
        return number.recorder.operate(original, *values)

    return choose


def is_of_python(value: Any) -> bool:
    """Whether a value stands for a number or a fact of Python's, and for none of NumPy's."""
    return issubclass(type(value), Scalar) and type(value).is_of_python


def traced_range(*args: Any) -> Any:
    """``range``: the number of steps is relied on, but where they begin and how wide they are stays general."""
    number = next((value for value in args if issubclass(type(value), Scalar)), None)
    if number is None or not all(value.__class__ is int for value in args):
        return builtins.range(*args)
    recorder = number.recorder
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    plain = builtins.range(*recorder.concrete((start, stop, step)))
    if not recorder.open:  # a piece of the program runs on plain values
        return plain
    if type(start) is int and type(step) is int and step == 1 and len(plain) > 0:
        if start == 0 and recorder.opens_lists and _goes_into_list(sys._getframe(1)):
            return OpenRange(stop)
        stop.relied_on()
        return plain
    steps = recorder.create(builtins.range, recorder.argument(args))
    recorder.guard(recorder.create(len, (steps,)), len(plain))
    return TracedRange(start, stop, step, [start + step * index for index in builtins.range(len(plain))])


def _goes_into_list(frame: FrameType) -> bool:
    """Whether a frame hands what its call gives to ``list``, and to nobody else."""
    steps, place = instructions_at(frame.f_code, frame.f_lasti)
    following = steps[place + 1]
    is_call = following.opname == "CALL" and following.arg == 1
    return is_call and called_at(original_of(frame.f_code), following.offset)[:1] == ("list",)


class TracedRange:
    """A range of which some numbers are traced: it can be walked, counted and indexed; all else forces the numbers."""

    __class__ = property(lambda self: range)  # type: ignore[assignment, misc]

    def __init__(self, start: Any, stop: Any, step: Any, items: Any) -> None:
        self.start, self.stop, self.step = start, stop, step
        self._numbers = items

    def _plain(self) -> range:
        return builtins.range(*map(operator.index, (self.start, self.stop, self.step)))

    def _items(self) -> Any:
        return self._numbers

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._items())

    def __len__(self) -> int:
        return len(self._items())

    def __getitem__(self, index: Any) -> Any:
        return self._plain()[index] if isinstance(index, slice) else self._items()[index]

    def __contains__(self, value: object) -> bool:
        return value in self._items()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain(), name)

    def __repr__(self) -> str:
        return repr(self._plain())

    def __eq__(self, other: Any) -> bool:
        return self._plain() == (other._plain() if issubclass(type(other), TracedRange) else other)

    def __hash__(self) -> int:
        return hash(self._plain())


class OpenRange(TracedRange):
    """``range(n)`` of a traced number on its way into ``list``; whoever looks at it instead relies on the number."""

    def __init__(self, number: Any) -> None:
        super().__init__(0, number, 1, None)

    def _items(self) -> range:
        return self._plain()

    def listed(self) -> list[Any]:
        """The list of its items, whose length is free."""
        number, recorder = self.stop, self.stop.recorder
        node = recorder.create(list, (recorder.create(builtins.range, (recorder.argument(number),)),))
        return ListProxy(list(builtins.range(number.plain)), node, recorder, number=number)


def traced_reversed(*args: Any) -> Any:
    """``reversed``: of an argument that is a list of any length, which the program only walks, it is such a list."""
    is_open = len(args) == 1 and type(args[0]) is ListProxy and args[0].is_uniform and args[0].is_whole
    return args[0][::-1] if is_open else reversed(*args)


def traced_list(*args: Any) -> Any:
    """``list``: of a range whose length is free it is free, too."""
    is_open = len(args) == 1 and type(args[0]) is OpenRange
    return args[0].listed() if is_open else list(*args)
