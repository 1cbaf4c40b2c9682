"""Nodes are found by module path, class, operation, source line and name, in captures of both kinds."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

import clew
from clew.errors import GraphError


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.act = nn.Linear(4, 4), nn.ReLU()

    def forward(self, x):
        scaled = torch.relu(self.linear(x)) * x.shape[0]
        return self.act(scaled) + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for block in self.layer:
            x = block(x)
        x = self.layer[0](x)
        return self.head(x).relu()


@pytest.fixture(params=["trace", "symbolic_trace"])
def captured(request):
    return clew.trace(Net(), (torch.randn(3, 4),)) if request.param == "trace" else clew.symbolic_trace(Net())


def test_a_leaf_is_inside_of_itself(captured):
    paths = [
        [path for path, _ in node.meta["nn_module_stack"].values() if path]
        for node in captured.graph.find(op=nn.Linear)
    ]
    assert paths == [
        ["layer.0", "layer.0.linear"],
        ["layer.1", "layer.1.linear"],
        ["layer.0", "layer.0.linear"],
        ["head"],
    ]
    assert {node.target for node in captured.graph.find(module="layer.*.linear")} == {
        "layer.0.linear",
        "layer.1.linear",
    }


def test_conditions_are_joined(captured):
    found = captured.graph.find(module="layer.*", op=torch.relu)
    assert len(found) == 6 and len(captured.graph.find(op=torch.relu)) == 7
    assert len(captured.graph.find(module="layer.1", op=torch.nn.functional.relu)) == 2
    assert [node.op for node in captured.graph.find(module="layer.1", op=torch.relu)] == [
        "call_function",
        "call_module",
    ]
    assert captured.graph.find(module="layer") == [] and len(captured.graph.find(kind=Block, op="mul")) == 3
    assert len(captured.graph.find(kind="Block", op="mul")) == 3 and not captured.graph.find(kind="lock")


def test_a_star_stays_within_a_name(captured):
    assert captured.graph.find(module="*.linear") == []
    assert len(captured.graph.find(module="**.linear")) == 3


def test_lines_and_names(captured):
    (head,) = captured.graph.find(name="head")
    assert head.target == "head" and head in captured.graph.find(line=head.source.lineno)
    assert head in captured.graph.find(line=f"test_addressing.py:{head.source.lineno}")
    assert captured.graph.find(line="nowhere.py:1") == []


def test_the_value_that_a_module_returned(captured):
    first, second, again = captured.node_of("layer.0"), captured.node_of("layer.1"), captured.node_of("layer.0", call=2)
    assert [node.target.__name__ for node in (first, second, again)] == ["add"] * 3
    assert len({first, second, again}) == 3 and again in captured.node_of("head").all_input_nodes
    assert captured.node_of("head").op == "call_module"
    assert captured.node_of("layer.0.linear", call=2) in captured.graph.find(module="layer.0.linear")


def test_an_unknown_module_is_told_with_those_that_are_known(captured):
    with pytest.raises(GraphError, match=r"no node of the module 'layers.0'[\s\S]*nearest[^\n]*: layer.0"):
        captured.node_of("layers.0")
    with pytest.raises(GraphError, match="no call 3 of the module 'layer.0'"):
        captured.node_of("layer.0", call=3)


def test_bodies_of_branches_are_searched():
    class Branching(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            if x.sum() > 0:
                x = self.linear(x)
            return x

    captured = clew.trace(Branching(), (torch.ones(2, 4),))
    (node,) = captured.graph.find(op=nn.Linear, module="linear")
    assert node.graph is not captured.graph and captured.node_of("linear") is node


class Pair(nn.Module):
    def forward(self, x, scale=None):
        return x.relu(), {"sum": x.sum(), "scale": scale}


class Passing(nn.Module):
    def forward(self, x):
        return x


class Returning(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair, self.passing, self.halves = Pair(), Passing(), Halves()

    def forward(self, x):
        first, others = self.pair(x.exp())
        left, right = self.halves(self.passing(first))
        return left * right + others["sum"]


class Halves(nn.Module):
    def forward(self, x):
        return x.chunk(2)


@pytest.mark.parametrize("kind", ["trace", "symbolic_trace"])
def test_what_a_module_returns_keeps_its_structure(kind):
    model = Returning()
    captured = clew.trace(model, (torch.randn(4),)) if kind == "trace" else clew.symbolic_trace(model)
    first, others = captured.node_of("pair")
    assert first.target == "relu" and others["sum"].target == "sum" and others["scale"] is None
    assert captured.node_of("passing") is first
    if kind == "trace":  # a symbolic value has no length, so there the halves are taken apart outside
        left, right = captured.node_of("halves")
        assert [node.args[1] for node in (left, right)] == [0, 1]


def test_copies_and_pickles_know_what_modules_returned():
    captured = clew.trace(Returning(), (torch.randn(4),))
    for twin in (copy.deepcopy(captured), pickle.loads(pickle.dumps(captured))):
        first, others = twin.node_of("pair")
        assert first.graph is twin.graph and (first.name, others["sum"].name) == ("relu", "sum_1")


def test_a_layer_called_by_a_function_is_addressed():
    layer = nn.Linear(4, 4)
    captured = clew.trace(lambda x: layer(x) + 1, (torch.randn(2, 4),))
    assert captured.node_of("layer").op == "call_module"
