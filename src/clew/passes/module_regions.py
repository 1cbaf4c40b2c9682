"""The calls of modules that a flat graph was recorded from, as regions of its nodes.

In comes a flat graph whose nodes know the modules inside of which they were recorded (``nn_module_stack``); out comes
the tree of calls, each with the items of its body, nodes and further calls, in an order that computes the same. Always
holds: what depends on each other keeps its order, and so do effects. A call whose nodes cannot stand together, because
something outside needs a part of it and gives to another part, has no region: its nodes belong to the call around it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import getitem
from typing import Any

from clew.capture.guards.notes import CHECKS
from clew.capture.recording.outputs import rebuild, rebuild_mapping
from clew.ir.arguments import all_nodes, bodies_of
from clew.ir.control_flow import is_control
from clew.ir.effects import KnownEffects, may_reshape
from clew.ir.graph import Graph
from clew.ir.guests import Effect, guest_of
from clew.ir.node import Node
from clew.ir.types import ScalarType

_FACTS = frozenset({"shape", "dtype", "device"})

Relative = Callable[[str, str], "str | None"]
"""The path, seen from the module at the first path, of what stands at the second; None if it cannot be reached."""


@dataclass(eq=False)
class Call:
    """One call of a module; the root has no parent. ``items`` are the nodes and the calls of its body, in order."""

    path: str
    kind: str
    parent: Call | None = None
    items: list[Node | Call] = field(default_factory=list)

    @property
    def chain(self) -> list[Call]:
        """The calls around this one, from the root, and this one."""
        return [self] if self.parent is None else [*self.parent.chain, self]


class Regions:
    """Finds the calls of a graph and to which of them each node belongs."""

    def __init__(self, graph: Graph, relative: Relative, may_be_piece: Callable[[str], bool]) -> None:
        self.graph = graph
        self.relative = relative
        self.root = Call("", "")
        self.owner: dict[Node, Call] = {}
        self._effects = KnownEffects()
        self._kinds = {node: self._kind(node) for node in graph.nodes}
        self.places = {node: place for place, node in enumerate(graph.nodes)}
        rebinding = [place for node, place in self.places.items() if self._rebinds(node)]
        self._first_rebinding = min(rebinding, default=len(self.places))
        self._barriers = self._counted(self._is_barrier)
        self._strong_barriers = self._counted(self._is_strong_barrier)
        self._facts: set[Node] = set()
        self._reads: set[Node] = set()
        self._assign(may_be_piece)
        self._reads.update(self._reads_of_facts())
        self._settle()

    def is_read(self, node: Node) -> bool:
        """True for the reading of an attribute, or of a fact, that means the same wherever its users do it."""
        if node.op != "get_attr" and node not in self._reads:
            return False
        return node.target == "_self" or all(self.places[user] < self._first_rebinding for user in node.users)

    def is_fact(self, node: Node) -> bool:
        """Whether a node is the reading of a fact, for which each module needs the value that it is about."""
        return node in self._reads and self.is_read(node)

    def used_by(self, node: Node) -> Iterator[Node]:
        """The values that have to be known where a node stands."""
        for used in node._inputs:
            if self.is_fact(used):
                yield from self.used_by(used)
            else:
                yield used

    def users_of(self, node: Node) -> Iterator[Node]:
        """The nodes where a value has to be known."""
        for user in node.users:
            if self.is_fact(user):
                yield from self.users_of(user)
            else:
                yield user

    def _reads_of_facts(self) -> Iterator[Node]:
        """Dtypes, devices and sizes of values that are computed; each module may read them for itself."""
        if any(may_reshape(node) for node in all_nodes(self.graph)):
            return
        shapes: set[Node] = set()
        for node in self.graph.nodes:
            if node in self._facts or not node.users or node.target not in (getattr, getitem) or len(node.args) != 2:
                continue
            of, what = node.args
            if node.target is getattr and isinstance(of, Node) and what in _FACTS and of.op != "get_attr":
                shapes.add(node)
                yield node
            elif node.target is getitem and of in shapes and type(what) is int:
                yield node

    # ---- to which call a node belongs ----------------------------------------------------------------------------

    def _assign(self, may_be_piece: Callable[[str], bool]) -> None:
        calls: dict[tuple[str, ...], Call] = {(): self.root}
        homeless, facts = [], self._facts
        for node in self.graph.nodes:
            stack = node.meta.get("nn_module_stack")
            if node.op in ("placeholder", "output"):
                self.owner[node] = self.root
            elif node.target is getitem and isinstance(node.args[0], Node) and is_control(node.args[0]):
                self.owner[node] = self.owner[node.args[0]]
            elif self._is_fact_of_inputs(node):  # which several modules may use, whichever of them asked first
                self.owner[node] = self.root
                facts.add(node)
            elif stack:
                self.owner[node] = self._called(stack, node, calls, may_be_piece)
            else:
                homeless.append(node)
                self.owner[node] = self.root
        self.root.kind = self.root.kind or "Graph"
        for node in homeless:
            self._adopt(node)

    def _is_fact_of_inputs(self, node: Node) -> bool:
        """Whether a node reads a size, dtype or device of an input, or computes with such sizes."""
        if node.op != "call_function" or node.kwargs or not node.args:
            return False
        if node.target is getattr:
            return isinstance(node.args[0], Node) and node.args[0].op == "placeholder" and node.args[1] in _FACTS
        is_number = isinstance(node.value_type, ScalarType)
        return is_number and bool(node._inputs) and self._facts.issuperset(node._inputs)

    def _called(
        self, stack: Any, node: Node, calls: dict[tuple[str, ...], Call], may_be_piece: Callable[[str], bool]
    ) -> Call:
        """The innermost call around a node; modules out of reach of the one around them have none of their own."""
        entries = list(stack.items())
        if node.op == "call_module" and len(entries) > 1 and entries[-1][1][0] == node.target:
            entries.pop()
        key: tuple[str, ...] = ()
        for name, (path, kind) in entries:
            around = calls[key]
            if not path:
                self.root.kind = self.root.kind or _class_name(kind)
            elif path.startswith(f"{around.path}." if around.path else "") and path != around.path:
                if (*key, name) not in calls:
                    if not may_be_piece(path):
                        continue
                    calls[(*key, name)] = Call(path, _class_name(kind), around)
                key = (*key, name)
        return calls[key]

    def _adopt(self, node: Node) -> None:
        """A node that was made outside of the program itself goes where all that it is made of comes from."""
        inputs = [used for used in node._inputs if not self.is_read(used)]
        is_result = any(user.op == "output" for user in node.users)
        if not inputs or is_result or self._kinds[node] is not Effect.NONE or self.is_read(node):
            return
        barriers = self._strong_barriers if _only_holds(node) else self._barriers
        if barriers[node] == max(barriers[used] for used in inputs):
            self.owner[node] = _common([self.owner[used] for used in inputs])

    # ---- what must keep its order --------------------------------------------------------------------------------

    def _kind(self, node: Node) -> Effect:
        if node.op in ("placeholder", "output", "get_attr"):
            return Effect.NONE
        if node.op == "call_function" and node.target in CHECKS:
            return Effect.RANDOM  # keeps its place among effects, but lets what only computes pass by
        if node.op == "call_method" and node.target in ("__enter__", "__exit__"):
            return Effect.WRITE
        found = self._effects.of(node)
        return Effect.WRITE if found is Effect.UNKNOWN and node.op == "call_module" else found

    def _kind_of(self, node: Node) -> Effect:
        return self._kinds[node] if node in self._kinds else self._kind(node)

    def _is_barrier(self, node: Node) -> bool:
        return self._kind_of(node) in (Effect.WRITE, Effect.UNKNOWN)

    def _is_strong_barrier(self, node: Node) -> bool:
        """Whether a node may do more than write into tensors."""
        is_write = self._kinds[node] is Effect.WRITE and node.target not in ("__enter__", "__exit__")
        return self._is_barrier(node) and (not is_write or self._rebinds(node))

    def _counted(self, is_counted: Callable[[Node], bool]) -> dict[Node, int]:
        """How many such nodes there are up to each one, itself included."""
        return dict(zip(self.graph.nodes, itertools.accumulate(map(is_counted, self.graph.nodes)), strict=True))

    def _rebinds(self, node: Node) -> bool:
        """Whether a node may let an attribute be another object: a framework's functions write into tensors at most."""
        if is_control(node):
            return any(self._rebinds(one) for body in bodies_of(node) for one in body.nodes)
        if node.op != "call_function":
            return self._kind_of(node) is Effect.UNKNOWN
        is_own = guest_of(node.target) is not None or getattr(node.target, "__module__", None) == "_operator"
        return self._is_barrier(node) and not is_own

    def _edges(self) -> Iterator[tuple[Node, Node]]:
        """Pairs of nodes the first of which has to run before the second."""
        effect: Node | None = None
        reading = [node for node in self.graph.nodes if not _only_holds(node)]
        yield from self._edges_of_barriers(reading, self._is_barrier)
        holding = [node for node in self.graph.nodes if _only_holds(node) or self._is_strong_barrier(node)]
        yield from self._edges_of_barriers(holding, self._is_strong_barrier)
        for node in self.graph.nodes:
            if node.op != "placeholder" and not self.is_read(node):
                yield from ((used, node) for used in self.used_by(node) if not self.is_read(used))
                if self._kinds[node] is not Effect.NONE:
                    if effect is not None:
                        yield effect, node
                    effect = node

    def _edges_of_barriers(self, nodes: list[Node], is_barrier: Callable[[Node], bool]) -> Iterator[tuple[Node, Node]]:
        """What stands before a barrier stays before it, what stands behind it stays behind it."""
        barrier: Node | None = None
        since: list[Node] = []
        for node in nodes:
            if node.op == "placeholder" or self.is_read(node):
                continue
            if barrier is not None:
                yield barrier, node
            if is_barrier(node):
                yield from ((one, node) for one in since)
                barrier, since = node, []
            else:
                since.append(node)

    # ---- regions ---------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Dissolve calls until the rest can be written one after the other."""
        self._keep_reachable()
        self._keep_blocks_whole()
        edges = list(self._edges())
        while (crossing := self._arrange(edges)) is not None:
            self._dissolve(crossing)
            self._keep_blocks_whole()

    def _dissolve(self, call: Call) -> None:
        """Let what belongs to a call belong to the one around it."""
        assert call.parent is not None
        for node, owner in self.owner.items():
            if owner is call:
                self.owner[node] = call.parent
        for other in {one for owner in set(self.owner.values()) for one in owner.chain}:
            if other.parent is call:
                other.parent = call.parent

    def _keep_reachable(self) -> None:
        """A node that calls something, or hands on bodies that do, stands where all of it can be reached."""
        for node in self.graph.nodes:
            inner = [one for body in bodies_of(node) for one in all_nodes(body)]
            paths = [one.target for one in (node, *inner) if one.op == "call_module"]
            paths += [one.target for one in inner if one.op == "get_attr"]
            if node.op == "get_attr" and not self.is_read(node):
                self.owner[node] = self._reaching(self.owner[node], node.target)
            while any(self.relative(self.owner[node].path, path) is None for path in paths):
                self._dissolve(self.owner[node])

    def _reaching(self, call: Call, path: str) -> Call:
        while call.parent is not None and self.relative(call.path, path) is None:
            call = call.parent
        return call

    def _keep_blocks_whole(self) -> None:
        """What enters a context manager and what leaves it stand in the same body, where it is made."""
        for node in self.graph.nodes:
            ends = [user for user in node.users if user.target in ("__enter__", "__exit__") and user.args[0] is node]
            if not ends or node.op == "placeholder":
                continue
            common = _common([self.owner[one] for one in (node, *ends)])
            for one in (node, *ends):
                while self.owner[one] is not common:
                    self._dissolve(self.owner[one])

    def _arrange(self, edges: list[tuple[Node, Node]]) -> Call | None:
        """Put the items of each call in order; gives a call that is in the way, if there is one."""
        chains = {call: call.chain for call in set(self.owner.values())}
        before: dict[Call, dict[Node | Call, set[Node | Call]]] = {}
        places: dict[Node | Call, int] = {}
        for node, owner in self.owner.items():
            if self.is_read(node):
                continue
            chain = chains[owner]
            items: list[Node | Call] = [*chain[1:], node]
            for around, item in zip(chain, items, strict=True):
                before.setdefault(around, {}).setdefault(item, set())
                places.setdefault(item, self.places[node])
        for first, second in edges:
            chain = chains[self.owner[first]]
            one: list[Node | Call] = [*chain, first]
            other: list[Node | Call] = [*chains[self.owner[second]], second]
            depth = next(depth for depth, pair in enumerate(zip(one, other, strict=False)) if pair[0] is not pair[1])
            before[chain[depth - 1]][other[depth]].add(one[depth])
        for call, needed in before.items():
            call.items, left = _sorted(needed, places)
            if left:
                return max((item for item in left if isinstance(item, Call)), key=self._foreign_nodes)
        return None

    def _foreign_nodes(self, call: Call) -> int:
        """How many nodes of others stand between those of a call."""
        own = [self.places[node] for node, owner in self.owner.items() if any(one is call for one in owner.chain)]
        return max(own) + 1 - min(own) - len(own)


