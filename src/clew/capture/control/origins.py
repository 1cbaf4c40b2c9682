"""Whether a code object was made of a piece of source: a file may have changed on disk since it was loaded.

In come a code that was just compiled and one that is loaded. They are the same if they do the same with the same names
and constants; lines and file names do not matter.
"""

from __future__ import annotations

from types import CodeType
from typing import Any


def is_made_of(loaded: CodeType, compiled: CodeType) -> bool:
    """Whether the loaded code does what the compiled one does."""
    names = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount")
    if any(getattr(loaded, name) != getattr(compiled, name) for name in names):
        return False
    return _same(loaded.co_consts, compiled.co_consts)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return one.co_name == other.co_name and is_made_of(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and (one == other if isinstance(one, frozenset) else repr(one) == repr(other))
