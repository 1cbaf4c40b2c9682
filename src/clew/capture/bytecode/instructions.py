"""The instructions of the user's functions: where a frame stands, and what comes before and after.

In come a code object and an offset; out come its instructions and the index among them, read once for each code, and
the variable that the next instruction stores a result in. A library's own calls have no such name: the variable is for
the library's result. Instructions read the same on every Python: two that one compiler writes as one are two, those
that belong to the next one are part of it, and names are those of Python 3.11. ``Operations`` finds a few opcodes in a
great many functions, far faster than ``dis``.
"""

from __future__ import annotations

import dis
import functools
import itertools
import linecache
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from clew.ir.source import SourceLine

_RETURNING = frozenset({"RESUME", "COPY_FREE_VARS", "LOAD_CONST", "RETURN_VALUE"})
_EXTENDED = dis.opmap["EXTENDED_ARG"]


class Instruction(NamedTuple):
    """One instruction, as ``dis`` tells it."""

    opname: str
    opcode: int
    arg: int | None
    argval: Any
    argrepr: str
    offset: int
    is_jump_target: bool
    effect: int
    """How many values more there are on the stack after it, where it does not jump."""


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


def instructions_of(code: CodeType) -> list[Instruction]:
    """All instructions of a function."""
    return _read(code)[0]


def only_returns(function: Callable[..., Any]) -> bool:
    """Whether a function does nothing but return a constant."""
    return isinstance(function, FunctionType) and all(
        instruction.opname in _RETURNING for instruction in instructions_of(function.__code__)
    )


@functools.lru_cache(maxsize=512)
def _read(code: CodeType) -> tuple[list[Instruction], list[int]]:
    instructions: list[Instruction] = []
    start, is_target, effect = None, False, 0  # of the instructions that belong to the next one
    for one in dis.get_instructions(code):
        start, is_target = one.offset if start is None else start, is_target or one.is_jump_target
        effect += dis.stack_effect(one.opcode, one.arg, jump=False)
        if one.opname not in _PREFIXES:
            same = Instruction(one.opname, one.opcode, one.arg, one.argval, one.argrepr, start, is_target, effect)
            instructions += _plain(same)
            start, is_target, effect = None, False, 0
    instructions = _with_methods(instructions)
    return instructions, [instruction.offset for instruction in instructions]


_PREFIXES = frozenset({"EXTENDED_ARG", "CACHE", "PRECALL", "KW_NAMES", "TO_BOOL", "NOT_TAKEN"})
"""Instructions that belong to the next one."""
_PARTS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
"""Instructions that do the work of two on local variables, of Python 3.13 and later."""
_EFFECTS = {"LOAD_FAST": 1, "STORE_FAST": -1}
_NAMES = {
    "LOAD_FAST_CHECK": "LOAD_FAST",
    "LOAD_FAST_BORROW": "LOAD_FAST",
    "LOAD_SMALL_INT": "LOAD_CONST",
    "POP_JUMP_FORWARD_IF_FALSE": "POP_JUMP_IF_FALSE",
    "POP_JUMP_FORWARD_IF_TRUE": "POP_JUMP_IF_TRUE",
    "POP_JUMP_BACKWARD_IF_FALSE": "POP_JUMP_IF_FALSE",
    "POP_JUMP_BACKWARD_IF_TRUE": "POP_JUMP_IF_TRUE",
}
"""The names of instructions that differ in how they do it, or in what they know."""
_HAS_METHOD_BIT = sys.version_info >= (3, 12)  # where one instruction loads attributes and methods


def _plain(one: Instruction) -> list[Instruction]:
    """An instruction, or those whose work it does, in the form that is the same on every Python."""
    if one.opname in _PARTS:
        names = _PARTS[one.opname]
        return [
            one._replace(opname=name, opcode=dis.opmap[name], argval=value, argrepr=value, effect=_EFFECTS[name])
            for name, value in zip(names, one.argval, strict=True)
        ]
    if one.opname == "RETURN_CONST":
        loading = one._replace(opname="LOAD_CONST", opcode=dis.opmap["LOAD_CONST"], effect=1)
        returning = dis.opmap["RETURN_VALUE"]
        return [loading, one._replace(opname="RETURN_VALUE", opcode=returning, arg=None, argval=None, effect=-1)]
    if one.opname == "LOAD_ATTR" and _HAS_METHOD_BIT and one.arg is not None and one.arg & 1:
        return [one._replace(opname="LOAD_METHOD")]
    if one.opname == "BINARY_OP" and one.argrepr == "[]":
        return [one._replace(opname="BINARY_SUBSCR")]
    return [one._replace(opname=_NAMES[one.opname])] if one.opname in _NAMES else [one]


def _with_methods(instructions: list[Instruction]) -> list[Instruction]:
    """Functions of modules are methods of them where they are called.

    From Python 3.12 on those of modules that a file imports are attributes: the mark that a call follows is loaded
    with the module there, and after the attribute in Python 3.13.
    """
    found: list[Instruction] = []
    for one in instructions:
        before = found[-1] if found else None
        if before is not None and before.opname == "LOAD_ATTR" and one.opname == "PUSH_NULL":
            found[-1] = before._replace(opname="LOAD_METHOD", effect=1)
            continue
        if before is not None and one.opname == "LOAD_ATTR" and before.opname == "LOAD_GLOBAL" and before.effect == 2:
            found[-1] = before._replace(argrepr=before.argval, effect=1)
            one = one._replace(opname="LOAD_METHOD", effect=1)
        found.append(one)
    return found


