"""Builtins that keep a traced number traced where arrays may come in: ``int(n)``, ``len(x)``, ``type(n)``.

What is the same for all frameworks stands in ``capture/recording/numbers.py``. For the time of a capture, calls in the
program's functions come here. A value that is no proxy goes on to the original, in every thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.capture.python.outside_reads import NumberText
from clew.capture.recording.list_proxies import ListProxy, StateListProxy, TupleProxy, extreme
from clew.capture.recording.numbers import choosing, traced_range, traced_reversed
from clew.frameworks.numpy.array_proxy import TracedArray, TracedFloat, TracedInt, is_traced
from clew.frameworks.numpy.opaque_calls import cannot_follow


def _converting(kind: type, own: type | None) -> Callable[..., Any]:
    """``int``, ``float``, ``complex`` or ``bool``: a number of that kind is itself, all else is converted by a call."""

    def convert(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and type(args[0]) is NumberText:
            return args[0].converted(kind)
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


def _extreme(original: Callable[..., Any]) -> Callable[..., Any]:
    """``max`` or ``min``, also of a list of numbers of any length."""
    among = choosing(original, lambda value: type(value) in (list, tuple))

    def choose(*args: Any, **kwargs: Any) -> Any:
        found = extreme(original, args[0]) if len(args) == 1 and not kwargs else None
        return among(*args, **kwargs) if found is None else found

    return choose


def _sum(*args: Any, **kwargs: Any) -> Any:
    is_open = bool(args) and type(args[0]) is StateListProxy and args[0].is_open and not kwargs
    return args[0].recorder.site(sum, args, {}) if is_open else sum(*args, **kwargs)


def _refusing(original: Callable[..., Any]) -> Callable[..., Any]:
    """``memoryview`` and ``bytes``, which look at the memory of an array."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if args and is_traced(args[0]) and isinstance(args[0], TracedArray):
            raise cannot_follow(f"{original.__name__} of an array")
        return original(*args, **kwargs)

    return refuse


BUILTINS: dict[str, Callable[..., Any]] = {
    "int": _converting(int, TracedInt),
    "float": _converting(float, TracedFloat),
    "complex": _converting(complex, None),
    "bool": _converting(bool, None),
    "len": _length,
    "max": _extreme(max),
    "min": _extreme(min),
    "sum": _sum,
    "range": traced_range,
    "reversed": traced_reversed,
    "type": _class_of,
    "memoryview": _refusing(memoryview),
    "bytes": _refusing(bytes),
    "bytearray": _refusing(bytearray),
}
"""The replacement of each builtin."""
