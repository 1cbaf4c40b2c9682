"""Swin-style transformer: attention within windows, shifted by half a window in every other block.

An image batch (n, 3, size, size) comes in, class scores (n, classes) go out. The image size is fixed when the
model is built, so window counts are plain numbers; the batch size stays free. The relative position index and
the mask of shifted windows are buffers.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def relative_index(window: int) -> Tensor:
    """For each pair of places in a window, the row of the bias table for their offset."""
    steps = torch.arange(window)
    places = torch.stack(torch.meshgrid(steps, steps, indexing="ij")).flatten(1)
    offsets = places[:, :, None] - places[:, None, :] + window - 1
    return offsets[0] * (2 * window - 1) + offsets[1]


def to_windows(x: Tensor, side: int, window: int) -> Tensor:
    count = side // window
    x = x.reshape(-1, count, window, count, window, x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).flatten(3, 4).flatten(0, 2)


def from_windows(x: Tensor, side: int, window: int) -> Tensor:
    count = side // window
    x = x.reshape(-1, count, count, window, window, x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).flatten(3, 4).flatten(1, 2)


def shifted_mask(side: int, window: int, shift: int) -> Tensor:
    """Adds minus infinity where two places of a shifted window were not neighbours in the image."""
    region = torch.zeros(1, side, side, 1)
    pieces = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for row, rows in enumerate(pieces):
        for column, columns in enumerate(pieces):
            region[:, rows, columns] = row * len(pieces) + column
    labels = to_windows(region, side, window).squeeze(-1)
    different = labels[:, None, :] != labels[:, :, None]
    return torch.zeros(different.shape).masked_fill(different, float("-inf"))


class WindowAttention(nn.Module):
    def __init__(self, width: int, heads: int, side: int, window: int, shift: int) -> None:
        super().__init__()
        self.heads, self.side, self.window, self.shift = heads, side, window, shift
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.bias_table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        self.register_buffer("bias_index", relative_index(window))
        if shift:
            self.register_buffer("mask", shifted_mask(side, window, shift)[:, None])

    def forward(self, x: Tensor) -> Tensor:
        if self.shift:
            x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        x = from_windows(self.attend(to_windows(x, self.side, self.window)), self.side, self.window)
        if self.shift:
            x = torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))
        return x

    def attend(self, x: Tensor) -> Tensor:
        places = self.window**2
        query, key, value = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.mT / (key.shape[-1] ** 0.5)
        scores = scores + self.bias_table[self.bias_index].permute(2, 0, 1)
        if self.shift:
            windows = (self.side // self.window) ** 2
            scores = scores.view(-1, windows, self.heads, places, places) + self.mask
            scores = scores.view(-1, self.heads, places, places)
        mixed = torch.softmax(scores, -1) @ value
        return self.project(mixed.transpose(1, 2).flatten(2))


class SwinBlock(nn.Module):
    def __init__(self, width: int, heads: int, side: int, window: int, shift: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = WindowAttention(width, heads, side, window, shift)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    """Joins each 2x2 square of places into one, with twice the channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.reduce = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        corners = [x[:, row::2, column::2, :] for column in (0, 1) for row in (0, 1)]
        return self.reduce(self.norm(torch.cat(corners, dim=-1)))


class Swin(nn.Module):
    def __init__(
        self,
        size: int = 224,
        patch: int = 4,
        width: int = 96,
        depths: Sequence[int] = (2, 2, 6, 2),
        heads: int = 3,
        window: int = 7,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.patch_norm = nn.LayerNorm(width)
        layers: list[nn.Module] = []
        side = size // patch
        for index, depth in enumerate(depths):
            if index > 0:
                layers.append(PatchMerging(width))
                side, width, heads = side // 2, width * 2, heads * 2
            # A window as large as the image has nothing to be shifted against.
            shift = window // 2 if side > window else 0
            layers += [SwinBlock(width, heads, side, window, shift * (number % 2)) for number in range(depth)]
        self.blocks = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_norm(self.patches(x).permute(0, 2, 3, 1))
        x = self.norm(self.blocks(x))
        return self.head(x.mean(dim=(1, 2)))
