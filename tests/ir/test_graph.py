"""Graphs: building, editing, searching and copying."""

from __future__ import annotations

import copy
import operator
import warnings
from types import SimpleNamespace

import pytest
import torch

from clew.errors import OutputCount
from clew.ir.equality import difference
from clew.ir.graph import Graph
from clew.ir.text import to_text
from clew.ir.verify import verify


def chain(length: int = 3) -> Graph:
    graph = Graph()
    value = graph.placeholder("x")
    for _ in range(length):
        value = graph.call_function(operator.neg, (value,))
    graph.output(value)
    return graph


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def test_building_one_node_of_each_opcode() -> None:
    graph = Graph()
    x = graph.placeholder("x", int, 3)
    w = graph.get_attr("w", float)
    f = graph.call_function(operator.add, (x, w), {}, int, name="sum_of_both")
    m = graph.call_method("abs", (f,))
    n = graph.call_module("block.0", (m,), {"k": 1})
    graph.output(n, list)
    assert to_text(graph) == (
        "graph(%x as int = 3) {\n"
        "  %w as float = attr w\n"
        "  %sum_of_both as int = function operator.add(%x, %w)\n"
        "  %abs_1 = method abs(%sum_of_both)\n"
        "  %block_0 = module block.0(%abs_1, k=1)\n"
        "  return %block_0 as list\n"
        "}"
    )


def test_insertion_points() -> None:
    graph = chain(2)
    first, second = list(graph.nodes)[1:3]
    with graph.inserting_before(second):
        graph.get_attr("a")
        graph.get_attr("b")
    with graph.inserting_after(first):
        graph.get_attr("c")
        graph.get_attr("d")
    with graph.inserting_before():
        graph.get_attr("start")
    # As in torch.fx, each node goes right after the given one, so the last comes first.
    assert names(graph) == ["start", "x", "neg", "d", "c", "a", "b", "neg_1", "output"]
    graph.inserting_before(graph.output_node())
    graph.get_attr("e")
    assert names(graph)[-2:] == ["e", "output"]
    verify(graph)


def test_erasing() -> None:
    graph = chain(1)
    dead = graph.get_attr("dead")
    count = len(graph.nodes)
    graph.erase_node(dead)
    assert len(graph.nodes) == count - 1
    with pytest.warns(UserWarning, match="dead .*already"):
        graph.erase_node(dead)


def test_erasing_while_iterating() -> None:
    graph = chain(1)
    for name in "abcd":
        graph.get_attr(name)
    for node in graph.nodes:
        if node.op == "get_attr":
            graph.erase_node(node)
    assert names(graph) == ["x", "neg", "output"]


def test_the_insertion_point_moves_on_when_its_node_is_erased() -> None:
    graph = chain(1)
    dead = graph.get_attr("dead")
    graph.inserting_before(dead)
    graph.erase_node(dead)
    graph.get_attr("new")
    assert names(graph) == ["x", "neg", "output", "new"]


def test_finding_nodes_follows_every_edit() -> None:
    graph = chain(2)
    assert [node.name for node in graph.find_nodes(op="call_function", target=operator.neg)] == ["neg", "neg_1"]
    last = graph.find_nodes(op="call_function")[-1]
    last.target = operator.pos
    assert graph.find_nodes(op="call_function", target=operator.pos) == [last]
    with graph.inserting_before(last):
        added = graph.call_function(operator.pos, (last.args[0],))
    assert graph.find_nodes(op="call_function", target=operator.pos) == [added, last]
    graph.erase_node(added)
    assert graph.find_nodes(op="call_function", target=operator.pos) == [last]
    assert graph.find_nodes(op="get_attr") == []


def test_output_node() -> None:
    graph = chain(1)
    assert graph.output_node().op == "output"
    graph.erase_node(graph.output_node())
    with pytest.raises(OutputCount, match="no output node"):
        graph.output_node()


def test_graph_copy_and_node_copy() -> None:
    source, target = chain(2), Graph()
    x = target.placeholder("y")
    result = target.graph_copy(source, {next(iter(source.nodes)): x})
    target.output(result)
    verify(target)
    assert names(target) == ["y", "neg", "neg_1", "output"]
    node, output = Graph().graph_copy(source, {}, return_output_node=True)
    assert node.name == "neg_1" and output is source.output_node()


def test_deepcopy_keeps_names_given_and_notes() -> None:
    graph = chain(2)
    node = list(graph.nodes)[1]
    node.meta["note"] = [1]
    twin = copy.deepcopy(graph)
    assert difference(graph, twin) is None
    copied = list(twin.nodes)[1]
    assert copied.meta == {"note": [1]} and copied.meta is not node.meta
    with twin.inserting_before(twin.output_node()):
        assert twin.call_function(operator.neg, (copied,)).name == "neg_2"


def test_deepcopy_keeps_the_insertion_of_nested_graphs() -> None:
    graph, inner = Graph(), chain(1)
    graph.output([inner, inner])
    first, second = copy.deepcopy(graph).output_node().args[0]
    assert first is second and first is not inner
    assert difference(first, inner) is None


def test_paths_that_are_not_there_yet_warn() -> None:
    graph = Graph(SimpleNamespace(a=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph.get_attr("a")
    with pytest.warns(UserWarning, match="'b' is no attribute|no attribute 'b'"):
        graph.get_attr("b")
    with pytest.warns(UserWarning, match="'c'.*submodule|submodule.*'c'"):
        graph.call_module("c")


def test_dead_code() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    clone = graph.call_method("clone", (x,))
    graph.call_method("add_", (clone, 1))
    graph.call_function(torch.relu, (x,))
    graph.call_function(operator.neg, (graph.call_function(operator.neg, (x,)),))
    graph.output(clone)
    assert graph.eliminate_dead_code()
    assert names(graph) == ["x", "clone", "add_", "output"]
    assert not graph.eliminate_dead_code()


def test_str_names_the_inputs() -> None:
    assert str(chain(1)).splitlines()[0] == "graph(%x):"


def test_create_node_checks_its_arguments() -> None:
    graph = Graph()
    with pytest.raises(AssertionError, match="args must be a tuple"):
        graph.create_node("call_function", len, 3)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="kwargs must be a dict"):
        graph.create_node("call_function", len, (), 3)  # type: ignore[arg-type]
    assert names(graph) == []