def instructions_at(code: CodeType, offset: int) -> tuple[list[Instruction], int]:
    """The instructions of a function, and the place of the one that is being executed at ``offset``.

    A frame that waits for a function of Python stands inside of the call's cache entries, behind its own offset.
    """
    instructions, offsets = _read(code)
    return instructions, bisect_right(offsets, offset) - 1


def variables_of(frame: FrameType) -> dict[str, Any]:
    """The variables that a frame sees now.

    While a comprehension uses the name of a variable that functions inside of the frame's share, Python 3.13 may read
    what is no object: that one is left out there.
    """
    if sys.version_info < (3, 13):
        return dict(frame.f_locals)
    return {name: frame.f_locals[name] for name in frame.f_locals if name not in _twofold(frame.f_code)}


@functools.lru_cache(maxsize=4096)
def _twofold(code: CodeType) -> frozenset[str]:
    """The names that stand for a shared variable of a function, and for one of a comprehension inside of it."""
    if not code.co_cellvars:
        return frozenset()
    hidden = {one.argval for one in instructions_of(code) if one.opname == "LOAD_FAST_AND_CLEAR"}
    return frozenset(hidden.intersection(code.co_cellvars))


_STORES = frozenset({"STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"})
_LOADS = frozenset({"LOAD_FAST", "LOAD_DEREF"})
_OWN = "clew_"
"""What variables begin with that a rewritten function has of its own."""


def variable_for(frame: FrameType, source: SourceLine, strangers: tuple[str, ...], target: Any) -> str | None:
    """The variable that gets the result of a call of ``target``, if nothing stands between the user and the recording
    but Clew and the called function itself: ``strangers`` are the names of functions that do."""
    name = source._variable
    if name is None:
        name = source._variable = stored_in(frame.f_code, frame.f_lasti) or returned_by(frame.f_code, frame.f_lasti)
    if not name or not strangers:
        return name or None
    called = target if isinstance(target, str) else getattr(target, "__name__", "")
    return name if all(stranger == called for stranger in strangers) else None


def stored_in(code: CodeType, offset: int) -> str:
    """The variable that the instruction after the call at ``offset`` assigns to; empty if it does something else."""
    instructions, place = instructions_at(code, offset)
    place += 1
    if instructions[place : place + 1] and instructions[place].opname == "COPY":  # of ``x = y = ...`` and ``x := ...``
        place += 1
    following = instructions[place : place + 2]
    if not following:
        return ""
    name = ""
    if following[0].opname in _STORES:
        name = following[0].argval
    elif len(following) == 2 and following[0].opname in _LOADS and following[1].opname == "STORE_ATTR":
        name = following[1].argval
    return name if is_users_name(name) else ""


RETURNED = "return"
"""In place of a variable: what a call gives is what its function returns."""


def returned_by(code: CodeType, offset: int) -> str:
    """``RETURNED`` if the instruction after the call at ``offset`` returns what it gives; else nothing."""
    instructions, place = instructions_at(code, offset)
    following = instructions[place + 1 : place + 2]
    return RETURNED if following and following[0].opname == "RETURN_VALUE" else ""


def is_users_name(name: str) -> bool:
    """Whether a variable bears a name that the user gave it, and that says something."""
    return bool(name.strip("_")) and not name.startswith(_OWN)


# ---- what an instruction calls ---------------------------------------------------------------------------------------


_LOADING = frozenset({"LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF", "LOAD_NAME"})


def called_at(code: CodeType, offset: int) -> tuple[str, ...]:
    """The names with which the expression begins that an instruction calculates: of what it calls, if it is a call."""
    start = _start(code, offset)
    found = _loads(code).get(start)
    return _name_in_text(code.co_filename, *start) if found is None else found


@functools.lru_cache(maxsize=1024)
def _name_in_text(filename: str, line: int | None, column: int | None) -> tuple[str, ...]:
    """The name at a place of a file: where one instruction loads two variables, only the first has a place in code."""
    if line is None or column is None:
        return ()
    name = re.match(r"\w+", linecache.getline(filename, line).encode()[column:].decode(errors="replace"))
    return (name[0],) if name is not None and name[0].isidentifier() else ()


@functools.lru_cache(maxsize=1024)
def _loads(code: CodeType) -> dict[Any, tuple[str, ...]]:
    """The names of the variables that a code loads, by where in the text each stands."""
    found: dict[Any, tuple[str, ...]] = {}
    for before, step in itertools.pairwise(instructions_of(code)):
        if step.opname in _LOADING and step.offset != before.offset:  # else it is the second of two in one
            place = _start(code, step.offset)
            found[place] = (*found.get(place, ()), str(step.argval))
    return found


def _start(code: CodeType, offset: int) -> Any:
    """Where in the text the expression of an instruction begins."""
    line, _, column, _ = _positions(code)[offset // 2]
    return line, column


@functools.lru_cache(maxsize=1024)
def _positions(code: CodeType) -> list[Any]:
    return list(code.co_positions())
