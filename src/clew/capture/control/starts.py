"""Calls with which both ways of a question begin are written once, before the question.

In come the two bodies that follow a question whose answer nothing changes, such as whether a tool traces the program.
Out goes what can stand before it, in order: the longest start of calls that both make, that write nothing and enter no
block, and what both ask of values that are known there. Then a question that one way asks next has nothing before it
that others need, and the two may become one. Always holds: each way makes the same calls in the same order; what only
asks may be asked earlier, and guards on sizes of the way that asks on are checked for both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from clew.capture.control.reads import TOLD, is_calculated, is_check, is_size, may_write, only_asks
from clew.capture.control.same import identity, same_argument
from clew.capture.example.bodies import OpenBody
from clew.capture.example.lifting import is_context
from clew.ir.arguments import bodies_of, leaves, map_arg
from clew.ir.node import Node


class Twins(NamedTuple):
    """The nodes of both bodies that are one call, or ask the same; a guard may be of one of them alone."""

    left: list[Node]
    right: list[Node]


class CommonStart:
    """What two bodies begin with; ``pairs`` are the nodes of the first, in order, with those of the second."""

    def __init__(self, bodies: tuple[OpenBody, OpenBody], root: Any) -> None:
        self._bodies, self._root = bodies, root
        self._outer = [{parameter: node for node, parameter in body.free.items()} for body in bodies]
        self.pairs: dict[Node, Node] = {}
        left, right = ([node for node in body.graph.nodes if _is_call(node)] for body in bodies)
        for twins in zip(left, right, strict=False):
            is_plain = not may_write(twins[0], root) and not is_context(twins[0]) and not bodies_of(twins[0])
            if not is_plain or not self._is_same(*twins):
                return

    def _is_same(self, left: Node, right: Node) -> bool:
        """Whether two nodes are the same call; the pair is noted, after those that it needs."""
        if left.op != right.op or identity(left.target) != identity(right.target):
            return False
        if left.source != right.source or left._meta != right._meta:
            return False
        used = left.all_input_nodes, right.all_input_nodes
        if len(used[0]) != len(used[1]) or not all(map(self._is_known, *used)):
            return False
        given, wanted = map_arg((left.args, left.kwargs), self._twin), (right.args, right.kwargs)
        if not same_argument(given, wanted) or [*map(identity, leaves(given))] != [*map(identity, leaves(wanted))]:
            return False
        self.pairs[left] = right
        return True

    def _is_known(self, left: Node, right: Node) -> bool:
        """Whether two arguments are one value: from around, or of the start."""
        if left in self._outer[0]:
            return self._outer[0][left] is self._outer[1].get(right)
        if left in self.pairs:
            return self.pairs[left] is right
        return not _is_call(left) and not is_check(left) and self._is_same(left, right)

    def _twin(self, node: Node) -> Node:
        return self.pairs[node] if node in self.pairs else self._bodies[1].free[self._outer[0][node]]

    # ---- what is asked of it -------------------------------------------------------------------------------------

    def shared(self, asks_on: tuple[bool, bool]) -> list[Twins]:
        """All that can stand before the question, in order; ``asks_on`` tells which ways have another question."""
        start = {left: left for left in self.pairs}, {right: left for left, right in self.pairs.items()}
        facts = [_Facts(*given, self._root) for given in zip(self._bodies, start, strict=True)]
        found: dict[Any, Twins] = {}
        for left, right in self.pairs.items():
            key = facts[0].names[left]
            found[key] = Twins(facts[0].asked.get(key, [left]), facts[1].asked.get(key, [right]))
        for place, one in enumerate(facts):
            for key, nodes in one.asked.items():
                is_alone = key not in facts[1 - place].asked
                needed = [key] if not is_alone else one.needed(nodes[0]) if asks_on[place] else []
                for name in needed:
                    found.setdefault(name, Twins(*(each.asked.get(name, []) for each in facts)))
        return list(found.values())


class _Facts:
    """What a body asks of values from around, and of its ``start``, before it may write to any.

    ``names`` are by what each value is known, ``asked`` all nodes that ask the same.
    """

    def __init__(self, body: OpenBody, start: dict[Node, Node], root: Any) -> None:
        self.names: dict[Node, Any] = {parameter: node for node, parameter in body.free.items()}
        self.asked: dict[Any, list[Node]] = {}
        for node in body.graph.nodes:
            if node.op not in ("placeholder", "output"):
                if may_write(node, root):
                    return
                self._add(node, start)

    def _add(self, node: Node, start: dict[Node, Node]) -> None:
        if only_asks(node) and all(one in self.names for one in node.all_input_nodes):
            asked = node.args[:TOLD] if is_check(node) else node.args
            key = node.target, *(self.names[one] if isinstance(one, Node) else identity(one) for one in leaves(asked))
            self.names[node] = key
            self.asked.setdefault(key, []).append(node)
        elif node in start:
            self.names[node] = start[node]

    def needed(self, check: Node) -> list[Any]:
        """What a guard on sizes asks, after all that it needs; nothing for any other node."""
        found: list[Any] = []
        return found if is_check(check) and self._note(check, found) else []

    def _note(self, node: Node, found: list[Any]) -> bool:
        for one in node.all_input_nodes:
            name = self.names[one]
            known = name if isinstance(name, Node) else one
            if node.target is not getattr and not is_size(known) and not is_calculated(known):
                return False
            if name in self.asked and not self._note(one, found):
                return False
        found.append(self.names[node])
        return True


def _is_call(node: Node) -> bool:
    """Whether a node does more than ask."""
    return node.op not in ("placeholder", "get_attr", "output") and not only_asks(node)
