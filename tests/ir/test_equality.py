"""What counts as a difference of two graphs, and in which words it is told."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch

from clew.ir.equality import difference, same_graph
from clew.ir.graph import Graph
from clew.ir.source import SourceLine
from clew.ir.types import ArrayType
from tests.strategies import Label, Point


def graph_of(*args: Any, **kwargs: Any) -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (x, *args), kwargs))
    return graph


def nested(*args: Any) -> Graph:
    graph = Graph()
    graph.output(args)
    return graph


@pytest.mark.parametrize(
    "value",
    [1, True, 1.0, float("nan"), -0.0, "a", b"a", None, ..., 1j, (1,), [1, (2,)], {"a": [1]}, slice(1, None),
     range(3), {1, 2}, Point(1, 2), Label("a"), torch.float32, torch.device("cpu"), nested(1, "x")],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_equal_values_are_the_same(value: Any) -> None:
    assert same_graph(graph_of(value, key=value), graph_of(value, key=value))


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        (1, True, "args[1] is 1 in the first graph and True in the second"),
        (1, 1.0, "args[1] is 1 in the first graph and 1.0 in the second"),
        (0.0, -0.0, "args[1] is 0.0 in the first graph and -0.0 in the second"),
        (complex(0, 0.0), complex(0, -0.0), "args[1] is 0j"),
        (float("nan"), 1.0, "args[1] is nan in the first graph and 1.0 in the second"),
        ("a", b"a", "args[1] is 'a' in the first graph and b'a' in the second"),
        ((1,), [1], "args[1] is (1,)"),
        ([1, [2]], [1, [3]], "args[1][1][0] is 2 in the first graph and 3 in the second"),
        ([1], [1, 2], "args[1] has 1 items in the first graph and 2 in the second"),
        ({"a": 1}, {"b": 1}, "keys of args[1][0] is 'a' in the first graph and 'b' in the second"),
        ({"a": 1, "b": 1}, {"b": 1, "a": 1}, "keys of args[1][0] is 'a'"),
        ({1: 0}, {True: 0}, "keys of args[1][0] is 1 in the first graph and True in the second"),
        ({"a": 1}, {"a": 2}, "args[1]['a'] is 1 in the first graph and 2 in the second"),
        (slice(1), slice(2), "args[1][1] is 1 in the first graph and 2 in the second"),
        (range(2), range(3), "args[1] is range(0, 2)"),
        ({1}, {True}, "args[1] is {1} in the first graph and {True} in the second"),
        (Point(1, 2), Point(1, 2.0), "args[1] is Point(x=1, y=2)"),
        (torch.float32, torch.float64, "args[1] is torch.float32"),
        (len, max, "args[1] is <built-in function len>"),
        (nested(1), nested(2), "args[1]: node 0 (%output): args[0][0] is 1"),
    ],
)  # fmt: skip
def test_differences_of_values(left: Any, right: Any, told: str) -> None:
    found = difference(graph_of(left), graph_of(right))
    assert found is not None
    assert found.startswith(f"node 1 (%add): {told}")


def test_very_long_numbers_are_not_written_out() -> None:
    assert difference(graph_of(10**5000), graph_of(1)) == (
        "node 1 (%add): args[1] is a number too long to show in the first graph and 1 in the second"
    )


def test_tensors_are_compared_by_value_and_other_objects_by_identity() -> None:
    assert same_graph(graph_of(torch.ones(2)), graph_of(torch.ones(2)))
    assert not same_graph(graph_of(torch.ones(2)), graph_of(torch.zeros(2)))
    assert not same_graph(graph_of(torch.ones(2)), graph_of(torch.ones(2, dtype=torch.float64)))
    thing = object()
    assert same_graph(graph_of(thing), graph_of(thing))
    assert not same_graph(graph_of(thing), graph_of(object()))


def test_differences_of_nodes() -> None:
    def changed(**fields: Any) -> str | None:
        other = graph_of()
        node = other.output_node().prev
        for field, value in fields.items():
            setattr(node, field, value)
        return difference(graph_of(), other)

    assert changed() is None
    assert changed(name="plus") == "node 1 (%add): name is 'add' in the first graph and 'plus' in the second"
    assert "target is <built-in function add>" in str(changed(target=operator.sub))
    assert "op is call_function in the first graph and call_method" in str(changed(op="call_method", target="add"))
    assert "args has 1 items" in str(changed(args=()))
    assert "keys of kwargs has 0 items" in str(changed(kwargs={"k": 1}))
    assert "type is None in the first graph and <class 'int'>" in str(changed(type=int))
    assert "value_type is None" in str(changed(value_type=ArrayType("float32", ())))
    assert changed(source=SourceLine("a.py", 1), meta={"note": 1}) is None


def test_longer_and_shorter_graphs() -> None:
    longer = graph_of()
    with longer.inserting_before(longer.output_node()):
        longer.get_attr("w")
    assert difference(longer, graph_of()) == "node 2 (%w): name is 'w' in the first graph and 'output' in the second"
    shorter = graph_of()
    shorter.erase_node(shorter.output_node())
    assert difference(graph_of(), shorter) == "node 2: only the first graph has %output"
    assert difference(shorter, graph_of()) == "node 2: only the second graph has %output"


def test_nodes_are_matched_by_place_and_not_by_name_alone() -> None:
    def crossed(first: str) -> Graph:
        graph = Graph()
        x, y = graph.placeholder("x"), graph.placeholder("y")
        graph.output((x, y) if first == "x" else (y, x))
        return graph

    assert difference(crossed("x"), crossed("y")) == (
        "node 2 (%output): args[0][0] is %x in the first graph and %y in the second"
    )
