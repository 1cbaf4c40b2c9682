"""SqueezeNet: fire modules, which squeeze the channels and expand them by two kinds of convolution.

An image batch (n, 3, h, w) comes in, class scores (n, classes) go out; the head is a convolution, there is no
linear layer.
"""

import torch
from torch import Tensor, nn


class Fire(nn.Module):
    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.activation = nn.ReLU(inplace=True)
        self.expand1 = nn.Conv2d(squeezed, expanded, 1)
        self.expand3 = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.activation(self.squeeze(x))
        return torch.cat([self.activation(self.expand1(x)), self.activation(self.expand3(x))], 1)


class SqueezeNet(nn.Module):
    def __init__(self, width: int = 16, classes: int = 1000) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4 * width, 3, 2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(4 * width, width, 4 * width),
            Fire(8 * width, width, 4 * width),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(8 * width, 2 * width, 8 * width),
            Fire(16 * width, 2 * width, 8 * width),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(16 * width, 3 * width, 12 * width),
            Fire(24 * width, 3 * width, 12 * width),
            Fire(24 * width, 4 * width, 16 * width),
            Fire(32 * width, 4 * width, 16 * width),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(0.5), nn.Conv2d(32 * width, classes, 1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.flatten(self.classifier(self.features(x)), 1)
