"""What a program has taken from around itself: global variables, closures, attributes of objects and layers.

Tracing by a framework's own means reads them once, so the graph holds as long as they are what they were. A
``Watched`` can tell; saved and loaded elsewhere, where those places do not exist, it watches nothing.
"""

from __future__ import annotations

from typing import Any

from clew.capture.example.guards import Variable
from clew.capture.example.memory import below
from clew.ir.effects import pure


class Watched:
    """Some variables as they were."""

    def __init__(self, is_end: Any = None) -> None:
        self._is_end = is_end
        self._variables: list[tuple[str, Variable]] = []

    def add(self, label: str, holder: Any, name: str, value: Any) -> None:
        """Watch one variable and what it holds."""
        self._variables.append((label, Variable(holder, name, value, below(value, self._is_end))))

    def changed(self) -> str | None:
        """The first variable that is not what it was; None if all are."""
        return next((label for label, variable in self._variables if not variable.is_as_before()), None)

    def __len__(self) -> int:
        return len(self._variables)

    def __reduce__(self) -> tuple[Any, ...]:
        return Watched, ()

    def __repr__(self) -> str:
        return f"Watched({', '.join(label for label, _ in self._variables[:4])})"


@pure
def changed(watched: Watched) -> str | None:
    """The first of some variables that is not what it was during the capture."""
    return watched.changed()
