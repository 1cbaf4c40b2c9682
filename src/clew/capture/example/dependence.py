"""What a value directly depends on, into branches and out of bodies.

In comes a node; out come the nodes that its value is computed of. What a branch gives depends on its question and on
what its two sides give at that place; a parameter of a body is what was handed to it. Bodies of branches are known once
they have been met; those that are still being recorded are looked up among the open ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from clew.capture.example.bodies import Bodies
from clew.ir.control_flow import Branch, closing_branch, control_of, ends_of
from clew.ir.graph import Graph
from clew.ir.node import Node


class Dependence:
    """One walk from a node backwards."""

    def __init__(self, bodies: Bodies | None = None) -> None:
        self._bodies = bodies
        self._around: dict[Graph, Branch] = {}

    def hangs_on(self, node: Node, is_end: Callable[[Node], bool]) -> bool:
        """Whether all that a value is computed of is constant, or one of the nodes that end the walk."""
        waiting, seen = [node], set[Node]()
        while waiting:
            found = waiting.pop()
            if found in seen or is_end(found):
                continue
            seen.add(found)
            given = self.given_to(found)
            if not given:
                return False
            waiting += given
        return True

    def comes_from(self, node: Node, is_one: Callable[[Node], bool]) -> bool:
        """Whether a value is one of some nodes, whichever way branches go; None, which has no attributes, aside."""
        waiting, seen = [node], set[Node]()
        while waiting:
            found = waiting.pop()
            if found in seen or is_one(found):
                continue
            seen.add(found)
            outer = self.outer(found)
            given = self.sides(found) if outer is None else [outer]
            if not given or not all(isinstance(one, Node) for one in given):
                return False
            waiting += given
        return True

    def given_to(self, node: Node) -> list[Node]:
        """The nodes that the value of a node is computed of."""
        if node.op == "placeholder":
            outer = self.outer(node)
            return [] if outer is None else [outer]
        branch = self.branch_of(node)
        if branch is None:
            return node.all_input_nodes
        return [one for one in (branch.predicate, *self._ends(branch, int(node.args[1]))) if isinstance(one, Node)]

    def sides(self, node: Node) -> list[Any]:
        """What the sides of a branch give, those that end with an error left out, where a node is a result of one."""
        branch = self.branch_of(node)
        return [] if branch is None else self._ends(branch, int(node.args[1]))

    def outer(self, node: Node) -> Node | None:
        """What a parameter of a body stands for; None for any other node."""
        if node.op != "placeholder":
            return None
        branch = self._around.get(node.graph)
        if branch is None:
            return None if self._bodies is None else self._bodies.outer(node)
        places = [one for one in node.graph.nodes if one.op == "placeholder"]
        outer = branch.operands[places.index(node)]
        return outer if isinstance(outer, Node) else None

    def branch_of(self, node: Node) -> Branch | None:
        """The branch that a node takes a result of."""
        if node.target is not operator.getitem or type(node.args[1]) is not int or not isinstance(node.args[0], Node):
            return None
        found = control_of(node.args[0])
        return found if isinstance(found, Branch) else None

    def enter(self, branch: Branch) -> None:
        """Let the parameters of the bodies of a branch be known, and of the branches with which these close."""
        for body in branch.bodies:
            self._around[body] = branch
            closing = control_of(closing_branch(body)) if closing_branch(body) is not None else None
            if isinstance(closing, Branch):
                self.enter(closing)

    def _ends(self, branch: Branch, place: int) -> list[Any]:
        self.enter(branch)
        found = []
        for body in branch.bodies:
            found += [end[place] for end in ends_of(body) if isinstance(end, tuple) and place < len(end)]
        return [one for one in found if one is not None]
