"""Inception: modules of four parallel branches joined along the channels, with an auxiliary classifier.

An image batch (n, 3, h, w) comes in. In evaluation class scores (n, classes) go out; while training a named
tuple of the scores and the auxiliary head's scores. Which of the two is decided by `self.training`, so a
capture is of one mode.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from .layers import ConvNormAct


class InceptionOutput(NamedTuple):
    scores: Tensor
    auxiliary: Tensor


class InceptionModule(nn.Module):
    """Each of the four branches gives a quarter of the output's channels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        quarter = outputs // 4
        self.one = ConvNormAct(inputs, quarter, 1)
        self.three = nn.Sequential(ConvNormAct(inputs, quarter, 1), ConvNormAct(quarter, quarter, 3))
        self.five = nn.Sequential(ConvNormAct(inputs, quarter, 1), ConvNormAct(quarter, quarter, 5))
        self.pool = ConvNormAct(inputs, quarter, 1)

    def forward(self, x: Tensor) -> Tensor:
        pooled = functional.avg_pool2d(x, kernel_size=3, stride=1, padding=1)
        branches = [self.one(x), self.three(x), self.five(x), self.pool(pooled)]
        return torch.cat(branches, 1)


class AuxiliaryHead(nn.Module):
    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.conv = ConvNormAct(inputs, hidden, 1)
        self.fc = nn.Linear(hidden * 4, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(functional.adaptive_avg_pool2d(x, 2))
        return self.fc(functional.dropout(x.flatten(1), 0.7, training=self.training))


class Inception(nn.Module):
    def __init__(self, width: int = 64, depth: int = 3, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(ConvNormAct(3, width, 7, 2), nn.MaxPool2d(3, 2, ceil_mode=True))
        self.lower = nn.Sequential(
            InceptionModule(width, 2 * width), *[InceptionModule(2 * width, 2 * width) for _ in range(depth - 1)]
        )
        self.auxiliary = AuxiliaryHead(2 * width, width, classes)
        self.reduce = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.upper = InceptionModule(2 * width, 4 * width)
        self.dropout = nn.Dropout(0.4)
        self.fc = nn.Linear(4 * width, classes)

    def forward(self, x: Tensor) -> Tensor | InceptionOutput:
        # The images arrive normalised for one range of values and leave for another, as in the original.
        x = torch.cat([x[:, channel : channel + 1] * 0.458 - 0.03 for channel in range(3)], 1)
        x = self.lower(self.stem(x))
        auxiliary = self.auxiliary(x) if self.training else None
        x = self.upper(self.reduce(x))
        scores = self.fc(self.dropout(functional.adaptive_avg_pool2d(x, 1).flatten(1)))
        return scores if auxiliary is None else InceptionOutput(scores, auxiliary)
