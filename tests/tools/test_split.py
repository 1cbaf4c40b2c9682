"""Stages of a captured program, run in order, are the whole."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

import clew
from clew.errors import GraphError
from tests.tools.surgery_models import MODELS, gpt2, tensors_of


@pytest.mark.parametrize("balance", ["parameters", "memory", "time"])
@pytest.mark.parametrize("name", MODELS)
def test_stages_of_real_models(name, balance):
    model, kwargs = MODELS[name]()
    captured = clew.trace(model, kwargs=kwargs)
    stages = clew.split(captured, stages=3, balance=balance, kwargs=kwargs)
    with torch.no_grad():
        wanted = tensors_of(model(**kwargs))
        for one in (stages, pickle.loads(pickle.dumps(stages)), copy.deepcopy(stages)):
            torch.testing.assert_close(tensors_of(one(**kwargs)), wanted)
    assert len(stages.stages) == 3 and all(len(one.graph.nodes) > 2 for one in stages.stages)
    held = {id(tensor) for one in stages.stages for tensor in one.parameters()}
    assert held <= {id(tensor) for tensor in model.parameters()}


def test_by_paths_with_explicit_skip_connections_and_shared_parameters():
    model, kwargs = gpt2()
    captured = clew.trace(model, kwargs=kwargs)
    stages = clew.split(captured, at=["transformer.h.0", "transformer.h.1"])
    first, second, third = stages.stages
    assert {key.split(".")[2] for key in second.state_dict()} == {"1"}
    assert hasattr(first.transformer, "wte") and not hasattr(second.transformer, "wte")
    assert stages.shared == [{0: "transformer.wte.weight", 2: "lm_head.weight"}]
    assert [str(one) for one in first.guards] == [str(one) for one in captured.guards.entry]
    assert not second.guards and not third.guards
    assert captured.node_of("transformer.h.0").name in stages.inputs[1]
    torch.testing.assert_close(stages(**kwargs).logits, model(**kwargs).logits)


class Skipping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
        self.unused = nn.Linear(100, 100)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        first = self.layers[0](x)
        hidden = self.layers[2](self.layers[1](first).relu_())
        return self.layers[3](hidden + first), {"first": first}


def test_values_skip_stages_and_effects_stay():
    model, x = Skipping(), torch.randn(2, 4)
    captured = clew.trace(model, (x,))
    stages = clew.split(captured, at=["layers.0", "layers.1", "layers.2"])
    assert [len(names) for names in stages.inputs] == [1, 1, 1, 2]
    calls = model.calls.clone()
    result, others = stages(x)
    assert model.calls == calls + 1
    wanted = model(x)
    torch.testing.assert_close((result, others), (wanted[0], wanted[1]))
    assert not any("unused" in key for key in stages.state_dict())
    result.sum().backward()
    assert all(layer.weight.grad is not None for layer in model.layers)


def test_guards_are_checked_by_the_first_stage():
    model, x = Skipping(), torch.randn(2, 4)
    stages = clew.split(clew.trace(model, (x,)), stages=2)
    calls = model.calls.clone()
    with pytest.raises(clew.GuardError):
        stages(x.numpy())
    assert model.calls == calls


def test_the_largest_stage_is_as_small_as_can_be():
    model, x = nn.Sequential(*(nn.Linear(8, 8) for _ in range(8))), torch.randn(2, 8)
    stages = clew.split(clew.trace(model, (x,)), stages=4)
    assert [sum(one.numel() for one in stage.parameters()) for stage in stages.stages] == [144] * 4
    torch.testing.assert_close(stages(x), model(x))


def test_functions_and_symbolic_traces():
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), torch.randn(2, 4)
    symbolic = clew.split(clew.symbolic_trace(model), at=["1"])
    function = clew.split(clew.trace(lambda x: model(x) * 2, (x,)), at=["model.1"])
    torch.testing.assert_close(symbolic(x), model(x))
    torch.testing.assert_close(function(x), model(x) * 2)
    assert list(symbolic.stages[1].state_dict()) == ["2.weight", "2.bias"]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            y = self.first(x).relu()
        return self.last(y)


def test_with_blocks_stay_whole():
    model, x = Block(), torch.randn(2, 4)
    captured = clew.trace(model, (x,))
    with pytest.raises(GraphError, match="inside of a `with` block"):
        clew.split(captured, at=["first"])
    stages = clew.split(clew.trace(nn.Sequential(model, nn.ReLU()), (x,)), at=["0"])
    torch.testing.assert_close(stages(x), model(x).relu())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "either at= or stages="),
        ({"at": ["layer.0"]}, "nearest[^\n]*layers.0"),
        ({"stages": 50}, "cannot be split into 50 stages"),
        ({"stages": 2, "balance": "luck"}, "nothing to balance by"),
        ({"stages": 2, "balance": "time"}, "needs arguments"),
    ],
)
def test_mistakes_are_told(options, text):
    captured = clew.trace(Skipping(), (torch.randn(2, 4),))
    with pytest.raises(GraphError, match=text):
        clew.split(captured, **options)
