"""The instructions of the user's functions: where a frame stands, and what comes before and after.

In come a code object and an offset; out come its instructions and the index among them, read once for each code, and
the variable that the next instruction stores a result in. A library's own calls have no such name: the variable is for
the library's result. ``Operations`` finds a few opcodes in a great many functions, far faster than ``dis``.
"""

from __future__ import annotations

import dis
import functools
from bisect import bisect_right
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

from clew.ir.source import SourceLine

_RETURNING = frozenset({"RESUME", "COPY_FREE_VARS", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"})
_EXTENDED = dis.opmap["EXTENDED_ARG"]


class Operations:
    """The operations of a function, one after the other; those that only make room for a cache are among them."""

    def __init__(self, code: CodeType) -> None:
        raw = code.co_code  # which is made anew at each reading
        self.all = raw[::2]
        self._arguments = raw[1::2]

    def uses(self, operation: int) -> Iterator[int]:
        """Where one of them is used."""
        place = self.all.find(operation)
        while place >= 0:
            yield place
            place = self.all.find(operation, place + 1)

    def argument(self, place: int) -> int:
        """The argument of the operation in a place."""
        argument, shift = self._arguments[place], 8
        while place and self.all[place - 1] == _EXTENDED:
            place -= 1
            argument |= self._arguments[place] << shift
            shift += 8
        return argument


def instructions_of(code: CodeType) -> list[dis.Instruction]:
    """All instructions of a function."""
    return _read(code)[0]


def only_returns(function: Callable[..., Any]) -> bool:
    """Whether a function does nothing but return a constant."""
    return isinstance(function, FunctionType) and all(
        instruction.opname in _RETURNING for instruction in instructions_of(function.__code__)
    )


@functools.lru_cache(maxsize=512)
def _read(code: CodeType) -> tuple[list[dis.Instruction], list[int]]:
    instructions = list(dis.get_instructions(code))
    return instructions, [instruction.offset for instruction in instructions]


def instructions_at(code: CodeType, offset: int) -> tuple[list[dis.Instruction], int]:
    """The instructions of a function, and the place of the one that is being executed at ``offset``.

    A frame that waits for a function of Python stands inside of the call's cache entries, behind its own offset.
    """
    instructions, offsets = _read(code)
    return instructions, bisect_right(offsets, offset) - 1


_STORES = frozenset({"STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"})
_PAIRS = frozenset({"STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"})
_LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_DEREF"})
_OWN = "clew_"
"""What variables begin with that a rewritten function has of its own."""


def variable_for(frame: FrameType, source: SourceLine, strangers: tuple[str, ...], target: Any) -> str | None:
    """The variable that gets the result of a call of ``target``, if nothing stands between the user and the recording
    but Clew and the called function itself: ``strangers`` are the names of functions that do."""
    name = source._variable
    if name is None:
        name = source._variable = stored_in(frame.f_code, frame.f_lasti)
    if not name or not strangers:
        return name or None
    called = target if isinstance(target, str) else getattr(target, "__name__", "")
    return name if all(stranger == called for stranger in strangers) else None


def stored_in(code: CodeType, offset: int) -> str:
    """The variable that the instruction after the call at ``offset`` assigns to; empty if it does something else."""
    instructions, place = instructions_at(code, offset)
    place += 1
    if instructions[place - 1].opname == "PRECALL":  # of Python 3.11, which may make the call already
        place += 1
    if instructions[place : place + 1] and instructions[place].opname == "COPY":  # of ``x = y = ...`` and ``x := ...``
        place += 1
    following = instructions[place : place + 2]
    if not following:
        return ""
    name = ""
    if following[0].opname in _STORES:
        name = following[0].argval
    elif following[0].opname in _PAIRS:
        name = following[0].argval[0]
    elif len(following) == 2 and following[0].opname in _LOADS and following[1].opname == "STORE_ATTR":
        name = following[1].argval
    return name if name.strip("_") and not name.startswith(_OWN) else ""
