"""Replacing functions for the time of a trace, and putting everything back whatever happens.

Several traces may run at once, in several threads: an entry is replaced when the first trace needs it and restored when
the last is done. A replacement behaves like the original for everybody who is not tracing. What every trace replaces in
the same way is a ``Stock``: worked out once, then put in place as it is.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from clew.capture.location import CODE, DEFAULTS, MISSING, Location

_lock = threading.RLock()
Key = tuple[int, str]
REWRITTEN = "rewritten"
"""The layer of code that a function runs above what other replacements have made of it."""
_LAYERS = (CODE, REWRITTEN)
_OF_CLASSES = ((), ("__class__",))
"""The outer variables of functions that stand in classes: none, or the class itself, for ``super()``."""


class _Place(Location):
    """One location that is replaced: what was there, and how many traces need what is there now."""

    __slots__ = ("count", "original", "replacement")

    def __init__(self, holder: Any, name: str, original: Any, replacement: Any) -> None:
        self.holder = holder
        self.name = name
        self.original = original
        self.replacement = replacement
        self.count = 1


_places: dict[Key, _Place] = {}
_own_codes: dict[int, CodeType] = {}
"""What functions ran before the first layer of code was put in place, by their identities."""


def patched_places() -> int:
    """How many places are replaced right now, by all traces together."""
    return len(_places)


def held_at(holder: Any, name: str) -> Any:
    """What a dict, a class, a function or a cell itself holds under a name; of a function below the rewritten layer."""
    if _is_layer(holder, name):
        below = _places.get((id(holder), CODE))  # another trace may have put its code there already
        return holder.__code__ if below is None else below.original
    return Location(holder, name).get()


def original_in(names: dict[str, Any], name: str, default: Any = None) -> Any:
    """What a dict has under a name, whatever traces have put there for now."""
    place = _places.get((id(names), name))
    found = names.get(name, MISSING) if place is None else place.original
    return default if found is MISSING else found


def own_code(function: FunctionType) -> CodeType:
    """The code of a function, whatever traces let it run for now."""
    return _own_codes.get(id(function), function.__code__)


def own_defaults(function: FunctionType) -> tuple[Any, ...] | None:
    """The defaults of a function, whatever traces have put in their place for now."""
    place = _places.get((id(function), DEFAULTS))
    defaults: tuple[Any, ...] | None = function.__defaults__ if place is None else place.original
    return defaults


def _is_layer(holder: Any, name: str) -> bool:
    """Whether a location is code that a function runs."""
    return name in _LAYERS and isinstance(holder, FunctionType)


def _layer_of(function: FunctionType) -> _Place | None:
    """The place whose code a function runs, one of two layers."""
    return _places.get((id(function), REWRITTEN)) or _places.get((id(function), CODE))


def _put_back(place: _Place) -> None:
    """Put the original back, or for a function the code of the other layer, if that is still needed."""
    if not _is_layer(place.holder, place.name):
        place.put(place.original)
        return
    other = _layer_of(place.holder)
    place.holder.__code__ = _own_codes.pop(id(place.holder), place.original) if other is None else other.replacement


def _put_instead(place: _Place) -> None:
    """Put a replacement in place; a function's own code is noted under all layers."""
    if not _is_layer(place.holder, place.name):
        place.put(place.replacement)
        return
    if _layer_of(place.holder) is None:
        _own_codes[id(place.holder)] = place.holder.__code__
    place.holder.__code__ = place.replacement


class _Group:
    """The places of a stock in one dict: all are read, replaced and restored together."""

    def __init__(self, names: dict[str, Any], places: list[_Place]) -> None:
        self.names = names
        self.originals = {place.name: place.original for place in places}
        self.replacements = {place.name: place.replacement for place in places}

    def is_as_found(self) -> bool:
        """Whether all originals are in their places."""
        return all(map(operator.is_, map(self.names.get, self.originals), self.originals.values()))


class Stock:
    """Replacements that every trace makes in the same way; ``find`` makes them, for the first trace."""

    def __init__(self, find: Callable[[Patches], None]) -> None:
        self.find = find
        self.places: dict[Key, _Place] = {}
        self._groups: list[_Group] = []
        self._single: list[_Place] = []
        self._layers: list[_Place] = []

    def learn(self, keys: list[Key]) -> None:
        """Remember what was put in these places, unless another trace shares some of them right now."""
        places = {key: _places[key] for key in keys}
        if any(place.count != 1 for place in places.values()):
            return
        self.places = places
        in_dicts: dict[int, list[_Place]] = {}
        self._single, self._layers = [], []
        for place in places.values():
            if isinstance(place.holder, dict) and place.original is not MISSING:
                in_dicts.setdefault(id(place.holder), []).append(place)
            else:
                (self._layers if _is_layer(place.holder, place.name) else self._single).append(place)
        self._groups = [_Group(group[0].holder, group) for group in in_dicts.values()]

    def put(self) -> bool:
        """Put everything in place as it was the last time; nothing, if some place is in use or holds something new."""
        if not self.places or not _places.keys().isdisjoint(self.places):
            return False
        if not all(group.is_as_found() for group in self._groups):
            return False
        if any(place.get() is not place.original for place in self._single):
            return False
        if any(held_at(place.holder, place.name) is not place.original for place in self._layers):
            return False
        for place in self.places.values():
            place.count = 1
        for group in self._groups:
            group.names.update(group.replacements)
        for place in self._single:
            place.put(place.replacement)
        for place in self._layers:
            _put_instead(place)
        _places.update(self.places)
        return True

    def give_back(self) -> None:
        """Put the originals back where no other trace needs the replacements."""
        shared = [key for key, place in self.places.items() if place.count != 1]
        if shared:
            for key in self.places:
                _release(key)
            return
        for key in self.places:
            del _places[key]
        for place in reversed(self._layers):
            _put_back(place)
        for place in reversed(self._single):
            place.put(place.original)
        for group in reversed(self._groups):
            group.names.update(group.originals)


