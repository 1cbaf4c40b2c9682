"""Which nodes of two graphs are the same step: matched by structure first, then by the module called, then by name.

Two graphs come in; out come pairs of nodes, in the order in which the second runs them. Nodes are of the same structure
if they do the same to values of the same structure; of equal ones the first is matched with the first. Of what is left,
calls of the same module are matched, and the rest by name, calls with calls. Graphs inside of matched nodes are
matched likewise.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from clew.ir.arguments import Reference, bodies_of
from clew.ir.format import format_argument, format_target
from clew.ir.graph import Graph
from clew.ir.node import Node

Pairs = list[tuple[Node, Node]]
_UNFILLED = frozenset({"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"})
"""Functions whose values are whatever was in memory."""


def is_unfilled(node: Node) -> bool:
    """Whether a node gives memory that nobody has written to yet, so that its numbers mean nothing."""
    return node.op.startswith("call") and format_target(node.target).rpartition(".")[2] in _UNFILLED


def matched(left: Graph, right: Graph) -> Pairs:
    """Pairs of nodes of two graphs that are the same step."""
    found = _by_structure(left, right)
    taken = {one for pair in found for one in pair}
    found += _by_path(left, right, taken)
    taken = {one for pair in found for one in pair}
    names = {node.name: node for node in left.nodes if node not in taken}
    for node in right.nodes:
        other = names.get(node.name)
        if node not in taken and other is not None and _may_be_same(other, node):
            found.append((other, node))
    place = {node: number for number, node in enumerate(right.nodes)}
    found.sort(key=lambda pair: place[pair[1]])
    ordered: Pairs = []
    for one, other in found:
        for body, twin in zip(bodies_of(one), bodies_of(other), strict=False):
            ordered += matched(body, twin)
        ordered.append((one, other))
    return ordered


def _by_path(left: Graph, right: Graph, taken: set[Node]) -> Pairs:
    """Calls of the same modules, and reads of the same attributes, in their order."""
    waiting: dict[tuple[str, Any], list[Node]] = defaultdict(list)
    for node in left.nodes:
        if node not in taken and node.op in ("call_module", "get_attr"):
            waiting[node.op, node.target].append(node)
    rest = [node for node in right.nodes if node not in taken and waiting.get((node.op, node.target))]
    return [(waiting[node.op, node.target].pop(0), node) for node in rest if waiting[node.op, node.target]]


def _may_be_same(one: Node, other: Node) -> bool:
    """Whether two nodes of one name may be the same step: a call may have become another kind of call."""
    return one.op == other.op or (one.op.startswith("call") and other.op.startswith("call"))


def _by_structure(left: Graph, right: Graph) -> Pairs:
    known: dict[Any, int] = {}
    waiting: dict[int, list[Node]] = defaultdict(list)
    for node, structure in _structures(left, known).items():
        waiting[structure].append(node)
    found = []
    for node, structure in _structures(right, known).items():
        if waiting[structure]:
            found.append((waiting[structure].pop(0), node))
    return found


def _structures(graph: Graph, known: dict[Any, int]) -> dict[Node, int]:
    """A number for each node; equal ones for nodes that do the same to values of equal numbers."""
    numbers: dict[Node, int] = {}
    for node in graph.nodes:
        inside = tuple(tuple(_structures(body, known).values()) for body in bodies_of(node))
        written = _written((node.args, node.kwargs), numbers)
        place = len(numbers) if node.op == "placeholder" else 0
        key = (node.op, format_target(node.target), written, inside, place)
        numbers[node] = known.setdefault(key, len(known))
    return numbers


def _written(value: Any, numbers: dict[Node, int]) -> str:
    """Arguments as text, with the numbers of nodes in their places."""
    if isinstance(value, Reference):
        return f"%{numbers.get(value, -1)}"  # type: ignore[call-overload]
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(_written(item, numbers) for item in value)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_written(item, numbers)}' for key, item in value.items())}}}"
    if isinstance(value, slice):
        return f"slice{_written((value.start, value.stop, value.step), numbers)}"
    return "graph" if isinstance(value, Graph) else f"{type(value).__name__} {format_argument(value)}"
