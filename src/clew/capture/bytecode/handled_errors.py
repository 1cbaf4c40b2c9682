"""Errors that the program handles, and that it would not have met without the capture.

A function that cannot take what stands for a number (``Decimal(n)``, ``deque(maxlen=n)``, ``"%*d" % n``) raises an
error of its own, and the program may catch it and go another way. ``ErrorWatch`` sees the errors that reach functions
of the program with an ``except``, by Python's tracing, and only if there are such functions. What is ``foreign`` was
raised by neither the program nor a recorded call: then the program is run again with plain numbers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from types import CodeType, FrameType, TracebackType
from typing import Any

from clew.capture.bytecode.instructions import instructions_of
from clew.capture.bytecode.try_blocks import catches_errors
from clew.capture.python.callers import is_of_program
from clew.ir.source import is_installed

_OF_THE_WORLD = (LookupError, ImportError, OSError, NameError, StopIteration, StopAsyncIteration, AssertionError)
"""Errors that no function raises because of the type of a number."""


_PROXY = re.compile(r"\bTraced[A-Z]\w*")
"""How the classes of proxies are called, in all frameworks."""


def refused_proxies(error: BaseException) -> list[str]:
    """The names of the classes of proxies that compiled code has refused; none if it has refused none.

    Such code raises Python's own errors, and nothing but their text tells which class of value it got.
    """
    is_such = isinstance(error, (TypeError, RuntimeError, AttributeError))
    return _PROXY.findall(str(error)) if is_such else []


class ErrorWatch:
    """A block: while it lasts, foreign errors that reach handlers of these functions, or of their files, are noted."""

    def __init__(self, codes: Iterable[CodeType], stand_in: type, failed: list[BaseException]) -> None:
        self._files = {code.co_filename for code in codes if not is_installed(code) and may_handle(code)}
        self._known: dict[CodeType, bool] = {}
        self._stand_in = stand_in
        self._failed = failed
        self._outer: Any = None
        self.error: Exception | None = None
        """The first of them."""

    def __enter__(self) -> ErrorWatch:
        if self._files:
            self._outer = sys.gettrace()
            sys.settrace(self._called)
        return self

    def __exit__(self, *error: object) -> None:
        if self._files:
            sys.settrace(self._outer)

    def _called(self, frame: FrameType, event: str, value: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in self._files:
            return None
        handles = self._known.get(code)
        if handles is None:
            handles = self._known[code] = catches_errors(code)
        frame.f_trace_lines = False
        return self._raised if handles else None

    def _raised(self, frame: FrameType, event: str, value: Any) -> Any:
        if event == "exception" and self.error is None and self.is_foreign(value[1], value[2]):
            self.error = value[1]
        return self._raised

    def is_foreign(self, error: BaseException | None, trace: TracebackType | None) -> bool:
        """Whether an error may be there because a function was given a stand-in."""
        if not isinstance(error, Exception) or isinstance(error, _OF_THE_WORLD) or trace is None:
            return False
        if isinstance(error, AttributeError):
            return issubclass(type(error.obj), self._stand_in) or bool(refused_proxies(error))
        return not any(error is one for one in self._failed) and not _is_of_program(trace)


def may_handle(code: CodeType) -> bool:
    """Whether a function, or one that is defined in it, has a handler for errors."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return catches_errors(code) or any(map(may_handle, inner))


def _is_of_program(trace: TracebackType) -> bool:
    """Whether a ``raise`` or ``assert`` of the program's own has raised an error."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    if not is_of_program(trace.tb_frame):
        return False
    raising = next((one for one in instructions_of(code) if one.offset == trace.tb_lasti), None)
    return raising is not None and raising.opname in ("RAISE_VARARGS", "RERAISE")
