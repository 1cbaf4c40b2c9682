"""Clocks and sources of entropy: what gives another value at each call without any seed.

A clock that the program's own modules read is a call of the graph, which reads the clock again. Generators without a
seed and the entropy of the system cannot be recorded, and are refused. Other libraries (loggers, progress bars) may
read clocks as they like.
"""

from __future__ import annotations

import datetime
import functools
import os
import random
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy.random

from clew.capture.example.islands import CannotFollow
from clew.capture.example.statements import is_only_shown
from clew.capture.symbolic.patches import Patches
from clew.frameworks.numpy.streams import make_stream
from clew.frameworks.torch.by_name import noted
from clew.frameworks.torch.refusals import refusal
from clew.frameworks.torch.scalars import DRAWS
from clew.ir.effects import pure
from clew.ir.source import user_frame

Current = Callable[[], Any]
_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_CALENDAR = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions that take a time, each with the place of that argument."""


@pure
def clock(name: str) -> Any:
    """What the clock of this name in ``time`` shows now."""
    return getattr(time, name)()


DRAWS.append(clock)


def install(patches: Patches, current: Current) -> None:
    """Let clocks report to the capture that ``current`` names, if one is recording; let it refuse entropy."""
    for name in [name + suffix for name in _CLOCKS for suffix in ("", "_ns")]:
        patches.in_dict(vars(time), name, noted(functools.partial(_reading, name=name, current=current)))
    for name, place in _CALENDAR.items():
        patches.in_dict(vars(time), name, noted(functools.partial(_dating, place=place, current=current)))
    for home, name in ((os, "urandom"), (random, "_urandom")):
        make = functools.partial(_refusing, name="entropy of the system", current=current, seeded=False)
        patches.in_dict(vars(home), name, noted(make))
    make = functools.partial(_refusing, name="a generator of NumPy without a seed", current=current, seeded=True)
    patches.in_dict(vars(numpy.random), "default_rng", noted(make))
    patches.on_class(random.Random, "__init__", lambda original: _seeding(original, current))
    patches.in_dict(vars(numpy.random), "RandomState", lambda original: _Standing(original, {}, make(original)))
    for kind in (datetime.datetime, datetime.date):
        patches.in_dict(vars(datetime), kind.__name__, noted(functools.partial(_calendar, current=current)))


def _reading(original: Callable[[], Any], name: str, current: Current) -> Callable[[], Any]:
    @functools.wraps(original)
    def read() -> Any:
        recorder = current()
        if recorder is None or id(sys._getframe(1).f_globals) not in recorder.surroundings.namespaces:
            return original()
        return recorder.result(original(), recorder.create(clock, (name,)))

    return read


def _dating(original: Callable[..., Any], place: int, current: Current) -> Callable[..., Any]:
    """A function that takes a time, or the time of now if there is no argument at ``place``."""

    @functools.wraps(original)
    def read(*args: Any) -> Any:
        recorder = current()
        is_now = len(args) <= place or (place == 0 and args[0] is None)
        if recorder is not None and is_now and id(sys._getframe(1).f_globals) in recorder.surroundings.namespaces:
            raise refusal("the date of today", "it is another one at another call", CannotFollow)
        return original(*args)

    return read


def _refusing(original: Callable[..., Any], name: str, current: Current, seeded: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        has_seed = seeded and (args or tuple(kwargs.values()) or (None,))[0] is not None
        recorder = current()
        if recorder is not None and not has_seed:
            raise refusal(name, "it gives another value at each call, which the graph would not", CannotFollow)
        if recorder is not None and recorder.arrays is not None and seeded:
            return make_stream(recorder.arrays, original, args, kwargs)
        return original(*args, **kwargs)

    return refuse


def is_importing() -> bool:
    """Whether a Python module is being imported: what it makes is made once."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _seeding(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """``random.Random`` without a seed."""

    def __init__(self: Any, x: Any = None) -> None:
        if current() is not None and x is None and not is_importing():
            raise refusal(
                "a generator of Python without a seed",
                "it gives other values at each call of the original",
                CannotFollow,
            )
        original(self, x)

    return __init__


class _Standing:
    """Stands for a class: makes its objects, and answers questions about it, with some of its functions replaced."""

    def __init__(self, original: Any, replaced: dict[str, Any], make: Callable[..., Any] | None = None) -> None:
        self._original, self._replaced, self._make = original, replaced, make or original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._make(*args, **kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._original)

    def __getattr__(self, name: str) -> Any:
        return self._replaced[name] if name in self._replaced else getattr(self._original, name)


def _calendar(original: Any, current: Current) -> Any:
    """What stands for ``datetime.datetime`` and ``datetime.date``."""

    def now(name: str) -> Callable[..., Any]:
        def read(*args: Any, **kwargs: Any) -> Any:
            if current() is not None and not is_only_shown(user_frame(2)):
                raise refusal("the date of today", "it is another one at another call", CannotFollow)
            return getattr(original, name)(*args, **kwargs)

        return read

    return _Standing(original, {name: now(name) for name in ("now", "utcnow", "today") if hasattr(original, name)})
