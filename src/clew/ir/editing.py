"""What belongs to the editing of graphs: where new nodes go, who is told of single edits, and an input without default.

Graphs keep the insertion point and the watchers; an ``InsertPoint`` puts back, after its ``with`` block, what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.ir.graph import Graph
    from clew.ir.node import Node


class NoDefault:
    """The mark of an input without a default value, since None may be one."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT = NoDefault()


class InsertPoint:
    """Where new nodes go, from the moment it is made until the end of the ``with`` block, if it is used as one."""

    __slots__ = ("_before", "_graph")

    def __init__(self, graph: Graph, anchor: Node, after: bool) -> None:
        self._graph = graph
        self._before = (graph._anchor, graph._after)
        graph._anchor, graph._after = anchor, after

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._graph._anchor, self._graph._after = self._before


@dataclass
class Watchers:
    """Functions that are told of single edits: of nodes made, erased, and exchanged for another in a user."""

    created: list[Callable[[Node], Any]] = field(default_factory=list)
    erased: list[Callable[[Node], Any]] = field(default_factory=list)
    replaced: list[Callable[..., Any]] = field(default_factory=list)
