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


class WithIdleExperts(nn.Module):
    """Experts of which those behind the last weight leave their rows as they are, as in models with zero experts."""

    def __init__(self):
        super().__init__()
        self.count = 3
        self.weights = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        for found in torch.bincount(chosen, minlength=8).nonzero():
            number = int(found.item())
            (rows,) = torch.where(chosen == number)
            if number >= self.count:
                moved = x[rows]
            else:
                moved = x[rows] @ self.weights[number]
            out.index_add_(0, rows, moved)
        return out


@pytest.mark.parametrize("example", [[5, 5, 6, 7, 6], [0, 1, 0, 2, 2], [7, 0, 1, 1, 3], list(range(12))])
def test_a_side_that_fails_with_the_number_of_the_example_is_run_with_one_that_leads_there(example):
    """No row of the first example goes to an expert with weights: ``weights[5]`` would be out of range. The last one
    has more rounds than are compared with each other, and each unpacks what ``torch.where`` gives."""
    torch.manual_seed(0)
    program = WithIdleExperts()
    captured = clew.trace(program, args=(torch.randn(len(example), 4), torch.tensor(example)))
    for chosen in ([0, 1, 2, 3, 4], [7, 7, 7, 7, 7], [2, 2], [6, 0, 6, 0, 1, 5]):
        inputs = torch.randn(len(chosen), 4), torch.tensor(chosen)
        assert torch.equal(captured(*inputs), program(*inputs))
