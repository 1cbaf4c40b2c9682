"""The example that a program was captured on, remembered without being kept alive.

Arrays and other objects are held weakly, with their types; plain values as they are. While the user still has the
arrays they are the example; afterwards arrays of the same types can be made in their place.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from clew import tree
from clew.ir.types import Type, type_of

_PLAIN = (int, float, bool, complex, str, bytes, type(None))


class Example:
    """The arguments of one call."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        leaves, self._structure = tree.flatten((args, kwargs))
        self._leaves = [leaf if isinstance(leaf, _PLAIN) else (_reference(leaf), type_of(leaf)) for leaf in leaves]

    def call(self, make: Callable[[Type], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments again; ``make`` gives a value of a type in the place of one that is gone."""
        leaves = [self._leaf(leaf, make) if isinstance(leaf, tuple) else leaf for leaf in self._leaves]
        args, kwargs = tree.unflatten(leaves, self._structure)
        return args, kwargs

    @staticmethod
    def _leaf(leaf: tuple[Callable[[], Any], Type], make: Callable[[Type], Any]) -> Any:
        found = leaf[0]()
        return make(leaf[1]) if found is None else found


def _reference(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:  # a value that cannot be held weakly is small
        return lambda: value
