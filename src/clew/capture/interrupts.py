"""Signals during a capture are deferred until code of the program runs, or until the capture has ended.

``KeyboardInterrupt`` is raised between any two instructions. In the middle of Clew's own work it would leave functions
patched and state half restored. So handlers written in Python are called only while the program's own code runs, where
any exception may be raised; until then the signal is sent again every few milliseconds, at the latest right after the
capture. Python handles signals in its main thread alone: captures in other threads have nothing to defer.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # below ``signal``, which looks up names for all numbers
import _thread
import os
import signal
import sysconfig
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from clew.ir.guests import FRAMEWORK_PACKAGES
from clew.ir.source import is_installed_file

_PAUSE = 0.003
_start_thread = _thread.start_new_thread  # a capture replaces it, so that threads of the program are heard of
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGALRM", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGVTALRM")
    if hasattr(signal, name)
)  # fmt: skip
_LIBRARIES = FRAMEWORK_PACKAGES | {"optree"}


def _folders() -> tuple[str, ...]:
    """Where code lies that is no program's: Clew's own, Python's and that of the frameworks."""
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    installed = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    known = [own, *(os.path.join(folder, name) for folder in installed for name in _LIBRARIES)]
    return tuple(folder + os.sep for folder in known)


_NOT_OF_PROGRAMS = _folders()
_STANDARD = sysconfig.get_path("stdlib") + os.sep


def is_of_program(frame: FrameType | None) -> bool:
    """Whether the code that runs in a frame is a program's own, or that of a library which it uses."""
    file = "<frozen" if frame is None else frame.f_code.co_filename
    if file.startswith(("<clew", "<frozen", *_NOT_OF_PROGRAMS)):
        return False
    return not file.startswith(_STANDARD) or is_installed_file(file)


class DeferredSignals:
    """A context in which signals wait for the program. Inside of another one it does nothing."""

    _current: DeferredSignals | None = None

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._pending: set[int] = set()
        self._is_asking = False
        self._sending = _thread.allocate_lock()
        """Held while signals are sent again, so that none comes twice: by the thread that asks, and at the end."""

    def __enter__(self) -> DeferredSignals:
        if DeferredSignals._current is None and _thread.get_ident() == threading.main_thread().ident:
            self._handlers = {number: handler for number in _SIGNALS if callable(handler := _signal.getsignal(number))}
            for number in self._handlers:
                _signal.signal(number, self._handle)
            DeferredSignals._current = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if DeferredSignals._current is not self:
            return
        with self._sending:
            DeferredSignals._current = None  # from here on, handlers that are still in place hand on what comes
        for number, handler in self._handlers.items():
            if _signal.getsignal(number) == self._handle:  # otherwise the program has set another one
                _signal.signal(number, handler)
        pending, self._pending = self._pending, set()
        for number in pending:
            signal.raise_signal(number)

    def _handle(self, number: int, frame: FrameType | None) -> Any:
        if DeferredSignals._current is self and not is_of_program(frame):
            self._pending.add(number)
            if not self._is_asking:
                self._is_asking = True
                _start_thread(self._ask_again, ())
            return None
        self._pending.discard(number)
        return self._handlers[number](number, frame)

    def _ask_again(self) -> None:
        """Send what waits again, until it was taken; a lock that nobody opens is a clock that nobody replaces."""
        main, never = threading.main_thread().ident, _thread.allocate_lock()
        never.acquire()
        while main is not None and self._pending and DeferredSignals._current is self:
            never.acquire(timeout=_PAUSE)
            with self._sending:
                for number in tuple(self._pending) if DeferredSignals._current is self else ():
                    signal.pthread_kill(main, number)
        self._is_asking = False
