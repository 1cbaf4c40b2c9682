"""Which nodes of a function are the beginning and the end of a ``with`` block.

The nodes of a function come in; out come pairs of ``__enter__`` and ``__exit__`` calls of one context manager that
Python can write as blocks: properly nested, left without an error, not deeper than Python allows. One that is entered
before a branch and left inside of it is no such block, but it is watched: an error on the way leaves it too. All other
such calls stay plain calls, so that no edit of a graph can make code that does not run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clew.ir.arguments import bodies_of
from clew.ir.control_flow import Branch, closing_branch, control_of, inputs_of, output_of
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
    watched: set[Node] = field(default_factory=set)
    """The calls of ``__enter__`` for which the sides of a branch call ``__exit__``."""
    whole: set[Node] = field(default_factory=set)
    """Those of them that are left at the very end of each side: a ``with`` to the end of the function does that."""

    def include(self, others: Blocks) -> None:
        """Take over the blocks of another function or of a part of this one."""
        self.ends |= others.ends
        self.closing |= others.closing
        self.inline |= others.inline
        self.watched |= others.watched
        self.whole |= others.whole


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
    within = 0
    for node in [node for node in nodes if node.op == "call_method"]:
        within += (node in found.ends) - (node in found.closing)
        is_alone = not within and _is_entering(node) and around + len(found.watched) < DEEPEST
        if is_alone and any(map(_leaves_inside, node.args[0].users)):
            found.watched.add(node)
            _note_whole(found, node)
    return found


def _note_whole(found: Blocks, start: Node) -> None:
    """Let a block that ends where the function does be a ``with``."""
    manager = start.args[0]
    closing = closing_branch(start.graph)
    if closing is None or set(manager.users) != {start, closing}:
        return
    if _is_last_in(closing, manager):
        found.whole.add(start)
        if manager._next is start and manager.op == "call_function":
            found.inline.add(manager)


def _is_last_in(branch: Node, manager: Node) -> bool:
    """Whether all sides of a branch end with leaving the block of a manager."""
    control = control_of(branch)
    if not isinstance(control, Branch) or control.operands.count(manager) != 1 or control.predicate is manager:
        return False
    for body in control.bodies:
        inner = inputs_of(body)[control.operands.index(manager)]
        output, closing = output_of(body), closing_branch(body)
        if closing is not None and set(inner.users) == {closing} and _is_last_in(closing, inner):
            continue
        if output is None or set(inner.users) != {output._prev} or not _is_leaving(output._prev):
            return False
    return True


def _leaves_inside(user: Node) -> bool:
    """Whether a call has bodies that leave a block of a context manager."""
    return any(_is_leaving(node) or _leaves_inside(node) for body in bodies_of(user) for node in body.nodes)


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
