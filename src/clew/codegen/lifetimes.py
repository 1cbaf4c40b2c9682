"""From where to where the values of a block are needed, seen as code sees it.

The nodes of a block come in, with its branches and loops; out comes for each node what nobody needs after it. Results
of a branch or loop that are used one by one are made by that statement itself: the ``getitem`` nodes that take them
apart are silent, and all that take the same item are one value, represented by the first of them.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from clew.ir.control_flow import Branch, Loop, ends_of
from clew.ir.node import Node


class Lifetimes:
    """The values of one block."""

    def __init__(self, nodes: Any, controls: Mapping[Node, Branch | Loop]) -> None:
        self.place = {node: place for place, node in enumerate(nodes)}
        self.items: dict[Node, dict[int, Node]] = {}
        """For each branch or loop, the nodes that represent its results; a missing one is used as a whole."""
        self.maker: dict[Node, Node] = {}
        self.first: dict[Node, Node] = {}
        self.silent: set[Node] = set()
        for node, control in controls.items():
            self._take_apart(node, control)
        self.frees: dict[Node, list[Node]] = {}
        self.last: dict[Node, int] = {}
        for node in reversed(nodes):
            for used in () if node in self.silent else map(self.value, node._inputs):
                if used not in self.last:
                    self.last[used] = self.place[node]
                    self.frees.setdefault(node, []).append(used)

    def value(self, node: Any) -> Any:
        """The node that represents the same value."""
        return self.first.get(node, node) if isinstance(node, Node) else node

    def _take_apart(self, node: Node, control: Branch | Loop) -> None:
        count = _count(control)
        if not all(_is_item(user, node, count) for user in node.users):
            return
        items = self.items[node] = {}
        for user in sorted(node.users, key=lambda user: self.place.get(user, -1)):
            self.silent.add(user)
            if user.users:
                self.first[user] = items.setdefault(user.args[1], user)
                self.maker[items[user.args[1]]] = node


def _count(control: Branch | Loop) -> int:
    """How many results there are for certain; 0 for a branch that does not return tuples of the same length."""
    if isinstance(control, Loop):
        return control.results
    ends = [end for body in control.bodies for end in ends_of(body)]
    lengths = {len(end) if type(end) is tuple else 0 for end in ends}
    return lengths.pop() if len(lengths) == 1 else 0


def _is_item(user: Node, node: Node, count: int) -> bool:
    """Whether a user takes one result out by its number."""
    if user.op != "call_function" or user.target is not operator.getitem or user.kwargs or user.type is not None:
        return False
    if len(user.args) != 2 or user.args[0] is not node:
        return False
    return type(user.args[1]) is int and 0 <= user.args[1] < count


def parts_of_item(iterable: Any, item: Node) -> list[list[Node]]:
    """Which nodes take which part of an item, if items are tuples for certain and nobody wants one as a whole."""
    count = 0
    if isinstance(iterable, Node) and iterable.op == "call_function":
        count = 2 if iterable.target is enumerate else len(iterable.args) if iterable.target is zip else 0
    if count < 2 or not item.users or not all(_is_item(user, item, count) for user in item.users):
        return []
    return [[user for user in item.users if user.args[1] == place] for place in range(count)]
