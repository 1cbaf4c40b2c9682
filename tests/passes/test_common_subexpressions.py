"""Common subexpressions: equal pure calls become one, and nothing else changes."""

import copy
import operator
import pickle

import pytest
import torch
from hypothesis import given, settings
from torch import nn

import clew
from tests.strategies import runnable_graphs

X = torch.rand(3, 3)


def shared(program):
    """The module of a program before and after the pass."""
    before = clew.symbolic_trace(program)
    after = copy.deepcopy(before)
    assert clew.common_subexpressions(after.graph) is after.graph
    after.graph.lint()
    return before, after


def count(module):
    return sum(node.op in ("call_function", "call_method") for node in module.graph.nodes)


def twice(x):
    one = torch.relu(x - 1.0) * torch.sin(x)
    other = torch.relu(x - 1.0) * torch.sin(x)
    return one.sum() + other.mean()


def test_golden():
    _, after = shared(twice)
    assert clew.to_text(after.graph).splitlines() == [
        "graph(%x) {",
        "  %sub = function operator.sub(%x, 1.0)",
        "  %relu = function torch.relu(%sub)",
        "  %sin = function torch.sin(%x)",
        "  %mul = function operator.mul(%relu, %sin)",
        "  %sum_1 = method sum(%mul)",
        "  %mean = method mean(%mul)",
        "  %add = function operator.add(%sum_1, %mean)",
        "  return %add",
        "}",
    ]


def test_all_ways_to_run_it_agree():
    before, after = shared(twice)
    expected = twice(X)
    reloaded = pickle.loads(pickle.dumps(after))
    for result in (before(X), after(X), clew.Interpreter(after).run(X), reloaded(X)):
        torch.testing.assert_close(result, expected, rtol=0, atol=0)


def test_attributes_are_read_once():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.rand(3))

        def forward(self, x):
            return (x * self.scale - 1.0).sum() / (x * self.scale - 2.0).sum()

    module = Scaled()
    _, after = shared(module)
    assert [node.op for node in after.graph.nodes].count("get_attr") == 1
    assert torch.equal(after(X), module(X))


def written_after(x):
    one, other = x - 1.0, x - 1.0
    one.add_(1)
    return one.sum() - other.sum()


def written_between(x):
    one = torch.sin(x).sum()
    x.mul_(2)
    return one - torch.sin(x).sum()


def view_is_written(x):
    one, other = x - 1.0, x - 1.0
    one.view(-1).add_(1)
    return one.sum() - other.sum()


def both_returned(x):
    return x - 1.0, x - 1.0


def both_returned_in_views(x):
    one, other = x - 1.0, x - 1.0
    return one.view(-1), [other]


def random_numbers(x):
    return (torch.rand_like(x) - torch.rand_like(x)).abs().sum()


@pytest.mark.parametrize(
    "program",
    [written_after, written_between, view_is_written, both_returned, both_returned_in_views, random_numbers],
)
def test_what_could_be_noticed_stays(program):
    before, after = shared(program)
    assert count(after) == count(before)


def test_a_change_of_mode_is_an_effect():
    before = clew.symbolic_trace(lambda x: (x * 2.0).sum() + (x * 2.0).sum())
    graph = before.graph
    second = graph.find_nodes(op="call_function", target=operator.mul)[1]
    with graph.inserting_before(second):
        graph.call_function(torch.set_grad_enabled, (False,))
    after = copy.deepcopy(before)
    clew.common_subexpressions(after.graph)
    assert count(after) == count(before)


def test_one_of_two_may_be_returned():
    _, after = shared(lambda x: (x - 1.0, (x - 1.0).sum()))
    assert count(after) == 2


def test_literals_are_the_same_only_with_their_class_and_sign():
    def literals(x):
        return (x / 0.0).sum() + (x / -0.0).sum() + torch.eq(x, 1).sum() + torch.eq(x, True).sum()

    before, after = shared(literals)
    assert count(after) == count(before)
    torch.testing.assert_close(after(X), before(X), equal_nan=True)


def test_identities_are_not_mixed_up():
    graph = clew.Graph()
    x = graph.placeholder("x")
    one, other = (graph.call_function(torch.neg, (x,)) for _ in range(2))
    graph.output(graph.call_function(operator.is_, (one, other)))
    clew.common_subexpressions(graph)
    assert len(graph.nodes) == 5


def test_iterators_are_used_up_only_once():
    graph = clew.Graph()
    x = graph.placeholder("x")
    pairs = [graph.call_function(zip, (x, x)) for _ in range(2)]
    lists = [graph.call_function(list, (pair,)) for pair in pairs]
    again = graph.call_function(list, (pairs[0],))
    graph.output([graph.call_function(len, (made,)) for made in (*lists, again)])
    clew.common_subexpressions(graph)
    assert clew.GraphFunction(None, graph)([1, 2]) == [2, 2, 0]


def test_bodies_are_treated_each_on_its_own():
    body = clew.symbolic_trace(lambda x: torch.sin(x).sum() + torch.sin(x).mean()).graph
    graph = clew.Graph()
    x = graph.placeholder("x")
    other = copy.deepcopy(body)
    graph.output(graph.call_function(clew.cond, (True, body, other, (x,))))
    clew.common_subexpressions(graph)
    assert len(body.nodes) == len(other.nodes) == 6


@settings(max_examples=40, deadline=None)
@given(runnable_graphs())
def test_random_programs_stay_equal_in_value(drawn):
    graph, attributes, inputs = drawn
    root = nn.Module()
    for name, value in attributes.items():
        setattr(root, name, value)
    before = clew.GraphModule(root, graph)
    after = copy.deepcopy(before)
    clew.common_subexpressions(after.graph)
    after.graph.lint()
    expected = before(*copy.deepcopy(inputs))
    torch.testing.assert_close(after(*copy.deepcopy(inputs)), expected, rtol=0, atol=0, equal_nan=True)
