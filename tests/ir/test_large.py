"""Graphs of many nodes: nothing recurses over nodes, and work is proportional to what is touched."""

from __future__ import annotations

import copy
import operator
import pickle
import sys
from collections.abc import Iterator

import pytest

from clew.ir.equality import difference
from clew.ir.graph import Graph
from clew.ir.text import parse, to_text
from clew.ir.verify import verify

pytestmark = pytest.mark.slow

COUNT = 200_000


def chain(count: int) -> Graph:
    """A chain of calls: each node uses the one before it, so a walk along arguments is as deep as the graph."""
    graph = Graph()
    value = graph.placeholder("x")
    for place in range(count):
        value = graph.call_function(operator.add, (value, place))
    graph.output(value)
    return graph


@pytest.fixture
def shallow_stack() -> Iterator[None]:
    """Whatever recurses over nodes fails at once."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(250)
    yield
    sys.setrecursionlimit(before)


@pytest.fixture(scope="module")
def large() -> Graph:
    return chain(COUNT)


def test_verify(large: Graph, shallow_stack: None) -> None:
    verify(large)
    assert len(large.nodes) == COUNT + 2


def test_deepcopy(large: Graph, shallow_stack: None) -> None:
    assert difference(copy.deepcopy(large), large) is None


def test_pickle(large: Graph, shallow_stack: None) -> None:
    assert difference(pickle.loads(pickle.dumps(large)), large) is None


def test_text(large: Graph, shallow_stack: None) -> None:
    text = to_text(large)
    assert text.count("\n") == COUNT + 2
    assert difference(parse(text), large) is None


def calls(count: int, work: str) -> int:
    """How many Python functions ``work`` calls on a graph of ``count`` nodes."""
    graph = chain(count)
    text = to_text(graph)
    counted = 0

    def count_calls(frame: object, event: str, argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        eval(work, {"graph": graph, "text": text, "copy": copy, "pickle": pickle, "chain": chain, "count": count,
                    "verify": verify, "to_text": to_text, "parse": parse, "difference": difference,
                    "edit": edit})  # fmt: skip
    finally:
        sys.setprofile(before)
    return counted


def edit(graph: Graph) -> None:
    """Insert, replace, rename and erase once at every node."""
    for node in list(graph.nodes)[1:-1]:
        with graph.inserting_after(node):
            twin = graph.call_function(operator.sub, (node.args[0], 1))
        node.replace_all_uses_with(twin)
        graph.erase_node(node)


@pytest.mark.parametrize(
    "work",
    ["chain(count)", "verify(graph)", "copy.deepcopy(graph)", "pickle.loads(pickle.dumps(graph))", "to_text(graph)",
     "parse(text)", "difference(graph, graph)", "edit(graph)", "graph.find_nodes(op='call_function')",
     "graph.eliminate_dead_code()"],
)  # fmt: skip
def test_work_grows_in_proportion(work: str) -> None:
    small, great = calls(500, work), calls(4000, work)
    assert great < 8.5 * small + 1000
