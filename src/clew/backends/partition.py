"""Partition: a graph in which runs of nodes have become calls of segments.

In come a graph, and for each of its nodes why it stays in Python, if it does; the graph is changed in place. Always
holds: nodes keep their order, so effects, guards on computed values and random numbers come as before. What only tells
facts (a size, a dtype) goes with the nodes around it, and stays in Python at either end of a run.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from clew.capture.bytecode.try_blocks import attempted_effect
from clew.capture.state.slots import ROOT
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.types import ArrayType, DictType, ListType, TupleType, Type

ISLAND = "island"
"""Stands in the meta of a node that a back end leaves to Python: why."""
Make = Callable[[Graph, str], Callable[..., Any]]


def partition(graph: Graph, reasons: dict[Node, str], reads: Callable[[str], bool], make: Make, known: int = 0) -> int:
    """Put segments that ``make`` makes in the place of all nodes without a reason against it.

    Attributes at paths that ``reads`` knows are read by the segments. The number of segments so far comes out.
    """
    for nodes in _runs(graph, reasons):
        _replace(graph, nodes, reads, make, f"segment_{known}")
        known += 1
    return known


def _runs(graph: Graph, reasons: dict[Node, str]) -> list[list[Node]]:
    """The longest runs of nodes that may be taken; each has one that computes, at either end."""
    runs: list[list[Node]] = [[]]
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            continue
        if node.op == "output" or reasons.get(node):
            runs.append([])
        else:
            runs[-1].append(node)
    return [trimmed for trimmed in map(_trimmed, runs) if trimmed]


def _trimmed(nodes: list[Node]) -> list[Node]:
    computing = [place for place, node in enumerate(nodes) if _computes(node)]
    return nodes[computing[0] : computing[-1] + 1] if computing else []


def _computes(node: Node) -> bool:
    """Whether a node is work for a back end, and no mere fact; parts of what another one gave are none."""
    if node.target is operator.getitem and isinstance(node.args[0], Node) and not _has_array(node.args[0].value_type):
        return False
    if node.target in _BLOCK or any(user.target in _BLOCK for user in node.users):
        return True  # a block is taken whole
    return _has_array(node.value_type) or node.op == "call_module" or attempted_effect(node) is Effect.WRITE


_BLOCK = ("__enter__", "__exit__")


def _has_array(kind: Type | None) -> bool:
    if isinstance(kind, (TupleType, ListType)):
        return any(map(_has_array, kind.items))
    if isinstance(kind, DictType):
        return any(_has_array(item) for _, item in kind.items)
    return isinstance(kind, ArrayType)


def _replace(graph: Graph, nodes: list[Node], reads: Callable[[str], bool], make: Make, name: str) -> None:
    members = set(nodes)
    given = list(dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used not in members))
    given = [node for node in given if node.op != "get_attr" or not reads(str(node.target))]
    gives = [node for node in nodes if any(user not in members for user in node.users)]
    inner = inner_graph(nodes, given, gives)
    inner.owning_module = graph.owning_module
    segment = make(inner, name)
    with graph.inserting_before(nodes[-1].next):
        root = [graph.get_attr(ROOT)] if getattr(segment, "takes_root", True) else []
        called = graph.create_node("call_function", segment, (*root, *given), {}, name=name.replace("segment", "given"))
        called.source = nodes[0].source
        parts = [] if len(gives) == 1 else [(called, place) for place in range(len(gives))]
        results = [graph.call_function(operator.getitem, part) for part in parts] or [called]
    for node, result in zip(gives, results, strict=True):
        result.value_type = node.value_type
        node.replace_all_uses_with(result, delete_user_cb=lambda user: user not in members)
    read = [used for node in nodes for used in node.all_input_nodes if used.op == "get_attr"]
    for node in reversed(nodes):
        graph.erase_node(node)
    for node in dict.fromkeys(read):
        if not node.users:
            graph.erase_node(node)


def inner_graph(nodes: list[Node], given: list[Node], gives: list[Node]) -> Graph:
    """A graph of these nodes alone; it returns what it ``gives``, several values as a tuple."""
    graph = Graph()
    known: dict[Node, Node] = {}
    for node in given:
        known[node] = graph.placeholder(node.name)
        known[node].value_type = node.value_type
    for node in nodes:
        for used in node.all_input_nodes:
            if used not in known:
                known[used] = graph.node_copy(used)
        known[node] = graph.node_copy(node, known.__getitem__)
    graph.output(known[gives[0]] if len(gives) == 1 else tuple(known[node] for node in gives))
    graph.set_guards(())  # the program has checked them
    return graph
