"""Bad graphs and bad edits: each is refused by an error that names the node, and the graph is unharmed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from clew import errors
from clew.ir.equality import difference
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.source import SourceLine
from clew.ir.text import to_text
from clew.ir.verify import verify


def sample() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    neg = graph.call_function(operator.neg, (x,))
    add = graph.call_function(operator.add, (neg, x))
    add.source = SourceLine("model.py", 12, "forward")
    graph.output(add)
    return graph


def by_name(graph: Graph) -> dict[str, Node]:
    return {node.name: node for node in graph.nodes}


def test_a_good_graph_passes() -> None:
    verify(sample())
    verify(Graph())


def test_use_before_definition() -> None:
    graph = sample()
    nodes = by_name(graph)
    nodes["add"].append(nodes["neg"])
    with pytest.raises(errors.UseBeforeDefinition) as caught:
        verify(graph)
    message = str(caught.value)
    assert message.startswith("Argument 'neg' of Node 'add' was used before it has been defined!")
    assert "model.py:12, in forward" in message
    assert "add.prepend(neg)" in message
    nodes["add"].prepend(nodes["neg"])
    assert difference(graph, sample()) is None


def test_a_cycle() -> None:
    graph = sample()
    nodes = by_name(graph)
    nodes["neg"].args = (nodes["add"],)
    with pytest.raises(errors.UseBeforeDefinition, match="the nodes form a cycle: add -> neg -> add"):
        verify(graph)
    nodes["neg"].args = (nodes["x"],)
    verify(graph)


def test_two_outputs() -> None:
    graph = sample()
    graph.output(1)
    with pytest.raises(errors.OutputCount, match="this graph has two outputs: output and output_1"):
        verify(graph)
    graph.erase_node(by_name(graph)["output_1"])
    assert difference(graph, sample()) is None


def test_a_node_after_the_output() -> None:
    graph = sample()
    late = graph.get_attr("w")
    with pytest.raises(errors.OutputCount, match="Node w comes after the output output, so it would never run"):
        verify(graph)
    graph.output_node().prepend(late)
    verify(graph)


def test_a_node_of_another_graph() -> None:
    graph, other = sample(), sample()
    foreign = by_name(other)["neg"]
    users_before = dict(foreign.users)
    stranger = graph.call_function(operator.neg, (foreign,))
    graph.output_node().prepend(stranger)
    with pytest.raises(errors.ForeignNode, match="Argument 'neg' of Node 'neg_1' does not belong to this Graph"):
        verify(graph)
    assert foreign.users == users_before
    verify(other)
    for refused in (
        lambda: graph.erase_node(by_name(other)["output"]),
        lambda: graph.inserting_before(foreign),
        lambda: by_name(graph)["x"].append(foreign),
    ):
        with pytest.raises(errors.ForeignNode, match="neg|output"):
            refused()
    assert difference(other, sample()) is None


def test_a_missing_attribute() -> None:
    graph = Graph()
    graph.get_attr("block.weight")
    graph.owning_module = SimpleNamespace(block=SimpleNamespace())
    with pytest.raises(errors.MissingAttribute) as caught:
        verify(graph)
    assert "Node block_weight target block.weight references nonexistent attribute weight of block" in str(caught.value)
    graph.owning_module.block.weight = 1
    verify(graph)


def test_a_module_that_is_none() -> None:
    graph = Graph(torch.nn.Module())
    graph.owning_module.register_buffer("scale", torch.ones(1))
    graph.call_module("scale")
    with pytest.raises(errors.MissingAttribute, match="Node scale target scale does not reference an nn.Module"):
        verify(graph)


def test_an_unknown_opcode() -> None:
    graph = sample()
    text = to_text(graph)
    with pytest.raises(errors.UnknownOpcode, match="node 'x' has the unknown opcode 'call_moon'"):
        graph.create_node("call_moon", "x")
    with pytest.raises(errors.UnknownOpcode, match="use one of call_function, call_method"):
        Node(graph, "n", "root", "x", (), {})
    assert to_text(graph) == text
    verify(graph)


def test_erasing_a_node_in_use() -> None:
    graph = sample()
    with pytest.raises(errors.StillUsed, match="Tried to erase Node x but it still had 2 users in the graph: neg, add"):
        graph.erase_node(by_name(graph)["x"])
    assert difference(graph, sample()) is None
    verify(graph)


def test_an_erased_node_in_use() -> None:
    graph = sample()
    lost = graph.get_attr("w")
    graph.erase_node(lost)
    by_name(graph)["add"].args = (lost, 1)
    with pytest.raises(errors.ErasedNode, match="Argument 'w' of Node 'add' was erased from the graph"):
        verify(graph)
    with pytest.raises(errors.ErasedNode, match="node w was erased"):
        graph.inserting_after(lost)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda graph: graph.call_function("relu"), "the target 'relu' of type str, but a Callable is expected"),
        (lambda graph: graph.call_method(torch.relu), "but a str is expected"),
        (lambda graph: graph.create_node("get_attr", 3), "the target 3 of type int, but a str is expected"),
        (lambda graph: graph.create_node("output", len), "the target of a output node is a name"),
    ],
    ids=["call_function", "call_method", "get_attr", "output"],
)
def test_bad_targets(build: Callable[[Graph], Any], message: str) -> None:
    graph = sample()
    with pytest.raises(errors.BadTarget) as caught:
        build(graph)
    assert message in str(caught.value)
    assert difference(graph, sample()) is None


def test_a_bad_target_set_later() -> None:
    graph = sample()
    by_name(graph)["neg"].target = "neg"
    with pytest.raises(errors.BadTarget, match="node 'neg' has the target 'neg' of type str"):
        verify(graph)


def test_duplicate_names() -> None:
    graph = sample()
    object.__setattr__(by_name(graph)["neg"], "name", "x")
    with pytest.raises(errors.DuplicateName, match="Node redefined name x!"):
        verify(graph)


def test_wrong_accounts_of_users() -> None:
    graph = sample()
    nodes = by_name(graph)
    nodes["x"].users.pop(nodes["neg"])
    with pytest.raises(errors.GraphError, match="Node 'x' does not know its user 'neg'"):
        verify(graph)
    graph = sample()
    nodes = by_name(graph)
    nodes["neg"].users[nodes["x"]] = None
    with pytest.raises(errors.GraphError, match="Node 'neg' counts 'x' among its users, which does not use it"):
        verify(graph)


def test_nested_graphs_follow_the_same_rules() -> None:
    inner = sample()
    inner.output(1)
    graph = Graph()
    graph.output([inner])
    with pytest.raises(errors.OutputCount, match="two outputs"):
        verify(graph)


def test_a_node_of_the_outer_graph_inside_a_nested_one() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    inner = Graph()
    inner.output(x)
    graph.output(inner)
    with pytest.raises(errors.ForeignNode, match="Argument 'x' of Node 'output' does not belong to this Graph"):
        verify(graph)


def test_every_rule_is_an_error_of_clew_and_of_the_builtin_that_torch_raises() -> None:
    assert issubclass(errors.UseBeforeDefinition, RuntimeError)
    assert issubclass(errors.UnknownOpcode, AssertionError)
    assert issubclass(errors.BadTarget, ValueError)
    for kind in (errors.OutputCount, errors.ForeignNode, errors.StillUsed, errors.DuplicateName):
        assert issubclass(kind, errors.ClewError)
