"""A recurrent network over a padded batch: as many rounds as the longest sequence has steps; finished ones wait."""

import torch
from torch import Tensor, nn


class Reader(nn.Module):
    """Reads (batch, time, width) with the length of each sequence; gives the last states and the mean over time."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(width, size)
        self.size = size

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        state = x.new_zeros(x.shape[0], self.size)
        total = torch.zeros_like(state)
        for step in range(int(lengths.max())):
            running = (lengths > step).unsqueeze(1)
            fresh = self.cell(x[:, step], state)
            state = torch.where(running, fresh, state)
            total = total + state * running
        if (lengths == 0).any():
            return state, total / lengths.clamp(min=1).unsqueeze(1)
        return state, total / lengths.unsqueeze(1)


def make() -> nn.Module:
    """A small reader."""
    return Reader(width=3, size=4)


def inputs() -> list[tuple[Tensor, ...]]:
    """All full, one short, one empty, all empty, and a longer batch."""
    x = torch.cos(torch.arange(24.0)).reshape(2, 4, 3)
    longer = torch.cos(torch.arange(54.0)).reshape(3, 6, 3)
    lengths = [(4, 4), (4, 2), (0, 3), (0, 0)]
    return [*((x, torch.tensor(pair)) for pair in lengths), (longer, torch.tensor([6, 1, 5]))]
