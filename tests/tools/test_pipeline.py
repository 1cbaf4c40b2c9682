"""Pipelines: passes are checked one by one, and the pass and node that are wrong are named."""

import functools

import pytest
import torch
from torch import nn

import clew
from clew.errors import VerificationError

X = torch.randn(2, 3)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.second = nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 2)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return self.second(self.drop(hidden))


def doubled(captured):
    """A wrong pass: activations are doubled."""
    (relu,) = captured.graph.find_nodes(op="call_function", target=torch.relu)
    with captured.graph.inserting_after(relu):
        twice = captured.graph.call_function(torch.mul, (relu, 2))
    relu.replace_all_uses_with(twice, delete_user_cb=lambda user: user is not twice)
    return captured


def exchanged(captured):
    """A wrong pass: another function in the place of one."""
    captured.graph.find_nodes(op="call_function", target=torch.relu)[0].target = torch.tanh


def invalid(captured):
    """A pass that breaks a rule: a value is used before it is there."""
    nodes = list(captured.graph.nodes)
    nodes[1].args = (nodes[3],)


def test_steps_are_told():
    captured = clew.trace(Model().eval(), (X,))
    pipeline = clew.Pipeline([clew.remove_dropout, functools.partial(clew.simplify, fast=True)])
    assert str(pipeline) == "remove_dropout\nsimplify(fast=True)"
    assert pipeline(captured) is captured
    first, second = pipeline.steps
    assert first.nodes == (6, 5) and first.is_changed and not second.is_changed
    assert "-  %drop: f32[2, 3] = module drop(%hidden)" in first.diff.splitlines()
    assert first.seconds >= 0 and "6 ->     5 nodes" in str(pipeline) and "the graph is as it was" in str(pipeline)


def test_a_wrong_pass_is_refused():
    captured = clew.trace(Model().eval(), (X,))
    with pytest.raises(VerificationError, match=r"after doubled the program does something else: result"):
        clew.Pipeline([clew.remove_dropout, doubled])(captured)


def test_a_broken_rule_is_refused_without_inputs():
    with pytest.raises(clew.GraphError):
        clew.Pipeline([invalid], verify=False)(clew.symbolic_trace(Model()))


@pytest.mark.parametrize(("wrong", "node"), [(doubled, "mul"), (exchanged, "hidden")])
def test_bisect(wrong, node):
    captured = clew.trace(Model().eval(), (X,))
    before = clew.to_text(captured.graph)
    found = clew.bisect([clew.dead_code, clew.remove_dropout, wrong, clew.simplify], captured, (X,))
    assert (found.name, found.node) == (wrong.__name__, node)
    assert str(found).startswith(f"{wrong.__name__} changes the results, first at node {node}")
    assert clew.to_text(captured.graph) == before
    if wrong is exchanged:
        assert "hidden = torch.relu(self.first(x))" in found.line


def test_bisect_tells_nodes_of_branches_from_those_around_them():
    """Both sides have nodes of the names of those around them."""

    def program(x):
        y = torch.relu(x - 1)
        if x.sum() > 0:
            y = torch.relu(y[:1] + 1) * 3
        return y.sum()

    captured = clew.trace(program, (torch.ones(2, 3),))
    found = clew.bisect([exchanged], captured, (torch.full((2, 3), 2.0),))
    assert found.node == "y" and "y = torch.relu(x - 1)" in found.line


def test_bisect_finds_nothing_where_nothing_is_wrong():
    captured = clew.trace(Model().eval(), (X,))
    assert clew.bisect(clew.Pipeline([clew.remove_dropout, clew.inline_modules]), captured) is None