def _release(key: Key) -> None:
    """One trace needs a replacement no more; the last one puts the original back."""
    place = _places[key]
    place.count -= 1
    if place.count == 0:
        del _places[key]
        _put_back(place)


def _lead(*args: Any, **kwargs: Any) -> Any:
    """The code that stands in a function whose calls are led elsewhere; the name is that of a global over there."""
    return _target(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


@functools.cache
def _lead_for(free: tuple[str, ...]) -> CodeType:
    """The same code for a function with these free variables: it must copy their cells as it begins, or a look at the
    locals of its frame, by a debugger say, ends the process."""
    if not free:
        return _lead.__code__
    lines = [
        f"def around({', '.join(free)}):",
        "    def _lead(*args, **kwargs):",
        "        return _target(*args, **kwargs)",
        f"        {', '.join(free)}",
        "    return _lead",
    ]
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), __file__, "exec", dont_inherit=True), names)
    made: CodeType = names["around"](*free).__code__
    return made.replace(co_firstlineno=_lead.__code__.co_firstlineno)


def _twin(function: FunctionType) -> FunctionType:
    """A function that does what this one does now, whatever code this one gets later."""
    twin = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


class Patches:
    """The replacements that one trace needs. A context manager: leaving it gives them back."""

    def __init__(self) -> None:
        self._held: dict[Key, None] = {}
        self._stocks: list[Stock] = []

    def __enter__(self) -> Patches:
        return self

    def __exit__(self, *error: object) -> None:
        with _lock:
            while self._held:
                _release(self._held.popitem()[0])
            while self._stocks:
                self._stocks.pop().give_back()

    def from_stock(self, stock: Stock) -> None:
        """Make the replacements of a stock."""
        with _lock:
            if stock.put():
                self._stocks.append(stock)
                return
            known = set(self._held)
            stock.find(self)
            stock.learn([key for key in self._held if key not in known])

    def in_dict(self, names: dict[str, Any], name: str, make: Callable[[Any], Any], default: Any = None) -> None:
        """Replace ``names[name]``, which may be missing if there is a ``default``, by ``make`` of it."""
        self._replace(names, name, default, make)

    def on_class(
        self, owner: type, name: str, make: Callable[[Any], Any], inherited: bool = False, default: Any = None
    ) -> None:
        """Replace what a class itself defines as ``name``, a classmethod say, or inherits, or else the ``default``, by
        ``make`` of it."""
        self._replace(owner, name, getattr(owner, name) if inherited else default, make)

    def add_to_class(self, owner: type, name: str, value: Any) -> None:
        """Give a class an attribute that it does not have."""
        self._replace(owner, name, value, lambda value: value)

    def in_cell(self, cell: CellType, make: Callable[[Any], Any]) -> None:
        """Replace what a variable of a closure holds."""
        self._replace(cell, "", None, make)

    def on_function(self, function: FunctionType, code: CodeType, layer: str = CODE) -> None:
        """Let a function run this code; a second ``layer`` lies above what was there before."""
        self._replace(function, layer, None, lambda original: code)

    def in_defaults(self, function: FunctionType, make: Callable[[Any], Any]) -> None:
        """Replace the tuple of default values of a function."""
        self._replace(function, DEFAULTS, None, make)

    def on_method(self, owner: type, name: str, make: Callable[[Any], Any]) -> None:
        """Replace a method that a class defines: in its body where that can be, because much depends on the class."""
        method = vars(owner)[name]
        if type(method) is FunctionType and method.__code__.co_freevars in _OF_CLASSES:
            self.in_body(method, make)
        else:
            self.on_class(owner, name, make)

    def in_body(self, function: FunctionType, make: Callable[[Any], Any]) -> None:
        """Lead all calls of a function to ``make`` of it, whoever holds it: its code is exchanged.

        To set a method of a class costs as much as the class has subclasses, and more at each later use of these.
        """
        target = f"_clew_instead_of_{function.__qualname__.replace('.', '_')}"
        self.in_dict(function.__globals__, target, lambda known: make(_twin(known)), default=function)
        lead = _lead_for(function.__code__.co_freevars)  # a function keeps its closure, whose size its code must fit
        names = tuple(target if name == "_target" else name for name in lead.co_names)
        self.on_function(function, lead.replace(co_names=names, co_name=function.__name__))

    def _replace(self, owner: Any, name: str, default: Any, make: Callable[[Any], Any]) -> None:
        """What is there is read under the lock: another trace may be about to put its original back."""
        key = (id(owner), name)
        with _lock:
            if key in self._held:
                return
            for stock in self._stocks:
                if key in stock.places:
                    return
            place = _places.get(key)
            if place is not None:
                place.count += 1
            else:
                original = held_at(owner, name)
                if original is MISSING and default is None:
                    return
                replacement = make(default if original is MISSING else original)
                place = _Place(owner, name, original, replacement)
                _put_instead(place)
                _places[key] = place
            self._held[key] = None
