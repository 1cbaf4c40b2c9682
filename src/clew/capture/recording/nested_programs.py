"""Bodies: a function that is handed to another one is recorded into a graph of its own.

While it runs, new nodes go into its body. A free variable of the body becomes its parameter, and the outer node an
operand of the call, so that a body never refers to nodes of another graph. A value made inside of a body and used
after its end is refused: outside there is nothing that it could be.
"""

from __future__ import annotations

import itertools
from typing import Any

from clew.errors import CaptureError
from clew.ir.arguments import map_arg
from clew.ir.graph import Graph
from clew.ir.node import Node, set_type


class OpenBody:
    """A body that is being recorded: its graph, and the parameter for each value that comes from outside."""

    def __init__(self, graph: Graph | None = None, is_branch: bool = False, is_path: bool = False) -> None:
        self.graph = Graph() if graph is None else graph
        self.is_branch = is_branch
        self.is_path = is_path
        """Whether it holds the whole rest of the program, after a question of a library whose paths become one."""
        self.free: dict[Node, Node] = {}
        self._outer: dict[Node, Node] = {}

    def outer(self, parameter: Node) -> Node | None:
        """The node of the graph around that a parameter stands for; None for any other node."""
        found = self._outer.get(parameter)
        if found is not None and self.free.get(found) is parameter:
            return found
        return next((outer for outer, inner in self.free.items() if inner is parameter), None)

    def parameter(self, outer: Node) -> Node:
        """The parameter that stands for a node of the graph around; those come before the parameters of its own."""
        known = self.free.get(outer)
        if known is None:
            latest = next(reversed(self.free.values()), self.graph._root)
            with self.graph.inserting_before(latest._next):
                known = self.free[outer] = Graph.create_node(self.graph, "placeholder", outer.name)
            self._outer[known] = outer
            set_type(known, outer.value_type)
        return known


class Bodies:
    """The graph that is being recorded, and those of the bodies that are open inside it, the innermost last."""

    def __init__(self, graph: Graph) -> None:
        self.outermost = graph
        self.open: list[OpenBody] = []
        self.is_used = False  # whether there was a body: until then all nodes are of one graph
        self.chosen: Graph | None = None
        """Where the next node goes, if not into the innermost graph."""

    @property
    def current(self) -> Graph:
        """The graph that new nodes go into."""
        return self.open[-1].graph if self.open else self.outermost

    def take_graph(self) -> Graph:
        """The graph that the next node goes into."""
        chosen, self.chosen = self.chosen, None
        return self.current if chosen is None else chosen

    def localized(self, value: Any, graph: Graph) -> Any:
        """The arguments of a node of ``graph``: nodes of the graphs around it become parameters of the bodies."""
        return map_arg(value, lambda node: self._local(node, graph)) if self.is_used else value

    def is_open(self, graph: Graph) -> bool:
        """Whether nodes can be added to a graph: the outermost one, or a body that has not ended."""
        return graph is self.outermost or any(body.graph is graph for body in self.open)

    def since(self, last: Node) -> list[Node]:
        """The nodes after one that was the latest, in its graph and in the bodies that were opened since inside it."""
        levels = [self.outermost, *(body.graph for body in self.open)]
        home = next(level for level, found in enumerate(levels) if found is last.graph)
        found, node = [], last._next
        while node is not last.graph._root:
            found.append(node)
            node = node._next
        return found + [node for graph in levels[home + 1 :] for node in graph.nodes]

    @property
    def path_bodies(self) -> list[OpenBody]:
        """The bodies that hold the rest of the program as this run goes on, each inside of the one before."""
        return list(itertools.takewhile(lambda body: body.is_path, self.open))

    def outer(self, parameter: Node) -> Node | None:
        """What a parameter of an open body stands for; None for any other node."""
        if parameter.op != "placeholder":
            return None
        home = parameter.graph
        return next((body.outer(parameter) for body in self.open if body.graph is home), None)

    def begin(self) -> OpenBody:
        """Open a body: from now on new nodes go there."""
        return self.enter(OpenBody())

    def enter(self, body: OpenBody) -> OpenBody:
        """From now on new nodes go into this body."""
        self.is_used = True
        self.open.append(body)
        return body

    @property
    def is_in_function(self) -> bool:
        """Whether a function is being recorded that was handed to another one."""
        return any(not body.is_branch for body in self.open)

    def home_of_guard(self, graph: Graph) -> Graph:
        """Where a guard on a value of ``graph`` belongs: to the branch that asked, not to all paths."""
        levels = [self.outermost, *(body.graph for body in self.open)]
        level = next((place for place, found in enumerate(levels) if found is graph), 0)
        while level < len(self.open) and self.open[level].is_branch:
            level += 1
        return levels[level]

    def end(self) -> OpenBody:
        """Close the innermost body."""
        return self.open.pop()

    def _local(self, node: Node, graph: Graph) -> Node:
        if node.graph is graph and graph is self.current:
            return node
        levels = [self.outermost, *(body.graph for body in self.open)]
        home = next((level for level, found in enumerate(levels) if found is node.graph), None)
        if home is None:
            raise CaptureError(
                f"{node.name}, a value made inside a function that was handed to another one, is used outside of it",
                why="the value belongs to each single run of that function",
                fixes=("return the value from the function",),
            )
        for body in self.open[home : levels.index(graph)]:
            node = body.parameter(node)
        return node
