"""What a program can reach besides its arguments: closures, globals and default values.

Where does an array come from that nobody saw being made? Which variables may the program read, or change? Only what
the program's own code names is looked at.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from clew.capture.example.reach import Reach, stored_names, variables
from clew.errors import CaptureError

_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType)
_SIMPLE = (int, float, str, bool, complex, bytes, type(None))


_known: dict[Any, tuple[Reach, list[tuple[dict[str, Any], str, Any]]]] = {}
_MOST_KNOWN = 64


def _reach(functions: tuple[Any, ...], kinds: frozenset[type]) -> Reach:
    """What can be reached; remembered for programs of importable parts, as long as all code it names is the same."""
    known = _known.get((functions, kinds))
    if known is not None and all(holder.get(name) is value for holder, name, value in known[1]):
        return known[0].copy()
    found = Reach()
    for kind in kinds:
        found.add_own_class(kind)
    for function in functions:
        found.add(function)
    if not any("<locals>" in part.__qualname__ for part in (*functions, *kinds)):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        around = {(id(each[0]), each[1]): each for function in found.functions for each in variables(function)}
        named = [each for each in around.values() if isinstance(each[2], _CODE) and isinstance(each[0], dict)]
        _known[functions, kinds] = (found.copy(), named)
    return found


class Surroundings:
    """The variables around some functions, as they were before the program ran."""

    def __init__(self, functions: list[Any], kinds: Iterable[type] = ()) -> None:
        self._cells: list[tuple[Any, str, Any]] = []
        self._seen: set[tuple[int, str]] = set()
        self._streams: list[tuple[str, Any, Any]] = []
        self._stored: set[tuple[int, str]] = set()
        self._reach = _reach(tuple(functions), frozenset(kinds))
        self._near = self._reach.near(functions)
        self._look_around(list(self._reach.functions))

    def add(self, function: FunctionType) -> list[tuple[Any, str]]:
        """Look at the variables around one more function, and around those that it may call; the new ones."""
        return self._look_around(self._reach.add(function))

    def _look_around(self, functions: list[FunctionType]) -> list[tuple[Any, str]]:
        known = len(self._cells)
        for function in functions:
            self._stored.update((id(function.__globals__), name) for name in stored_names(function.__code__))
            for holder, name, value in variables(function):
                if (id(holder), name) not in self._seen:
                    if _is_stream(value):
                        self._add_stream(name, value, function in self._near)
                    self._seen.add((id(holder), name))
                    self._cells.append((holder, name, value))
        return [(holder, name) for holder, name, value in self._cells[known:] if self._may_change(holder, name, value)]

    def _may_change(self, holder: Any, name: str, value: Any) -> bool:
        """Whether the program can change a variable: it sets it, or its value can be changed in place."""
        if isinstance(holder, dict) and (id(holder), name) not in self._stored:
            return not isinstance(value, (*_SIMPLE, *_CODE))
        return True

    @property
    def functions(self) -> list[FunctionType]:
        """All functions whose variables are looked at."""
        return list(self._reach.functions)

    def values(self) -> Iterator[tuple[str, Any]]:
        """The variables by name."""
        for _, name, value in self._cells:
            yield name, value

    def holds(self, wanted: Any) -> bool:
        """Whether some variable, or a container or object that one holds, is or has this very object."""
        return any(_contains(value, wanted, 4) for _, _, value in self._cells)

    def _add_stream(self, name: str, stream: Any, is_near: bool) -> None:
        """What hands out another value at each use: one that cannot be set back is refused before it is used."""
        if is_near and hasattr(stream, "__next__"):
            raise _stream_refused(name, stream)
        self._streams.append((name, stream, _position(stream)))

    def check_streams(self) -> None:
        """Raise if the program took something from what hands out another value at each use."""
        for name, stream, before in self._streams:
            if repr(_position(stream)) != repr(before):
                raise _stream_refused(name, stream)

    def put_back_streams(self) -> None:
        """Let generators of random numbers stand where they stood."""
        for _, stream, before in self._streams:
            if repr(_position(stream)) != repr(before):
                _set_position(stream, before)

    def cells(self) -> Iterator[tuple[Any, str]]:
        """The variables that the program can change, by their holder, a dict or a cell, and their name."""
        for holder, name, value in self._cells:
            if self._may_change(holder, name, value):
                yield holder, name

    def variables(self, executed: set[CodeType]) -> Iterator[tuple[Any, str, Any]]:
        """The variables that may be set to something else between calls, and whose value the program may have used:
        those that functions name which were seen running, or which these may have called."""
        ran = [function for function in self._reach.functions if function.__code__ in executed]
        near = {**self._near, **self._reach.near(ran)}
        used = {(id(holder), name) for function in near for holder, name, _ in variables(function)}
        for holder, name, value in self._cells:
            is_variable = not isinstance(value, _CODE) and (not isinstance(holder, dict) or "__name__" in holder)
            if is_variable and (id(holder), name) in used:
                yield holder, name, value


def _is_stream(value: Any) -> bool:
    """True for what hands out another value at each use: iterators, generators of random numbers."""
    kind = type(value)
    named = kind.__name__ in ("Random", "SystemRandom", "RandomState", "Generator")
    return (named or hasattr(kind, "__next__")) and not kind.__module__.startswith("torch")


def _position(stream: Any) -> Any:
    """Where a stream stands, as far as it tells."""
    if hasattr(stream, "bit_generator"):
        return stream.bit_generator.state
    if hasattr(stream, "getstate"):
        return stream.getstate()
    if hasattr(stream, "get_state"):
        return stream.get_state()
    if hasattr(stream, "gi_frame"):
        return None if stream.gi_frame is None else stream.gi_frame.f_lasti
    return repr(stream)


def _set_position(stream: Any, position: Any) -> None:
    if hasattr(stream, "bit_generator"):
        stream.bit_generator.state = position
    elif hasattr(stream, "setstate"):
        stream.setstate(position)
    elif hasattr(stream, "set_state"):
        stream.set_state(position)


def _stream_refused(name: str, stream: Any) -> CaptureError:
    return CaptureError(
        f"the program uses {name!r}, a {type(stream).__name__} outside of it",
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
