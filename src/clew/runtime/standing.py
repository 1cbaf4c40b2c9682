"""How the module stands that a capture works on: its parts, their classes and hooks, and what else it relied on.

A lazy graph asks this at each call, to choose among its captures. A capture of a method, which works on the object that
the method belongs to, asks it too, and refuses the call where something has changed. Training modes are no part of it:
captures read them, and guard those that they relied on.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from operator import attrgetter, is_, itemgetter
from typing import Any

from clew.capture.example.captured import Pins
from clew.errors import GuardError
from clew.ir.guests import module_guest

HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")

_attributes = attrgetter("__dict__")
_children = itemgetter("_modules")


class Structure:
    """The parts of a module at one time, their classes, and methods ``forward`` of single ones. Two of them are equal if
    all of that is the same; the parts are kept alive, so that no other object can be taken for one of them."""

    def __init__(self, parts: list[Any]) -> None:
        self._parts = parts
        self._holders = [vars(part) for part in parts]
        self._types = [type(part) for part in parts]
        self._forwards = [holder.get("forward") for holder in self._holders]
        self._tables = [holder["_modules"] for holder in self._holders]
        self._sizes = [len(table) for table in self._tables]
        self._below = [*chain.from_iterable(table.values() for table in self._tables)]
        self._names = [*chain.from_iterable(self._tables)]
        guest = module_guest(parts[0])
        self._hooks: list[dict[int, Any]] = [held[name] for held in self._holders for name in HOOKS if name in held]
        self._hooks += [] if guest is None else guest.shared_hooks()
        self._hooks_made: Callable[[], int | None] = (lambda: None) if guest is None else guest.hooks_made
        self._hooked: tuple[int | None, tuple[int, ...]] = (None, ())

    def stands(self) -> bool:
        """Whether nothing of it has changed."""
        holders = self._holders
        return (
            all(map(is_, map(_attributes, self._parts), holders))
            and all(map(is_, map(type, self._parts), self._types))
            and all(map(is_, map(dict.get, holders, repeat("forward")), self._forwards))
            and all(map(is_, map(_children, holders), self._tables))
            and [*map(len, self._tables)] == self._sizes
            and all(map(is_, chain.from_iterable(map(dict.values, self._tables)), self._below))
            and [*chain.from_iterable(self._tables)] == self._names
        )

    def hooks(self) -> tuple[int, ...]:
        """The hooks of all parts; where there were none, they are looked for again only if one was put anywhere."""
        made = self._hooks_made()
        before, found = self._hooked
        if made is None or found or made != before:
            found = tuple(chain.from_iterable(self._hooks))
            self._hooked = (made, found)
        return found

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Structure) and self._identity() == other._identity())

    __hash__ = None  # type: ignore[assignment]

    def _identity(self) -> list[Any]:
        objects = chain(self._parts, self._holders, self._types, self._forwards, self._tables, self._below)
        return [*map(id, objects), *self._sizes, *self._names]


class Parts:
    """The parts of a module, or of the one that a method belongs to, listed again only when it has others: a capture
    holds for these parts, their classes and their hooks only."""

    def __init__(self, fn: Any) -> None:
        self._list = getattr(getattr(fn, "__self__", fn), "modules", None)
        self._structure: Structure | None = None

    def now(self) -> tuple[Any, ...]:
        """Which parts there are, and which hooks they have; nothing for a function."""
        if self._list is None:
            return ()
        structure = self._structure
        if structure is None or not structure.stands():
            parts = list(self._list())
            if not all("training" in vars(part) and type(vars(part).get("_modules")) is dict for part in parts):
                return ()
            structure = self._structure = Structure(parts)
        return (structure, structure.hooks())


class Standing:
    """How things stood when a capture was made that works on the original itself."""

    def __init__(self, fn: Any, pins: Pins) -> None:
        self._parts = Parts(fn)
        self._then = self._parts.now()
        self._pins = pins
        self._owner = type(getattr(fn, "__self__", fn)).__name__

    def check(self) -> None:
        """Raise if something is not as it was."""
        if self._parts.now() != self._then or not self._pins.hold():
            raise GuardError(
                f"the graph assumed that the {self._owner} is what it was, but something in it has changed",
                why="its parts, their hooks and attributes were read in the capture",
                fixes=("capture again", "clew.trace(fn) without an example captures again by itself"),
            )
