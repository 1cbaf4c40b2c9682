"""Regions of module calls: they stand together only where that changes nothing."""

from __future__ import annotations

from typing import Any

import torch

import clew
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.passes.flatten import flatten
from clew.passes.fold_runs import Called, folded
from clew.passes.module_regions import Call, Regions
from clew.passes.nest import nest


def relative(path: str, target: str) -> str | None:
    if not path:
        return target
    return target[len(path) + 1 :] if target.startswith(f"{path}.") else None


def inside(node: Node, *paths: str) -> Node:
    """Note on a node the modules inside of which it was recorded."""
    node.meta["nn_module_stack"] = {path: (path, "Part") for path in ("", *paths)}
    return node


def regions(graph: Graph) -> Regions:
    return Regions(graph, relative, lambda path: True)


def shape_of(call: Call) -> Any:
    """The items of a call, inner calls as pairs of path and items."""
    return [(item.path, shape_of(item)) if isinstance(item, Call) else item.name for item in call.items]


def same_again(graph: Graph) -> bool:
    """Whether the pieces of a graph flatten to an equal one."""
    found = nest(graph, relative, lambda path: True)

    def piece_at(path: str) -> tuple[str, Graph] | None:
        return (path, found.pieces[path][0]) if path in found.pieces else None

    return clew.same_graph(flatten(found.root, piece_at, graph, found.origins, found.moved), graph)


def test_nodes_of_one_call_stand_together_though_others_are_between_them() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    first = inside(graph.call_function(torch.sin, (x,), name="first"), "a")
    other = inside(graph.call_function(torch.cos, (x,), name="other"))
    second = inside(graph.call_function(torch.add, (first, 1), name="second"), "a")
    graph.output((second, other))
    assert shape_of(regions(graph).root) == ["x", ("a", ["first", "second"]), "other", "output"]
    assert same_again(graph)


def test_a_call_that_needs_what_is_made_of_its_own_values_is_no_region() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    first = inside(graph.call_function(torch.sin, (x,), name="first"), "a", "a.inner")
    other = inside(graph.call_function(torch.cos, (first,), name="other"))
    second = inside(graph.call_function(torch.add, (other, 1), name="second"), "a")
    graph.output(second)
    assert shape_of(regions(graph).root) == ["x", ("a.inner", ["first"]), "other", "second", "output"]
    assert same_again(graph)


def test_nothing_moves_across_a_write() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    first = inside(graph.call_function(torch.sin, (x,), name="first"), "a")
    inside(graph.call_method("add_", (x, 1)), "b")
    second = inside(graph.call_function(torch.cos, (x,), name="second"), "a")
    graph.output((first, second))
    assert shape_of(regions(graph).root) == ["x", "first", ("b", ["add_"]), "second", "output"]
    assert same_again(graph)


def test_random_numbers_are_drawn_in_the_same_order() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    first = inside(graph.call_function(torch.rand_like, (x,), name="first"), "a")
    between = inside(graph.call_function(torch.rand_like, (x,), name="between"), "b")
    second = inside(graph.call_function(torch.rand_like, (x,), name="second"), "a")
    graph.output((first, between, second))
    assert shape_of(regions(graph).root) == ["x", "first", ("b", ["between"]), "second", "output"]


def test_a_block_that_ends_in_another_module_is_not_torn_apart() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    manager = inside(graph.call_function(torch.no_grad, (), name="manager"), "a")
    inside(graph.call_method("__enter__", (manager,)), "a")
    y = inside(graph.call_function(torch.sin, (x,), name="y"), "a")
    inside(graph.call_method("__exit__", (manager, None, None, None)))
    graph.output(y)
    assert not any(isinstance(item, Call) for item in regions(graph).root.items)


def test_a_value_of_the_module_around_is_handed_in() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    weight = inside(graph.get_attr("weight"), "a")
    own = inside(graph.get_attr("a.weight"), "a")
    y = inside(graph.call_function(torch.add, (weight, own), name="y"), "a")
    graph.output(inside(graph.call_function(torch.mul, (y, x), name="z"), "a"))
    found = nest(graph, relative, lambda path: True)
    (piece,) = found.pieces["a"]
    assert [(node.op, node.target) for node in piece.nodes][:3] == [
        ("placeholder", "weight"),
        ("placeholder", "x"),
        ("get_attr", "weight"),
    ]
    assert [node.target for node in found.root.nodes if node.op == "get_attr"] == ["weight"]
    assert same_again(graph)


def test_a_run_is_folded_only_if_each_call_takes_what_the_last_one_gave() -> None:
    def callee(path: str) -> Called:
        return Called("layer", 3, ("h", "mask"))

    def folds(calls: list[tuple[int, ...]]) -> bool:
        graph = Graph()
        values = [graph.placeholder("x"), graph.placeholder("mask")]
        for place, arguments in enumerate(calls):
            values.append(graph.create_node("call_module", f"layers.{place}", tuple(values[one] for one in arguments)))
        graph.output(values[-1])
        return any(node.target is clew.for_loop for node in folded(graph, callee).nodes)

    assert folds([(0, 1), (2, 1), (3, 1)])
    assert not folds([(0, 1), (2, 0), (3, 1)])
    assert not folds([(0, 1), (0, 1), (3, 1)])
    assert not folds([(0, 1), (2, 1), (2, 1)])
    assert not folds([(0, 1)])
