"""Branches whose bodies make the same calls are one branch, given the first or the second of each pair of values."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clew.capture.control_flow.alignment import Merged, Unmergeable
from clew.ir.control_flow import Branch, cond, control_of
from clew.ir.graph import Graph
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node


def masked(x: Any, mask: Any) -> Any:
    """A layer that takes a mask or none."""
    return x * 2 if mask is None else x * mask


def _body(mask: Any, count: int, factor: float = 2.0, calls: int = 1) -> Graph:
    """``masked(x, mask) * factor``, the mask being a parameter if it is told by its place."""
    graph = Graph()
    given = [graph.placeholder(f"p{number}") for number in range(count)]
    found = given[0]
    for _ in range(calls):
        found = graph.call_function(masked, (found, given[mask] if type(mask) is int else mask))
    graph.output((graph.call_function(torch.mul, (found, factor)),))
    return graph


def _other(count: int) -> Graph:
    graph = Graph()
    given = [graph.placeholder(f"p{number}") for number in range(count)]
    graph.output((given[0],))
    return graph


def _branch(graph: Graph, flag: Node, body: Graph, *operands: Node) -> Branch:
    node = graph.call_function(cond, (flag, body, _other(len(operands)), operands))
    found = control_of(node)
    assert isinstance(found, Branch)
    return found


def _two(left: Graph, right: Graph) -> tuple[Merged, list[Node]]:
    graph = Graph()
    flag, x, mask = (graph.placeholder(name) for name in ("flag", "x", "mask"))
    return Merged(_branch(graph, flag, left, x), _branch(graph, flag, right, x, mask)), [flag, x, mask]


def _run(merged: Merged, nodes: list[Node], number: int, values: tuple[Any, ...]) -> Any:
    """What the one branch gives with the values that the first, or the second, was given."""
    graph = Graph()
    inputs = dict(zip(nodes, [graph.placeholder(node.name) for node in nodes], strict=True))
    given = tuple(inputs.get(pair[number], pair[number]) for pair in merged.pairs)
    branch = graph.call_function(cond, (inputs[nodes[0]], *merged.bodies, given))
    graph.output(branch)
    graph.lint()
    return Interpreter(torch.nn.Module(), graph=graph).run(*values)[0]


def test_none_and_a_mask_are_handed_to_one_body() -> None:
    merged, nodes = _two(_body(None, 1), _body(1, 2))
    assert len(merged.pairs) == 2 and (None, nodes[2]) in merged.pairs
    x, mask = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 1.0])
    for flag in (True, False):
        assert torch.equal(_run(merged, nodes, 0, (flag, x, mask)), x * 4 if flag else x)
        assert torch.equal(_run(merged, nodes, 1, (flag, x, mask)), x * mask * 2 if flag else x)


def test_numbers_that_differ_are_handed_in() -> None:
    merged, nodes = _two(_body(None, 1, 2.0), _body(None, 2, -0.0))
    assert (2.0, -0.0) in merged.pairs
    x = torch.tensor([1.0])
    assert torch.equal(_run(merged, nodes, 0, (True, x, x)), x * 4)
    assert torch.signbit(_run(merged, nodes, 1, (True, x, x))).all()


@pytest.mark.parametrize("other", [_body(1, 2, calls=2), _other(2)])
def test_other_calls_are_not_one(other: Graph) -> None:
    with pytest.raises(Unmergeable):
        _two(_body(None, 1), other)


def test_what_a_body_computes_is_not_what_is_handed_in() -> None:
    def body(uses_first: bool) -> Graph:
        graph = Graph()
        x, mask = graph.placeholder("x"), graph.placeholder("mask")
        first = graph.call_function(masked, (x, None))
        graph.output((graph.call_function(masked, (first if uses_first else x, mask)),))
        return graph

    graph = Graph()
    flag, x, mask = (graph.placeholder(name) for name in ("flag", "x", "mask"))
    branches = [_branch(graph, flag, body(uses), x, mask) for uses in (True, False)]
    with pytest.raises(Unmergeable):
        Merged(*branches)
