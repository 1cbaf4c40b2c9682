"""From a capture to a callable where the framework has no modules: a function with the original's signature."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from clew.ir.graph import Graph
from clew.runtime.function import GraphFunction


class PlainCapture(GraphFunction):
    """A function captured from an example."""

    _inlines = True


def callable_of(
    source: Any, constants: dict[str, Any], graph: Graph, name: str, state: Sequence[str], live: bool
) -> Any:
    """A function over the constants of the capture."""
    return PlainCapture(SimpleNamespace(**constants), graph, name)
