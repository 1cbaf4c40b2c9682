"""U-Net: an encoder and a decoder of convolutions, joined level by level.

An image batch (n, 3, h, w) comes in (h and w divisible by 2 ** depth), a map of class scores
(n, classes, h, w) goes out. `upsample` chooses transposed convolutions or bilinear interpolation.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from .layers import ConvNormAct


def double(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(ConvNormAct(inputs, outputs), ConvNormAct(outputs, outputs))


class Up(nn.Module):
    """Doubles the image, joins it to the encoder's of that size, and convolves."""

    def __init__(self, inputs: int, transposed: bool) -> None:
        super().__init__()
        self.transposed = transposed
        half = inputs // 2
        self.raise_ = nn.ConvTranspose2d(inputs, half, 2, 2) if transposed else nn.Conv2d(inputs, half, 1)
        self.convolve = double(inputs, half)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        if not self.transposed:
            x = functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.convolve(torch.cat([skip, self.raise_(x)], dim=1))


class UNet(nn.Module):
    def __init__(self, width: int = 64, depth: int = 4, classes: int = 2, upsample: str = "transposed") -> None:
        super().__init__()
        widths = [width * 2**level for level in range(depth + 1)]
        self.stem = double(3, width)
        self.downs = nn.ModuleList(double(a, b) for a, b in pairwise(widths))
        self.ups = nn.ModuleList(Up(size, upsample == "transposed") for size in reversed(widths[1:]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        levels = [self.stem(x)]
        for down in self.downs:
            levels.append(down(functional.max_pool2d(levels[-1], 2)))
        x = levels.pop()
        for up in self.ups:
            x = up(x, levels.pop())
        return self.head(x)
