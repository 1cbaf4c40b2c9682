"""What is decided about a piece of code before a line of it is written: layouts and lifetimes.

``Plan`` and what it holds are data: the planner of ``layout`` fills them, the writers read them. ``Lifetimes`` is the
liveness analysis of a block: its nodes come in, with its branches and loops; out comes for each node what nobody needs
after it. Results of a branch or loop that are used one by one are made by that statement itself: the ``getitem`` nodes
that take them apart are silent, and all that take the same item are one value, represented by the first of them.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.codegen.block_results import Finish, NextRound
from clew.codegen.with_blocks import Blocks
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


@dataclass
class Side:
    """A body that is written as a block: what is set before its first statement, and how it ends."""

    body: Any
    starts: list[tuple[str, Any]]
    finish: Finish


@dataclass
class BranchLayout:
    """An ``if`` with two sides; ``is_last`` if the block around it ends with it."""

    branch: Branch
    sides: list[Side]
    is_last: bool


@dataclass
class LoopLayout:
    """A ``while`` or ``for``; ``test`` is the body that says whether there is another round."""

    loop: Loop
    side: Side
    end: NextRound
    test: Any
    item: str
    results: list[str]
    whole: str | None
    """The variable that gets the tuple of all results, where it is used as such."""


@dataclass
class Plan:
    """All that is decided before a line is written. Graphs share no nodes, so one plan serves all functions."""

    frees: dict[Node, list[Node]] = field(default_factory=dict)
    blocks: Blocks = field(default_factory=Blocks)
    layouts: dict[Node, BranchLayout | LoopLayout] = field(default_factory=dict)
    inside: dict[Node, list[Node]] = field(default_factory=dict)
    """For each branch and loop the nodes that are written in its head."""
    silent: set[Node] = field(default_factory=set)
    """Nodes without a statement of their own."""
    handing: set[Node] = field(default_factory=set)
    """Nodes that hand graphs to other functions."""
    bound: set[Node] = field(default_factory=set)
    """Those of them whose variables the head of a ``for`` sets."""
    answered: set[Node] = field(default_factory=set)
    """Branches behind a loop whose first side is a ``return`` inside of the loop."""


@dataclass
class Context:
    """Where a block stands: the names taken in its function, how deep it is, how it ends, what it must not free.

    ``depth`` counts the blocks around it of which Python allows only some, ``indent`` all.
    """

    taken: set[str]
    depth: int
    indent: int
    finish: Finish
    kept: set[Node]


@dataclass
class Block:
    """What is known of one block while it is planned."""

    nodes: Any
    context: Context
    controls: dict[Node, tuple[Branch | Loop, int]]
    lifetimes: Lifetimes
    aimed: set[Node] = field(default_factory=set)
    """Values that go straight to the variable where the end of the block wants them."""
