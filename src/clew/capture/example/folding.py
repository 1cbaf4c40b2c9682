"""What depends on constants alone is computed once: in the capture, whose values are kept for the graph.

A call is constant when everything it takes is: literals, arrays from around the program, and results of constant calls.
It stays in the graph if its value is written to later, or is given away, since each call must then have its own.
What the values also hang on, the version of an array around the program and the defaults of the framework, is guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.nested import bodies_of
from clew.ir.node import Node


class Folding:
    """The constant calls of one capture."""

    def __init__(self, caches: bool, bakes: bool) -> None:
        self.caches = caches
        self.bakes = bakes
        self.values: dict[Node, Any] = {}
        self._constant: set[Node] = set()

    def add_source(self, node: Node) -> None:
        """An array from around the program, which nobody is known to change."""
        self._constant.add(node)

    def is_constant(self, node: Node) -> bool:
        """Whether a recorded call works on constants alone."""
        return self._constant.issuperset(node._inputs)

    def is_known(self, node: Node) -> bool:
        """Whether a node is a constant itself."""
        return node in self._constant

    def add(self, node: Node, value: Any) -> None:
        """A call on constants has been recorded; ``value`` is an array if it can be kept, None otherwise."""
        effect = effect_of(node)
        if effect is Effect.RANDOM and self.bakes:
            self.values[node] = value
        elif effect is not Effect.NONE or not self.caches:
            return
        elif value is not None:
            self.values[node] = value
        self._constant.add(node)

    def spoil(self, node: Node) -> None:
        """An array is written to: neither it, nor what it is a view of, nor what was made of it is constant now."""
        waiting, seen = [node], set()
        while waiting:
            one = waiting.pop()
            if one in seen or one not in self._constant:
                continue
            seen.add(one)
            waiting += [*one.all_input_nodes, *one.users]
        self._constant -= seen
        for one in seen:
            self.values.pop(one, None)

    def fold(self, graph: Graph, store: Callable[[Any], str]) -> set[str] | None:
        """Replace constant calls by attributes, made by ``store``; the paths of the arrays around the program that
        these were computed from, or None if nothing was replaced."""
        self._spoil_written_inside(graph)
        if not self.values:
            return None
        shared = _shared(graph)
        folded, stored = [], set()
        for node, value in self.values.items():
            used = [user for user in node.users if user not in self.values or user in shared]
            if node in shared or value is None or not used:
                continue
            with graph.inserting_before(node):
                attribute = graph.create_node("get_attr", store(value), (), {})
            stored.add(str(attribute.target))
            object.__setattr__(attribute, "value_type", node.value_type)
            attribute.source = node.source
            node.replace_all_uses_with(attribute)
            folded.append(node)
        sources = self._sources(folded)
        for node in reversed(self.values):
            if not node.users and node not in shared:
                graph.erase_node(node)
        return None if sources is None else sources - stored  # those that were stored are nobody else's

    def _spoil_written_inside(self, graph: Graph) -> None:
        """What goes into a branch or loop that writes may be another after it."""
        for node in graph.nodes if self.values else ():
            if bodies_of(node) and effect_of(node) in (Effect.WRITE, Effect.UNKNOWN):
                for one in node.all_input_nodes:
                    self.spoil(one)

    @staticmethod
    def _sources(nodes: Iterable[Node]) -> set[str] | None:
        waiting, seen = list(nodes), set()
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += node.all_input_nodes
        return {str(node.target) for node in seen if node.op == "get_attr"} if seen else None


def _shared(graph: Graph) -> set[Node]:
    """The nodes whose value may be written to or is given away, by themselves or through a view of them."""
    found: set[Node] = set()
    waiting: list[Node] = []
    for node in graph.nodes:
        if node.op == "output" or effect_of(node) in (Effect.WRITE, Effect.UNKNOWN):
            waiting += node.all_input_nodes
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [value for value in node.args if isinstance(value, Node)][:1] if node.op != "output" else []
            waiting += [value for value in node.kwargs.values() if isinstance(value, Node)]
            waiting += node.all_input_nodes if bodies_of(node) else []
    return found
