"""Re-inplacing: element-wise calls write into an argument that nobody needs any more, which saves memory.

A graph or a captured torch program comes in, is changed in place and returned. ``y = torch.relu(x)`` becomes
``x.relu_()`` where ``x`` is an array of the program's own, of the same type as the result in the example, which nothing
touches afterwards and nothing else shares memory with; what ``functionalize`` made of writes becomes writes again
(``with_item``, ``fitted``). A write would break gradients, so the graph gets a guard that gradients are off; dtypes and
sizes that come out otherwise than in the example raise torch's own error.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from clew.frameworks.torch.functional_writes import fitted, with_item
from clew.ir.arguments import bodies_of
from clew.ir.graph import Graph
from clew.ir.guards import Call, Guard
from clew.ir.node import Node
from clew.ir.shared_memory import OUTSIDE, SharedMemory
from clew.ir.types import ArrayType
from clew.passes.program import ProgramT, add_guards, graph_in, opened

_UNARY = frozenset("relu sigmoid tanh exp sqrt rsqrt neg abs sin cos erf".split())
_REASON = "reinplace lets calls write into arrays that gradients would need"


def reinplace(program: ProgramT) -> ProgramT:
    """The program with writes in the place of new arrays; it is changed in place and returned."""
    graph = graph_in(program)
    with opened(program) as graphs:
        changed = [node for each in graphs for node in _rewritten(each)]
    if changed:
        subject = Call(torch.is_grad_enabled, ())
        add_guards(graph, [Guard(subject, "equals", False, "mode", changed[0].source, _REASON)])
    return program


def _rewritten(graph: Graph) -> list[Node]:
    memory = SharedMemory(graph)
    members: dict[object, list[Node]] = {}
    for node in graph.nodes:
        members.setdefault(memory.find(node), []).append(node)
    found = []
    for node in list(graph.nodes):
        name, array = _unary(node, memory)
        make = _unary_write if array is not None else None
        if array is None:
            array, make = _written_before(node, memory)
        if array is not None and make is not None and _is_free(node, array, memory, members[memory.find(array)]):
            make(graph, node, array, name)
            members[memory.find(array)].append(node)
            memory.join(node, array)
            found.append(node)
    return found


def _unary_write(graph: Graph, node: Node, array: Node, name: str) -> None:
    node.op, node.target, node.args, node.kwargs = "call_method", f"{name}_", (array,), {}


def _written_before(node: Node, memory: SharedMemory) -> tuple[Node | None, Any]:
    """The array of what ``functionalize`` made of a write, and how that is written as one; None for other calls."""
    if node.target is with_item:
        array, _, value = node.args
        shares = isinstance(value, Node) and memory.find(value) is memory.find(array)
        return (None, None) if shares or array not in memory.arrays else (array, _item_write)
    if node.target is fitted:
        value, array = node.args
        is_call = isinstance(value, Node) and value.op == "call_method" and len(value.users) == 1
        if is_call and value.args[0] is array and hasattr(torch.Tensor, f"{value.target}_") and value.next is node:
            return (array, _call_write) if array in memory.arrays else (None, None)
    return None, None


def _item_write(graph: Graph, node: Node, array: Node, name: str) -> None:
    node.replace_all_uses_with(array)
    node.target, node.value_type = operator.setitem, None


def _call_write(graph: Graph, node: Node, array: Node, name: str) -> None:
    value = node.args[0]
    node.op, node.target, node.args, node.kwargs = "call_method", f"{value.target}_", value.args, value.kwargs
    graph.erase_node(value)


def _unary(node: Node, memory: SharedMemory) -> tuple[str, Node | None]:
    """The name of a call of one array alone, and that array."""
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    if node.op not in ("call_function", "call_method") or name not in _UNARY or len(node.args) != 1:
        return "", None
    is_torchs = node.op == "call_method" or node.target in (
        getattr(torch, name), getattr(torch.nn.functional, name, None), getattr(operator, name, None),
    )  # fmt: skip
    plain = not node.kwargs or dict(node.kwargs) == {"inplace": False}
    array = node.args[0]
    return (name, array) if is_torchs and plain and isinstance(array, Node) and array in memory.arrays else ("", None)


def _is_free(node: Node, array: Node, memory: SharedMemory, members: list[Node]) -> bool:
    """Whether nothing but ``node`` needs the array, or what shares its memory, from there on."""
    if memory.find(array) is memory.find(OUTSIDE) or array.value_type != node.value_type:
        return False
    if not isinstance(node.value_type, ArrayType):
        return False
    users = {user for one in members for user in one.users}
    return all(user is node or user < node for user in users) and not any(map(bodies_of, users))
