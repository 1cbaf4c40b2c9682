"""ResNet: residual networks of basic blocks (18, 34) and of bottleneck blocks (50).

An image batch (n, 3, h, w) comes in, class scores (n, classes) go out. `width` is the number of channels
of the first stage (64 in the original); `depths` gives the number of blocks in each stage. Parameters have the
names under which weights of these models are usually published (`layer1.0.conv1.weight`).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class BasicBlock(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(inputs, width * self.expansion, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        identity = x if self.downsample is None else self.downsample(x)
        out += identity
        return self.relu(out)


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 ones that narrow and widen the channels, around a shortcut."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = shortcut(inputs, width * self.expansion, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        identity = x if self.downsample is None else self.downsample(x)
        out += identity
        return self.relu(out)


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    """A projection where the shapes of branch and shortcut differ; None where the identity will do."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    """A stem, one stage per entry of `depths` (each after the first halves the image), and a linear head."""

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        depths: Sequence[int],
        width: int = 64,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layers = [f"layer{index + 1}" for index in range(len(depths))]
        inputs = width
        for index, (layer, depth) in enumerate(zip(self.layers, depths, strict=True)):
            outputs = width * 2**index
            first = block(inputs, outputs, 1 if index == 0 else 2)
            inputs = outputs * block.expansion
            self.add_module(layer, nn.Sequential(first, *[block(inputs, outputs) for _ in range(depth - 1)]))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for layer in self.layers:
            x = self.get_submodule(layer)(x)
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


def resnet18(width: int = 64, classes: int = 1000) -> ResNet:
    return ResNet(BasicBlock, (2, 2, 2, 2), width, classes)


def resnet34(width: int = 64, classes: int = 1000) -> ResNet:
    return ResNet(BasicBlock, (3, 4, 6, 3), width, classes)


def resnet50(width: int = 64, classes: int = 1000) -> ResNet:
    return ResNet(Bottleneck, (3, 4, 6, 3), width, classes)
