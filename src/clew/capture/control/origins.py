"""Whether a code object was made of a piece of source: a file may have changed on disk since it was loaded.

In come a code that was just compiled and one that is loaded. They are the same if they do the same steps with the same
names and constants. Lines and file names do not matter, nor how a method is looked up before it is called: that depends
on what the module imports.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType
from typing import Any

_NAMES = ("co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount")
_SILENT = frozenset({"CACHE", "PUSH_NULL", "NOP", "EXTENDED_ARG", "PRECALL"})
_ALIKE = {"LOAD_METHOD": "LOAD_ATTR", "LOAD_SUPER_METHOD": "LOAD_SUPER_ATTR"}
_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})


def is_made_of(loaded: CodeType, compiled: CodeType) -> bool:
    """Whether the loaded code does what the compiled one does."""
    if any(getattr(loaded, name) != getattr(compiled, name) for name in _NAMES):
        return False
    return _same(loaded.co_consts, compiled.co_consts) and _steps(loaded) == _steps(compiled)


@functools.lru_cache(maxsize=256)
def _steps(code: CodeType) -> tuple[tuple[str, Any], ...]:
    """The instructions by name, each with what it names or the place of its constant; jumps without their length."""
    return tuple(
        (_ALIKE.get(step.opname, step.opname), None if step.opcode in _JUMPS else _operand(step))
        for step in dis.get_instructions(code)
        if step.opname not in _SILENT
    )


def _operand(step: dis.Instruction) -> Any:
    return step.argval if isinstance(step.argval, str) else step.arg


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return one.co_name == other.co_name and is_made_of(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and (one == other if isinstance(one, frozenset) else repr(one) == repr(other))
