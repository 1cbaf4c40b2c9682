"""Functions that only calculate: whoever runs one again gets the same, and nothing else has changed.

A function comes in and is read, not run. It may use its arguments, Python's own functions on numbers and containers,
and functions that only calculate; it may set nothing outside of itself. What it does to its arguments it may still do:
that is for the caller to see.
"""

from __future__ import annotations

import builtins
import dis
import functools
from types import CodeType, FunctionType
from typing import Any

# Variables of closures are missing here: a function that has none of its own shares them only with those inside it.
_OUTSIDE = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR IMPORT_NAME STORE_NAME DELETE_NAME "
    "LOAD_CLASSDEREF YIELD_VALUE SEND RETURN_GENERATOR LOAD_BUILD_CLASS".split()
)
_BUILTINS = frozenset(
    "len range list tuple dict set frozenset enumerate zip isinstance int float bool str min max sum abs sorted "
    "reversed all any divmod round map filter slice".split()
)
_METHODS = frozenset(
    "append extend insert pop items keys values get copy index count join split format startswith endswith".split()
)


@functools.lru_cache(maxsize=4096)
def only_calculates(function: Any) -> bool:
    """Whether a function is of this kind, as far as its code tells."""
    return _is_plain(function, frozenset())


def _is_plain(function: Any, above: frozenset[Any]) -> bool:
    if not isinstance(function, FunctionType) or function.__closure__ or function in above:
        return False
    return _is_plain_code(function.__code__, function.__globals__, above | {function})


def _is_plain_code(code: CodeType, names: dict[str, Any], above: frozenset[Any]) -> bool:
    for instruction in dis.get_instructions(code):
        if instruction.opname in _OUTSIDE:
            return False
        if instruction.opname == "LOAD_METHOD" and instruction.argval not in _METHODS:
            return False
        if instruction.opname == "LOAD_GLOBAL" and not _is_plain_name(str(instruction.argval), names, above):
            return False
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return all(_is_plain_code(part, names, above) for part in inner)


def _is_plain_name(name: str, names: dict[str, Any], above: frozenset[Any]) -> bool:
    if name not in names:
        known = getattr(builtins, name, None)
        return name in _BUILTINS or (isinstance(known, type) and issubclass(known, BaseException))
    value = names[name]
    if isinstance(value, type):
        return issubclass(value, BaseException)
    return type(value) in (int, float, str, bool, type(None)) or _is_plain(value, above)
