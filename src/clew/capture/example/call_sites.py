"""Direct calls of builtins such as ``int(n)`` in the program's own functions, led to other functions for a while.

A function's code says apart whether a global is loaded to be called or as a value: only the calls are led elsewhere, so
``isinstance(n, int)``, ``type(n) is int`` and ``dtype=int`` mean what they meant. In come functions; out come the new
codes, whose calls read a private global variable that the caller provides. Nothing is changed here.
"""

from __future__ import annotations

import dis
import functools
import weakref
from types import CodeType, FunctionType
from typing import NamedTuple

PREFIX = "__clew_"
_NESTED = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_MOST_NAMES = 127  # a name beyond it would need a longer instruction


class Redirection(NamedTuple):
    """What a function shall run instead of its ``old`` code; None where it calls none of the builtins."""

    old: CodeType
    new: CodeType | None
    names: frozenset[str]


_known: weakref.WeakKeyDictionary[FunctionType, Redirection] = weakref.WeakKeyDictionary()


def redirection(function: FunctionType, names: frozenset[str]) -> Redirection:
    """The code of a function with its calls of these builtins led elsewhere, and which of them it calls."""
    known = _known.get(function)
    if known is None or known.old is not function.__code__:
        new = _redirected(function.__code__, names)
        changed = None if new is function.__code__ else new
        known = _known[function] = Redirection(function.__code__, changed, _used(new) if changed else frozenset())
    shadowed = [name for name in known.names if name in function.__globals__]
    if shadowed:  # a global variable of that name is no builtin
        return Redirection(known.old, _redirected(known.old, names.difference(shadowed)), known.names - set(shadowed))
    return known


def _used(code: CodeType) -> frozenset[str]:
    own = {name.removeprefix(PREFIX) for name in code.co_names if name.startswith(PREFIX)}
    return frozenset(own).union(*(_used(part) for part in code.co_consts if isinstance(part, CodeType)))


@functools.lru_cache(maxsize=4096)
def _redirected(code: CodeType, names: frozenset[str]) -> CodeType:
    consts = tuple(
        _redirected(part, names) if isinstance(part, CodeType) and part.co_name in _NESTED else part
        for part in code.co_consts
    )
    called = _calls(code, names)
    if not called:
        changed = any(new is not old for new, old in zip(consts, code.co_consts, strict=True))
        return code.replace(co_consts=consts) if changed else code
    new_names = list(code.co_names)
    raw = bytearray(code.co_code)
    for offset, name in called:
        private = PREFIX + name
        if private not in new_names:
            new_names.append(private)
        raw[offset + 1] = new_names.index(private) << 1 | 1
    return code.replace(co_consts=consts, co_names=tuple(new_names), co_code=bytes(raw))


def _calls(code: CodeType, names: frozenset[str]) -> list[tuple[int, str]]:
    """Where a global is loaded together with the mark that a call follows, and which."""
    if names.isdisjoint(code.co_names) or len(code.co_names) + len(names) > _MOST_NAMES:
        return []
    loads = [one for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL" and one.argval in names]
    return [(one.offset, one.argval) for one in loads if one.arg is not None and one.arg & 1]
