"""Adaptive computation time: a cell thinks about each input for as many rounds as its halting unit asks for."""

import torch
from torch import Tensor, nn


class Ponder(nn.Module):
    """Gives the mean of the states, weighted by the halting probabilities, and the rounds of each row of the batch."""

    def __init__(self, width: int, most: int, threshold: float = 0.99) -> None:
        super().__init__()
        self.most, self.threshold = most, threshold
        self.cell = nn.GRUCell(width, width)
        self.halt = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, int]:
        state, answer = torch.zeros_like(x), torch.zeros_like(x)
        spent = x.new_zeros(x.shape[0])
        rounds_of_each = torch.zeros_like(spent)
        rounds = 0
        while (spent < self.threshold).any():
            rounds += 1
            running = spent < self.threshold
            state = self.cell(x, state)
            wanted = torch.sigmoid(self.halt(state)).squeeze(1)
            if rounds == self.most:
                share = torch.where(running, 1 - spent, torch.zeros_like(spent))
            else:
                last = spent + wanted >= self.threshold
                share = torch.where(last, 1 - spent, wanted) * running
            answer = answer + share.unsqueeze(1) * state
            spent = spent + share
            rounds_of_each = rounds_of_each + running
            if rounds == self.most:
                break
        return answer, rounds_of_each, rounds


def make() -> nn.Module:
    """A cell whose halting unit looks at the first number of its state."""
    model = Ponder(width=3, most=6)
    with torch.no_grad():
        model.halt.weight.copy_(torch.tensor([[6.0, 0.0, 0.0]]))
        model.halt.bias.fill_(-1.0)
    return model


def inputs() -> list[tuple[Tensor, ...]]:
    """Rows that halt at different times, together, late, and a batch of one."""
    rows = torch.tensor([[2.0, 0.0, 1.0], [-2.0, 1.0, 0.0]])
    return [(rows,), (rows * 5,), (-rows,), (torch.zeros(4, 3),), (rows[:1] * 20,)]
