"""Functions with control flow in a module of their own: programs of the register call them as users call a library."""

import torch


def soften(x: torch.Tensor) -> torch.Tensor:
    """The vector, squashed where it is large."""
    if x.abs().max() > 2:
        return torch.tanh(x) * 2
    return x


def shrink(x: torch.Tensor, limit: float) -> torch.Tensor:
    """The vector, halved until its norm is under the limit."""
    while x.norm() > limit:
        x = x / 2
    return x
