"""Other packages that a program calls: those that only hand on to NumPy are looked through, all others are one call.

einops and the array API's wrappers are written in Python and call NumPy, so their own functions are treated like the
program's: builtins such as ``type(x)`` are led to the capture, and caches are passed. What any other installed package
does with an array is its own affair: a call of one of its functions stays one call of the graph.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy

NUMPY_FOLDER = os.path.dirname(numpy.__file__) + os.sep
"""NumPy reads and writes files for whoever calls it."""
_LOOKED_THROUGH = ("einops", "array_api_compat", "array_api_extra")
_OWN_WAYS = frozenset({"numpy", "clew", "torch", "jax", "tensorflow", "keras", *_LOOKED_THROUGH})


def is_one_call(value: Any) -> bool:
    """Whether a function or class belongs to an installed package whose inside is not looked at."""
    return is_package(str(getattr(value, "__module__", None) or ""))


@functools.lru_cache(maxsize=1024)
def is_package(name: str) -> bool:
    """Whether a module of this name belongs to an installed package, none of the frameworks."""
    package = name.partition(".")[0]
    if package in _OWN_WAYS or package in sys.stdlib_module_names or package not in sys.modules:
        return False
    module = sys.modules[package]
    return "-packages" in str(getattr(module, "__file__", None) or list(getattr(module, "__path__", ())))


def functions() -> list[FunctionType]:
    """The functions of the packages that are looked through, as far as these are loaded."""
    names = tuple(name for name in sys.modules if name.partition(".")[0] in _LOOKED_THROUGH)
    return _functions(names) if names else []


@functools.lru_cache(maxsize=4)
def _functions(names: tuple[str, ...]) -> list[FunctionType]:
    found: dict[FunctionType, None] = {}
    for name in names:
        module = sys.modules.get(name)
        if isinstance(module, ModuleType):
            found.update(dict.fromkeys(_functions_in(vars(module), 2)))
    return list(found)


def _functions_in(names: Any, depth: int) -> Iterator[FunctionType]:
    for value in list(names.values()):
        value = getattr(value, "__wrapped__", None) or getattr(value, "__func__", value)
        package = str(getattr(value, "__module__", "")).partition(".")[0]
        if package not in _LOOKED_THROUGH:
            continue
        if isinstance(value, FunctionType):
            yield value
        elif isinstance(value, type) and depth:
            yield from _functions_in(vars(value), depth - 1)
