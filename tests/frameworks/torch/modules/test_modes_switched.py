"""Programs that switch the mode of modules, or other settings, while they run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import clew
from clew.errors import CaptureError


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.drop, self.norm, self.linear = nn.Dropout(0.5), nn.BatchNorm1d(3), nn.Linear(3, 3)


class DropsNothing(Parts):
    def forward(self, x):
        self.drop.eval()
        y = self.drop(x)
        self.drop.train()
        return y


class Evaluates(Parts):
    def forward(self, x):
        was = self.training
        self.eval()
        y = self.norm(self.drop(x))
        self.train(was)
        return self.linear(y)


class OtherChance(Parts):
    def forward(self, x):
        self.drop.p = 0.1
        y = self.drop(x)
        self.drop.p = 0.5
        return y + self.drop(x)


class ByData(Parts):
    def forward(self, x):
        if x.sum() > 0:
            self.drop.eval()
        else:
            self.drop.train()
        y = self.drop(x)
        self.drop.train()
        return y


class StaysSwitched(Parts):
    def forward(self, x):
        self.norm.eval()
        return self.norm(self.drop(x))


class Alternates(Parts):
    def forward(self, x):
        y = self.norm(self.drop(x))
        if self.training:
            self.eval()
        else:
            self.train()
        return y


@pytest.mark.parametrize("kind", [DropsNothing, Evaluates, OtherChance, ByData, StaysSwitched])
def test_one_capture_switches_like_the_original(kind):
    model, twin = kind(), kind()
    modes = [part.training for part in twin.modules()]
    graph = clew.trace(twin, (torch.randn(4, 3),))
    assert [part.training for part in twin.modules()] == modes
    for place in range(4):
        x = torch.randn(2 + place, 3) * (-1) ** place
        results = []
        for function in (model, graph):
            torch.manual_seed(place)
            results.append(function(x))
        assert torch.equal(*results), place
    assert all(torch.equal(value, twin.state_dict()[name]) for name, value in model.state_dict().items())


def test_a_mode_that_stays_switched_is_left_so():
    model, twin = StaysSwitched(), StaysSwitched()
    graph = clew.trace(twin, (torch.randn(4, 3),))
    x = torch.randn(5, 3)
    torch.manual_seed(1)
    wanted = model(x)
    torch.manual_seed(1)
    assert torch.equal(graph(x), wanted)
    assert not graph.norm.training and graph.drop.training


def test_a_lazy_graph_alternates():
    model, twin = Alternates(), Alternates()
    lazy = clew.trace(twin)
    for place in range(5):
        x = torch.randn(3 + place, 3)
        torch.manual_seed(place)
        wanted = model(x)
        torch.manual_seed(place)
        assert torch.equal(lazy(x), wanted)
        assert model.training == twin.training


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) * (2 if self.training else 3)


class SwitchesALeaf(nn.Module):
    def __init__(self, leaf):
        super().__init__()
        self.leaf = leaf

    def forward(self, x):
        self.leaf.eval()
        y = self.leaf(x)
        self.leaf.train()
        return y


@pytest.mark.parametrize("leaf", [Inner(), nn.TransformerEncoderLayer(4, 2, 8)])
def test_a_call_that_stays_whole_is_not_switched(leaf):
    with pytest.raises(CaptureError, match="sets attributes in a"):
        clew.trace(SwitchesALeaf(leaf), (torch.ones(2, 4),), leaves=lambda part, path: path == "leaf")
