"""A part of a graph as a graph of its own: what some values need, and nothing else.

In come a graph, a nest of the nodes that are wanted, with the place behind which each is as wanted, and the nodes that
become inputs; out comes a new graph, and the guards of the old one that it cannot express (``assumed``). Always holds:
for the same inputs each wanted value is what the whole graph has at that place. Writes into memory that the part
reads, guards, modes and ``with`` blocks around what stays are kept; a value that the part overwrites later is copied
first. What nobody needs is not run: neither are its effects, nor does it draw random numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.errors import GraphError
from clew.ir.arguments import map_arg, references
from clew.ir.effects import effect_of, sets_state
from clew.ir.graph import Graph
from clew.ir.guards import Guard, detached, guard_of, is_guard
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.shared_memory import SharedMemory


@dataclass(frozen=True)
class Part:
    """A graph that was cut out of another one."""

    graph: Graph
    assumed: tuple[Guard, ...]
    """Guards of the whole that the part cannot check, because what they read is no input of it."""


def extract_part(
    graph: Graph, root: Any, results: Any, ends: dict[Node, int], inputs: dict[str, Node] | None = None
) -> Part:
    """The part of ``graph`` that computes ``results``.

    ``ends`` has for wanted nodes the number of the node behind which their values are meant. ``inputs`` become the
    parameters, by name; without them the part has all parameters of the whole.
    """
    cuts = set() if inputs is None else set(inputs.values())
    chosen = _Slice(graph, root, references(results), ends, cuts)
    chosen.settle()
    if inputs is not None:
        chosen.check_inputs()
    return _cut_out(chosen, results, inputs)


class _Slice:
    """The nodes that stay."""

    def __init__(self, graph: Graph, root: Any, wanted: list[Node], ends: dict[Node, int], cuts: set[Node]) -> None:
        self.graph, self.root, self.ends, self.cuts = graph, root, ends, cuts
        self.wanted = {node: ends.get(node, len(graph.nodes)) for node in wanted}
        self.memory = SharedMemory(graph, root, inputs_apart=True)
        self.places = self.memory.places
        self.kept: set[Node] = set()
        self.dropped: list[Node] = []
        """Guards on values that the part does not have."""
        for node in wanted:
            self._add(node)

    def _add(self, node: Node) -> None:
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one not in self.kept:
                self.kept.add(one)
                waiting += () if one in self.cuts else one.all_input_nodes

    def settle(self) -> None:
        """Add what the kept nodes rely on besides their arguments, until that is all."""
        size = -1
        while size != len(self.kept):
            size = len(self.kept)
            last = max(self.places[node] for node in self.kept)
            for node, place in self.places.items():
                may_matter = place < last or node.target == "__exit__"
                if may_matter and node not in self.kept and node not in self.dropped and self._matters(node):
                    self._add(node)
        self.kept.difference_update(self.dropped)

    def _matters(self, node: Node) -> bool:
        if is_guard(node):
            return self._is_within_reach(node)
        if node.op == "call_method" and node.target in ("__enter__", "__exit__"):
            return self._surrounds(node)
        if node in self.memory.writes and node not in self.cuts:
            return self._is_read_behind(node)
        is_effect = node.op == "call_function" and not references((node.args, node.kwargs))
        is_effect = is_effect and not any(user.target == "__enter__" for user in node.users)
        return is_effect and not sets_state(node.target) and effect_of(node, self.root) in _LASTING

    def _is_within_reach(self, node: Node) -> bool:
        """Whether the part can check a guard: all that it reads comes from the part's inputs."""
        waiting, seen = list(node.all_input_nodes), set()
        while waiting:
            one = waiting.pop()
            if one in seen or one in self.cuts:
                continue
            seen.add(one)
            if self.cuts and one.op == "placeholder":
                self.dropped.append(node)
                return False
            waiting += one.all_input_nodes
        return True

    def _surrounds(self, node: Node) -> bool:
        """Whether a block that a node enters or leaves has kept calls inside."""
        manager = node.args[0]
        if not isinstance(manager, Node):
            return True
        ends = [self.places[user] for user in manager.users if user.target in ("__enter__", "__exit__")]
        inside = range(min(ends) + 1, max(ends))
        return any(self.places[one] in inside and one.op.startswith("call") for one in self.kept)

    def _is_read_behind(self, writer: Node) -> bool:
        """Whether a node writes into memory of which the part reads afterwards."""
        groups = {self.memory.find(one) for one in self.memory.writes[writer]}
        place = self.places[writer]
        for node in self.kept:
            made = self.ends.get(node, self.places[node]) if node in self.cuts else self.places[node]
            if made < place and self.memory.find(node) in groups:
                if self.wanted.get(node, -1) > place:
                    return True
                if any(user in self.kept and self.places[user] > place for user in node.users):
                    return True
        return False

    def is_overwritten(self, node: Node) -> bool:
        """Whether the part writes into a wanted value behind the place where it is meant."""
        return any(one in self.kept and self.places[one] >= self.wanted[node] for one in self.memory.writers_of(node))

    def check_inputs(self) -> None:
        """Raise if the part needs inputs of the whole that are none of its own."""
        missing = [node for node in self.places if node in self.kept - self.cuts and node.op == "placeholder"]
        if missing:
            names = ", ".join(repr(str(node.target)) for node in missing)
            user = next((one for one in missing[0].users if one in self.kept), missing[0])
            where = "" if user.source is None else user.source.describe()
            raise GraphError(
                f"the part also needs {names}, which is none of its inputs",
                where=where,
                why=f"{user.name!r} is computed from it inside of the part",
                fixes=[
                    f"add it: inputs=[..., {str(missing[0].target)!r}]",
                    "give what is computed from it, by its name",
                ],
            )


