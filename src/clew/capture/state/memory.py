"""A deep snapshot of everything below a value: a change anywhere can be seen, and undone.

In come values, such as the arguments and state of a program. Containers and objects of users' classes are followed,
bytes and numbers in arrays too; a framework's arrays and modules are ends. Each object is kept once.
"""

from __future__ import annotations

import functools
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, MethodType
from typing import Any

from clew.capture.guards.function_equality import PartialState
from clew.capture.state.containers import (
    ACTING,
    CHANGING,
    FILES,
    HOLDING_NOTHING,
    LOGGERS,
    Contents,
    ContentsSnapshot,
    follows,
    is_flat,
    is_followed,
    is_stream,
    may_be_flat,
)

_MOST = 20_000
DEPTH = 24
"""How far below a variable or an attribute a program is expected to reach."""
_HOLDING_OTHERS = (tuple, MethodType, functools.partial, weakref.ref)
_BUILTIN = frozenset({tuple, list, dict, set, OrderedDict, deque})
_FLAT, _FOLLOWED, _STREAM, _LOGGER, _FILE, _HOLDING = range(1, 7)


@functools.lru_cache(maxsize=4096)
def _role(kind: Any) -> int:
    """What is to be done with values of a class; 0 for nothing, and a flat value may still turn out to be none."""
    if is_stream(kind):
        return _STREAM
    if issubclass(kind, LOGGERS):
        return _LOGGER
    if issubclass(kind, FILES):
        return _FILE
    if issubclass(kind, _HOLDING_OTHERS):
        return _HOLDING
    return _FLAT if may_be_flat(kind) else _FOLLOWED if is_followed(kind) else 0


def _held_by(value: Any) -> Iterable[Any]:
    """What a tuple, a bound method, a partial or a weak reference holds for ever."""
    if isinstance(value, weakref.ref):
        return (value(),)
    if isinstance(value, MethodType):
        return (value.__self__,)
    if isinstance(value, functools.partial):
        return (value.func, *value.args, value.keywords)
    return tuple(tuple.__iter__(value))  # a class of the user's may not tell its length


class Memory:
    """Containers and objects as they were; each is remembered once, under the first value that led to it."""

    def __init__(self, is_end: Callable[[Any], bool], most: int = _MOST) -> None:
        self._is_end = is_end
        self._most = most
        self.ends: dict[int, Any] = {}
        self.met: Counter[int] = Counter()
        """How often each end and each list was met: as a value itself, and in each container that is remembered."""
        self.streams: list[Any] = []
        self.loggers: list[Any] = []
        self.files: list[Any] = []
        self.outside_functions: list[Any] = []
        self._partials: list[PartialState] = []
        self._outside = {_STREAM: self.streams, _LOGGER: self.loggers, _FILE: self.files}
        self._seen: dict[int, ContentsSnapshot] = {}
        self._kept: list[ContentsSnapshot] = []

    def remember(self, value: Any, depth: int = DEPTH) -> tuple[int, int]:
        """Remember what can be reached from a value; the answer names what this call has added, for ``changed``."""
        start = len(self._kept)
        self._remember(value, depth)
        return start, len(self._kept)

    def _remember(self, value: Any, depth: int) -> None:
        kind: Any = type(value)
        if kind in HOLDING_NOTHING:
            if kind is BuiltinFunctionType:
                self.met[id(value.__self__)] += 1
                if value in ACTING or value in CHANGING:
                    self.outside_functions.append(value)
            return
        self.met[id(value)] += kind is list
        if depth == 0 or len(self._kept) >= self._most or id(value) in self._seen:
            return
        if kind not in _BUILTIN and self._is_end(value):
            self.ends[id(value)] = value
            self.met[id(value)] += 1
            return
        role = _role(kind)
        if role == _HOLDING:
            if isinstance(value, functools.partial):
                self._partials.append(PartialState(value))
            for part in _held_by(value):
                self._remember(part, depth - 1)
        elif role in (_FLAT, _FOLLOWED):
            self._keep(value, kind, depth, role == _FLAT and is_flat(value))
        elif role:
            self._outside[role].append(value)

    def _keep(self, value: Any, kind: Any, depth: int, flat: bool) -> None:
        """Remember what a container, an object or a flat value holds, and what is below that."""
        if not flat and not is_followed(kind):
            return
        reading = self._seen[id(value)] = ContentsSnapshot(value)
        self._kept.append(reading)
        for part in () if flat else reading.parts:
            if type(part) not in HOLDING_NOTHING or type(part) is BuiltinFunctionType:
                self._remember(part, depth - 1)

    def kept(self, added: tuple[int, int]) -> list[ContentsSnapshot]:
        """What one call of ``remember`` has added, and what it held."""
        return self._kept[added[0] : added[1]]

    def changes(self, added: tuple[int, int]) -> Iterator[ContentsSnapshot]:
        """What of it is not as it was."""
        return (reading for reading in self.kept(added) if not reading.is_as_before())

    def holds(self, part: Any) -> bool:
        """Whether anything held this very object."""
        return any(held is part for reading in self._kept for held in reading.parts)

    def changed(self, added: tuple[int, int]) -> bool:
        """Whether any of it is not as it was."""
        return added[0] != added[1] and next(self.changes(added), None) is not None

    def all_changes(self) -> Iterator[Any]:
        """All that is not as it was."""
        return (reading.value for reading in self._kept if not reading.is_as_before())

    def has_changed(self) -> bool:
        """Whether anything is not as it was."""
        if next(self.all_changes(), None) is not None or self.other_class() is not None:
            return True
        return any(one.has_changed() for one in self._partials)

    def renew(self, value: Any) -> None:
        """What a container or object holds now is what it held."""
        known = self._seen.get(id(value))
        if known is not None:
            known.__init__(value)  # type: ignore[misc]

    def everything(self) -> Iterator[Any]:
        """All that is remembered."""
        return (reading.value for reading in self._kept)

    def of(self, value: Any) -> Contents | None:
        """What a container or object held; None if it is not remembered."""
        known = self._seen.get(id(value))
        return None if known is None else known.contents()

    def other_class(self) -> Any:
        """An object that has another class than it had; None if there is none."""
        return next((reading.value for reading in self._kept if type(reading.value) is not reading.kind), None)

    def put_back(self) -> None:
        """Let everything hold what it held."""
        for reading in self._kept:
            if type(reading.value) is not reading.kind:
                reading.value.__class__ = reading.kind
        for reading in self._kept:
            if not reading.is_as_before():
                reading.put_back()


def below(value: Any, is_end: Callable[[Any], bool]) -> Memory | None:
    """All that can be changed below the value of a variable, remembered; None where nothing can."""
    if not (isinstance(value, _HOLDING_OTHERS) or follows(value) or is_flat(value)):
        return None
    held = Memory(is_end)
    held.remember(value)
    return held
