"""Arrays around a program: for the time of a run stand-ins are in their places, so that what happens to them is seen.

A global array, one in a closure, in a list or dict, in an attribute of an object, or a default value: where the program
finds it, it finds a stand-in, tied to a constant of the graph that is the array itself. After the run each place gets
its array back, unless the program has put something else there, which then is a change of its state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy

from clew.capture.guards.notes import MISSING, Variable
from clew.capture.state.containers import CODE, SIMPLE, contents, follows, refill
from clew.frameworks.numpy.array_proxy import is_traced

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder

_DEPTH = 5
"""How many containers and objects deep arrays are looked for."""


class Places:
    """The places of one run in which stand-ins are."""

    def __init__(self, recorder: NumpyRecorder, depth: int = _DEPTH) -> None:
        self.recorder = recorder
        self.depth = depth
        self._seen: dict[int, Any] = {}
        self._swaps: list[tuple[Callable[[], Any], Callable[[Any], None], Any, Any]] = []
        self._defaults: list[tuple[FunctionType, Any]] = []

    def enter(self, variables: Iterable[Variable], functions: Iterable[Any], owners: Iterable[Any]) -> None:
        """Put stand-ins in the place of the arrays that these hold, directly or in containers and objects."""
        for variable in variables:
            self._variable(variable)
        for function in functions:
            self._default_values(function)
        for owner in owners:
            if not isinstance(owner, (type, ModuleType, FunctionType)) and not is_traced(owner):
                self._inside(owner, self.depth)

    def _variable(self, variable: Variable) -> None:
        value = variable.get()
        if value is MISSING or isinstance(value, CODE):
            return
        new = self._replaced(value, self.depth)
        if new is not value:
            variable.put(new)
            self._swap(variable.get, variable.put, value, new)

    def _default_values(self, function: Any) -> None:
        before = getattr(function, "__defaults__", None)
        if before and isinstance(function, FunctionType):
            after = tuple(self._replaced(value, self.depth) for value in before)
            if any(new is not old for new, old in zip(after, before, strict=True)):
                function.__defaults__ = after
                self._defaults.append((function, before))

    def _replaced(self, value: Any, depth: int) -> Any:
        """The value with stand-ins in the place of arrays; containers and objects are changed in place."""
        if type(value) in SIMPLE or depth == 0 or is_traced(value) or isinstance(value, numpy.generic):
            return value
        if self.recorder.is_array(value):
            has_objects = type(value) is numpy.ndarray and value.dtype.hasobject
            return value if has_objects else self.recorder.constant(value)
        if isinstance(value, tuple):
            items = [self._replaced(item, depth - 1) for item in value]
            if any(new is not old for new, old in zip(items, value, strict=True)):
                return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
            return value
        self._inside(value, depth)
        return value

    def _inside(self, value: Any, depth: int) -> None:
        if id(value) in self._seen or not follows(value) or id(value) in self.recorder.objects:
            return
        self._seen[id(value)] = value
        if isinstance(value, (set, deque)) and not hasattr(value, "__dict__"):
            return
        parts = contents(value)
        changed = {key: self._replaced(part, depth - 1) for key, part in parts.items()}
        swapped = {key: new for key, new in changed.items() if new is not parts[key]}
        if swapped:
            refill(value, changed)
            for key, new in swapped.items():
                self._swap(_reading(value, key), _writing(value, key), parts[key], new)

    def _swap(self, get: Callable[[], Any], put: Callable[[Any], None], old: Any, new: Any) -> None:
        self._swaps.append((get, put, old, new))

    def leave(self) -> None:
        """Put the arrays back where the program has left their stand-ins."""
        for get, put, old, new in reversed(self._swaps):
            if get() is new:
                put(old)
        for function, before in self._defaults:
            function.__defaults__ = before
        self._swaps, self._defaults, self._seen = [], [], {}

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """For a call that stays whole the arrays themselves are in their places."""
        active = [(get, put, old, new) for get, put, old, new in self._swaps if get() is new]
        for _, put, old, _ in reversed(active):
            put(old)
        try:
            yield
        finally:
            for get, put, old, new in active:
                if get() is old:
                    put(new)


def _reading(holder: Any, key: Any) -> Callable[[], Any]:
    return lambda: contents(holder).get(key)


def _writing(holder: Any, key: Any) -> Callable[[Any], None]:
    def put(value: Any) -> None:
        parts = contents(holder)
        parts[key] = value
        refill(holder, parts)

    return put
