"""Clocks and calendars: what shows another time at each call.

A clock that the program's own modules read goes to the run's listener, which records or refuses it; today's date is
refused. Other libraries (loggers, progress bars) read clocks freely.
"""

from __future__ import annotations

import datetime
import functools
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

from clew.capture.bytecode.statements import is_only_shown
from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import current, own_listener
from clew.capture.python.random_numbers import DRAWS
from clew.ir.effects import pure
from clew.ir.source import user_frame

_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_CALENDAR = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions that take a time, each with the place of that argument."""
_TODAY, _ANOTHER = "the date of today", "it is another one at another call"


@pure
def clock(name: str) -> Any:
    """What the clock of this name in ``time`` shows now."""
    return getattr(time, name)()


DRAWS.append(clock)


def install(patches: Patches) -> None:
    """Let clocks report to the listener."""
    for name in [name + suffix for name in _CLOCKS for suffix in ("", "_ns")]:
        patches.in_dict(vars(time), name, noted(functools.partial(_reading, name=name), changes=True))
    patches.in_dict(vars(timeit), "default_timer", noted(functools.partial(_reading, name="perf_counter")))
    for name, place in _CALENDAR.items():
        patches.in_dict(vars(time), name, noted(functools.partial(_dating, place=place)))
    for kind in (datetime.datetime, datetime.date):
        patches.in_dict(vars(datetime), kind.__name__, noted(_calendar))


def _reading(original: Callable[[], Any], name: str) -> Callable[[], Any]:
    @functools.wraps(original)
    def read() -> Any:
        listener = own_listener()
        return original() if listener is None else listener.clock(name, original())

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

    return ClassProxy(original, {name: now(name) for name in ("now", "utcnow", "today") if hasattr(original, name)})
