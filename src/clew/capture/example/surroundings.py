"""What a program can reach besides its arguments: closures, globals and default values.

Where does an array come from that nobody saw being made? Which variables may the program read, or change? Only what
the program's own code names is looked at.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from clew.errors import CaptureError
from clew.ir.source import is_hidden

_MOST_FUNCTIONS = 500
_SIMPLE = (int, float, str, bool, complex, bytes, type(None))


class Surroundings:
    """The variables around some functions, as they were before the program ran."""

    def __init__(self, functions: list[Any]) -> None:
        self._cells: list[tuple[Any, str, Any]] = []
        self._seen: set[tuple[int, str]] = set()
        self._functions: set[FunctionType] = set()
        for function in functions:
            self.add(function)

    def add(self, function: FunctionType) -> list[tuple[Any, str]]:
        """Look at the variables around one more function, and around those that it calls by name; the new ones."""
        waiting, known = [function], len(self._cells)
        while waiting and len(self._functions) < _MOST_FUNCTIONS:
            function = waiting.pop()
            if function in self._functions or is_hidden(function.__code__):
                continue
            self._functions.add(function)
            for holder, name, value in _variables(function):
                if isinstance(value, FunctionType):
                    waiting.append(value)
                if (id(holder), name) not in self._seen:
                    _refuse_streams(name, value)
                    self._seen.add((id(holder), name))
                    self._cells.append((holder, name, value))
        return [(holder, name) for holder, name, _ in self._cells[known:]]

    @property
    def functions(self) -> list[FunctionType]:
        """All functions whose variables are looked at."""
        return list(self._functions)

    def values(self) -> Iterator[tuple[str, Any]]:
        """The variables by name."""
        for _, name, value in self._cells:
            yield name, value

    def holds(self, wanted: Any) -> bool:
        """Whether some variable, or a container or object that one holds, is or has this very object."""
        return any(_contains(value, wanted, 4) for _, _, value in self._cells)

    def cells(self) -> Iterator[tuple[Any, str]]:
        """All variables by their holder, a dict or a cell, and their name."""
        for holder, name, _ in self._cells:
            yield holder, name

    def variables(self) -> Iterator[tuple[Any, str, Any]]:
        """The variables that may be set to something else between calls, and whose value the program may have used."""
        for holder, name, value in self._cells:
            is_code = isinstance(value, (type, ModuleType, FunctionType, BuiltinFunctionType))
            if not is_code and (not isinstance(holder, dict) or "__name__" in holder):
                yield holder, name, value


def _refuse_streams(name: str, value: Any) -> None:
    """What hands out another value at each use cannot be recorded."""
    kind = type(value)
    is_stream = hasattr(kind, "__next__") or kind.__name__ in ("Random", "SystemRandom", "RandomState", "Generator")
    if is_stream and not kind.__module__.startswith("torch") and not isinstance(value, type):
        raise CaptureError(
            f"the program uses {name!r}, a {kind.__name__} outside of it",
            why="it gives another value at each use, which the graph would not",
            fixes=("pass its values as arguments", "use torch's random numbers"),
        )


def functions_of(target: Any) -> list[Any]:
    """The Python functions of a callable: itself, or the methods of a module's parts."""
    found = inspect.unwrap(target) if callable(target) else target
    found = getattr(found, "__func__", found)
    if isinstance(found, FunctionType):
        return [found]
    call = getattr(type(target), "forward", None) or vars(type(target)).get("__call__")
    return [inspect.unwrap(call)] if isinstance(call, FunctionType) else []


def _variables(function: FunctionType) -> Iterator[tuple[Any, str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        value = _value_of(cell, name)
        if value is not _EMPTY:
            yield cell, name, value
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__, name, function.__globals__[name]
    for name, value in (function.__kwdefaults__ or {}).items():
        yield function.__kwdefaults__, name, value
    for place, value in enumerate(function.__defaults__ or ()):
        yield {str(place): value}, str(place), value


@functools.lru_cache(maxsize=4096)
def _names(code: CodeType) -> frozenset[str]:
    """The global variables that a function and the functions inside it use."""
    names = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "STORE_GLOBAL")}
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(names).union(*map(_names, inner))


_EMPTY = object()


def _value_of(holder: Any, name: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(name, _EMPTY)
    try:
        return holder.cell_contents
    except ValueError:  # a cell that is not filled yet
        return _EMPTY


def _contains(value: Any, wanted: Any, depth: int) -> bool:
    if value is wanted:
        return True
    if depth == 0 or isinstance(value, (*_SIMPLE, type)):
        return False
    if isinstance(value, dict):
        return any(_contains(item, wanted, depth - 1) for item in value.values())
    if isinstance(value, (list, tuple, set)):
        return any(_contains(item, wanted, depth - 1) for item in value)
    inner = getattr(value, "__dict__", None)
    is_module = type(value).__name__ == "module"
    return isinstance(inner, dict) and not is_module and _contains(inner, wanted, depth - 1)
