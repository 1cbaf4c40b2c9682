"""Lists and dicts that a call is given: does it change them?

A call that stays one node of the graph is made on copies of the program's lists and dicts. What it did to those would
be lost, so ``copies_of`` remembers them before the call, and ``changed_one`` tells afterwards what kind was changed.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

Remembered = list[tuple[Any, Any]]


def copies_of(nest: Any) -> Remembered:
    """The lists and dicts in a nest of arguments, each with a copy of it."""
    return [(part, part.copy()) for part in _containers(nest)]


def changed_one(containers: Remembered) -> str:
    """The type of one that is not what it was; an empty text if all are."""
    for now, before in containers:
        keys = list(now) == list(before) if type(now) is dict else True
        items, known = (list(part.values()) if type(part) is dict else part for part in (now, before))
        if not keys or len(items) != len(known) or not all(map(operator.is_, items, known)):
            return type(now).__name__
    return ""


def _containers(nest: Any) -> Iterator[Any]:
    for part in nest.values() if type(nest) is dict else nest:
        if type(part) in (list, dict):
            yield part
        if type(part) in (list, dict) or isinstance(part, tuple):
            yield from _containers(part)
