"""What it depends on whether a value that a loop or branch updates in place is an array or a number.

In comes the graph of a run, and for each of its calls what the class of the result depends on by itself; out comes what
a node depends on, all that leads to it included. What a loop carries is what it begins with, or what a round leaves.
Where a way cannot be followed, ranks are relied on.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from clew.frameworks.numpy.array_proxy import Reliance
from clew.ir.arguments import all_nodes, leaves
from clew.ir.control_flow import Loop, control_of, ends_of, inputs_of
from clew.ir.graph import Graph
from clew.ir.node import Node

Origins = list[Any] | Reliance
"""What a value comes from, or what it depends on if that is known."""
_COUNTS = frozenset({len, int, float, complex, bool, range})


class UpdatedValues:
    """Answers for the values of one graph; ``own`` is what each call adds, None if it gives a number in any case."""

    def __init__(self, graph: Graph, own: dict[Node, Reliance | None]) -> None:
        self.graph = graph
        self.own = own
        self._homes = {body: node for node in all_nodes(graph) for body in getattr(control_of(node), "bodies", ())}

    def kept(self, nodes: Iterable[Node]) -> list[Node]:
        """Those that are in the graph: a round may be recorded several times, and only the last one counts."""
        return [node for node in nodes if node.graph is self.graph or node.graph in self._homes]

    def reliance(self, nodes: Iterable[Node]) -> Reliance:
        """What the classes of all these values depend on."""
        waiting: list[Any] = list(nodes)
        seen: set[Node] = set()
        found = Reliance.NOTHING
        while waiting:
            node = waiting.pop()
            if not isinstance(node, Node) or node in seen:
                continue
            seen.add(node)
            origins = self._origins(node)
            if isinstance(origins, Reliance):
                found = max(found, origins)
            else:
                found = max(found, self.own.get(node) or Reliance.NOTHING)
                waiting += origins
        return found

    def _origins(self, node: Node) -> Origins:
        if node.op == "placeholder":
            return Reliance.NUMBERS if node.graph is self.graph else self._given_to(node)
        if node in self.own:
            return Reliance.NOTHING if self.own[node] is None else list(node.all_input_nodes)
        if node.target in _COUNTS:
            return Reliance.NOTHING
        if node.target is operator.getitem and type(node.args[1]) is int and isinstance(node.args[0], Node):
            return self._result_of(node.args[0], node.args[1])
        return Reliance.RANK if control_of(node) is None else self._ends(node, None)

    def _given_to(self, node: Node) -> Origins:
        """What a parameter of a body may be given."""
        home = self._homes.get(node.graph)
        control = None if home is None else control_of(home)
        if control is None:
            return Reliance.RANK
        inputs = inputs_of(node.graph)
        place, operands = inputs.index(node), len(inputs) - len(control.operands)
        if place >= operands:
            return [control.operands[place - operands]]
        if not isinstance(control, Loop):
            return Reliance.RANK
        return self._item(control) if place >= len(control.carried) else self._carried(control, place)

    def _item(self, loop: Loop) -> Origins:
        is_range = isinstance(loop.iterable, Node) and loop.iterable.target is range
        return Reliance.NOTHING if is_range else Reliance.RANK

    def _carried(self, loop: Loop, place: int) -> Origins:
        ends = ends_of(loop.body)
        is_known = all(isinstance(end, tuple) and place < len(end) for end in ends)
        return [loop.carried[place], *(end[place] for end in ends)] if is_known else Reliance.RANK

    def _result_of(self, node: Node, place: int) -> Origins:
        """What one of the results of a branch or loop may be."""
        control = control_of(node)
        if isinstance(control, Loop):
            return self._carried(control, place) if place < len(control.carried) else Reliance.RANK
        return Reliance.RANK if control is None else self._ends(node, place)

    def _ends(self, node: Node, place: int | None) -> Origins:
        control = control_of(node)
        if control is None or isinstance(control, Loop):
            return Reliance.RANK
        ends = [end for body in control.bodies for end in ends_of(body)]
        if place is None:
            return list(leaves(ends))
        is_known = all(isinstance(end, tuple) and place < len(end) for end in ends)
        return [end[place] for end in ends] if is_known else Reliance.RANK
