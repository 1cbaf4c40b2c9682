"""DenseNet: each layer sees the outputs of all layers before it in its block, joined along the channels.

An image batch (n, 3, h, w) comes in, class scores (n, classes) go out. `growth` is what each layer adds.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class DenseLayer(nn.Module):
    def __init__(self, inputs: int, growth: int, bottleneck: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, bottleneck * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(bottleneck * growth)
        self.conv2 = nn.Conv2d(bottleneck * growth, growth, 3, padding=1, bias=False)
        self.dropout = dropout

    def forward(self, features: list[Tensor]) -> Tensor:
        x = torch.cat(features, 1)
        x = self.conv1(functional.relu(self.norm1(x)))
        x = self.conv2(functional.relu(self.norm2(x)))
        if self.dropout > 0:
            x = functional.dropout(x, p=self.dropout, training=self.training)
        return x


class DenseBlock(nn.ModuleList):
    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self:
            features.append(layer(features))
        return torch.cat(features, 1)


class Transition(nn.Sequential):
    """Halves the channels and the image between two blocks."""

    def __init__(self, inputs: int) -> None:
        super().__init__(
            nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, inputs // 2, 1, bias=False), nn.AvgPool2d(2)
        )


class DenseNet(nn.Module):
    def __init__(
        self,
        depths: Sequence[int] = (6, 12, 24, 16),
        growth: int = 32,
        bottleneck: int = 4,
        dropout: float = 0.0,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        channels = 2 * growth
        self.stem = nn.Sequential(
            nn.Conv2d(3, channels, 7, 2, 3, bias=False), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        layers: list[nn.Module] = []
        for index, depth in enumerate(depths):
            sizes = [channels + growth * step for step in range(depth)]
            layers.append(DenseBlock(DenseLayer(size, growth, bottleneck, dropout) for size in sizes))
            channels += growth * depth
            if index + 1 < len(depths):
                layers.append(Transition(channels))
                channels //= 2
        self.blocks = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.norm(self.blocks(self.stem(x))), inplace=True)
        x = functional.adaptive_avg_pool2d(x, (1, 1))
        return self.classifier(torch.flatten(x, 1))
