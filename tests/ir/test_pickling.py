"""Graphs through pickle: flat, whole, and without running anything of theirs."""

from __future__ import annotations

import operator
import pickle

import pytest
import torch

from clew.ir.equality import difference
from clew.ir.graph import Graph
from clew.ir.source import SourceLine
from clew.ir.types import ArrayType
from tests.strategies import FUNCTIONS, Point


def through_pickle(graph: Graph) -> Graph:
    loaded: Graph = pickle.loads(pickle.dumps(graph))
    return loaded


def test_everything_travels() -> None:
    graph = Graph()
    x = graph.placeholder("x", torch.Tensor, None)
    x.value_type = ArrayType("float32", (2, "n"))
    x.source = SourceLine("model.py", 3, "forward")
    inner = Graph()
    inner.output(inner.placeholder("a"))
    add = graph.call_function(operator.add, ([x, {"k": slice(x, None)}],), {"body": inner, "p": Point(1, 2)})
    add.meta["friend"] = [x, 5]
    graph.output(add)
    loaded = through_pickle(graph)
    assert difference(graph, loaded) is None
    first, second, _ = loaded.nodes
    assert first.source == x.source
    assert second.meta == {"friend": [first, 5]}
    assert list(first.users) == [second]


def name_of(function: object) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


@pytest.mark.parametrize("function", FUNCTIONS, ids=name_of)
def test_functions_travel_by_reference(function: object) -> None:
    graph = Graph()
    graph.output(graph.create_node("call_function", function, (function,)))
    assert difference(graph, through_pickle(graph)) is None


def test_in_place_operations_stay() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.call_method("add_", (x, 1))
    graph.output(x)
    assert [node.name for node in through_pickle(graph).nodes] == ["x", "add_", "output"]


def test_names_go_on_where_they_were() -> None:
    graph = Graph()
    graph.call_function(operator.neg, (graph.call_function(operator.neg, (1,)),))
    assert through_pickle(graph).call_function(operator.neg, (1,)).name == "neg_2"


def test_a_function_that_is_also_a_note() -> None:
    """What is found out about a note says nothing about the same object as a target."""
    graph = Graph()
    first = graph.call_function(list, ((1, 2),))
    first.meta["type"] = tuple
    graph.output(graph.call_function(tuple, (first,)))
    loaded = through_pickle(graph)
    assert difference(graph, loaded) is None
    assert next(iter(loaded.nodes)).meta == {"type": tuple}


def test_alike_arguments_stay_apart() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    for literal in (1, True, 1.0, 0.0, -0.0, "1", None):
        graph.call_function(operator.add, (x, literal))
    loaded = through_pickle(graph)
    literals = [repr(node.args[1]) for node in loaded.nodes if node.op == "call_function"]
    assert literals == ["1", "True", "1.0", "0.0", "-0.0", "'1'", "None"]


def test_an_annotation_with_none_stays_itself() -> None:
    graph = Graph()
    graph.placeholder("x").type = int | None
    loaded = pickle.loads(pickle.dumps(graph))
    assert next(iter(loaded.nodes)).type == int | None
    assert difference(graph, loaded) is None
