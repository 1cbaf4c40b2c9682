"""Detectors of objects in images: a DETR-like set of queries, and a YOLO-like grid of anchors.

An image batch (n, 3, h, w) comes in (h and w divisible by 8). Out come class scores and boxes as (x, y, width, height),
each between 0 and 1: one for each query, or one for each anchor in each cell of three grids.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from .layers import ConvNormAct


def backbone(width: int) -> nn.ModuleList:
    """Three stages, each of which halves the image."""
    widths = (3, width, 2 * width, 4 * width)
    return nn.ModuleList(ConvNormAct(widths[i], widths[i + 1], 3, stride=2) for i in range(3))


def sine_positions(height: int, width: int, channels: int, like: Tensor) -> Tensor:
    """Sines and cosines of the place in the image (height * width, channels), half of them for each direction."""
    rows = torch.arange(height, device=like.device)[:, None].expand(height, width)
    columns = torch.arange(width, device=like.device)[None, :].expand(height, width)
    powers = 100.0 ** (torch.arange(channels // 4, device=like.device) * 4 / channels)
    angles = [place.flatten()[:, None] / powers for place in (rows, columns)]
    return torch.cat([part for angle in angles for part in (angle.sin(), angle.cos())], dim=-1).to(like.dtype)


class Detr(nn.Module):
    """A transformer whose decoder asks the image as many questions as there may be objects."""

    def __init__(self, width: int = 64, queries: int = 100, classes: int = 91, heads: int = 8, depth: int = 6) -> None:
        super().__init__()
        self.stages = backbone(width // 4)
        self.transformer = nn.Transformer(width, heads, depth, depth, 2 * width, 0.0, batch_first=True)
        self.queries = nn.Parameter(torch.randn(queries, width))
        self.classify = nn.Linear(width, classes + 1)
        self.locate = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        for stage in self.stages:
            images = stage(images)
        batch, channels, height, width = images.shape
        memory = images.flatten(2).transpose(1, 2) + sine_positions(height, width, channels, images)
        found = self.transformer(memory, self.queries.expand(batch, -1, -1))
        return {"scores": self.classify(found), "boxes": self.locate(found).sigmoid()}


class Yolo(nn.Module):
    """Each cell of three grids answers for the boxes around its own anchors."""

    def __init__(self, width: int = 32, classes: int = 80, anchors: int = 3) -> None:
        super().__init__()
        self.anchors = anchors
        self.stages = backbone(width)
        self.reduce = nn.ModuleList(nn.Conv2d(width * 2**i, width, 1) for i in range(3))
        self.heads = nn.ModuleList(nn.Conv2d(width, anchors * (5 + classes), 1) for _ in range(3))
        self.register_buffer("sizes", torch.rand(3, anchors, 2) / 2)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        levels = []
        for stage in self.stages:
            images = stage(images)
            levels.append(images)
        found, above = [], None
        for index in reversed(range(3)):
            x = self.reduce[index](levels[index])
            above = x if above is None else x + functional.interpolate(above, size=x.shape[-2:], mode="nearest")
            found.append(self.decode(self.heads[index](above), self.sizes[index]))
        boxes, objects, scores = (torch.cat(parts, dim=1) for parts in zip(*found, strict=True))
        return boxes, objects, scores

    def decode(self, x: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Boxes relative to the whole image, out of offsets within a cell and factors of the anchors' sizes."""
        batch, _, height, width = x.shape
        x = x.view(batch, self.anchors, -1, height, width).permute(0, 1, 3, 4, 2)
        rows, columns = torch.meshgrid(
            torch.arange(height, device=x.device), torch.arange(width, device=x.device), indexing="ij"
        )
        cells = torch.stack((columns, rows), dim=-1)
        scale = torch.tensor([width, height], device=x.device)
        centres = (x[..., :2].sigmoid() + cells) / scale
        extents = x[..., 2:4].exp() * sizes[:, None, None]
        boxes = torch.cat((centres, extents), dim=-1).reshape(batch, -1, 4)
        return boxes, x[..., 4].sigmoid().reshape(batch, -1), x[..., 5:].sigmoid().flatten(1, 3)
