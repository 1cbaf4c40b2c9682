"""EfficientNet: MBConv blocks with squeeze-excite and SiLU, scaled in width and depth.

An image batch (n, 3, h, w) comes in, class scores (n, classes) go out. Residual branches are dropped at random
(stochastic depth) while training; in evaluation they are plain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .layers import ConvNormAct, SqueezeExcite, StochasticDepth, round_channels


@dataclass(frozen=True)
class Stage:
    expansion: int
    channels: int
    depth: int
    stride: int
    kernel: int


B0_STAGES = (
    Stage(1, 16, 1, 1, 3),
    Stage(6, 24, 2, 2, 3),
    Stage(6, 40, 2, 2, 5),
    Stage(6, 80, 3, 2, 3),
    Stage(6, 112, 3, 1, 5),
    Stage(6, 192, 4, 2, 5),
    Stage(6, 320, 1, 1, 3),
)


class MBConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, stage: Stage, drop: float) -> None:
        super().__init__()
        hidden = inputs * stage.expansion
        layers: list[nn.Module] = []
        if stage.expansion > 1:
            layers.append(ConvNormAct(inputs, hidden, 1, activation=nn.SiLU))
        layers += [
            ConvNormAct(hidden, hidden, stage.kernel, stride, hidden, nn.SiLU),
            SqueezeExcite(hidden, max(1, inputs // 4), nn.SiLU),
            ConvNormAct(hidden, outputs, 1, activation=None),
        ]
        self.layers = nn.Sequential(*layers)
        self.drop = StochasticDepth(drop)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        result = self.layers(x)
        if self.residual:
            result = self.drop(result) + x
        return result


class EfficientNet(nn.Module):
    def __init__(
        self,
        stages: Sequence[Stage] = B0_STAGES,
        width: float = 1.0,
        depth: float = 1.0,
        drop: float = 0.2,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        channels = round_channels(32 * width)
        layers: list[nn.Module] = [ConvNormAct(3, channels, 3, 2, activation=nn.SiLU)]
        total = sum(math.ceil(stage.depth * depth) for stage in stages)
        for stage in stages:
            for index in range(math.ceil(stage.depth * depth)):
                outputs = round_channels(stage.channels * width)
                rate = drop * (len(layers) - 1) / total
                layers.append(MBConv(channels, outputs, stage.stride if index == 0 else 1, stage, rate))
                channels = outputs
        layers.append(ConvNormAct(channels, 4 * channels, 1, activation=nn.SiLU))
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(drop), nn.Linear(4 * channels, classes))

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.features(x))
        return self.classifier(torch.flatten(x, 1))
