"""Constant folding: what a torch program computes of constants alone is computed once, ahead of all calls.

A graph or a captured program comes in, is changed in place and returned; graphs inside are folded too. Constants are
literals, tensors that the capture holds, buffers, and parameters that need no gradient. A folded node becomes the
reading of an attribute under its old name; one that gives a plain value is replaced by it. Always holds: nobody can
tell that the value is not computed anew.
- Only calls that compute are folded: no effect, no random numbers, nothing after a call that sets a mode.
- Nothing is folded whose memory the program writes to or returns.
- The graph gets a guard on each buffer that was used, that it is unchanged, and one on torch's settings.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch

from clew.frameworks.torch.effects import packet
from clew.frameworks.torch.unchanged import Unchanged, can_be_kept, settings
from clew.ir.arguments import BASE_TYPES, bodies_of, leaves, map_arg
from clew.ir.gc_pause import CollectorPaused
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Guard, is_guard
from clew.ir.guests import Effect, guest_of
from clew.ir.node import Node
from clew.ir.shared_memory import OUTSIDE, SharedMemory, written_array
from clew.passes.common_subexpressions import is_repeatable
from clew.passes.program import ProgramT, Root, add_guards, graph_in, opened, put_in_place

LIMIT = 64 * 2**20
"""How many bytes folded tensors may take in all, unless the user says otherwise."""

_FACTORIES = frozenset("arange eye full linspace logspace ones tensor tril_indices triu_indices zeros".split())
_ATTRIBUTES = frozenset("shape dtype device ndim T mT H mH real imag".split())
_PLAIN = (*BASE_TYPES, torch.dtype, torch.device, torch.Size)
_FIRST_TIME = "constant_folding computed ahead of time what depends on it"


def constant_folding(program: ProgramT, *, limit: int = LIMIT) -> ProgramT:
    """The program in which what follows from constants is computed already; it is changed in place and returned.

    Folded tensors take at most ``limit`` bytes together.
    """
    graph = graph_in(program)
    with CollectorPaused(), opened(program) as graphs:
        budget = _Budget(limit)
        foldings = [_Folding(each, Root(graph), budget) for each in graphs]
        written = any(folding.writes_outside for folding in foldings)
        held = {id(tensor) for folding in foldings for tensor in folding.written_state()}
        guards = [one for folding in foldings for one in folding.run(written, held)]
    add_guards(graph, guards)
    return program


class _Budget:
    """The bytes that are left for folded tensors."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def takes(self, value: Any) -> bool:
        """Whether there is room for a value."""
        return self._bytes(value) <= self.left

    def pay(self, value: Any) -> None:
        """Keep a value."""
        self.left -= self._bytes(value)

    def _bytes(self, value: Any) -> int:
        return value.untyped_storage().nbytes() if isinstance(value, torch.Tensor) else 0


