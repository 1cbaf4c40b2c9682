"""Parts of captured modules that are replaced or added after the capture: seen, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import clew

X = torch.tensor([[1.0, -2.0, 3.0]])


class Residual(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + super().forward(x)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.layers = nn.ModuleList([nn.Linear(3, 3)])
        self.last = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers[0](self.block(x)))


def _set(net: Any) -> None:
    net.block = Residual(nn.Linear(3, 3), nn.ReLU())


def _add_in_its_place(net: Any) -> None:
    net.add_module("block", Residual(nn.Linear(3, 3), nn.ReLU()))


def _set_by_path(net: Any) -> None:
    net.set_submodule("block", Residual(nn.Linear(3, 3), nn.ReLU()))


def _add(net: Any) -> None:
    net.block.add_module("2", nn.Tanh())


def _set_the_next(net: Any) -> None:
    setattr(net.layers, "1", nn.Tanh())


def _take_away(net: Any) -> None:
    del net.block[1]


@pytest.mark.parametrize("change", [_set, _add_in_its_place, _set_by_path, _add, _set_the_next, _take_away])
def test_what_the_graph_would_not_notice_is_refused(change: Callable[[Any], None]) -> None:
    captured = clew.trace(Net(), (X,))
    before = captured(X)
    with pytest.raises(clew.CaptureError, match="the graph holds what was inside of it"):
        change(captured)
    assert torch.equal(captured(X), before)


def _set_a_layer(net: Any) -> None:
    net.last = nn.Sequential(nn.Linear(3, 3), nn.Tanh())


def _set_an_item(net: Any) -> None:
    net.block[1] = nn.Tanh()


@pytest.mark.parametrize("change", [_set_a_layer, _set_an_item])
def test_layers_that_stay_calls_can_be_replaced(change: Callable[[Any], None]) -> None:
    results = []
    for make in (Net, lambda: clew.trace(Net(), (X,))):
        torch.manual_seed(1)
        net = make()
        change(net)
        results.append(net(X))
    assert torch.equal(*results)


def test_a_part_may_be_added_for_the_graph_to_call() -> None:
    captured = clew.trace(Net(), (X,))
    assert captured.add_submodule("block.2", nn.Tanh())
    output = captured.graph.output_node()
    with captured.graph.inserting_before(output):
        output.args = (captured.graph.call_module("block.2", (output.args[0],)),)
    assert captured(X).abs().max() <= 1


def test_a_part_that_is_put_past_the_attributes_is_not_seen() -> None:
    captured = clew.trace(Net(), (X,))
    other = Residual(nn.Linear(3, 3), nn.ReLU())
    captured._modules["block"] = other
    expected = captured.last(captured.layers[0](nn.Sequential.forward(other, X)))
    assert torch.equal(captured(X), expected)
