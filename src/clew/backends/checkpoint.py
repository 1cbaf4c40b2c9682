"""Checkpointing: what the backward pass computes again instead of finding it saved.

A joint graph and a budget of memory come in; out come the values that are saved, and for each node of the backward pass
what is computed anew before it. Values are given up one by one, the most bytes for the least work first. Always holds:
only what gives the same again is computed again: no random numbers, no writes, nothing that reads memory which
somebody writes into.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from clew import tree
from clew.backends.joint_graph import Joint, memory_of, saved_of
from clew.errors import BackendError
from clew.ir.arguments import map_arg
from clew.ir.effects import effect_of
from clew.ir.guests import Effect
from clew.ir.node import Node

_WRITTEN_UNSAID = ("running_mean", "running_var")
"""Arguments that operators write into although their schemas do not say so."""
_PER_BYTE = 16
"""So many operations take about as long as moving one byte."""


def bytes_of(joint: Joint, saved: Iterable[Node]) -> int:
    """The memory of saved values; arguments, parameters and constants are there anyway."""
    found = {memory_of(value): value.untyped_storage().nbytes() for value in _tensors(joint, saved)}
    return sum(size for memory, size in found.items() if memory not in joint.lent)


def _tensors(joint: Joint, nodes: Iterable[Node]) -> list[torch.Tensor]:
    leaves = tree.flatten([joint.values.get(node) for node in nodes])[0]
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


class Checkpoints:
    """Chooses what to save."""

    def __init__(self, joint: Joint, budget: float) -> None:
        self.joint = joint
        self.places = {node: place for place, node in enumerate(joint.graph.nodes)}
        self.written = self._written()
        self.saved = dict.fromkeys(saved_of(joint))
        self.anew: set[Node] = set()
        """What is computed again."""
        whole = bytes_of(joint, self.saved)
        limit = int(budget * whole) if isinstance(budget, float) else budget
        left = self._give_up(whole, limit)
        if left > limit:
            raise BackendError(
                f"{limit} bytes are too few: at least {left} must be saved",
                why="masks of dropout and what is written in place cannot be computed again",
                fixes=("give a larger budget",),
            )
        for node in self._needed():
            self.saved.setdefault(node)

    # ---- what can be computed again ------------------------------------------------------------------------------

    def _written(self) -> set[int]:
        """The memory that some node writes into."""
        found: set[int] = set()
        for node in self.joint.graph.nodes:
            if node.op == "call_function" and effect_of(node) not in (Effect.NONE, Effect.RANDOM):
                found.update(map(memory_of, _tensors(self.joint, _overwritten(node))))
        return found

    def _may_repeat(self, node: Node) -> bool:
        if node.op != "call_function" or node in self.joint.behind or effect_of(node) is not Effect.NONE:
            return False
        touched = _tensors(self.joint, (node, *node.all_input_nodes))
        return bool(touched) and self.written.isdisjoint(map(memory_of, touched))

    def _is_lent(self, node: Node) -> bool:
        tensors = _tensors(self.joint, (node,))
        return bool(tensors) and all(memory_of(one) in self.joint.lent for one in tensors)

    def _chain(self, nodes: list[Node]) -> set[Node] | None:
        """What must be computed for these without what is saved of them; None if that cannot be."""
        found: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node in found or (node in self.saved and node not in nodes):
                continue
            if not self._may_repeat(node):
                if node.op in ("placeholder", "get_attr"):
                    continue
                return None
            found.add(node)
            waiting += node.all_input_nodes
        return found

    # ---- the choice ----------------------------------------------------------------------------------------------

    def _groups(self) -> list[list[Node]]:
        """The saved values by memory, without what is lent."""
        groups: dict[int, list[Node]] = {}
        for node in self.saved:
            for one in _tensors(self.joint, (node,))[:1]:
                if memory_of(one) not in self.joint.lent:
                    groups.setdefault(memory_of(one), []).append(node)
        return list(groups.values())

    def _give_up(self, left: int, limit: int) -> int:
        """Give up saved values until so many bytes are left; those that are left come out."""
        groups = self._groups()
        waiting = [(self._price(group), number) for number, group in enumerate(groups)]
        heapq.heapify(waiting)
        while waiting and left > limit:
            _, number = heapq.heappop(waiting)
            price = self._price(groups[number])
            if price == float("inf"):
                continue
            if waiting and price > waiting[0][0]:
                heapq.heappush(waiting, (price, number))
                continue
            chain = self._chain(groups[number])
            assert chain is not None, "its price is finite"
            self.anew |= chain
            for node in groups[number]:
                del self.saved[node]
            left -= bytes_of(self.joint, groups[number])
        return left

    def _price(self, group: list[Node]) -> float:
        """The work that giving up costs, for each byte."""
        chain = self._chain(group)
        if chain is None:
            return float("inf")
        return sum(map(self._cost, chain - self.anew)) / (1 + bytes_of(self.joint, group))

    def _cost(self, node: Node) -> float:
        moved = sum(one.numel() * one.element_size() for one in _tensors(self.joint, (node, *node.all_input_nodes)))
        formula = flop_registry.get(getattr(node.target, "overloadpacket", None))
        if formula is None:
            return 1.0 + (0 if self._is_view(node) else moved)
        args, kwargs = (map_arg(one, self.joint.values.get) for one in (node.args, node.kwargs))
        return moved + float(formula(*args, **kwargs, out_val=self.joint.values[node])) / _PER_BYTE

    def _is_view(self, node: Node) -> bool:
        given = set(map(memory_of, _tensors(self.joint, node.all_input_nodes)))
        return all(memory_of(one) in given for one in _tensors(self.joint, (node,)))

    # ---- the order -----------------------------------------------------------------------------------------------

    def _needed(self) -> list[Node]:
        """What is lent, and used by what is computed again."""
        used = [one for node in self.order() for one in node.all_input_nodes]
        return [one for one in dict.fromkeys(used) if one not in self.anew and one not in self.saved]

    def order(self) -> list[Node]:
        """What is computed again, in the order of the forward pass."""
        return sorted(self.anew, key=self.places.__getitem__)

    def again(self) -> Callable[[Node], list[Node]]:
        """For each node of the backward pass, asked one after the other: what to compute anew before it."""
        done: set[Node] = set(self.saved)

        def before(node: Node) -> list[Node]:
            found: list[Node] = []
            waiting = [one for one in node.all_input_nodes if one not in self.joint.behind]
            while waiting:
                one = waiting.pop()
                if one not in done:
                    done.add(one)
                    found.append(one)
                    waiting += one.all_input_nodes
            return sorted(found, key=self.places.__getitem__)

        return before


def _overwritten(node: Node) -> list[Node]:
    """The arguments that an operator writes into: all of them where its schema does not say."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return node.all_input_nodes
    names: list[Any] = [
        one.name for one in schema.arguments
        if (one.alias_info is not None and one.alias_info.is_write) or one.name in _WRITTEN_UNSAID
    ]  # fmt: skip
    given = dict(zip((one.name for one in schema.arguments), node.args, strict=False)) | node.kwargs
    held = [given.get(name) for name in names]
    return [one for one in held if isinstance(one, Node)] if names else node.all_input_nodes
