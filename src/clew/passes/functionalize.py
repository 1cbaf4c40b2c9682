"""Functionalisation: writes into arrays that the program made itself become calls that give new arrays.

A graph or a captured torch program comes in, is changed in place and returned; graphs inside are treated each on its
own. ``y.add_(z)`` becomes ``y.add(z)`` in the dtype of ``y``, and later uses of ``y`` use that; in-place activations
(``relu_``, ``F.relu(x, inplace=True)``) likewise. A write stays where somebody else could see it: the array is an
input, an attribute or a view of one, has views of its own, or goes into a branch or loop. ``y[i] = z`` stays too. A
write that raises, since what is written does not fit into the array, is a call that raises only if it cannot compute.
"""

from __future__ import annotations

import operator

import torch

from clew.ir.arguments import bodies_of
from clew.ir.graph import Graph
from clew.ir.guests import guest_of
from clew.ir.node import Node
from clew.passes.gather import OUTSIDE, Memory, written_array
from clew.passes.program import ProgramT, opened

_OPERATORS = {
    getattr(operator, f"i{name}"): getattr(operator, name)
    for name in "add sub mul truediv floordiv mod pow matmul lshift rshift xor".split()
} | {operator.iand: operator.and_, operator.ior: operator.or_}
_KEEPS_DTYPE = frozenset("relu abs neg clamp clamp_min clamp_max sigmoid tanh gelu silu zero fill".split())


def functionalize(program: ProgramT) -> ProgramT:
    """The program with fewer writes; it is changed in place and returned."""
    with opened(program) as graphs:
        for graph in graphs:
            for writes in _writes_by_array(graph):
                for node in writes[1:]:
                    _make_new(graph, node, writes)
    return program


def _writes_by_array(graph: Graph) -> list[list[Node]]:
    """For each array of the program's own the node that makes it, and then those that write into it."""
    memory = Memory(graph)
    members: dict[object, list[Node]] = {}
    for node in graph.nodes:
        members.setdefault(memory.find(node), []).append(node)
    return [nodes for key, nodes in members.items() if key is not memory.find(OUTSIDE) and _is_alone(nodes, memory)]


def _is_alone(nodes: list[Node], memory: Memory) -> bool:
    """Whether all that shares the memory of an array is the array itself, as written so far."""
    first, *rest = nodes
    if not rest or first not in memory.arrays or any(_written(node, memory) not in nodes for node in rest):
        return False
    return not any(bodies_of(user) for node in nodes for user in node.users)


def _written(node: Node, memory: Memory) -> Node | None:
    """The array that a node writes into, if there is a call that gives a new one instead."""
    if node.target in (torch.nn.functional.relu, torch.nn.functional.silu) and node.kwargs.get("inplace") is True:
        first = node.args[0] if node.args else None
        return first if isinstance(first, Node) else None
    if _new_target(node) is None:
        return None
    return written_array(node, memory.arrays)


def _new_target(node: Node) -> object | None:
    """The function or method that gives a new array where the node's own writes."""
    if node.op == "call_function" and node.target in _OPERATORS:
        return _OPERATORS[node.target]
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    if not isinstance(name, str) or not name.endswith("_") or name.endswith("__"):
        return None
    if node.op == "call_method":
        return name[:-1] if hasattr(torch.Tensor, name[:-1]) else None
    is_torchs = guest_of(node.target) is not None and getattr(torch, name, None) is node.target
    return getattr(torch, name[:-1], None) if is_torchs else None


def _make_new(graph: Graph, node: Node, nodes: list[Node]) -> None:
    """Let a node give a new array, which from there on stands for all that ``nodes`` gave before."""
    written = node.args[0]
    node.value_type = node.value_type or written.value_type
    if "inplace" in node.kwargs:
        node.kwargs = {**node.kwargs, "inplace": False}
    else:
        node.target = _new_target(node)
    result = node
    if getattr(node.target, "__name__", node.target) not in _KEEPS_DTYPE:
        with graph.inserting_after(node):  # writing keeps the dtype of the array, computing may give a wider one
            result = graph.call_method("type_as", (node, written))
        result.source, result.value_type = node.source, node.value_type
        node.replace_all_uses_with(result, delete_user_cb=lambda user: user is not result)
    for earlier in nodes[: nodes.index(node)]:
        for user in [user for user in earlier.users if user > result]:
            user.replace_input_with(earlier, result)
    nodes[nodes.index(node)] = result
