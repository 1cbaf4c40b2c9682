"""ConvNeXt: residual blocks of a wide depthwise convolution, layer norm and a pointwise MLP.

An image batch (n, 3, h, w) comes in (h and w at least 4 * 2 ** (stages - 1)), class scores (n, classes) go out.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .layers import ChannelNorm, StochasticDepth


class ConvNeXtBlock(nn.Module):
    """Its branch starts nearly silent: a learned scale per channel, small at first."""

    def __init__(self, width: int, drop: float, scale: float = 1e-6) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.widen = nn.Linear(width, 4 * width)
        self.activation = nn.GELU()
        self.narrow = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), scale))
        self.drop = StochasticDepth(drop)

    def forward(self, x: Tensor) -> Tensor:
        branch = self.depthwise(x).permute(0, 2, 3, 1)
        branch = self.narrow(self.activation(self.widen(self.norm(branch))))
        branch = (self.scale * branch).permute(0, 3, 1, 2)
        return x + self.drop(branch)


class ConvNeXt(nn.Module):
    def __init__(
        self,
        depths: Sequence[int] = (3, 3, 9, 3),
        widths: Sequence[int] = (96, 192, 384, 768),
        drop: float = 0.1,
        scale: float = 1e-6,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0], eps=1e-6)]
        for index, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            if index > 0:
                layers += [ChannelNorm(widths[index - 1], eps=1e-6), nn.Conv2d(widths[index - 1], width, 2, 2)]
            layers += [ConvNeXtBlock(width, drop, scale) for _ in range(depth)]
        self.features = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(widths[-1], eps=1e-6)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x).mean([-2, -1])
        return self.head(self.norm(x))
