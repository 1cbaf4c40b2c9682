"""Loops over a known number of layers that ask for data inside: each layer is its own call, on its own way."""

import pytest
import torch
from torch import nn

import clew


class Routed(nn.Module):
    """Sends rows to experts, at most ``capacity`` to each."""

    def __init__(self, capacity):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.capacity = capacity

    def forward(self, x):
        chosen, out = self.gate(x).argmax(-1), x.clone()
        for number in range(3):
            rows = (chosen == number).nonzero().flatten()[: self.capacity]
            if len(rows):
                out[rows] = self.experts[number](x[rows])
        return out


class RoutedByAny(Routed):
    """The same, asked by a mask."""

    def forward(self, x):
        chosen, out = self.gate(x).argmax(-1), torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mask = chosen == number
            if mask.any() and mask.sum() > number - 1:
                out[mask] = expert(x[mask]) * self.experts[number].bias.sum()
        return out


def chosen_by_name(x):
    table = {0: torch.relu, 1: torch.tanh, 2: torch.neg}
    for number in range(3):
        if x.sum() > number:
            x = table[number](x) + 1
    return x


INPUTS = [
    lambda rows=rows, scale=scale: torch.randn(rows, 4) * scale for rows, scale in ((5, 1), (1, 1), (9, 5), (0, 1))
]


@pytest.mark.parametrize("make", [lambda: Routed(2), lambda: Routed(1), lambda: RoutedByAny(2), lambda: chosen_by_name])
@pytest.mark.parametrize("lazy", [False, True])
def test_one_graph_is_right_on_all_inputs(make, lazy):
    torch.manual_seed(0)
    program = make()
    captured = clew.trace(program) if lazy else clew.trace(program, args=(torch.randn(5, 4),))
    for _ in range(4):
        for inputs in INPUTS:
            x = inputs()
            torch.testing.assert_close(captured(x), program(x), rtol=0, atol=0)
