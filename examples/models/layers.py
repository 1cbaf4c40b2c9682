"""Building blocks that several models share.

What comes in are channel counts and activation classes; what goes out are `torch.nn.Module`s.
Every block branches only on its own configuration and on `self.training`, never on the values or
shapes of tensors, so each of them can be traced symbolically in either mode.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

Activation = Callable[[], nn.Module]


def round_channels(channels: float, divisor: int = 8) -> int:
    """Round to the nearest multiple of `divisor`, but never lose more than a tenth of the channels."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded


class ConvNormAct(nn.Sequential):
    """Convolution with 'same' padding, batch norm and an activation (None leaves the activation out)."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int = 3,
        stride: int = 1,
        groups: int = 1,
        activation: Activation | None = nn.ReLU,
    ) -> None:
        layers: list[nn.Module] = [
            nn.Conv2d(inputs, outputs, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        if activation is not None:
            layers.append(activation())
        super().__init__(*layers)


class SqueezeExcite(nn.Module):
    """Scales each channel by a gate computed from the mean of all channels."""

    def __init__(
        self, channels: int, squeezed: int, activation: Activation = nn.ReLU, gate: Activation = nn.Sigmoid
    ) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.reduce = nn.Conv2d(channels, squeezed, 1)
        self.activation = activation()
        self.expand = nn.Conv2d(squeezed, channels, 1)
        self.gate = gate()

    def forward(self, x: Tensor) -> Tensor:
        scale = self.gate(self.expand(self.activation(self.reduce(self.pool(x)))))
        return x * scale


class StochasticDepth(nn.Module):
    """Drops a residual branch for whole samples while training; does nothing in evaluation."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        keep = 1.0 - self.rate
        # `new_empty` is a method of the traced value, so the draw stays in the graph; `torch.rand(n)` would not.
        mask = x.new_empty((x.shape[0],) + (1,) * 3).bernoulli_(keep)
        return x * mask / keep


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of an image laid out as (batch, channels, height, width)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def causal_mask(length: int) -> Tensor:
    """True where a position may look: at itself and at everything before it."""
    return torch.ones(length, length).tril().bool()
