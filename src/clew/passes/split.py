"""A graph in stages: each a graph of its own, and one that runs them in order.

In come a graph and the places before which a new stage begins; out come the graphs of the stages, and a graph that
calls them. Always holds: nodes keep their order, so effects, guards on computed values and random numbers come as
before; what a stage needs of earlier ones, however far back, is a parameter of it, and what it reads of the root it
reads itself.
The guards that are checked before the program runs are those of the first stage, which is given all that they read.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any

from clew.errors import GraphError
from clew.ir.arguments import bodies_of, map_aggregate
from clew.ir.graph import Graph, is_graph
from clew.ir.node import Node

STAGE = "stage_{}"


@dataclass(frozen=True)
class Stages:
    """A graph that was split."""

    graphs: list[Graph]
    whole: Graph
    """Calls the stages by their names, in order."""
    inputs: list[list[str]]
    """For each stage, the values of the whole that it is given, by the names of their nodes."""


def open_blocks(graph: Graph) -> set[int]:
    """The places before which no stage can begin, because a ``with`` block is open there."""
    found: set[int] = set()
    places = {node: place for place, node in enumerate(graph.nodes)}
    for node, place in places.items():
        if node.target == "__enter__" and isinstance(node.args[0], Node):
            ends = [places[user] for user in node.args[0].users if user.target == "__exit__"]
            found.update(range(place, max(ends, default=len(places)) + 1))
    return found


def split_graph(graph: Graph, places: Sequence[int]) -> Stages:
    """The graph in stages, a new one before the node at each of these places."""
    blocked = sorted(open_blocks(graph).intersection(places))
    if blocked:
        node = list(graph.nodes)[blocked[0]]
        raise GraphError(
            "a stage would begin inside of a `with` block",
            where="" if node.source is None else node.source.describe(),
            why="the block would have to be open in two stages at once",
            fixes=["split before or behind the block"],
        )
    return _Splitting(graph, sorted(set(places))).run()


class _Splitting:
    def __init__(self, graph: Graph, places: list[int]) -> None:
        self.graph = graph
        self.count = len(places) + 1
        order = list(graph.nodes)
        self.stage = {node: bisect_right(places, place) for place, node in enumerate(order) if _is_call(node)}
        self.stage[graph.output_node()] = self.count - 1
        self.members: list[list[Node]] = [[] for _ in range(self.count)]
        for node, stage in self.stage.items():
            self.members[stage].append(node)

    def run(self) -> Stages:
        whole = Graph()
        known: dict[Node, Node] = {}
        for node in self.graph.find_nodes(op="placeholder"):
            known[node] = whole.node_copy(node)
        graphs, names = [], []
        for stage in range(self.count):
            given, gives = self._given(stage), self._gives(stage)
            graphs.append(self._stage_graph(stage, given, gives))
            names.append([node.name for node in given])
            called = whole.call_module(STAGE.format(stage), tuple(known[node] for node in given))
            for place, node in enumerate(gives):
                known[node] = called if len(gives) == 1 else whole.call_function(getitem, (called, place))
        whole.output(called)
        whole.set_guards(())  # the first stage checks them
        return Stages(graphs, whole, names)

    def _given(self, stage: int) -> list[Node]:
        """The inputs and the values of earlier stages that a stage uses; the first has all that guards read."""
        used = dict.fromkeys(one for node in self.members[stage] for one in node.all_input_nodes)
        if stage == 0:
            used.update(dict.fromkeys(node for guard in self.graph._guards for node in guard.inputs))
        found = [one for one in used if one.op == "placeholder" or self.stage.get(one, stage) < stage]
        order = {node: place for place, node in enumerate(self.graph.nodes)}
        return sorted(found, key=order.__getitem__)

    def _gives(self, stage: int) -> list[Node]:
        """The values of a stage that later ones use."""
        members = self.members[stage]
        return [node for node in members if any(self.stage[user] > stage for user in node.users)]

    def _stage_graph(self, stage: int, given: list[Node], gives: list[Node]) -> Graph:
        graph = Graph()
        known: dict[Node, Node] = {}
        for node in given:
            known[node] = graph.create_node("placeholder", str(node.name), name=node.name)
            known[node].value_type = node.value_type
        for node in self.members[stage]:
            for used in node.all_input_nodes:
                if used.op == "get_attr" and used not in known:
                    known[used] = graph.node_copy(used)
            if node.op == "output":
                graph.output(map_aggregate(node.args[0], lambda leaf: known[leaf] if type(leaf) is Node else leaf))
            else:
                known[node] = _copied(graph, node, known)
        if stage < self.count - 1:
            graph.output(known[gives[0]] if len(gives) == 1 else tuple(known[node] for node in gives))
        guards = self.graph._guards if stage == 0 else ()
        graph.set_guards(tuple(one.mapped(lambda leaf: known.get(leaf, leaf)) for one in guards))
        return graph


def _is_call(node: Node) -> bool:
    return node.op.startswith("call")


def _copied(graph: Graph, node: Node, known: dict[Node, Node]) -> Node:
    """A copy of a node, with copies of the graphs among its arguments."""
    twin = graph.node_copy(node, known.__getitem__)
    if bodies_of(node):
        twin.args = map_aggregate(twin.args, _own_body)
        twin.kwargs = map_aggregate(twin.kwargs, _own_body)
    return twin


def _own_body(leaf: Any) -> Any:
    return copy.deepcopy(leaf) if is_graph(leaf) else leaf


def crossing(graph: Graph, place: int) -> int:
    """How many values are handed on where a stage begins before this place."""
    order = {node: number for number, node in enumerate(graph.nodes)}
    return sum(
        order[node] < place and any(order[user] >= place for user in node.users) for node in order if _is_call(node)
    )


def uses_of_root(graph: Graph) -> list[tuple[int, str]]:
    """What the nodes of a graph read of the root: the place of the first who uses it, and the path."""
    order = {node: number for number, node in enumerate(graph.nodes)}
    found: dict[str, int] = {}
    for node, place in order.items():
        if node.op == "call_module":
            found.setdefault(str(node.target), place)
        elif node.op == "get_attr" and node.users:
            first = min(order[user] for user in node.users)
            found[str(node.target)] = min(first, found.get(str(node.target), first))
    return [(place, path) for path, place in found.items()]
