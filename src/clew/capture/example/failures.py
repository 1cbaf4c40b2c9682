"""Calls that fail in the example, whose error the program catches: the graph makes them too, and relies on the failure.

In comes a call that has just raised; whether a ``try`` of the program's stands around it is read from the frames. The
text of the error counts only where the program may look at it: where a clause gives the error a name.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from clew.ir.effects import pure

_LOOKING = frozenset({"exc_info", "format_exc", "print_exc", "exception", "last_value", "suppress", "__exit__"})
"""Names in a function by which it can come to an error that has no name in it."""


@pure
def failure_of(call: Callable[..., Any] | str, with_text: bool, *args: Any, **kwargs: Any) -> tuple[str, ...] | None:
    """The class, and the text, of the error that a call raises, or the method of this name; None if it does not."""
    try:
        if isinstance(call, str):
            getattr(args[0], call)(*args[1:], **kwargs)
        else:
            call(*args, **kwargs)
    except Exception as error:
        return described(error, with_text)
    return None


def described(error: Exception, with_text: bool) -> tuple[str, ...]:
    """An error as a guard compares it."""
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    return (kind, str(error)) if with_text else (kind,)


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
    instructions = list(dis.get_instructions(code))
    handlers = _handlers(instructions)
    entries = dis._parse_exception_table(code) if code.co_exceptiontable else []  # type: ignore[attr-defined]
    named = tuple((entry.start, entry.end) for entry in entries if handlers.get(entry.target, False))
    return named, not _LOOKING.isdisjoint(code.co_names)


def _handlers(instructions: list[dis.Instruction]) -> dict[int, bool]:
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
    instructions = list(dis.get_instructions(code))
    places = {instruction.offset: number for number, instruction in enumerate(instructions)}
    entries = dis._parse_exception_table(code) if code.co_exceptiontable else []  # type: ignore[attr-defined]
    targets = [entry.target for entry in entries if entry.start <= place < entry.end]
    return any(_is_except(instructions, places[target]) for target in targets)


def _is_except(instructions: list[dis.Instruction], place: int) -> bool:
    following = [instruction.opname for instruction in instructions[place : place + 8]]
    return "CHECK_EXC_MATCH" in following or following[1:2] == ["POP_TOP"]
