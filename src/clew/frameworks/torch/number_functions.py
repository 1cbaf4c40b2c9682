"""Builtins and functions of ``math`` that keep a traced number traced: ``int(n)``, ``max(a, b)``, ``math.sqrt(n)``.

Python's own would force the number into a plain one, and so freeze it. For the time of a capture, calls in the
program's functions come here instead. A value that is no traced number goes on to the original, in every thread.
What always holds: the result is the one of the original, and the graph holds the same call on nodes.
"""

from __future__ import annotations

import builtins
import enum
import functools
import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from clew.capture.bytecode.call_sites import original_of, redirected
from clew.capture.bytecode.instructions import instructions_at
from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.recording.list_proxies import ListProxy, StateListProxy
from clew.capture.recording.recorder import Scalar
from clew.capture.state.reachable import attribute_names
from clew.frameworks.numpy.array_proxy import Traced
from clew.frameworks.torch.numpy_bridge.packages import called_at
from clew.frameworks.torch.scalars import TracedBool, TracedFloat, TracedInt, compute, traced

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"

_NAMES = (
    "sqrt exp log log2 log10 log1p expm1 pow sin cos tan asin acos atan atan2 sinh cosh tanh fmod fabs copysign hypot "
    "isqrt gcd lcm isnan isinf isfinite degrees radians"
)
_MATH = {name: getattr(math, name) for name in _NAMES.split()}
_PLAIN_INTS_ONLY = frozenset({"np", "numpy"})
"""Names in a function that make a plain number the better answer: what they stand for takes nothing else."""


def install(patches: Patches) -> None:
    """Let the functions of ``math`` keep numbers traced, and members of an enumeration be found by plain ones."""
    for name in _MATH:
        patches.in_dict(vars(math), name, noted(_keeping))
    patches.on_class(enum.EnumType, "__call__", _finding_member)


def install_in(patches: Patches, current: Current, functions: Iterable[FunctionType]) -> None:
    """Lead the calls of builtins in some of the program's functions to the functions of this file."""
    substitutes = builtins_for(current)
    for function in functions:
        code = redirected(function, substitutes)
        if code is not None:
            patches.on_function(function, code)


def are_builtins(namespaces: Iterable[dict[str, Any]]) -> bool:
    """Whether the names of the builtins mean these in all of some modules."""
    return all(_MAKERS.keys().isdisjoint(names.keys()) for names in namespaces)


def calling_builtins(functions: Iterable[FunctionType]) -> list[FunctionType]:
    """Those functions that may call one of the builtins, and that want no plain numbers."""
    names = [(function, attribute_names(function.__code__)) for function in functions]
    calling = [(function, known) for function, known in names if not _MAKERS.keys().isdisjoint(known)]
    return [function for function, known in calling if known.isdisjoint(_PLAIN_INTS_ONLY)]


@functools.cache
def builtins_for(current: Current) -> dict[str, Callable[..., Any]]:
    """What stands for each builtin."""
    return {name: make(current) for name, make in _MAKERS.items()}


FOR_PYTHON = frozenset({"__bool__", "__int__", "__float__", "__index__", "__hash__", "__len__"})
"""Methods of the user's whose result Python itself takes: it wants a plain number."""


def _is_traced(value: Any) -> bool:
    return issubclass(type(value), Scalar) and not issubclass(type(value), Traced)


