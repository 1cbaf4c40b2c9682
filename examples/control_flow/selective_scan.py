"""A selective state space layer in the manner of Mamba: a recurrence over time whose step size the input chooses.

At a time step where every step size is nearly zero, nothing is selected and the state stays as it is.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SelectiveScan(nn.Module):
    """Maps (batch, length, width) to the same shape through a hidden state of `size` numbers for each channel."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.to_step = nn.Linear(width, width)
        self.to_in_and_out = nn.Linear(width, 2 * size)
        self.log_decay = nn.Parameter(torch.arange(1.0, size + 1).log().repeat(width, 1))
        self.skip = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        step = F.softplus(self.to_step(x))
        into, out_of = self.to_in_and_out(x).split(self.size, dim=-1)
        decay = -self.log_decay.exp()
        state = x.new_zeros(x.shape[0], x.shape[2], self.size)
        outputs = []
        for x_t, step_t, into_t, out_t in zip(
            x.unbind(1), step.unbind(1), into.unbind(1), out_of.unbind(1), strict=True
        ):
            if step_t.max() > 0.05:
                kept = torch.exp(step_t.unsqueeze(-1) * decay)
                state = kept * state + (step_t * x_t).unsqueeze(-1) * into_t.unsqueeze(1)
            outputs.append((state * out_t.unsqueeze(1)).sum(-1) + self.skip * x_t)
        return torch.stack(outputs, dim=1), state


def make() -> nn.Module:
    """A small layer whose step sizes follow the sign of the input closely."""
    layer = SelectiveScan(width=4, size=3)
    with torch.no_grad():
        layer.to_step.weight.copy_(4 * torch.eye(4))
        layer.to_step.bias.zero_()
    return layer


def inputs() -> list[tuple[Tensor, ...]]:
    """All steps selected, none, some, and other lengths and batch sizes."""
    wave = torch.sin(torch.arange(40.0)).reshape(2, 5, 4)
    late = torch.cat([torch.full((2, 3, 4), -3.0), torch.ones(2, 2, 4)], dim=1)
    return [(wave.abs(),), (-5 * torch.ones(2, 5, 4),), (late,), (wave.repeat(1, 2, 1),), (late[:1, 2:],)]
