"""Builtins that keep a traced number traced where tensors may come in: ``int(n)``, ``len(x)``, ``bool(x.any())``.

What is the same for all frameworks stands in ``capture/recording/numbers.py``. For the time of a capture, calls in the
program's functions come here. A value that is no traced number goes on to the original, in every thread.
What always holds: the result is the one of the original, and the graph holds the same call on nodes.
"""

from __future__ import annotations

import builtins
import enum
import functools
import operator
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from clew.capture.bytecode.call_sites import redirected
from clew.capture.patches import Patches
from clew.capture.python.outside_reads import NumberText
from clew.capture.recording import numbers
from clew.capture.recording.list_proxies import ListProxy, StateListProxy, extreme
from clew.capture.recording.numbers import choosing, is_of_python, traced_list, traced_range, traced_reversed
from clew.capture.state.reachable import attribute_names
from clew.frameworks.torch.scalars import TracedBool, TracedFloat, TracedInt, compute

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"

_PLAIN_INTS_ONLY = frozenset({"np", "numpy"})
"""Names in a function that make a plain number the better answer: what they stand for takes nothing else."""


def install(patches: Patches) -> None:
    """Let the functions of ``math`` keep numbers traced, and members of an enumeration be found by plain ones."""
    numbers.install(patches)
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
        if type(value) is NumberText:
            return value.converted(kind)
        if is_of_python(value):
            return value if type(value) is own else compute(value.recorder, kind, value)
        recorder = current() if isinstance(value, torch.Tensor) else None
        if recorder is None:
            return kind(*args, **kwargs)
        return recorder.whole("call_function", kind, kind, (value,), {}, ())

    return convert


def _choosing(original: Callable[..., Any]) -> Callable[..., Any]:
    """``max`` or ``min``, also of a list of numbers of any length."""
    among = choosing(original, lambda value: isinstance(value, (list, tuple)))

    def choose(*args: Any, **kwargs: Any) -> Any:
        found = extreme(original, args[0]) if len(args) == 1 and not kwargs else None
        return among(*args, **kwargs) if found is None else found

    return choose


def _truth(current: Current) -> Callable[..., Any]:
    """``bool``: where branches are captured, the truth of what comes from data is a number of the graph."""

    def truth(*args: Any) -> Any:
        recorder = current()
        if len(args) != 1 or recorder is None or recorder.paths is None or recorder.identity.is_asked:
            return bool(*args)
        value = args[0]
        if isinstance(value, torch.Tensor):
            return recorder.whole("call_function", bool, bool, (value,), {}, ())
        return compute(recorder, bool, value) if is_of_python(value) and type(value) is not TracedBool else value

    def plain_or_traced(*args: Any) -> Any:
        if sys._getframe(1).f_code.co_name in FOR_PYTHON:
            return bool(*args)
        found = truth(*args)
        return found if is_of_python(found) else bool(found)

    return plain_or_traced


def _length(current: Current) -> Callable[[Any], Any]:
    """``len``: the length of a tensor is a size like any other."""

    def length(value: Any) -> Any:
        recorder = current()
        if type(value) is ListProxy and recorder is not None and value.is_whole:
            return value.length()
        if type(value) is StateListProxy:
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
    "range": lambda current: traced_range,
    "list": lambda current: traced_list,
    "reversed": lambda current: traced_reversed,
    "len": _length,
    "bool": _truth,
}
