"""VGG: stacks of 3x3 convolutions with max pooling between them, and a deep linear head.

An image batch (n, 3, h, w) comes in, class scores (n, classes) go out. `stages` lists, for each resolution,
how many convolutions it has; `batch_norm` puts a norm after each of them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

VGG11, VGG16 = (1, 1, 2, 2, 2), (2, 2, 3, 3, 3)


class VGG(nn.Module):
    """Channels double at each stage up to eight times the first width, as in the original."""

    def __init__(
        self,
        stages: Sequence[int] = VGG16,
        width: int = 64,
        hidden: int = 4096,
        classes: int = 1000,
        batch_norm: bool = False,
        pool: int = 7,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for index, depth in enumerate(stages):
            outputs = width * min(2**index, 8)
            for _ in range(depth):
                layers.append(nn.Conv2d(channels, outputs, 3, padding=1))
                if batch_norm:
                    layers.append(nn.BatchNorm2d(outputs))
                layers.append(nn.ReLU(inplace=True))
                channels = outputs
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(pool)
        self.classifier = nn.Sequential(
            nn.Linear(channels * pool**2, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(),
            nn.Linear(hidden, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.avgpool(self.features(x))
        return self.classifier(torch.flatten(x, 1))