def _keeping(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numbers that is recorded when one of them is traced."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        number = next((value for value in args if issubclass(type(value), Scalar)), None)
        if number is None or kwargs:
            return original(*args, **kwargs)
        return compute(number.recorder.owner or number.recorder, original, *args)

    return function


def _finding_member(original: Callable[..., Any]) -> Callable[..., Any]:
    """The call of an enumeration, which remembers for ever what it is asked for, combinations of flags among it."""

    def __call__(kind: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        plain = _FORCING[type(value)](value) if type(value) in _FORCING else value
        return original(kind, plain, *args, **kwargs)

    return __call__


_FORCING: dict[type, Callable[[Any], Any]] = {TracedInt: operator.index, TracedFloat: float, TracedBool: bool}


def _converting(kind: type, own: Any, current: Current) -> Callable[..., Any]:
    """``int`` or ``float``: a traced number of that kind is itself, another one or a tensor is converted by a call."""

    def convert(*args: Any, **kwargs: Any) -> Any:
        if sys._getframe(1).f_code.co_name in FOR_PYTHON:
            return kind(*args, **kwargs)
        value: Any = args[0] if len(args) == 1 and not kwargs else None
        if _is_traced(value):
            return value if type(value) is own else compute(value.recorder, kind, value)
        recorder = current() if isinstance(value, torch.Tensor) else None
        if recorder is None:
            return kind(*args, **kwargs)
        return recorder.whole("call_function", kind, kind, (value,), {}, ())

    return convert


def _choosing(original: Callable[..., Any]) -> Callable[..., Any]:
    """``max`` or ``min``: recorded for numbers of one kind, of which some are traced."""

    def choose(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and type(args[0]) is ListProxy and _is_of_numbers(args[0]):
            recorder, items = args[0].recorder, args[0].recorder.concrete(args[0])
            return traced(original(items), recorder.create(original, (recorder.argument(args[0]),)), recorder)
        values = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        number = next((value for value in values if _is_traced(value)), None)
        if number is None or kwargs or len(values) < 2 or len({value.__class__ for value in values}) > 1:
            return original(*args, **kwargs)
        return compute(number.recorder, original, *values)

    return choose


def _is_of_numbers(values: ListProxy) -> bool:
    """Whether a list of any length holds numbers of one type, as far as it can be told from the example."""
    kinds = {type(item) for item in values.recorder.concrete(values)}
    return values.is_whole and values.is_local and len(kinds) == 1 and kinds <= {int, float}


def _range(*args: Any) -> Any:
    """``range``: the number of steps is relied on, but where they begin and how wide they are stays general."""
    number = next((value for value in args if _is_traced(value)), None)
    if number is None or not number.recorder.open or not all(_is_integer(value) for value in args):
        return builtins.range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    recorder = number.recorder
    plain = builtins.range(*recorder.concrete((start, stop, step)))
    if type(start) is int and type(step) is int and step == 1 and len(plain) > 0:
        if start == 0 and _goes_into_list(sys._getframe(1)):
            return OpenRange(stop)
        recorder.guard(stop.place, stop.plain)
        return plain
    steps = recorder.create(builtins.range, recorder.argument(args))
    recorder.guard(recorder.create(len, (steps,)), len(plain))
    return Steps(start, stop, step, len(plain))


def _is_integer(value: Any) -> bool:
    return type(value) is int or type(value) is TracedInt


class Steps:
    """A range of which some numbers are traced: it can be walked, counted and indexed; all else forces the numbers."""

    __class__ = property(lambda self: range)  # type: ignore[assignment, misc]

    def __init__(self, start: Any, stop: Any, step: Any, count: int) -> None:
        self.start, self.stop, self.step = start, stop, step
        self._items = [start + step * index for index in builtins.range(count)]

    def _plain(self) -> range:
        return builtins.range(*map(operator.index, (self.start, self.stop, self.step)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._plain()[index] if isinstance(index, slice) else self._items[index]

    def __contains__(self, value: object) -> bool:
        return value in self._items

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain(), name)

    def __repr__(self) -> str:
        return repr(self._plain())

    def __eq__(self, other: object) -> bool:
        return self._plain() == (other._plain() if type(other) is Steps else other)

    def __hash__(self) -> int:
        return hash(self._plain())


def _goes_into_list(frame: FrameType) -> bool:
    """Whether a frame hands what its call gives to ``list``, and to nobody else."""
    steps, place = instructions_at(frame.f_code, frame.f_lasti)
    following = next(step for step in steps[place + 1 :] if step.opname not in ("CACHE", "PRECALL"))
    is_call = following.opname == "CALL" and following.arg == 1
    return is_call and called_at(original_of(frame.f_code), following.offset)[:1] == ("list",)


class OpenRange:
    """``range(n)`` of a traced number on its way into ``list``; whoever looks at it instead relies on the number."""

    __class__ = property(lambda self: range)  # type: ignore[assignment, misc]

    def __init__(self, number: Any) -> None:
        self._number = number

    def listed(self) -> list[Any]:
        """The list of its items, whose length is free."""
        number, recorder = self._number, self._number.recorder
        node = recorder.create(list, (recorder.create(builtins.range, (recorder.argument(number),)),))
        return ListProxy(list(builtins.range(number.plain)), node, recorder, number=number)

    def _plain(self) -> range:
        return builtins.range(operator.index(self._number))

    def __iter__(self) -> Iterator[int]:
        return iter(self._plain())

    def __reversed__(self) -> Iterator[int]:
        return reversed(self._plain())

    def __len__(self) -> int:
        return len(self._plain())

    def __getitem__(self, index: Any) -> Any:
        return self._plain()[index]

    def __contains__(self, value: object) -> bool:
        return value in self._plain()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain(), name)

    def __repr__(self) -> str:
        return repr(self._plain())

    def __eq__(self, other: object) -> bool:
        return self._plain() == other

    def __hash__(self) -> int:
        return hash(self._plain())


def _list(*args: Any) -> Any:
    """``list``: of a range whose length is free it is free, too."""
    is_open = len(args) == 1 and type(args[0]) is OpenRange
    return args[0].listed() if is_open else list(*args)


def _truth(current: Current) -> Callable[..., Any]:
    """``bool``: where branches are captured, the truth of what comes from data is a number of the graph."""

    def truth(*args: Any) -> Any:
        recorder = current()
        if len(args) != 1 or recorder is None or recorder.paths is None or recorder.identity.is_asked:
            return bool(*args)
        value = args[0]
        if isinstance(value, torch.Tensor):
            return recorder.whole("call_function", bool, bool, (value,), {}, ())
        return compute(recorder, bool, value) if _is_traced(value) and type(value) is not TracedBool else value

    def plain_or_traced(*args: Any) -> Any:
        if sys._getframe(1).f_code.co_name in FOR_PYTHON:
            return bool(*args)
        found = truth(*args)
        return found if _is_traced(found) else bool(found)

    return plain_or_traced


def _length(current: Current) -> Callable[[Any], Any]:
    """``len``: the length of a tensor is a size like any other."""

    def length(value: Any) -> Any:
        recorder = current()
        if type(value) is ListProxy and recorder is not None and value.is_whole:
            return value.length()
        if type(value) is StateListProxy and value.recorder is recorder and value.is_open:
            return value.length()
        if recorder is not None and isinstance(value, torch.Tensor):
            with recorder.paused():  # so that asking for the shape is not itself recorded
                if value.dim() > 0:
                    return recorder.shape(value)[0]
        return builtins.len(value)

    return length


_MAKERS: dict[str, Callable[[Current], Callable[..., Any]]] = {
    "int": functools.partial(_converting, int, TracedInt),
    "float": functools.partial(_converting, float, TracedFloat),
    "max": lambda current: _choosing(max),
    "min": lambda current: _choosing(min),
    "range": lambda current: _range,
    "list": lambda current: _list,
    "len": _length,
    "bool": _truth,
}
