"""Parameters that a module makes at its first call, in the place of a plain attribute."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import clew
from clew.errors import CaptureError, GuardError


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = None

    def forward(self, x):
        if self.weight is None:
            self.weight = nn.Parameter(x.mean(0) * 2)
        return x * self.weight


def test_the_first_call_makes_the_parameter():
    model, twin = Lazy(), Lazy()
    graph = clew.trace(twin, (torch.ones(1, 3),))
    assert vars(twin)["weight"] is None and not dict(twin.named_parameters())
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(graph(x), model(x))
    assert torch.equal(graph.weight, model.weight) and isinstance(graph.weight, nn.Parameter)
    with pytest.raises(GuardError, match=r"there is no self\.weight"):
        graph(x)


def test_a_lazy_graph_makes_it_once():
    model, lazy = Lazy(), clew.trace(Lazy())
    for factor in (1, 2, 3):
        x = torch.full((2, 3), float(factor))
        assert torch.equal(lazy(x), model(x))


def test_a_lazy_module_of_torch_must_be_called_once():
    with pytest.raises(CaptureError, match="has no parameters yet"):
        clew.trace(nn.LazyLinear(2), (torch.ones(1, 3),))
