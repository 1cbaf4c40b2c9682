"""Shared memory: what may be a view stays with what it is a view of, and names of users' functions prove nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.shared_memory import OUTSIDE, SharedMemory


def mean(x: Any) -> Any:
    """A user's function with the name of one that makes a new array."""
    return x


def chain(function: Any, *args: Any) -> tuple[Graph, Node, Node, Node]:
    """A graph that writes into what a function gives for its input."""
    graph = Graph()
    x = graph.placeholder("x")
    made = graph.call_function(function, (x, *args))
    write = graph.call_method("add_", (made, 1))
    graph.output(write)
    return graph, x, made, write


@pytest.mark.parametrize("inputs_apart", [False, True])
@pytest.mark.parametrize("function", [mean, torch.ravel, torch.detach])
def test_what_may_be_a_view_shares_the_memory_of_its_argument(function: Any, inputs_apart: bool) -> None:
    graph, x, made, write = chain(function)
    memory = SharedMemory(graph, inputs_apart=inputs_apart)
    assert memory.find(x) is memory.find(made) is memory.find(write)
    assert write in memory.writers_of(x)


def test_einsum_may_give_a_view() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    turned = graph.call_function(torch.einsum, ("ij->ji", x))
    memory = SharedMemory(graph, inputs_apart=True)
    assert memory.find(x) is memory.find(turned)


@pytest.mark.parametrize("function", [torch.clone, torch.mean, torch.cumsum, torch.tril])
def test_what_is_made_new_shares_none(function: Any) -> None:
    graph, x, made, write = chain(function)
    memory = SharedMemory(graph, inputs_apart=True)
    assert memory.find(x) is not memory.find(made)
    assert list(memory.writers_of(made)) == [write] and list(memory.writers_of(x)) == []


def test_inputs_and_attributes_are_one_memory_or_each_its_own() -> None:
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    weight, again, bias = (graph.get_attr(name) for name in ("weight", "weight", "bias"))
    one = SharedMemory(graph, torch.nn.Linear(2, 2))
    assert {one.find(node) for node in (x, y, weight, bias)} == {one.find(OUTSIDE)}
    apart = SharedMemory(graph, torch.nn.Linear(2, 2), inputs_apart=True)
    assert len({apart.find(node) for node in (x, y, weight, bias)}) == 4
    assert apart.find(weight) is apart.find(again)