def _sorted(
    needed: dict[Node | Call, set[Node | Call]], places: dict[Node | Call, int]
) -> tuple[list[Node | Call], list[Node | Call]]:
    """The items, each after those that it needs and else by their places; and those that stand in a ring."""
    users: dict[Node | Call, list[Node | Call]] = {}
    for item, others in needed.items():
        for other in others:
            users.setdefault(other, []).append(item)
    missing = {item: len(others) for item, others in needed.items()}
    by_place = {places[item]: item for item in needed}
    ready = [places[item] for item, count in missing.items() if not count]
    heapq.heapify(ready)
    found: list[Node | Call] = []
    while ready:
        item = by_place[heapq.heappop(ready)]
        found.append(item)
        for user in users.get(item, ()):
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, places[user])
    left = [item for item, count in missing.items() if count]
    while left and (kept := [item for item in left if any(missing[user] for user in users.get(item, ()))]) != left:
        for item in set(left).difference(kept):
            missing[item] = 0
        left = kept
    return found, left


def _common(calls: list[Call]) -> Call:
    """The innermost call around all of these."""
    found = calls[0].chain
    for call in calls[1:]:
        chain = call.chain
        found = [one for one, other in zip(found, chain, strict=False) if one is other]
    return found[-1]


def _only_holds(node: Node) -> bool:
    """Whether a node makes an object that holds its inputs, without a look at what is in them."""
    return node.op == "call_function" and node.target in (rebuild, rebuild_mapping)


def _class_name(kind: Any) -> str:
    return kind.rpartition(".")[2] if isinstance(kind, str) else kind.__name__