_LASTING = (Effect.WRITE, Effect.UNKNOWN)


def _cut_out(chosen: _Slice, results: Any, inputs: dict[str, Node] | None) -> Part:
    """A new graph with the chosen nodes."""
    memo: dict[int, Any] = {}
    graph = copy.deepcopy(chosen.graph, memo)
    graph.owning_module = chosen.root
    graph._chosen_codegen = None if inputs is not None else graph._chosen_codegen
    order = list(chosen.graph.nodes)
    twins: dict[Node, Node] = {node: memo[id(node)] for node in order}
    copies = _copies(chosen, graph, order, twins)
    output = graph.output_node()
    output.args = (map_arg(results, lambda node: copies.get(node) or twins[node]),)
    output.type = output.value_type = None
    given = _new_inputs(graph, inputs, twins)
    assumed = _settle_guards(graph, given) if inputs is not None else ()
    kept = {twins[node] for node in chosen.kept - chosen.cuts}.union(given, copies.values(), [output])
    for node in reversed(list(graph.nodes)):
        if node not in kept and not (node.op == "placeholder" and inputs is None):
            graph.erase_node(node)
    graph.lint()
    return Part(graph, (*assumed, *map(guard_of, chosen.dropped)))


def _copies(chosen: _Slice, graph: Graph, order: Sequence[Node], twins: dict[Node, Node]) -> dict[Node, Node]:
    """Copies of the wanted values that are overwritten later, made where they are as wanted."""
    found: dict[Node, Node] = {}
    for node, end in chosen.wanted.items():
        if chosen.is_overwritten(node):
            with graph.inserting_before(twins[order[min(end, len(order) - 1)]]):
                found[node] = graph.call_method("clone", (twins[node],))
    return found


def _new_inputs(graph: Graph, inputs: dict[str, Node] | None, twins: dict[Node, Node]) -> list[Node]:
    """The inputs of the part, at the front in the order in which they are named."""
    swapped: dict[Any, Node] = {}
    for name, node in (inputs or {}).items():
        twin = twins[node]
        with graph.inserting_before(next(iter(graph.nodes))):
            new = graph.placeholder(name)
        new.value_type = twin.value_type
        twin.replace_all_uses_with(new, propagate_meta=False)
        swapped[twin] = new
    graph.set_guards(tuple(one.mapped(lambda leaf: swapped.get(leaf, leaf)) for one in graph._guards))
    for new in reversed(swapped.values()):
        next(iter(graph.nodes)).prepend(new)
    return list(swapped.values())


def _settle_guards(graph: Graph, given: Iterable[Node]) -> tuple[Guard, ...]:
    """Keep the guards that read inputs of the part, or none; the others come out."""
    known = set(given)
    lost = [one for one in graph._guards if not known.issuperset(one.inputs)]
    graph.set_guards(tuple(one for one in graph._guards if known.issuperset(one.inputs)))
    return detached(lost)
