"""ShuffleNet V2: each unit works on half of the channels, then shuffles them with the untouched half.

An image batch (n, 3, h, w) comes in, class scores (n, classes) go out. `widths` lists the channels of the stem, of
each stage and of the last convolution. The shuffle is a view and a transpose
over sizes read from the tensor, so the graph holds for any image size.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .layers import ConvNormAct


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    batch, channels, height, width = x.size()
    x = x.view(batch, groups, channels // groups, height, width)
    return torch.transpose(x, 1, 2).contiguous().view(batch, -1, height, width)


class ShuffleUnit(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        half = outputs // 2
        source = inputs if stride > 1 else half
        if stride > 1:
            self.side = nn.Sequential(
                ConvNormAct(inputs, inputs, 3, stride, inputs, None), ConvNormAct(inputs, half, 1)
            )
        self.main = nn.Sequential(
            ConvNormAct(source, half, 1), ConvNormAct(half, half, 3, stride, half, None), ConvNormAct(half, half, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.stride == 1:
            kept, worked = x.chunk(2, dim=1)
            joined = torch.cat((kept, self.main(worked)), dim=1)
        else:
            joined = torch.cat((self.side(x), self.main(x)), dim=1)
        return channel_shuffle(joined, 2)


class ShuffleNet(nn.Module):
    def __init__(
        self,
        depths: Sequence[int] = (4, 8, 4),
        widths: Sequence[int] = (24, 116, 232, 464, 1024),
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(ConvNormAct(3, widths[0], 3, 2), nn.MaxPool2d(3, 2, 1))
        stages = []
        for depth, inputs, outputs in zip(depths, widths, widths[1:-1], strict=False):
            units = [ShuffleUnit(outputs, outputs, 1) for _ in range(depth - 1)]
            stages.append(nn.Sequential(ShuffleUnit(inputs, outputs, 2), *units))
        self.stages = nn.Sequential(*stages)
        self.last = ConvNormAct(widths[-2], widths[-1], 1)
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.last(self.stages(self.stem(x)))
        return self.fc(x.mean([2, 3]))