class _Folding:
    """One graph, the values of its constant nodes, and of which attributes they were made."""

    def __init__(self, graph: Graph, root: Root, budget: _Budget) -> None:
        self.graph, self.root, self.budget = graph, root, budget
        self.memory = SharedMemory(graph)
        self.values: dict[Node, Any] = {}
        self.sources: dict[Node, frozenset[str]] = {}
        self.written = [node for node in graph.nodes if self._has_effect(node)]
        self.touched = {memory for node in self.written for memory in self.memory.touched(node)}
        self.writes_outside = self.memory.find(OUTSIDE) in self.touched
        outputs = graph.find_nodes(op="output")
        self.returned = {self.memory.find(value) for node in outputs for value in node._inputs}

    def _has_effect(self, node: Node) -> bool:
        return self.memory.effect[node] in (Effect.WRITE, Effect.UNKNOWN) and not is_guard(node)

    def written_state(self) -> Iterator[torch.Tensor]:
        """The tensors of modules that calls of them may write to."""
        for node in self.written:
            module = self.root.get(node.target) if node.op == "call_module" else None
            if isinstance(module, torch.nn.Module):
                yield from module.parameters()
                yield from module.buffers()

    def run(self, attributes_are_written: bool, held: set[int]) -> list[Guard]:
        """Fold what can be folded; the guards that it relies on come out.

        No attribute counts as a constant that any graph of the program may write to, and none that is ``held`` by a
        module which writes its own.
        """
        self.attributes_are_written, self.held = attributes_are_written, held
        with torch.no_grad():
            for node in self.graph.nodes:
                if self._sets_mode(node):
                    break
                self._visit(node)
        needed = self._needed()
        guards = [one for node in needed for one in self._fold(node)]
        for node in reversed(self.values):
            if not node._erased and not node.users:
                self.graph.erase_node(node)
        return guards

    def _needed(self) -> list[Node]:
        """The constants that are used by what is none; what is returned is computed anew each time."""
        needed = []
        for node in reversed(list(self.values)):
            if any(user not in self.values for user in node.users):
                if node.op == "get_attr" or self._is_given_away(node):
                    del self.values[node]
                else:
                    needed.append(node)
        return needed[::-1]

    def _is_given_away(self, node: Node) -> bool:
        return isinstance(self.values[node], torch.Tensor) and self.memory.find(node) in self.returned

    def _sets_mode(self, node: Node) -> bool:
        """Whether a call may change what later ones compute of the same arguments: gradients, autocast, defaults."""
        if not self._has_effect(node) or node.op == "call_module":
            return False
        return written_array(node, self.memory.arrays) is None and not bodies_of(node)

    def _visit(self, node: Node) -> None:
        """Note the value of a node that is a constant."""
        if node.op == "get_attr":
            value = self.root.get(node.target)
            if self._is_constant(value) and self.memory.find(node) not in self.touched:
                self.values[node], self.sources[node] = value, frozenset({node.target})
        elif self._may_fold(node):
            value = _called(node, self.values)
            if _is_result(value) and self.budget.takes(value):
                self.values[node] = value
                self.sources[node] = frozenset().union(*(self.sources[used] for used in node._inputs))

    def _is_constant(self, value: Any) -> bool:
        """Whether an attribute is a tensor that nothing in the program writes to, and that needs no gradient."""
        if self.attributes_are_written or id(value) in self.held:
            return False
        return can_be_kept(value) and not value.requires_grad

    def _may_fold(self, node: Node) -> bool:
        if node.op not in ("call_function", "call_method") or self.memory.effect[node] is not Effect.NONE:
            return False
        if not all(used in self.values for used in node._inputs) or self.memory.find(node) in self.touched:
            return False
        return not bodies_of(node) and _only_computes(node)

    def _fold(self, node: Node) -> list[Guard]:
        """Put the value of a node in its place."""
        value, sources = self.values[node], self.sources[node]
        guards = [self._unchanged(path, node) for path in sorted(sources)]
        if not isinstance(value, torch.Tensor):
            put_in_place(node, value)
            return guards
        self.budget.pay(value)
        node.target, node.op = self.root.add("_folded", value), "get_attr"
        node.args, node.kwargs = (), {}
        where = Guard(Call(settings, ()), "equals", settings(), "mode", node.source, _FIRST_TIME, _SETTINGS)
        return [*guards, where]

    def _unchanged(self, path: str, node: Node) -> Guard:
        value = self.root.get(path)
        return Guard(Attribute(path), "unchanged", Unchanged(value), "value", node.source, _FIRST_TIME)


_SETTINGS = "the default dtype and device of torch and autocast are unchanged"


def _only_computes(node: Node) -> bool:
    """Whether a pure call hangs on nothing but its arguments: on no mode and no place in memory."""
    if node.op == "call_method":
        return packet(node.target) is not None
    function = node.target
    if function is getattr:
        return len(node.args) == 2 and node.args[1] in _ATTRIBUTES
    if not is_repeatable(function):
        return False
    if node._inputs or guest_of(function) is None:
        return guest_of(function) is None or getattr(function, "__module__", "") != "torch.compiler"
    name = getattr(function, "__name__", "")
    return name in _FACTORIES and getattr(torch, name, None) is function


def _called(node: Node, values: dict[Node, Any]) -> Any:
    """The value of a call; None, which no folded call gives, if it raises: then the program raises it at its place."""
    args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
    try:
        if node.op == "call_function":
            return node.target(*args, **kwargs)
        return operator.methodcaller(node.target, *args[1:], **kwargs)(args[0])
    except Exception:  # whatever it is, it belongs to the call
        return None


def _is_result(value: Any) -> bool:
    """Whether a value can stand in a graph: a tensor that can be kept, or a literal."""
    if isinstance(value, torch.Tensor):
        return can_be_kept(value)
    return value is not None and all(isinstance(leaf, _PLAIN) for leaf in leaves(value))
