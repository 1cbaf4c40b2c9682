"""Threads of the program: what one computes during a capture is recorded by nobody, so it is refused.

A program may neither start a thread, nor hand work to a pool, nor wait for what another thread does. Packages may start
threads for their own ends (a progress bar that looks at the time); only waiting for one is refused there too.
"""

from __future__ import annotations

import _thread
import functools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import current, unheard

_STARTED, _AWAITED = "a thread being started", "waiting for another thread"
_WHY = "what another thread computes is not recorded, and would be frozen in the graph"


def install(patches: Patches) -> None:
    """Let threads that a program starts, or waits for, report to the listener."""
    patches.on_class(threading.Thread, "start", functools.partial(_starting, by_packages=False))
    patches.on_class(ThreadPoolExecutor, "submit", functools.partial(_starting, by_packages=True))
    patches.in_dict(vars(_thread), "start_new_thread", noted(functools.partial(_starting, by_packages=False), True))
    patches.on_class(threading.Thread, "join", _waiting)
    patches.on_class(threading.Condition, "wait", _waiting)
    patches.on_class(threading.Event, "wait", _waiting)


def _starting(original: Callable[..., Any], by_packages: bool) -> Callable[..., Any]:
    """What lets another thread run a function: refused where a program calls it, or a package with ``by_packages``."""

    @functools.wraps(original)
    def start(*args: Any, **kwargs: Any) -> Any:
        listener, frame = current(), sys._getframe(1)
        if listener is None:
            return original(*args, **kwargs)
        if listener.hears(frame) if by_packages else listener.is_asked(frame):
            raise listener.refusal(_STARTED, _WHY)
        with unheard():
            return original(*args, **kwargs)

    return start


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait(*args: Any, **kwargs: Any) -> Any:
        listener = current()
        if listener is not None and listener.hears(sys._getframe(1)):
            raise listener.refusal(_AWAITED, _WHY)
        return original(*args, **kwargs)

    return wait
