"""Direct calls of builtins such as ``int(n)`` in the program's own functions, led to other functions for a while.

A function's code says apart whether a global is loaded to be called or as a value: only the calls are led elsewhere, so
``isinstance(n, int)``, ``type(n) is int`` and ``dtype=int`` mean what they meant. In come functions; out come the new
codes, whose calls read a private global variable that the caller provides. Nothing is changed here.
"""

from __future__ import annotations

import dis
import functools
import inspect
import weakref
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from clew.ir.source import is_hidden

PREFIX = "__clew_"
_NESTED = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_MOST_NAMES = 127  # a name beyond it would need a longer instruction
_neighbours: dict[str, tuple[int, list[weakref.ref[FunctionType]]]] = {}


def redirected(function: FunctionType, names: frozenset[str]) -> CodeType | None:
    """The code of a function with its calls of these builtins led elsewhere; None where it has none."""
    code = function.__code__
    if names.isdisjoint(code.co_names) and not any(isinstance(part, CodeType) for part in code.co_consts):
        return None
    new = _redirected(code, names)
    shadowed = {name for name in _used(new) if name in function.__globals__} if new is not code else set()
    return _redirected(code, names - shadowed) if shadowed else new


def _used(code: CodeType) -> set[str]:
    inner = [_used(part) for part in code.co_consts if isinstance(part, CodeType)]
    own = {name.removeprefix(PREFIX) for name in code.co_names if name.startswith(PREFIX)}
    return own.union(*inner)


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


def neighbours(functions: Iterable[FunctionType]) -> list[FunctionType]:
    """These functions, and all functions and methods of the modules that they are defined in."""
    found = dict.fromkeys(functions)
    spaces = {id(function.__globals__): function.__globals__ for function in found}
    for space in spaces.values():
        name, size = str(space.get("__name__")), len(space)
        known = _neighbours.get(name)
        if known is None or known[0] != size:
            known = _neighbours[name] = (size, [weakref.ref(function) for function in dict.fromkeys(_defined(space))])
        found.update((function, None) for reference in known[1] if (function := reference()) is not None)
    return list(found)


def _defined(space: dict[str, Any]) -> Iterator[FunctionType]:
    name = space.get("__name__")
    for value in list(space.values()):
        if isinstance(value, type):
            if value.__module__ == name:
                for member in list(vars(value).values()):
                    yield from _unwrapped(member)
        else:
            yield from _unwrapped(value)


def _unwrapped(value: Any) -> Iterator[FunctionType]:
    """The functions behind a value: itself, and those that decorators have wrapped."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    value = value.fget if isinstance(value, property) else value
    while isinstance(value, FunctionType):
        if not is_hidden(value.__code__):
            yield value
        value = inspect.getattr_static(value, "__wrapped__", None)
