"""A Python module as a whole: a copy of it in which every function is replaced, here by one that traces itself.

Functions of the module and of the modules below it are replaced, each once. Classes, constants, and what the module
has imported from elsewhere are the same objects as in the original, and so are the globals that its functions see.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any


def copy_with(module: ModuleType, replace: Callable[[Any], Any]) -> ModuleType:
    """A copy of ``module`` with ``replace(function)`` in the place of each of its functions."""
    return _copy(module, module.__name__, replace, {}, {})


def _copy(
    module: ModuleType,
    package: str,
    replace: Callable[[Any], Any],
    modules: dict[ModuleType, ModuleType],
    functions: dict[Any, Any],
) -> ModuleType:
    twin = modules[module] = ModuleType(module.__name__, module.__doc__)
    for name, value in vars(module).items():
        if isinstance(value, ModuleType) and _is_below(value.__name__, package):
            value = modules[value] if value in modules else _copy(value, package, replace, modules, functions)
        elif _is_traceable(value) and _is_below(value.__module__, package):
            if value not in functions:
                functions[value] = replace(value)
            value = functions[value]
        setattr(twin, name, value)
    return twin


def _is_below(name: str | None, package: str) -> bool:
    return name == package or (name or "").startswith(f"{package}.")


def _is_traceable(value: Any) -> bool:
    """A function that gives its result when it is called: generators and coroutines do not."""
    lazy = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return isinstance(value, FunctionType) and not any(is_lazy(value) for is_lazy in lazy)
