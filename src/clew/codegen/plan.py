"""What is decided about a piece of code before a line of it is written.

These classes only hold data: the planner fills them, the writer reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clew.codegen.blocks import Blocks
from clew.codegen.finish import Finish, NextRound
from clew.codegen.lifetimes import Lifetimes
from clew.ir.control_flow import Branch, Loop
from clew.ir.node import Node


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
