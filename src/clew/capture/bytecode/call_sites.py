"""Direct calls of builtins such as ``int(n)`` in the program's own functions, redirected to other functions.

Bytecode tells whether a global is loaded to be called or as a value. Only calls are redirected, so ``isinstance(n,
int)``, ``type(n) is int`` and ``dtype=int`` mean what they meant. In come functions; out come code objects with the
substitutes as constants, so that a frame may go on with one in another thread and a closure may outlive the capture.
Nothing is changed here.
"""

from __future__ import annotations

import dis
import sys
import weakref
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from clew.capture.bytecode.instructions import Operations

Substitutes = Mapping[str, Callable[..., Any]]

_MOST_CONSTANTS = 240  # an index beyond it would need a longer instruction
_SHORT = 256  # an argument from there on makes a longer instruction
_NOP, _CACHE, _LOAD_GLOBAL = (dis.opmap[name] for name in ("NOP", "CACHE", "LOAD_GLOBAL"))


class _Known(NamedTuple):
    """What a function runs by itself, what it shall run instead, and which builtins it calls."""

    old: CodeType
    new: CodeType | None
    names: frozenset[str]


_known: weakref.WeakKeyDictionary[FunctionType, dict[int, _Known]] = weakref.WeakKeyDictionary()
"""What is known of each function, by the substitutes for it: those are made once, by each framework."""


def redirected(function: FunctionType, substitutes: Substitutes) -> CodeType | None:
    """The code of a function with its calls of these builtins led elsewhere; None where it calls none of them."""
    found = _known.setdefault(function, {})
    known = found.get(id(substitutes))
    if known is None or (function.__code__ is not known.old and function.__code__ is not known.new):
        new = _with_substitutes(function.__code__, substitutes)
        changed = None if new is function.__code__ else new
        known = found[id(substitutes)] = _Known(function.__code__, changed, _called(function.__code__, substitutes))
    if known.new is None or not any(name in function.__globals__ for name in known.names):
        return known.new
    # A global variable of that name is no builtin.
    return _with_substitutes(
        known.old, {name: value for name, value in substitutes.items() if name not in function.__globals__}
    )


def _called(code: CodeType, substitutes: Substitutes) -> frozenset[str]:
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    own = {name for _, name in _calls(code, substitutes)}
    return frozenset(own).union(*(_called(part, substitutes) for part in inner))


def _with_substitutes(code: CodeType, substitutes: Substitutes) -> CodeType:
    constants = [
        _with_substitutes(part, substitutes) if isinstance(part, CodeType) else part for part in code.co_consts
    ]
    calls = _calls(code, substitutes)
    raw = bytearray(code.co_code)
    places: dict[str, int] = {}
    for offset, name in calls:
        if name not in places:
            places[name] = len(constants)
            constants.append(substitutes[name])
        _load_constant(raw, offset, places[name])
    changed = calls or any(new is not old for new, old in zip(constants, code.co_consts, strict=False))
    return led_elsewhere(code, constants, raw) if changed else code


_originals: weakref.WeakKeyDictionary[CodeType, CodeType] = weakref.WeakKeyDictionary()
"""The code that a function had of itself, by the one that stands for it."""


def led_elsewhere(code: CodeType, constants: list[Any], instructions: bytearray) -> CodeType:
    """The code with other constants and instructions, of which it is known what it stands for."""
    new = code.replace(co_consts=tuple(constants), co_code=bytes(instructions))
    stands_for(new, code)
    return new


def stands_for(new: CodeType, code: CodeType) -> None:
    """Note what a code was made of."""
    _originals[new] = original_of(code)


def original_of(code: CodeType) -> CodeType:
    """The code that one stands for whose calls are led elsewhere; any other code itself."""
    return _originals.get(code, code)


def _load_constant(raw: bytearray, offset: int, index: int) -> None:
    """Put the loading of a constant where the loading of a global is; what that leaves over does nothing."""
    loads = [(dis.opmap["PUSH_NULL"], 0), (dis.opmap["LOAD_CONST"], index)]
    if sys.version_info >= (3, 13):  # the mark of a call lies above what is called from there on
        loads.reverse()
    end = offset + 2
    while end < len(raw) and raw[end] == _CACHE:
        end += 2
    loads += [(_NOP, 0)] * ((end - offset) // 2 - len(loads))
    raw[offset:end] = bytes(byte for load in loads for byte in load)


def _calls(code: CodeType, substitutes: Substitutes) -> list[tuple[int, str]]:
    """Where a global is loaded together with the mark that a call follows, and which."""
    if substitutes.keys().isdisjoint(code.co_names) or len(code.co_consts) > _MOST_CONSTANTS:
        return []
    operations, found = Operations(code), []
    for place in operations.uses(_LOAD_GLOBAL):
        argument = operations.argument(place)
        name = code.co_names[argument >> 1]
        if argument & 1 and name in substitutes and argument < _SHORT:
            found.append((2 * place, name))
    return found
