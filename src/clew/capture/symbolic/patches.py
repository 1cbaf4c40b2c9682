"""Replacing functions for the time of a trace, and putting everything back whatever happens.

Several traces may run at once, in several threads: a place is replaced when the first trace needs it and restored
when the last one is done. What is put in place behaves like the original for everybody who is not tracing. What every
trace replaces in the same way is a stock: worked out once, then put in place again as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

_MISSING = object()
_lock = threading.RLock()
Key = tuple[int, str]


class _Place:
    """One replaced entry of a dict, class, cell or function: what was there, and how many traces need what is now."""

    __slots__ = ("count", "name", "original", "owner", "replacement")

    def __init__(self, owner: Any, name: str, original: Any, replacement: Any) -> None:
        self.owner = owner
        self.name = name
        self.original = original
        self.replacement = replacement
        self.count = 1


_places: dict[Key, _Place] = {}


def _read(owner: Any, name: str) -> Any:
    """What a dict, a class, a function or a cell itself holds under a name."""
    if isinstance(owner, dict):
        return owner.get(name, _MISSING)
    if isinstance(owner, CellType):
        return owner.cell_contents
    if isinstance(owner, FunctionType):
        below = _places.get((id(owner), "__code__"))  # another trace may have put its code there already
        return owner.__code__ if below is None else below.original
    return vars(owner).get(name, _MISSING)


def _put(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        if value is _MISSING:
            del owner[name]
        else:
            owner[name] = value
    elif isinstance(owner, CellType):
        owner.cell_contents = value
    elif isinstance(owner, FunctionType):
        owner.__code__ = value
    elif value is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


class Stock:
    """Replacements that every trace makes in the same way; ``find`` makes them, for the first trace."""

    def __init__(self, find: Callable[[Patches], None]) -> None:
        self.find = find
        self._places: dict[Key, _Place] = {}

    def learn(self, keys: list[Key]) -> None:
        """Remember what was put in these places, unless another trace shares some of them right now."""
        places = {key: _places[key] for key in keys}
        if all(place.count == 1 for place in places.values()):
            self._places = places

    def put(self) -> list[Key]:
        """Put everything in place as it was the last time; nothing, if some place is in use or holds something new."""
        places = self._places
        if not places or not _places.keys().isdisjoint(places):
            return []
        for place in places.values():
            if _read(place.owner, place.name) is not place.original:
                return []
        for place in places.values():
            place.count = 1
            _put(place.owner, place.name, place.replacement)
        _places.update(places)
        return list(places)


class Patches:
    """The replacements that one trace needs. A context manager: leaving it gives them back."""

    def __init__(self) -> None:
        self._held: dict[Key, None] = {}

    def __enter__(self) -> Patches:
        return self

    def __exit__(self, *error: object) -> None:
        with _lock:
            while self._held:
                key = self._held.popitem()[0]
                place = _places[key]
                place.count -= 1
                if place.count == 0:
                    del _places[key]
                    _put(place.owner, place.name, place.original)

    def from_stock(self, stock: Stock) -> None:
        """Make the replacements of a stock."""
        with _lock:
            keys = stock.put()
            if keys:
                self._held.update(dict.fromkeys(keys))
                return
            known = set(self._held)
            stock.find(self)
            stock.learn([key for key in self._held if key not in known])

    def in_dict(self, names: dict[str, Any], name: str, make: Callable[[Any], Any], default: Any = None) -> None:
        """Replace ``names[name]``, which may be missing if there is a ``default``, by ``make`` of it."""
        self._replace(names, name, default, make)

    def on_class(self, owner: type, name: str, make: Callable[[Any], Any], inherited: bool = False) -> None:
        """Replace what a class itself defines as ``name``, a classmethod say, or inherits, by ``make`` of it."""
        self._replace(owner, name, getattr(owner, name) if inherited else None, make)

    def in_cell(self, cell: CellType, make: Callable[[Any], Any]) -> None:
        """Replace what a variable of a closure holds."""
        self._replace(cell, "", None, make)

    def on_function(self, function: FunctionType, code: CodeType, layer: str = "__code__") -> None:
        """Let a function run this code; a second ``layer`` lies above what was there before."""
        self._replace(function, layer, None, lambda original: code)

    def _replace(self, owner: Any, name: str, default: Any, make: Callable[[Any], Any]) -> None:
        """What is there is read under the lock: another trace may be about to put its original back."""
        key = (id(owner), name)
        with _lock:
            if key in self._held:
                return
            place = _places.get(key)
            if place is not None:
                place.count += 1
            else:
                original = _read(owner, name)
                if original is _MISSING and default is None:
                    return
                replacement = make(default if original is _MISSING else original)
                _put(owner, name, replacement)
                _places[key] = _Place(owner, name, original, replacement)
            self._held[key] = None
