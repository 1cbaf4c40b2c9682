"""What a program read of a container outside of it: an item, whether a key is there, how long it is, its keys.

An ``Item`` is a variable like others, found in the value of another one: ``CONFIG["used"]``. A guard on it says nothing
about what else the container holds, which may change. No code of a user's runs when one is looked up: containers are
plain ones of Python, and keys plain values or pieces of code.
"""

from __future__ import annotations

import enum
from contextvars import ContextVar
from typing import Any, Protocol

from clew.capture.example.contents import CODE, SIMPLE, same_part
from clew.capture.example.elsewhere import ABSENT, Saved, saved
from clew.capture.example.guards import MISSING, Variable, is_read_by_compiler
from clew.capture.example.memory import Memory

ATTRIBUTE, ITEM, CONTAINS, LENGTH, KEYS, WHOLE = "attribute", "item", "contains", "length", "keys", "whole"
"""The ways in which something is read of a value."""


class Noting(Protocol):
    """Whoever wants to know what is read."""

    def note(self, base: Variable, way: str, key: Any = None) -> None:
        """Something is read of a container."""


current: ContextVar[Noting | None] = ContextVar("clew_reads", default=None)
"""Who notes what is read in this context: a capture that is under way."""


def is_plain_key(key: Any) -> bool:
    """Whether a key is found without running code of a user's."""
    kind = type(key)
    if kind is tuple:
        return all(map(is_plain_key, key))
    return (
        kind in SIMPLE or isinstance(key, CODE) or (isinstance(key, enum.Enum) and kind.__hash__ is enum.Enum.__hash__)
    )


class Item(Variable):
    """Something that was read of the value of another variable; ``way`` says how, ``name`` is the key."""

    __slots__ = ("base", "is_loaded", "way")

    def __init__(self, base: Variable, way: str, key: Any, expected: Any = None, held: Memory | None = None) -> None:
        super().__init__(base.holder, key, expected, held)
        self.base = base
        self.way = way
        self.is_loaded = False

    @property
    def root(self) -> Variable:
        """The variable outside of all containers in which this one is found."""
        return self.base.root

    @property
    def is_library(self) -> bool:
        """Whether it is found in a variable of an installed package."""
        return self.base.is_library

    def get(self) -> Any:
        """What the same way leads to now; ``MISSING`` if there is nothing, ``ABSENT`` if nothing is known of it."""
        value = self.base.get()
        if value is MISSING or value is ABSENT:
            return value
        if self.way == ATTRIBUTE:
            return getattr(value, "__dict__", {}).get(self.name, MISSING)
        if type(value) not in (dict, list, set):
            return MISSING
        reads = current.get()
        if reads is not None:  # this is a guard of a graph that is captured itself
            reads.note(self.base, self.way, self.name)
        return _read(value, self.way, self.name)

    def is_as_before(self) -> bool:
        """True when the same way leads to the same object, or to an equal plain value."""
        if is_read_by_compiler():  # which looks at such variables by a call of its own
            return True
        now = self.get()
        if now is ABSENT or (self.is_loaded and self.is_library and (now is MISSING or now is False)):
            return True  # what a library has not registered in this process is no other than what it was
        if type(self.expected) is Saved:
            return self._is_like(now)
        return same_part(now, self.expected) and (self.held is None or not self.held.has_changed())

    def __repr__(self) -> str:
        base, key = repr(self.base), getattr(self.name, "__qualname__", None) or repr(self.name)
        words = {ITEM: f"{base}[{key}]", CONTAINS: f"{key} in {base}", ATTRIBUTE: f"{base}.{self.name}"}
        return words.get(self.way, {LENGTH: f"len({base})", KEYS: f"tuple({base})"}.get(self.way, base))

    def __deepcopy__(self, memo: dict[int, Any]) -> Item:
        return Item(self.base, self.way, self.name, self.expected, self.held)

    def __reduce__(self) -> tuple[Any, ...]:
        expected = self.expected if type(self.expected) in (*SIMPLE, Saved) else saved(self.expected, self.is_library)
        return _loaded, (self.base, self.way, self.name, expected)


def _loaded(base: Variable, way: str, key: Any, expected: Any) -> Item:
    """An item of a graph that was saved."""
    item = Item(base, way, key, expected)
    item.is_loaded = True
    return item


def _read(value: Any, way: str, key: Any) -> Any:
    """What a container tells."""
    if way == CONTAINS:
        return key in value
    if way == LENGTH:
        return len(value)
    if way == KEYS:
        return tuple(value)
    if way == WHOLE:
        return (tuple(value), tuple(value.values())) if isinstance(value, dict) else tuple(value)
    if isinstance(value, dict):
        return value.get(key, MISSING)
    return value[key] if -len(value) <= key < len(value) else MISSING
