"""Which plain values are one object: for programs that ask ``a is b`` of numbers, texts and tuples.

Equal values may be one object or several. What came in is compared with what else came in, and with the variables
around the program; where two are equal, whether they are the same object is part of what the capture relies on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from clew.capture.example.contents import same_part
from clew.capture.example.guards import Variable

_KINDS = frozenset({int, float, complex, str, bytes, tuple, frozenset, range})
_SMALL = range(-5, 257)
"""Python has one object for each of these numbers."""


class Identities:
    """The plain values of one capture that may or may not be the same object in another call."""

    def __init__(self, around: Iterable[tuple[Any, str, Any]]) -> None:
        self._around = [(value, Variable(holder, name)) for holder, name, value in around if _may_be_several(value)]
        self._entered: list[tuple[Any, Any]] = []
        self._compared = 0

    def note(self, value: Any, place: Any) -> None:
        """A value came in as it is."""
        if _may_be_several(value):
            self._entered.append((value, place))

    def questions(self) -> Iterator[tuple[Any, Any, bool]]:
        """Two places, or a variable and a place, and whether they hold the same object; for what was noted lately."""
        for index in range(self._compared, len(self._entered)):
            value, place = self._entered[index]
            for other, where in self._entered[:index]:
                if same_part(value, other):
                    yield where, place, other is value
            for other, variable in self._around:
                if same_part(value, other):
                    yield variable, place, other is value
        self._compared = len(self._entered)


def _may_be_several(value: Any) -> bool:
    kind = type(value)
    return kind in _KINDS and not (kind is int and value in _SMALL) and not (kind in (str, bytes, tuple) and not value)
