"""What a capture from an example gives, whatever the framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from clew.ir.graph import Graph


class Captured(NamedTuple):
    """A recorded program: the graph, what its attributes are found in, and the result of the run that was recorded."""

    module: Any
    """The module that was captured; None for a function."""
    constants: dict[str, Any]
    """Values that the graph reads as attributes of its root and that the module does not have."""
    graph: Graph
    result: Any = None
    state: Sequence[str] = ()
    """Paths of the module's attributes that the graph changes."""
    pins: Sequence[tuple[dict[str, Any], str, Any]] = ()
    """Attributes that the capture relied on: the dict that holds each, its name, its value."""
    several_ways: bool = False
    """Whether the program was run once for each of several ways: then no run counts, and the graph gives the result."""
