"""Errors that the program handles, and that it would not have met without the capture.

A function that cannot take what stands for a number (``Decimal(n)``, ``deque(maxlen=n)``, ``"%*d" % n``) raises an
error of its own, and the program may catch it and go another way. ``ErrorWatch`` sees the errors that reach functions
of the program with an ``except``, by Python's tracing, and only if there are such functions. What is ``foreign`` was
raised by neither the program nor a recorded call: then the program is run again with plain numbers.
"""

from __future__ import annotations

import dis
import functools
import re
import sys
from collections.abc import Iterable
from types import CodeType, FrameType, TracebackType
from typing import Any

from clew.capture.bytecode.instructions import Instruction, instructions_of
from clew.capture.bytecode.try_blocks import catches_errors
from clew.capture.python.callers import is_of_program
from clew.ir.source import is_installed

_OF_THE_WORLD = (LookupError, ImportError, OSError, NameError, StopIteration, StopAsyncIteration, AssertionError)
"""Errors that no function raises because of the type of a number."""


_PROXY = re.compile(r"\bTraced[A-Z]\w*")
"""How the classes of proxies are called, in all frameworks."""
_UNNAMED = re.compile(
    r"an integer is required|\* wants int|Expected an int as second argument to ldexp\."
    r"|Object of type (int|float|bool) is not JSON serializable"
)
"""What code says that refuses a proxy of a number and does not name its class, or the one that it stands for."""


def refused_proxies(error: BaseException) -> list[str]:
    """The names of the classes of proxies that compiled code has refused; none if it has refused none.

    Such code raises Python's own errors, and nothing but their text tells which class of value it got.
    """
    if not isinstance(error, (TypeError, RuntimeError, AttributeError)):
        return []
    if isinstance(error, TypeError) and _UNNAMED.fullmatch(str(error)):
        return ["TracedFloat" if " float " in str(error) else "TracedInt"]
    return _PROXY.findall(str(error))


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
        """Whether an error may be there because a function was given a proxy."""
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


# ---- what a program may learn of an error ----------------------------------------------------------------------------

_LOOKING = frozenset({"exc_info", "format_exc", "print_exc", "exception", "last_value", "suppress", "__exit__"})
"""Names in a function by which it can come to an error that has no name in it."""


def may_see_error(frame: FrameType | None) -> bool:
    """Whether the program may look at an error that this frame, or one that called it, catches."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != "clew":
            regions, looks = _naming(frame.f_code)
            if any(start <= frame.f_lasti < end for start, end in regions):
                return True
            if _handles(frame.f_code, frame.f_lasti):
                return looks
        frame = frame.f_back
    return True


@functools.lru_cache(maxsize=4096)
def _naming(code: CodeType) -> tuple[tuple[tuple[int, int], ...], bool]:
    """The parts of a function whose errors get a name, and whether it may look at errors by other means."""
    instructions = instructions_of(code)
    handlers = _handlers(instructions)
    entries = dis._parse_exception_table(code) if code.co_exceptiontable else []  # type: ignore[attr-defined]
    named = tuple((entry.start, entry.end) for entry in entries if handlers.get(entry.target, False))
    return named, not _LOOKING.isdisjoint(code.co_names)


def _handlers(instructions: list[Instruction]) -> dict[int, bool]:
    """For the start of each handler whether one of its clauses, up to the next handler, gives the error a name."""
    found: dict[int, bool] = {}
    start = -1
    for place, instruction in enumerate(instructions[:-2]):
        if instruction.opname == "PUSH_EXC_INFO":
            start = instruction.offset
            found[start] = False
        elif instruction.opname == "CHECK_EXC_MATCH" and start >= 0:
            found[start] = found[start] or instructions[place + 2].opname.startswith("STORE_")
    return found


@functools.lru_cache(maxsize=4096)
def _handles(code: CodeType, place: int) -> bool:
    """Whether an instruction of a function stands under an ``except``."""
    instructions = instructions_of(code)
    places = {instruction.offset: number for number, instruction in enumerate(instructions)}
    entries = dis._parse_exception_table(code) if code.co_exceptiontable else []  # type: ignore[attr-defined]
    targets = [entry.target for entry in entries if entry.start <= place < entry.end]
    return any(_is_except(instructions, places[target]) for target in targets)


def _is_except(instructions: list[Instruction], place: int) -> bool:
    following = [instruction.opname for instruction in instructions[place : place + 8]]
    return "CHECK_EXC_MATCH" in following or following[1:2] == ["POP_TOP"]
