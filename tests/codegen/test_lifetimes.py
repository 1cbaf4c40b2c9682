"""Values live as long as in code written by hand, and large graphs become code in reasonable time."""

import operator

import pytest

import clew

from .blocks import Block, peaks, step
from .running import module_of, new_graph


@pytest.fixture(autouse=True)
def _start_anew():
    peaks.clear()


def by_hand(x):
    a = step(x)
    b = step(a)
    del a
    c = step(b, b)
    d = step(b, c)
    del b, c
    step(d)
    e = step(d)
    del d
    return step(e)


def graph_of_it():
    graph, x = new_graph("x")
    a = graph.call_function(step, (x,))
    b = graph.call_function(step, (a,))
    c = graph.call_function(step, (b, b))
    d = graph.call_function(step, (b, c))
    graph.call_function(step, (d,))
    e = graph.call_function(step, (d,))
    graph.output(graph.call_function(step, (e,)))
    return graph


def test_as_many_values_live_as_in_code_by_hand():
    module = module_of(graph_of_it())
    by_hand(None)
    expected = list(peaks)
    peaks.clear()
    module(None)
    assert peaks == expected


def test_an_unused_value_dies_at_once():
    graph, x = new_graph("x")
    graph.call_function(step, (x,))
    graph.call_function(step, (x,))
    graph.output(None)
    module_of(graph)(None)
    assert peaks == [0, 0]


class Fresh:
    """Its attribute is made anew at each look."""

    def __getattr__(self, name):
        if name == "block":
            return Block()
        raise AttributeError(name)


def test_an_unused_attribute_dies_at_once():
    graph, x = new_graph("x")
    graph.get_attr("block")
    graph.call_function(step, (x,))
    graph.output(None)
    clew.GraphFunction(Fresh(), graph)(None)
    assert peaks == [0]


def test_in_place_operators_free_their_operands():
    graph, x = new_graph("x")
    first = graph.call_function(step, (x,))
    listed = graph.call_function(list, ())
    grown = graph.call_function(operator.iadd, (listed, [first]))
    graph.call_method("clear", (grown,))
    graph.call_function(step, (x,))
    graph.output(None)
    module_of(graph)(None)
    assert peaks == [0, 0]


def test_ten_thousand_nodes():
    graph, x = new_graph("x")
    for _ in range(10_000):
        x = graph.call_function(operator.add, (x, 1))
    graph.output(x)
    assert module_of(graph)(0) == 10_000


def test_one_node_with_ten_thousand_arguments():
    graph, x = new_graph("x")
    graph.output(graph.call_function(max, ([x, *range(10_000)],)))
    assert module_of(graph)(3) == 9_999
