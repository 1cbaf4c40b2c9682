"""Constant folding: what depends on constants alone is computed once, in the capture.

A call is constant when all it takes is: literals, arrays around the program, results of constant calls. It stays in
the graph if its value is written to later or escapes, since each call must then have its own. What the values also
depend on, versions of arrays around the program and the framework's defaults, is guarded.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType
from typing import Any

from clew.ir.arguments import bodies_of
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node

_CALCULATING: frozenset[Any] = frozenset(
    [getattr(operator, name) for name in "getitem lt le gt ge eq ne not_ neg pos abs invert and_ or_ xor".split()]
    + [getattr(operator, name) for name in "add sub mul truediv floordiv mod pow lshift rshift index".split()]
    + [bool, int, float, len, min, max, round, abs, getattr, math.sqrt, math.ceil, math.floor, math.log, math.exp]
)
"""Functions of numbers and of sizes: what they give follows from their arguments."""


def _is_calculating(target: Any) -> bool:
    return isinstance(target, (BuiltinFunctionType, type)) and target in _CALCULATING


class Folding:
    """The constant calls of one capture."""

    def __init__(self, caches: bool, bakes: bool) -> None:
        self.caches = caches
        self.bakes = bakes
        self.values: dict[Node, Any] = {}
        self._constant: set[Node] = set()
        self._literal: set[Node] = set()
        """The constants that come from literals alone, and from no array around the program."""
        self._relied = False
        self._apart: set[Node] = set()
        """Nodes that are no views of constants, as far as that was asked."""

    def add_source(self, node: Node) -> None:
        """An array from around the program, which nobody is known to change."""
        self._constant.add(node)

    def is_constant(self, node: Node) -> bool:
        """Whether a recorded call works on constants alone."""
        inputs, constant = node._inputs, self._constant
        if constant.issuperset(inputs):
            return True
        return bool(self._literal) and all(one in constant or self._is_of_literals(one) for one in inputs)

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
        self._enlist(node._inputs)
        if self._literal.issuperset(node._inputs):
            self._literal.add(node)

    def _enlist(self, nodes: Iterable[Node]) -> None:
        """What lies between constants, an item of a tuple say, is one too, so that a write is traced through it."""
        waiting = [node for node in nodes if node not in self._constant]
        while waiting:
            one = waiting.pop()
            self._constant.add(one)
            self._literal.add(one)
            waiting += [node for node in one._inputs if node not in self._constant]

    def decides(self, node: Node, around: Graph | None) -> bool:
        """Whether a value is the same at each call, because it was calculated from literals alone: neither a branch nor
        a guard is needed for it. ``around`` is the graph, if some of its nodes have bodies, which may write."""
        if not self._is_of_literals(node):
            return False
        if around is not None:
            self._spoil_written_inside(around)
            if not self._is_of_literals(node):
                return False
        self._relied = True
        return True

    def _is_of_literals(self, node: Node) -> bool:
        waiting, seen = [node], set()
        while waiting:
            one = waiting.pop()
            if one in seen or one in self._literal:
                continue
            seen.add(one)
            is_calculated = one.op == "call_function" and _is_calculating(one.target)
            if not one._inputs or not (is_calculated or (one.op == "call_method" and one.target == "item")):
                return False
            waiting += one._inputs
        return True

    def spoil(self, node: Node) -> None:
        """An array is written to: neither it, nor what it is a view of, nor what was made of it is constant now."""
        if not self._constant:
            return
        waiting, seen = self._constants_behind(node), set()
        while waiting:
            one = waiting.pop()
            if one in seen or one not in self._constant:
                continue
            seen.add(one)
            waiting += [*one.all_input_nodes, *one.users]
        self._constant -= seen
        self._literal -= seen
        for one in seen:
            self.values.pop(one, None)

    def _constants_behind(self, node: Node) -> list[Node]:
        """The constants that a node is, or may be a view of, however many views lie between."""
        waiting, seen, found = [node], set(), []
        while waiting:
            one = waiting.pop()
            if one in self._constant:
                found.append(one)
            elif one not in seen and one not in self._apart:
                seen.add(one)
                waiting += _bases(one)
        if not found:
            self._apart |= seen
        return found

    def fold(self, graph: Graph, store: Callable[[Any], str]) -> set[str] | None:
        """Replace constant calls by attributes, made by ``store``; the paths of the arrays around the program that
        these were computed from, or None if nothing was replaced."""
        self._spoil_written_inside(graph)
        if not self.values:
            return set() if self._relied else None
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
        if sources is None:
            return set() if self._relied else None
        return sources - stored  # those that were stored are nobody else's

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
            waiting += [] if node.op == "output" else _bases(node)
            waiting += node.all_input_nodes if bodies_of(node) else []
    return found


_VIEWS_OF_ALL = frozenset(
    "broadcast_tensors broadcast_arrays meshgrid atleast_1d atleast_2d atleast_3d as_given".split()
)


def _bases(node: Node) -> list[Node]:
    """The nodes whose arrays a node's value may be a view of, or may hold."""
    if getattr(node.target, "__name__", "") in _VIEWS_OF_ALL:
        return list(node._inputs)
    first = [value for value in node.args if isinstance(value, Node)][:1]
    return first + [value for value in node.kwargs.values() if isinstance(value, Node)]
