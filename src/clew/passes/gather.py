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

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator
from typing import Any

from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guests import Effect, guest_of, present
from clew.ir.node import Node
from clew.ir.spellings import is_surely_array
from clew.ir.types import ArrayType, ScalarType
from clew.passes.effect_cache import KnownEffects

_READS = ("placeholder", "get_attr")
OUTSIDE = "outside"

# Functions and methods whose result is always new memory, in every framework that has one of that name.
_NEW_MEMORY = frozenset(
    "sub rsub truediv div matmul mm bmm addmm baddbmm linear bilinear conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d neg pow exp log sqrt rsqrt sigmoid tanh erf sin cos relu gelu silu softmax "
    "log_softmax layer_norm group_norm clone eq ne lt le gt ge cat concat stack embedding where floordiv "
    "zeros ones full empty arange zeros_like ones_like full_like empty_like rand randn abs argmax argmin mean prod std "
    "sum var with_item".split()
)
_WITHOUT_MEMORY = tuple(map(ScalarType, ("bool", "int", "float", "complex", "str")))
"""Types of values that share no memory with others; what was None in the example may be an array in another call."""
_OWN = ("_operator", "clew")
_SEQUENCES_TOO = frozenset({"add", "mul"})
_NEW_MEMORY_MODULES = ("Linear", "Conv", "BatchNorm", "LayerNorm", "GroupNorm", "Embedding", "Sigmoid", "Tanh", "GELU")


class Memory:
    """Which memory each node may touch: the values of a graph in classes that may overlap in memory."""

    def __init__(self, graph: Graph) -> None:
        self.root = graph.owning_module
        self.parent: dict[Any, Any] = {OUTSIDE: OUTSIDE}
        self.arrays: set[Node] = set()
        self.effect: dict[Node, Effect] = {}
        self._effects = KnownEffects()
        self.attributes = {id(resolve(self.root, node.target)) for node in graph.nodes if node.op == "get_attr"}
        for node in graph.nodes:
            self._place(node)

    def _place(self, node: Node) -> None:
        self.parent[node] = node
        effect = self.effect[node] = self._effects.of(node)
        if node.op in _READS or effect is Effect.UNKNOWN:
            self.join(node, OUTSIDE)
        if effect is Effect.NONE and self._makes_array(node):
            self.arrays.add(node)
        elif node.op != "output":
            for used in self._shared(node):
                self.join(node, used)

    def _shared(self, node: Node) -> Iterable[Node]:
        """The inputs whose memory the value may share: of an in-place call the one that it writes to."""
        if node.value_type in _WITHOUT_MEMORY:
            return ()
        written = written_array(node, self.arrays)
        if node.op == "call_function" and getattr(node.target, "__name__", "") == "fitted" and len(node.args) == 2:
            written = node.args[0]
        if written is None:
            return [used for used in node._inputs if used.value_type not in _WITHOUT_MEMORY]
        self.arrays.add(node)
        return [written]

    def _makes_array(self, node: Node) -> bool:
        """True when the value is a number or array of its own; adding and multiplying could also be of sequences."""
        if node.op == "call_module":
            module = type(resolve(self.root, node.target))
            return guest_of(module) is not None and module.__name__.startswith(_NEW_MEMORY_MODULES)
        name = node.target
        if node.op == "call_function":
            if getattr(node.target, "__module__", "") not in _OWN and guest_of(node.target) is None:
                return False
            name = getattr(node.target, "__name__", "").partition(".")[0]
        if isinstance(node.value_type, ArrayType) and name in _SEQUENCES_TOO:
            return True
        numeric = any(type(value) is float or (type(value) is Node and value in self.arrays) for value in node.args)
        return name in _NEW_MEMORY or (name in _SEQUENCES_TOO and numeric)

    def find(self, value: Any) -> Any:
        """The representative of the class of a value."""
        top = value
        while self.parent[top] is not top:
            top = self.parent[top]
        while self.parent[value] is not top:
            self.parent[value], value = top, self.parent[value]
        return top

    def join(self, one: Any, other: Any) -> None:
        self.parent[self.find(one)] = self.find(other)

    def touched(self, node: Node) -> set[Any]:
        """The classes of memory that running ``node`` may read or write."""
        classes = {self.find(value) for value in (node, *node.all_input_nodes)}
        if node.op == "call_module":
            module = resolve(self.root, node.target)
            state = [*_members(module, "parameters"), *_members(module, "buffers")]
            tokens = {id(value) for value in state or [module]}  # the root holds them all, so no id is used twice
            classes |= tokens
            if tokens & self.attributes:
                classes.add(self.find(OUTSIDE))
        return classes


_IN_PLACE_OPERATORS = frozenset(
    getattr(operator, name)
    for name in "iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem".split()
)


def written_array(node: Node, arrays: Container[Node] = ()) -> Node | None:
    """The array that a call writes into, if that is all that it does; its value, if it has one, is that array.

    ``arrays`` are nodes that are known to be arrays, besides those whose types say so.
    """
    if node.op not in ("call_function", "call_method") or not node.args:
        return None
    first = node.args[0]
    if type(first) is not Node or not (first in arrays or is_surely_array(first)):
        return None
    if node.op == "call_function" and getattr(node.target, "__module__", "") == "_operator":
        return first if node.target in _IN_PLACE_OPERATORS else None
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    is_known = "out" not in node.kwargs and any(guest.only_writes_first(name) for guest in present())
    return first if is_known else None


def _members(module: Any, kind: str) -> Iterable[Any]:
    listed = getattr(module, kind, None)
    return listed() if callable(listed) else ()


class Footprint:
    """The effects of a growing set of nodes, summed up so that the next node is compared with all of them at once."""

    def __init__(self, memory: Memory) -> None:
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
        if node.op in _READS or not self.nodes:
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
        self._memory: Memory | None = None
        self._impure: list[float] | None = None

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            self._memory = Memory(self.graph)
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
