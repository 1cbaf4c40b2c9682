"""The nodes of a graph in order: how they are walked, and the list that a walk leaves behind.

The nodes are linked, and a walk follows the links: erasing, inserting and moving nodes meanwhile is fine. A walk that
reaches the end of a graph whose order has not changed meanwhile caches that order as a list, and until the next change
walks follow the list, at the cost of walking a list. A change empties it; a walk under way then goes on along the links
from the node it stands on. So what a walk meets never depends on whether there is a list.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from clew.ir.node import Node, set_position

if TYPE_CHECKING:
    from clew.ir.graph import Graph

_FEW = 16
_SMALL = 32
"""Graphs with fewer nodes are walked along the links always, because to begin a walk along a list costs more."""


class NodeList:
    """The nodes of a graph in order. Erasing or inserting nodes while iterating is fine."""

    __slots__ = ("graph",)

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __len__(self) -> int:
        return self.graph._len

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and node.graph is self.graph and not node._erased and node.op != "root"

    def __iter__(self) -> Iterator[Node]:
        graph = self.graph
        if graph._len < _SMALL:
            return _along(graph._root)
        order = graph._order
        return order.walk() if order is not None and order.is_whole else _first_walk(graph)

    def __reversed__(self) -> Iterator[Node]:
        root = self.graph._root
        node = root._prev
        while node is not root:
            if node._position:  # else it was erased while somebody stood on the node after it
                yield node
            node = node._prev

    def __repr__(self) -> str:
        return f"[{', '.join(node.name for node in self)}]"


class Order(list[Node]):
    """All nodes of a graph in order if it ``is_whole``; true until the order changes, which empties it."""

    __slots__ = ("_marks", "_many", "is_numbered", "is_whole")

    def __init__(self) -> None:
        self.is_whole = False
        self.is_numbered = False
        self._marks: list[weakref.ref[_Mark]] = []
        self._many = _FEW

    def walk(self) -> Iterator[Node]:
        """The nodes, one after the other, also if the order changes meanwhile."""
        mark = _Mark(iter(self))
        if len(self._marks) >= self._many:  # what is left of walks that have ended
            self._marks = [reference for reference in self._marks if reference() is not None]
            self._many = _FEW + 2 * len(self._marks)
        self._marks.append(weakref.ref(mark))
        return chain(mark.steps, _onward(mark))

    def dissolve(self, graph: Graph) -> None:
        """The order of ``graph`` is about to change: walks under way learn where they stand, and this list is over."""
        graph._order = None
        if not self.is_whole:
            return
        for reference in self._marks:
            mark = reference()
            if mark is not None:
                place = len(self) - mark.steps.__length_hint__()
                mark.stands_on = self[place - 1] if place else graph._root
        self.clear()

    def number(self) -> None:
        """Let every node know its place."""
        if not self.is_numbered:
            for position, node in enumerate(self, start=1):
                set_position(node, position)
            self.is_numbered = True


class _Mark:
    """One walk along a list: its steps, and the node it stood on when the list was over."""

    __slots__ = ("__weakref__", "stands_on", "steps")

    def __init__(self, steps: Any) -> None:
        self.steps = steps
        self.stands_on: Node | None = None


def order_of(graph: Graph) -> Order:
    """The nodes of a graph in order, to be looked at only, and only until the graph changes."""
    order = graph._order
    if order is None or not order.is_whole:
        order = graph._order = Order()
        note = order.append
        root = graph._root
        node = root._next
        while node is not root:
            note(node)
            node = node._next
        order.is_whole = True
    return order


def listed(graph: Graph) -> list[Node]:
    """The nodes of a graph in order, in a list of one's own."""
    return order_of(graph).copy()


def _first_walk(graph: Graph) -> Iterator[Node]:
    """Along the links from the first node on, noting the order; along the list, if there is one by now."""
    if graph._order is not None and graph._order.is_whole:
        yield from graph._order.walk()
        return
    order = graph._order = Order()
    root = graph._root
    node = root._next
    while node is not root:
        if node._position:  # else it was erased while somebody stood on the node before it
            order.append(node)
            yield node
        node = node._next
    if graph._order is order:  # which a change would have taken away
        order.is_whole = True


def _onward(mark: _Mark) -> Iterator[Node]:
    """Along the links from where a walk stood when its list was over; nothing if it came to the end before."""
    if mark.stands_on is not None:
        yield from _along(mark.stands_on)


def _along(node: Node) -> Iterator[Node]:
    """The nodes behind ``node``, or all if it is the root, whatever happens to them meanwhile."""
    root = node.graph._root
    node = node._next
    while node is not root:
        if node._position:  # else it was erased while somebody stood on the node before it
            yield node
        node = node._next
