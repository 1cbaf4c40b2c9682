"""The user's own name for the result of a recorded call: the variable that it is assigned to.

The frame of the user in which the call was made comes in; out comes the name of the local, global or attribute that the
next instruction stores the result in, or nothing. Read from bytecode, which knows it without the source, once for each
place in a program. A call that a library makes on the way has no such name: the variable is for the library's result.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

from clew.capture.bytecode.instructions import instructions_at
from clew.ir.source import SourceLine

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
