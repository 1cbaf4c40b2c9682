"""Whether a code object was made of a piece of source: a file may have changed on disk since it was loaded.

In come a code that was just compiled and one that is loaded. They are the same if they do the same with the same names
and constants; lines and file names do not matter. Calls of builtins that a capture has led elsewhere do not matter.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

_CACHE, _LOAD_GLOBAL = dis.opmap["CACHE"], dis.opmap["LOAD_GLOBAL"]


def is_made_of(loaded: CodeType, compiled: CodeType) -> bool:
    """Whether the loaded code does what the compiled one does."""
    names = ("co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount")
    if any(getattr(loaded, name) != getattr(compiled, name) for name in names):
        return False
    return _same_steps(loaded.co_code, compiled.co_code) and _same_constants(loaded.co_consts, compiled.co_consts)


def _same_steps(loaded: bytes, compiled: bytes) -> bool:
    """Whether two codes have the same instructions, but for what is loaded in the place of a global."""
    if len(loaded) != len(compiled):
        return False
    is_global = False
    for place in range(0, len(compiled), 2):
        operation = compiled[place]
        is_global = operation == _LOAD_GLOBAL or (is_global and operation == _CACHE)
        if not is_global and loaded[place : place + 2] != compiled[place : place + 2]:
            return False
    return True


def _same_constants(loaded: tuple[Any, ...], compiled: tuple[Any, ...]) -> bool:
    """Whether all constants are the same; what calls were led to stands behind them."""
    more = loaded[len(compiled) :]
    return len(loaded) >= len(compiled) and all(map(callable, more)) and all(map(_same, loaded, compiled))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return one.co_name == other.co_name and is_made_of(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and (one == other if isinstance(one, frozenset) else repr(one) == repr(other))
