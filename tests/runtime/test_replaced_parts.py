"""Parts of captured modules that are replaced or added after the capture: seen, or refused."""

from __future__ import annotations

import copy
import pickle
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


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.times, self.norm = 2, nn.LayerNorm(3)

    def rate(self) -> float:
        return 0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x) * self.rate() * self.times


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.layers = nn.ModuleList([nn.Linear(3, 3)])
        self.scaled = Scaled()
        self.last = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers[0](self.scaled(self.block(x))))


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


def _put_into_the_table(net: Any) -> None:
    net._modules["block"] = Residual(nn.Linear(3, 3), nn.ReLU())


def _put_several(net: Any) -> None:
    net._modules.update(block=Residual(nn.Linear(3, 3), nn.ReLU()))


def _take_from_the_table(net: Any) -> None:
    del net.block._modules["1"]


def _change_the_class(net: Any) -> None:
    net.block.__class__ = Residual


def _put_a_method(net: Any) -> None:
    net.scaled.rate = lambda: 5.0


def _put_a_method_past_the_attributes(net: Any) -> None:
    net.scaled.__dict__["rate"] = lambda: 5.0


def _put_a_number_past_the_attributes(net: Any) -> None:
    vars(net.scaled)["times"] = 5


def _put_another_forward(net: Any) -> None:
    vars(net.scaled)["forward"] = torch.tanh


def _put_a_hook_into_the_table(net: Any) -> None:
    net.scaled._forward_hooks[0] = lambda module, inputs, output: -output


CHANGES = [
    _set,
    _add_in_its_place,
    _set_by_path,
    _add,
    _set_the_next,
    _take_away,
    _put_into_the_table,
    _put_several,
    _take_from_the_table,
    _change_the_class,
    _put_a_method,
    _put_a_method_past_the_attributes,
    _put_a_number_past_the_attributes,
    _put_another_forward,
    _put_a_hook_into_the_table,
]


@pytest.mark.parametrize("through", [lambda net: net, copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
@pytest.mark.parametrize("change", CHANGES)
def test_what_the_graph_would_not_notice_is_refused(
    change: Callable[[Any], None], through: Callable[[Any], Any]
) -> None:
    captured = through(clew.trace(Net(), (X,)))
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


def test_lists_and_dicts_of_parts_are_walked_through() -> None:
    class Nest(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(11)])
            self.named = nn.ModuleDict({"first": nn.Linear(2, 2)})

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
            return self.named["first"](x)

    model = Nest()
    captured = clew.trace(model, (torch.ones(1, 2),))
    assert list(captured.layers) == list(model.layers) and len(captured.layers) == 11
    assert captured.layers[-1] is model.layers[-1] and captured.layers[9:] == list(model.layers)[9:]
    assert captured.named["first"] is model.named["first"] and captured.named
    with pytest.raises(IndexError):
        captured.layers[11]


class Counted(nn.Module):
    """A part whose number the module around it reads, and which is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 2


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside = Counted()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.inside.count


def test_an_attribute_of_a_part_that_is_only_read_cannot_be_set() -> None:
    captured = clew.trace(Counting(), args=(X,))
    with pytest.raises(clew.CaptureError, match="'count' is set in a captured module"):
        captured.inside.count = 4
    assert torch.equal(captured(X), X * 2)
