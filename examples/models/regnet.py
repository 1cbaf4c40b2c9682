"""RegNet: stages of bottleneck blocks with grouped convolutions; RegNet-Y adds squeeze-excite.

An image batch (n, 3, h, w) comes in, class scores (n, classes) go out. `group` is the width of one group of
the 3x3 convolutions and must divide every width.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from .layers import ConvNormAct, SqueezeExcite


class RegNetBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, group: int, squeeze: float) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            ConvNormAct(inputs, outputs, 1),
            ConvNormAct(outputs, outputs, 3, stride, outputs // group),
        ]
        if squeeze > 0:
            layers.append(SqueezeExcite(outputs, max(1, round(inputs * squeeze))))
        layers.append(ConvNormAct(outputs, outputs, 1, activation=None))
        self.branch = nn.Sequential(*layers)
        same = stride == 1 and inputs == outputs
        self.project = None if same else ConvNormAct(inputs, outputs, 1, stride, activation=None)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.project is None else self.project(x)
        return self.activation(shortcut + self.branch(x))


class RegNet(nn.Module):
    def __init__(
        self,
        depths: Sequence[int] = (1, 3, 6, 6),
        widths: Sequence[int] = (48, 104, 208, 440),
        group: int = 8,
        squeeze: float = 0.25,
        stem: int = 32,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [ConvNormAct(3, stem, 3, 2)]
        channels = stem
        for depth, width in zip(depths, widths, strict=True):
            for index in range(depth):
                layers.append(RegNetBlock(channels, width, 2 if index == 0 else 1, group, squeeze))
                channels = width
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.features(x))
        return self.fc(x.flatten(start_dim=1))
