"""MobileNet V2 and V3: inverted residuals on depthwise convolutions; V3 adds squeeze-excite and hard swish.

An image batch (n, 3, h, w) comes in, class scores (n, classes) go out. `scale` multiplies the channel counts
of the original and `blocks` may be shortened, so that a tiny network keeps the real structure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from .layers import Activation, ConvNormAct, SqueezeExcite, round_channels


@dataclass(frozen=True)
class Block:
    """One inverted residual: widen by `expansion`, convolve each channel alone, narrow to `channels`."""

    expansion: float
    channels: int
    stride: int = 1
    kernel: int = 3
    squeeze: bool = False
    swish: bool = False


V2_BLOCKS = (
    Block(1, 16),
    *(Block(6, 24, 2), Block(6, 24)),
    *(Block(6, 32, 2), *[Block(6, 32)] * 2),
    *(Block(6, 64, 2), *[Block(6, 64)] * 3),
    *[Block(6, 96)] * 3,
    *(Block(6, 160, 2), *[Block(6, 160)] * 2),
    Block(6, 320),
)
V3_BLOCKS = (
    Block(1, 16, 2, squeeze=True),
    Block(4.5, 24, 2),
    Block(3.67, 24),
    Block(4, 40, 2, 5, squeeze=True, swish=True),
    *[Block(6, 40, 1, 5, squeeze=True, swish=True)] * 2,
    *[Block(3, 48, 1, 5, squeeze=True, swish=True)] * 2,
    Block(6, 96, 2, 5, squeeze=True, swish=True),
    *[Block(6, 96, 1, 5, squeeze=True, swish=True)] * 2,
)


class InvertedResidual(nn.Module):
    def __init__(self, inputs: int, outputs: int, block: Block, activation: Activation) -> None:
        super().__init__()
        hidden = round_channels(inputs * block.expansion)
        layers: list[nn.Module] = []
        if block.expansion != 1:
            layers.append(ConvNormAct(inputs, hidden, 1, activation=activation))
        else:
            hidden = inputs
        layers.append(ConvNormAct(hidden, hidden, block.kernel, block.stride, hidden, activation))
        if block.squeeze:
            layers.append(SqueezeExcite(hidden, round_channels(hidden / 4), gate=nn.Hardsigmoid))
        layers.append(ConvNormAct(hidden, outputs, 1, activation=None))
        self.layers = nn.Sequential(*layers)
        self.residual = block.stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


class MobileNetV2(nn.Module):
    def __init__(self, blocks: Sequence[Block] = V2_BLOCKS, scale: float = 1.0, classes: int = 1000) -> None:
        super().__init__()
        channels = round_channels(32 * scale)
        layers: list[nn.Module] = [ConvNormAct(3, channels, 3, 2, activation=nn.ReLU6)]
        for block in blocks:
            outputs = round_channels(block.channels * scale)
            layers.append(InvertedResidual(channels, outputs, block, nn.ReLU6))
            channels = outputs
        last = round_channels(1280 * scale)
        layers.append(ConvNormAct(channels, last, 1, activation=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x: Tensor) -> Tensor:
        x = functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


class MobileNetV3(nn.Module):
    def __init__(self, blocks: Sequence[Block] = V3_BLOCKS, scale: float = 1.0, classes: int = 1000) -> None:
        super().__init__()
        channels = round_channels(16 * scale)
        layers: list[nn.Module] = [ConvNormAct(3, channels, 3, 2, activation=nn.Hardswish)]
        for block in blocks:
            outputs = round_channels(block.channels * scale)
            layers.append(InvertedResidual(channels, outputs, block, nn.Hardswish if block.swish else nn.ReLU))
            channels = outputs
        last = round_channels(6 * channels)
        layers.append(ConvNormAct(channels, last, 1, activation=nn.Hardswish))
        self.features = nn.Sequential(*layers)
        self.expand = nn.Linear(last, round_channels(1024 * scale))
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(round_channels(1024 * scale), classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x).mean(dim=(2, 3))
        return self.head(self.dropout(functional.hardswish(self.expand(x))))
