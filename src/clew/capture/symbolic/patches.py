"""Replacing functions for the time of a trace, and putting everything back whatever happens.

Several traces may run at once, in several threads: a place is replaced when the first trace needs it and restored
when the last one is done. What is put in place behaves like the original for everybody who is not tracing.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

_MISSING = object()
_lock = threading.RLock()


class _Place:
    """One replaced entry: what was there, and how many traces need the replacement."""

    __slots__ = ("count", "original", "restore")

    def __init__(self, original: Any, restore: Callable[[], None]) -> None:
        self.original = original
        self.restore = restore
        self.count = 1


_places: dict[tuple[int, str], _Place] = {}


class Patches:
    """The replacements that one trace needs. A context manager: leaving it gives them back."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, str], None] = {}

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
                    place.restore()

    def in_dict(self, names: dict[str, Any], name: str, make: Callable[[Any], Any], default: Any = None) -> None:
        """Replace ``names[name]``, which may be missing if there is a ``default``, by ``make`` of it."""

        def put(value: Any) -> None:
            if value is _MISSING:
                del names[name]
            else:
                names[name] = value

        self._replace(names, name, lambda: names.get(name, _MISSING), default, make, put)

    def on_class(self, owner: type, name: str, make: Callable[[Any], Any], inherited: bool = False) -> None:
        """Replace what a class itself defines as ``name``, a classmethod say, or inherits, by ``make`` of it."""

        def put(value: Any) -> None:
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)

        default = getattr(owner, name) if inherited else None
        self._replace(owner, name, lambda: vars(owner).get(name, _MISSING), default, make, put)

    def in_cell(self, cell: CellType, make: Callable[[Any], Any]) -> None:
        """Replace what a variable of a closure holds."""

        def put(value: Any) -> None:
            cell.cell_contents = value

        self._replace(cell, "", lambda: cell.cell_contents, None, make, put)

    def on_function(self, function: FunctionType, code: CodeType, layer: str = "__code__") -> None:
        """Let a function run this code; a second ``layer`` lies above what was there before."""
        key = (id(function), layer)
        with _lock:
            place = _places.get(key)
            if place is not None:
                if key not in self._held:
                    place.count += 1
                    self._held[key] = None
                return
            below = _places.get((id(function), "__code__"))  # another trace may have put its code there already
            original = function.__code__ if below is None else below.original
            _places[key] = _Place(original, functools.partial(setattr, function, "__code__", original))
            function.__code__ = code
            self._held[key] = None

    def _replace(
        self,
        owner: Any,
        name: str,
        get: Callable[[], Any],
        default: Any,
        make: Callable[[Any], Any],
        put: Callable[[Any], None],
    ) -> None:
        """What is there is read under the lock: another trace may be about to put its original back."""
        key = (id(owner), name)
        with _lock:
            if key in self._held:
                return
            place = _places.get(key)
            if place is not None:
                place.count += 1
            else:
                original = get()
                if original is _MISSING and default is None:
                    return
                put(make(default if original is _MISSING else original))
                _places[key] = _Place(original, lambda: put(original))
            self._held[key] = None
