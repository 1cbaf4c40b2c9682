"""Re-inplacing: element-wise calls write into an argument that nobody needs any more, which saves memory.

A graph or a captured torch program comes in, is changed in place and returned. ``y = torch.relu(x)`` becomes
``x.relu_()`` where ``x`` is an array of the program's own, of the same type as the result in the example, which nothing
touches afterwards and nothing else shares memory with. A write would break gradients, so the graph gets a guard that
gradients are off; dtypes and sizes that come out otherwise than in the example raise torch's own error.
"""

from __future__ import annotations

import operator

import torch

from clew.ir.arguments import bodies_of
from clew.ir.graph import Graph
from clew.ir.guards import Call, Guard
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.passes.gather import OUTSIDE, Memory
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
    memory = Memory(graph)
    members: dict[object, list[Node]] = {}
    for node in graph.nodes:
        members.setdefault(memory.find(node), []).append(node)
    found = []
    for node in list(graph.nodes):
        name, array = _unary(node, memory)
        if array is not None and _is_free(node, array, memory, members[memory.find(array)]):
            node.op, node.target, node.args, node.kwargs = "call_method", f"{name}_", (array,), {}
            members[memory.find(array)].append(node)
            memory.join(node, array)
            found.append(node)
    return found


def _unary(node: Node, memory: Memory) -> tuple[str, Node | None]:
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


def _is_free(node: Node, array: Node, memory: Memory, members: list[Node]) -> bool:
    """Whether nothing but ``node`` needs the array, or what shares its memory, from there on."""
    if memory.find(array) is memory.find(OUTSIDE) or array.value_type != node.value_type:
        return False
    if not isinstance(node.value_type, ArrayType):
        return False
    users = {user for one in members for user in one.users}
    return all(user is node or user < node for user in users) and not any(map(bodies_of, users))
