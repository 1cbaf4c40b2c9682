"""Walks: what a walk meets is the same whether it follows the links or the list that an earlier walk left behind."""

from __future__ import annotations

import gc
import operator
import random
from collections.abc import Iterator

import pytest

import clew
from clew.ir.node import listed, order_of


def _chain(size: int) -> clew.Graph:
    graph = clew.Graph()
    value = graph.placeholder("x")
    for _ in range(size):
        value = graph.call_function(operator.add, (value, 1))
    graph.output(value)
    return graph


def _along_links(graph: clew.Graph) -> Iterator[clew.Node]:
    """The plain walk: from node to node, past those that were erased meanwhile."""
    node = graph._root._next
    while node is not graph._root:
        if node._position:
            yield node
        node = node._next


def _edit(graph: clew.Graph, node: clew.Node, chance: random.Random) -> None:
    """One random change around the node on which a walk stands."""
    nodes = listed(graph)
    what = chance.randrange(12)
    if what == 0:
        with graph.inserting_after(node):
            graph.call_function(operator.neg, (1,))
    elif what == 1:
        with graph.inserting_before(chance.choice(nodes)):
            graph.call_function(operator.pos, (1,))
    elif what == 2:
        for unused in [found for found in nodes if not found.users and found.op == "call_function"][:2]:
            graph.erase_node(unused)
    elif what == 3 and not node._erased:
        node.append(chance.choice(nodes))
    elif what == 4 and not node._erased and not node.users:
        graph.erase_node(node)


def _visited(seed: int, follow_list: bool) -> tuple[list[str], list[str]]:
    chance = random.Random(seed)
    graph = _chain(40)
    if follow_list:
        order_of(graph)
    met = []
    for node in graph.nodes if follow_list else _along_links(graph):
        met.append(node.name)
        _edit(graph, node, chance)
        if len(met) > 400:
            break
    return met, [node.name for node in graph.nodes]


@pytest.mark.parametrize("seed", range(60))
def test_edits_during_a_walk(seed: int) -> None:
    assert _visited(seed, follow_list=True) == _visited(seed, follow_list=False)


def test_a_walk_leaves_the_order_behind_until_a_change() -> None:
    graph = _chain(50)
    first = list(graph.nodes)
    assert graph._order == first and list(graph.nodes) == first == listed(graph)
    with graph.inserting_after(first[3]):
        new = graph.call_function(operator.neg, (first[0],))
    assert graph._order is None
    assert list(graph.nodes) == [*first[:4], new, *first[4:]]


def test_a_walk_that_breaks_off_leaves_no_order() -> None:
    graph = _chain(50)
    assert next(iter(graph.nodes)).op == "placeholder"
    assert [node.op for node in graph.nodes].count("output") == 1
    assert len(order_of(graph)) == len(graph.nodes)


def test_a_change_between_two_steps_of_the_first_walk() -> None:
    graph = _chain(50)
    walk = iter(graph.nodes)
    start = next(walk)
    with graph.inserting_after(start):
        new = graph.call_function(operator.neg, (start,))
    assert next(walk) is new
    assert len(list(walk)) == len(graph.nodes) - 2
    assert listed(graph)[1] is new


def test_a_walk_that_began_before_there_was_a_list() -> None:
    graph = _chain(50)
    walk = iter(graph.nodes)
    listed(graph)
    first = next(walk)
    with graph.inserting_after(first):
        new = graph.call_function(operator.neg, (first,))
    assert next(walk) is new


def test_a_change_on_the_last_node_goes_on_behind_it() -> None:
    graph = _chain(50)
    listed(graph)
    met = []
    for node in graph.nodes:
        met.append(node)
        if node.op == "output" and len(graph.nodes) == 52:
            node.append(next(iter(graph.nodes)))
    assert met[-1].op == "placeholder" and len(met) == 53


def test_walks_that_ended_are_forgotten() -> None:
    graph = _chain(50)
    order = order_of(graph)
    abandoned = [iter(graph.nodes) for _ in range(3)]
    for _ in range(1000):
        next(iter(graph.nodes))
    gc.collect()
    assert len(order._marks) < 60
    assert len(abandoned) == 3


def test_numbers_follow_the_order() -> None:
    graph = _chain(50)
    nodes = listed(graph)
    assert nodes[3] < nodes[4]
    nodes[2].append(nodes[40])
    assert nodes[40] < nodes[3]
    assert sorted(nodes) == list(graph.nodes)
