"""Clocks and calendars: what shows another time at each call.

A clock that the program's own modules read goes to the run's listener, which records or refuses it; today's date is
refused. Other libraries (loggers, progress bars) read clocks freely.
"""

from __future__ import annotations

import datetime
import functools
import logging
import os
import re
import sys
import time
import timeit
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

try:
    import resource
except ImportError:  # there is none on Windows
    resource = None  # type: ignore[assignment]

from clew.capture.bytecode.statements import is_only_shown
from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import current, own_listener
from clew.capture.python.random_numbers import DRAWS
from clew.capture.recording.recorder import Scalar
from clew.capture.state.containers import CHANGING
from clew.ir.effects import pure
from clew.ir.source import SourceLine, is_installed, user_frame

_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_CALENDAR = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions that take a time, each with the place of that argument."""
_OF_THE_SYSTEM = [
    (time, "clock_gettime"),
    (time, "clock_gettime_ns"),
    (os, "times"),
    (os, "getloadavg"),
    (os, "statvfs"),
    (logging, "makeLogRecord"),
]
_OF_THE_SYSTEM += [] if resource is None else [(resource, "getrusage")]
_NOW, _AT = ("now", "utcnow", "today"), ("fromtimestamp", "utcfromtimestamp", "fromordinal")
_DATES, _TEXTS_OF_NOW = re.compile(r"[<>=|]?M8\b|datetime64"), frozenset({"now", "today"})
_TODAY, _ANOTHER = "the date of today", "it is another one at another call"


@pure
def clock(name: str) -> Any:
    """What the clock of this name in ``time`` shows now."""
    return getattr(time, name)()


DRAWS.append(clock)
CHANGING.update(
    getattr(kind, name) for kind in (datetime.datetime, datetime.date) for name in _NOW if hasattr(kind, name)
)
CHANGING.update(getattr(time, name + suffix) for name in _CLOCKS for suffix in ("", "_ns"))
CHANGING.update(getattr(home, name) for home, name in _OF_THE_SYSTEM if hasattr(home, name))


def install(patches: Patches) -> None:
    """Let clocks report to the listener."""
    for name in [name + suffix for name in _CLOCKS for suffix in ("", "_ns")]:
        patches.in_dict(vars(time), name, noted(functools.partial(_reading, name=name), changes=True))
    patches.in_dict(vars(timeit), "default_timer", noted(functools.partial(_reading, name="perf_counter")))
    for name, place in _CALENDAR.items():
        patches.in_dict(vars(time), name, noted(functools.partial(_dating, place=place)))
    for home, name in _OF_THE_SYSTEM:
        if hasattr(home, name):
            patches.in_dict(vars(home), name, noted(_refusing, changes=True))
    for kind in (datetime.datetime, datetime.date):
        patches.in_dict(vars(datetime), kind.__name__, noted(_calendar))


def _reading(original: Callable[[], Any], name: str) -> Callable[[], Any]:
    @functools.wraps(original)
    def read() -> Any:
        listener = own_listener()
        return original() if listener is None else listener.clock(name, original())

    return read


def _refusing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def read(*args: Any) -> Any:
        listener = own_listener()
        if listener is not None:
            raise listener.refusal(f"what the system tells by {original.__name__}()", _ANOTHER)
        return original(*args)

    return read


def _dating(original: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function that takes a time, or the time of now if there is no argument at ``place``."""

    @functools.wraps(original)
    def read(*args: Any) -> Any:
        is_now = len(args) <= place or (place == 0 and args[0] is None)
        listener = own_listener() if is_now else None
        if listener is not None:
            raise listener.refusal(_TODAY, _ANOTHER)
        return original(*args)

    return read


class ClassProxy:
    """Stands for a class: makes its objects, and answers questions about it, with some of its functions replaced."""

    def __init__(self, original: Any, replaced: dict[str, Any], make: Callable[..., Any] | None = None) -> None:
        self._original, self._replaced, self._make = original, replaced, make or original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._make(*args, **kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._original)

    def __or__(self, other: Any) -> Any:
        """In annotations of modules that are imported while the program runs."""
        return self._original | getattr(other, "_original", other)

    __ror__ = __or__

    def __getattr__(self, name: str) -> Any:
        return self._replaced[name] if name in self._replaced else getattr(self._original, name)


def _calendar(original: Any) -> Any:
    """The replacement of ``datetime.datetime`` and ``datetime.date``."""

    def now(name: str) -> Callable[..., Any]:
        def read(*args: Any, **kwargs: Any) -> Any:
            listener = current()
            if listener is not None and listener.hears(sys._getframe(1)) and not is_only_shown(user_frame(2)):
                raise listener.refusal(_TODAY, _ANOTHER)
            return getattr(original, name)(*args, **kwargs)

        return read

    def at_a_time(name: str) -> Callable[..., Any]:
        def make(*args: Any, **kwargs: Any) -> Any:
            return getattr(original, name)(*map(_told, args), **{key: _told(value) for key, value in kwargs.items()})

        return make

    replaced = {name: now(name) for name in _NOW if hasattr(original, name)}
    return ClassProxy(original, replaced | {name: at_a_time(name) for name in _AT if hasattr(original, name)})


def line_of_today(functions: Iterable[FunctionType]) -> str:
    """Where code of a program is that makes a date out of the text "now" or "today"; empty if there is none."""
    codes = [one.__code__ for one in functions if not is_installed(one.__code__)]
    for code in codes:
        if _TEXTS_OF_NOW & _texts(code) and any(map(_DATES.match, _names_and_texts(code))):
            return SourceLine(code.co_filename, code.co_firstlineno, code.co_name).describe()
    return ""


def _names_and_texts(code: CodeType) -> set[str]:
    return {*code.co_names, *_texts(code)}


def _texts(code: CodeType) -> set[str]:
    """The texts in code, those of functions inside of it too."""
    inner = [_texts(one) for one in code.co_consts if isinstance(one, CodeType)]
    return {one for one in code.co_consts if type(one) is str}.union(*inner)


def _told(value: Any) -> Any:
    """A number of which a date is made, which is relied on; one that a clock gives is another one at another call."""
    if not issubclass(type(value), Scalar):
        return value
    node, listener = value.recorder.resolve(value.place), current()
    if listener is not None and any(one.target is clock for one in (node, *node.all_input_nodes)):
        raise listener.refusal(_TODAY, _ANOTHER)
    return (int if isinstance(value.plain, int) else float)(value)
