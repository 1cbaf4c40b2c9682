"""What the interpreter was doing when it asked a symbolic value: unpacking, asserting, or something else.

A frame comes in; the instruction it stands at, and its neighbours, tell. Works on the bytecode of Python 3.11 and
later, where truth is asked by a jump or, since 3.13, by TO_BOOL in front of it.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType, FrameType
from typing import NamedTuple

_CALLS = frozenset({"PRECALL", "CALL"})
_SILENT = frozenset({"CACHE", "TO_BOOL", "NOP", "EXTENDED_ARG", "NOT_TAKEN", "COPY_FREE_VARS"})


class AssertSite(NamedTuple):
    """A truth asked by an ``assert``: which truth lets it pass, and its message if that is a constant."""

    passes_when: bool
    message: str | None


@functools.lru_cache(maxsize=256)
def _instructions(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


@functools.lru_cache(maxsize=256)
def _places(code: CodeType) -> dict[int, int]:
    return {instruction.offset: place for place, instruction in enumerate(_instructions(code))}


def _from(frame: FrameType) -> int:
    return _places(frame.f_code)[frame.f_lasti]


def unpack_count(frame: FrameType) -> int | None:
    """How many variables ``a, b = value`` wants, if that is what the frame is doing."""
    instruction = _instructions(frame.f_code)[_from(frame)]
    return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None


def assert_site(frame: FrameType) -> AssertSite | None:
    """The assertion that asks for a truth at this moment, if it is one."""
    code = _instructions(frame.f_code)
    jump = _next_loud(code, _from(frame))
    if jump is None or "JUMP" not in code[jump].opname:
        return None
    name = code[jump].opname
    after = _next_loud(code, jump + 1)
    target = _places(frame.f_code).get(code[jump].argval)
    if after is not None and code[after].opname == "LOAD_ASSERTION_ERROR":
        return AssertSite(name.endswith("IF_TRUE"), _message(code, after))
    if target is not None and code[target].opname == "LOAD_ASSERTION_ERROR" and name.endswith("IF_FALSE"):
        return AssertSite(True, _message(code, target))
    return None


def _next_loud(code: tuple[dis.Instruction, ...], place: int) -> int | None:
    while place < len(code) and code[place].opname in _SILENT:
        place += 1
    return place if place < len(code) else None


def _message(code: tuple[dis.Instruction, ...], place: int) -> str | None:
    """The message of an assertion if it is a constant: loaded, and then at once used to make the error."""
    loaded = _next_loud(code, place + 1)
    called = None if loaded is None else _next_loud(code, loaded + 1)
    if loaded is None or called is None or code[loaded].opname != "LOAD_CONST":
        return None
    message = code[loaded].argval
    return message if isinstance(message, str) and code[called].opname in _CALLS else None
