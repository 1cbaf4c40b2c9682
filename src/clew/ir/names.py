"""Names of nodes and of globals in generated code: valid identifiers, unique, and shadowing nothing.

A candidate of any shape comes in; out comes an ASCII identifier that is neither a keyword nor a builtin and that this
namespace has never given before. Cost is constant per name: numbering continues where the last number was given.
Names that are only reserved, often all those of a large graph, are taken apart when the first number depends on them.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from typing import Any

from clew.ir.memo import Memo

_NOT_IN_IDENTIFIER = re.compile(r"[^0-9a-zA-Z_]+")
_HUMP = re.compile(r"(?<=[a-z])([A-Z])")

_WRITTEN = ("inf", "nan", "NoneType", "torch", "device", "pytree", "tree")
RESERVED = frozenset({*keyword.kwlist, *dir(builtins), *_WRITTEN} - {"_"})
"""Names that generated code needs for themselves: keywords, builtins and the few names that literals use."""


def snake_case(name: str) -> str:
    """``pascalCase`` -> ``pascal_case``."""
    return _HUMP.sub(r"_\1", name).lower()


def _take_apart(candidate: str) -> tuple[str, str, int | None]:
    """A legal spelling of the candidate, its stem, and its trailing number if it has one."""
    legal = _NOT_IN_IDENTIFIER.sub("_", candidate) or "_unnamed"
    if legal[0].isdigit():
        legal = f"_{legal}"
    stem, _, number = legal.rpartition("_")
    if not stem or not number.isdigit():
        return legal, legal, None
    return legal, stem, int(number)


_parts = Memo(_take_apart, 4096)


class Namespace:
    """Gives every object a name of its own; a name once given is never given again."""

    __slots__ = ("_counts", "_given", "_names", "_reserved", "_used")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._given: dict[str, int] = {}
        """For a stem the number up to which all its numbers are given, whether ``_used`` has these names or not."""
        self._reserved: list[str] = []
        self._counts: dict[str, int] = {}
        self._names: dict[int, tuple[str, Any]] = {}

    def create_name(self, candidate: str, obj: object | None = None) -> str:
        """A fresh name like ``candidate``; the same object, if one is given, gets the same name again."""
        if obj is not None and id(obj) in self._names:
            return self._names[id(obj)][0]
        name, stem, number = _parts[candidate]
        if number is None and obj is None and name in self._used and not self._reserved:  # the great majority
            return self._next_of(stem)
        if self._reserved and (number is not None or name in self._used or name in RESERVED):
            self._count_reserved()
        if number is None:
            is_free = name not in self._used and (name not in RESERVED or self._is_itself(name, obj))
        else:
            is_free = name not in self._used and not self._is_given(name, stem, number)
        if is_free:
            self._used.add(name)
            if number is not None:
                self._counts[stem] = number
        else:
            name = self._next_of(stem)
        if obj is not None:
            self.associate_name_with_obj(name, obj)
        return name

    def _next_of(self, stem: str) -> str:
        """The next name with a number behind this stem."""
        given = number = self._given.get(stem, 0)
        if stem in self._counts:
            number = max(number, self._counts[stem])
        number += 1
        while (name := f"{stem}_{number}") in self._used:
            if number == given + 1:
                given = number
            number += 1
        if number == given + 1:  # one number after the other, as nearly always: the last one tells of all
            self._given[stem] = number
        else:
            self._used.add(name)
            self._counts[stem] = number
        return name

    def _is_given(self, name: str, stem: str, number: int) -> bool:
        return 0 < number <= self._given.get(stem, 0) and name == f"{stem}_{number}"

    @staticmethod
    def _is_itself(name: str, obj: object | None) -> bool:
        return obj is not None and getattr(builtins, name, None) is obj

    def associate_name_with_obj(self, name: str, obj: object) -> None:
        """Tie ``name`` to ``obj`` (kept alive, so that its id stays its own)."""
        self._names[id(obj)] = (name, obj)

    def reserve(self, name: str) -> None:
        """Mark ``name`` as given; numbering goes on behind it."""
        if name not in self:
            self._used.add(name)
            self._reserved.append(name)

    def reserve_all(self, names: Iterable[str]) -> None:
        """Mark many names as given."""
        taken = self if self._given else self._used
        fresh = [name for name in names if name not in taken]
        self._used.update(fresh)
        self._reserved += fresh

    def _count_reserved(self) -> None:
        """Let the numbering of each stem go on behind the names that were reserved since the last time."""
        counts = self._counts
        for name in self._reserved:
            _, stem, number = _parts[name]
            if number is not None and number > counts.get(stem, 0):
                counts[stem] = number
        self._reserved.clear()

    def __contains__(self, name: object) -> bool:
        if name in self._used or not self._given or not isinstance(name, str):
            return name in self._used
        _, stem, number = _parts[name]
        return number is not None and self._is_given(name, stem, number)

    def copy(self) -> Namespace:
        """A namespace that has given the same names, and goes on by itself."""
        twin = Namespace()
        twin._used = set(self._used)
        twin._given = dict(self._given)
        twin._reserved = list(self._reserved)
        twin._counts = dict(self._counts)
        twin._names = dict(self._names)
        return twin
