"""Which nodes of a function are the beginning and the end of a ``with`` block.

The nodes of a function come in; out come pairs of ``__enter__`` and ``__exit__`` calls of one context manager that
Python can write as blocks: properly nested, left without an error, not deeper than Python allows. All other such calls
stay plain calls, so that no edit of a graph can make code that does not run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clew.ir.node import Node

DEEPEST = 15
"""Python refuses blocks nested more than twenty deep; a generated function may itself need a few."""


@dataclass
class Blocks:
    """The ``with`` blocks of a function."""

    ends: dict[Node, Node] = field(default_factory=dict)
    """The call of ``__exit__`` for each call of ``__enter__`` that begins a block."""
    closing: set[Node] = field(default_factory=set)
    """The calls of ``__exit__`` among these."""
    inline: set[Node] = field(default_factory=set)
    """Context managers that nobody else uses, made right before they are entered: they are written in the ``with``."""

    def include(self, others: Blocks) -> None:
        """Take over the blocks of another function or of a part of this one."""
        self.ends |= others.ends
        self.closing |= others.closing
        self.inline |= others.inline


def blocks_of(nodes: Any, around: int = 0) -> Blocks:
    """The blocks that can be written, from the outermost inwards; ``around`` all of them are that many others."""
    found = Blocks()
    for start, end, depth in _pairs(nodes):
        if depth + around < DEEPEST:
            found.ends[start] = end
            found.closing.add(end)
            manager = start.args[0]
            if manager._next is start and set(manager.users) == {start, end} and manager.op == "call_function":
                found.inline.add(manager)
    return found


def _pairs(nodes: Any) -> list[tuple[Node, Node, int]]:
    """Calls of ``__enter__`` and the ``__exit__`` of each, and how many others are around them."""
    methods = [node for node in nodes if node.op == "call_method"]
    open_ones: list[Node] = []
    pairs = []
    for node in methods:
        if _is_entering(node):
            open_ones.append(node)
        elif _is_leaving(node):
            place = next((i for i in reversed(range(len(open_ones))) if open_ones[i].args[0] is node.args[0]), None)
            if place is not None:
                pairs.append((open_ones[place], node))
                del open_ones[place:]  # what was entered inside and is still open crosses this block
    return _with_depths(nodes, dict(pairs)) if pairs else []


def _with_depths(nodes: Any, ends: dict[Node, Node]) -> list[tuple[Node, Node, int]]:
    depth = 0
    closing = set(ends.values())
    found = []
    for node in nodes:
        if node in ends:
            found.append((node, ends[node], depth))
            depth += 1
        elif node in closing:
            depth -= 1
    return found


def _is_entering(node: Node) -> bool:
    if node.target != "__enter__" or node.kwargs:
        return False
    return len(node.args) == 1 and isinstance(node.args[0], Node)


def _is_leaving(node: Node) -> bool:
    if node.target != "__exit__" or node.kwargs or node.users:
        return False
    return len(node.args) == 4 and isinstance(node.args[0], Node) and node.args[1:] == (None, None, None)
