"""Dead code: nodes are erased that nobody uses and whose effects nobody can see.

A graph or a captured program comes in, is changed in place and returned; graphs inside are treated each on its own.
Inputs stay, because they are the function's signature; unknown effects stay, because dropping one changes a program.
Two kinds of effects are none:
- a write into an array that the program made itself, if nothing that is needed touches its memory;
- what a layer does only in training, while it is in evaluation mode: then the graph gets a guard on that mode.
"""

from __future__ import annotations

from collections.abc import Callable

from clew.ir.gc_pause import CollectorPaused
from clew.ir.graph import Graph
from clew.ir.guards import Guard
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.shared_memory import OUTSIDE, SharedMemory, written_array
from clew.passes.modes import flags_of
from clew.passes.program import ProgramT, add_guards, graph_in, mode_guard, opened


def dead_code(
    program: ProgramT, is_impure_node: Callable[[Node], bool] | None = None, *, modes: bool = True
) -> ProgramT:
    """The program without its dead nodes; it is changed in place and returned.

    With ``is_impure_node`` that alone decides which unused nodes stay. Without ``modes`` no guard is added, and layers
    that do more in training stay.
    """
    graph = graph_in(program)
    if is_impure_node is not None:
        graph.eliminate_dead_code(is_impure_node)
        return program
    with CollectorPaused(), opened(program) as graphs:
        guards = [one for each in reversed(graphs) for one in _Liveness(each, modes).erase()]
    add_guards(graph, guards)
    return program


class _Liveness:
    """One graph, and which of its nodes are needed."""

    def __init__(self, graph: Graph, modes: bool) -> None:
        self.graph = graph
        self.memory = SharedMemory(graph)
        self.flags: dict[Node, list[str]] = {}
        """The flags of nodes that have an effect only while one is on."""
        self.private: dict[object, list[Node]] = {}
        """The writes into arrays of the program's own, by the class of their memory."""
        self.live: set[Node] = set()
        self._waiting: list[Node] = []
        for node in graph.nodes:
            if not self._may_go(node, modes):
                self._need(node)

    def _may_go(self, node: Node, modes: bool) -> bool:
        """Whether a node may be dropped if nobody uses its value; those with effects that nobody sees are noted."""
        if node.op in ("placeholder", "output"):
            return False
        if self.memory.effect[node] is Effect.NONE:
            return True
        if written_array(node, self.memory.arrays) is not None and not self._is_seen(node):
            self.private.setdefault(self.memory.find(node), []).append(node)
            return True
        flags = flags_of(node) if modes else None
        if flags:
            self.flags[node] = flags
        return bool(flags)

    def _is_seen(self, node: Node) -> bool:
        return self.memory.find(node) is self.memory.find(OUTSIDE)

    def _need(self, node: Node) -> None:
        if node not in self.live:
            self.live.add(node)
            self._waiting.append(node)

    def erase(self) -> list[Guard]:
        """Erase what nobody needs; the guards on modes that this relies on come out."""
        while self._waiting:
            node = self._waiting.pop()
            for used in node._inputs:
                self._need(used)
            for memory in self.memory.touched(node):
                for write in self.private.pop(memory, ()):
                    self._need(write)
        guards: list[Guard] = []
        for node in reversed(self.graph.nodes):
            if node not in self.live:
                self.graph.erase_node(node)
                reason = f"dead_code dropped {node.name}, which does more than compute its value while it is on"
                guards += [mode_guard(path, node.source, reason) for path in self.flags.get(node, ())]
        return guards[::-1]
