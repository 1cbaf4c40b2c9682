"""Brings the nodes of a match together without changing what the program computes, or says that it cannot.

In comes a set of nodes; if the answer is yes they stand next to each other afterwards (reads of attributes may stand
between), so that putting something in their place moves no read across a write. The rule: two nodes may change
places unless one uses the other's value or their effects conflict. Effects conflict when
- one is unknown, or both draw random numbers, or one draws and the other writes;
- one writes and both touch memory that may be the same. Values share memory along every operation that is not known
  to return new memory; all inputs and attributes count as one memory; modules touch their parameters and buffers.
Reading an attribute gives the same object wherever it stands, so such reads never conflict.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.shared_memory import READS, SharedMemory


class Footprint:
    """The effects of a growing set of nodes, summed up so that the next node is compared with all of them at once."""

    def __init__(self, memory: SharedMemory) -> None:
        self.memory = memory
        self.nodes: set[Node] = set()
        self.effects: set[Effect] = set()
        self.touched: set[Any] = set()
        self.written: set[Any] = set()

    def add(self, node: Node) -> None:
        """Let ``node`` be one of the set."""
        effect, touched = self.memory.effect[node], self.memory.touched(node)
        self.nodes.add(node)
        self.effects.add(effect)
        self.touched |= touched
        if effect is Effect.WRITE:
            self.written |= touched

    def holds_back(self, node: Node) -> bool:
        """True when ``node`` must stay behind some node of the set."""
        if node.op in READS or not self.nodes:
            return False
        return not self.nodes.isdisjoint(node.all_input_nodes) or self.conflicts(node)

    def conflicts(self, node: Node) -> bool:
        """True when the effects of ``node`` and of some node of the set do not commute."""
        effect = self.memory.effect[node]
        if Effect.UNKNOWN in self.effects or effect is Effect.UNKNOWN:
            return bool(self.nodes)
        if effect is Effect.RANDOM:
            return Effect.RANDOM in self.effects or Effect.WRITE in self.effects
        if effect is Effect.WRITE:
            return Effect.RANDOM in self.effects or not self.touched.isdisjoint(self.memory.touched(node))
        return bool(self.written) and not self.written.isdisjoint(self.memory.touched(node))


class Gatherer:
    """Gathers one match after another in one graph, whose nodes meanwhile only change their order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.place: dict[Node, float] = {node: float(index) for index, node in enumerate(graph.nodes)}
        self.block: dict[Node, list[Node]] = {}
        self._memory: SharedMemory | None = None
        self._impure: list[float] | None = None

    @property
    def memory(self) -> SharedMemory:
        if self._memory is None:
            self._memory = SharedMemory(self.graph)
        return self._memory

    def gather(self, nodes: list[Node]) -> list[Node] | None:
        """The nodes in the order in which they now stand together; None, and nothing moved, if they cannot.

        ``nodes`` come in the order of the pattern, which their effects must have in the graph as well.
        """
        ordered = sorted(nodes, key=self.place.__getitem__)
        if ordered != nodes and not self._same_effects(nodes):
            return None
        if not self._is_together(ordered) and not self._join_last(ordered) and not self._rearrange(ordered):
            return None
        self.block.update(dict.fromkeys(ordered, ordered))
        return ordered

    def _same_effects(self, nodes: list[Node]) -> bool:
        """True when nodes that do not commute stand in the graph in the order in which they are given."""
        for index, node in enumerate(nodes):
            later = Footprint(self.memory)
            for other in nodes[index + 1 :]:
                if self.place[other] < self.place[node]:
                    later.add(other)
            if later.conflicts(node):
                return False
        return True

    def _is_together(self, ordered: list[Node]) -> bool:
        node = ordered[0]
        for expected in ordered[1:]:
            node = node.next
            while node.op == "get_attr" and node is not expected:
                node = node.next
            if node is not expected:
                return False
        return True

    def _join_last(self, ordered: list[Node]) -> bool:
        """Move all nodes down to the last one: right when nothing in between uses them and all of it is pure."""
        first, last = self.place[ordered[0]], self.place[ordered[-1]]
        inside = set(ordered)
        users = (user for node in ordered for user in node.users if user not in inside)
        room = last - self.place.get(ordered[-1].prev, last)
        if room < 1e-9 or any(self.place[user] < last for user in users) or self._impure_between(first, last):
            return False
        for number, node in enumerate(ordered[:-1]):
            ordered[-1].prepend(node)
            self.place[node] = last - room / 2 * (1 - number / len(ordered))
        return True

    def _impure_between(self, first: float, last: float) -> bool:
        if self._impure is None:
            effects = self.memory.effect
            self._impure = sorted(self.place[node] for node in effects if effects[node] is not Effect.NONE)
        return bisect_left(self._impure, first) < bisect_right(self._impure, last)

    def _rearrange(self, ordered: list[Node]) -> bool:
        """Put what must come after the nodes behind them and leave all else before them, in one walk."""
        inside = set(ordered)
        behind, after = Footprint(self.memory), Footprint(self.memory)
        moved: list[Node] = []
        for group in self._groups(ordered[0], ordered[-1]):
            if group[0] in inside:
                if after.holds_back(group[0]):
                    return False
                behind.add(group[0])
            elif any(behind.holds_back(node) for node in group):
                moved += group
                for node in group:
                    behind.add(node)
                    after.add(node)
        self._move_down([*ordered, *moved], ordered[0].prev, ordered[-1].next)
        return True

    def _groups(self, first: Node, last: Node) -> Iterator[list[Node]]:
        """The nodes from first to last; those of a match that was gathered before come as one, without attributes."""
        node = first
        while True:
            group = self.block.get(node, [node])
            if node is group[0]:
                yield group
            if node is last:
                return
            node = node.next

    def _move_down(self, nodes: list[Node], start: Node, stop: Node) -> None:
        """Move the nodes, all between ``start`` and ``stop``, right before ``stop``; places are dealt out anew."""
        places = [self.place[node] for node in _between(start, stop)]
        for node in nodes:
            self.graph._link(node, stop)
        self.place.update(zip(_between(start, stop), places, strict=True))
        self._impure = None


def _between(start: Node, stop: Node) -> Iterator[Node]:
    node = start.next
    while node is not stop:
        yield node
        node = node.next
