"""From a capture to a callable where the framework has no modules: a function with the original's signature."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from clew.capture.example.guards import Guard, guards_of
from clew.ir.graph import Graph
from clew.runtime.function import GraphFunction


class PlainCapture(GraphFunction):
    """A function captured from an example."""

    @property
    def guards(self) -> list[Guard]:
        """The assumptions, in the order in which they are checked."""
        return guards_of(self.graph)


def callable_of(
    source: Any, constants: dict[str, Any], graph: Graph, name: str, state: Sequence[str], live: bool
) -> Any:
    """A function over the constants of the capture."""
    return PlainCapture(SimpleNamespace(**constants), graph, name)
