"""Functions with a backward pass of their own: three ways to write one, and a program that calls them."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class Masked(torch.autograd.Function):
    """Notes its result and a plain number in the context."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, mask: torch.Tensor, dim: int) -> torch.Tensor:
        ctx.dim = dim
        result = torch.softmax(x.masked_fill(mask, -1e4), dim)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        (result,) = ctx.saved_tensors
        product = gradient * result
        return 2 * (product - result * product.sum(ctx.dim, keepdim=True)), None, None


class Scaled(torch.autograd.Function):
    """Notes what it needs in a function of its own, gives two results, and asks which gradients are wanted."""

    @staticmethod
    def forward(x: torch.Tensor, factor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * factor, x.exp()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx: Any, of_product: torch.Tensor, of_power: torch.Tensor) -> Any:
        x, factor, power = ctx.saved_tensors
        of_x = of_product * factor + of_power * power
        return 3 * of_x, (of_product * x).sum() if ctx.needs_input_grad[1] else None


class Once(torch.autograd.Function):
    """Has no second derivative, and says so when it is asked for one: its class has to be there."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 3


@torch.library.custom_op("clew_tests::shifted", mutates_args=())
def shifted(x: torch.Tensor, by: float = 1.0) -> torch.Tensor:
    """An operator that a package registers."""
    return x + by


@shifted.register_fake
def _(x: torch.Tensor, by: float = 1.0) -> torch.Tensor:
    return torch.empty_like(x)


shifted.register_autograd(lambda ctx, gradient: (gradient * 5, None))


@functools.lru_cache(maxsize=8)
def angles(frequencies: torch.Tensor, rows: int, width: int = 4) -> torch.Tensor:
    """A table that is made once for each size."""
    return torch.arange(rows).unsqueeze(1) * frequencies.repeat(width // 2)


class OwnTable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.tensor([1.0, 0.1]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = angles(self.frequencies, x.shape[0], width=x.shape[1])
        return x * table.cos() + table.sin()


class OwnGradients(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.factor = nn.Linear(3, 3), nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = Masked.apply(self.linear(x), x > 1, -1)
        product, power = Scaled.apply(found, self.factor)
        return torch.ops.clew_tests.shifted(product, by=0.5) + power
