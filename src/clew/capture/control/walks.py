"""Iterators that a program advances by hand: ``rows = iter(x)``, and ``next(rows)`` wherever it wants the next one.

Python's own cannot be set back, so that no piece of a program could be recorded while one is held. In a function whose
source shows that nothing but ``next`` is done with it, a ``Walk`` stands for it: what is walked, and a position, which
is state like any other. What comes next is the value of one node, which ends the walk as Python does.
"""

from __future__ import annotations

import itertools
from typing import Any

from clew.ir.effects import pure


@pure
def item_at(values: Any, position: int) -> Any:
    """The item of a walk at a position; as ``next`` does, it raises ``StopIteration`` if there is none."""
    return next(itertools.islice(values, position, None))


class Walk:
    """An iterator over an array or list of the graph."""

    def __init__(self, recorder: Any, values: Any, rows: list[Any] | None) -> None:
        self.recorder = recorder
        self.values = values
        self.rows = rows
        """The items of an array in the example; None for a list, which may grow meanwhile."""
        self.state: dict[str, Any] = {"position": 0}

    def __iter__(self) -> Walk:
        return self

    def __next__(self) -> Any:
        recorder, position = self.recorder, self.state["position"]
        place = recorder.concrete(position)
        items = recorder.concrete(self.values) if self.rows is None else self.rows
        if place >= len(items):
            raise StopIteration
        self.state["position"] = position + 1
        if not recorder.open:
            return items[place]
        node = recorder.create(item_at, (recorder.argument(self.values), recorder.argument(position)))
        return recorder.result(recorder.concrete(items[place]), node)
