"""Small models with the features that an interchange of graphs must keep."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 4))
        self.scale = nn.Parameter(torch.full((4,), 2.0))
        self.register_buffer("shift", torch.ones(4))
        self.register_buffer("fleeting", torch.ones(4), persistent=False)

    def forward(self, x):
        return self.layers(x) * self.scale + self.shift - self.fleeting


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        x = F.max_pool2d(x, 2)
        return self.head(x.mean(dim=(2, 3)))


class Attention(nn.Module):
    """Slices, dtypes, devices, keyword arguments and a default."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(4, 12)

    def forward(self, x: torch.Tensor, scale: float = 0.5) -> torch.Tensor:
        q, k, v = self.project(x).chunk(3, dim=-1)
        weights = torch.softmax((q @ k.transpose(-2, -1)) * scale, dim=-1, dtype=torch.float32)
        mask = torch.ones(3, 3, dtype=torch.bool, device=torch.device("cpu"))
        weights = weights.masked_fill(~mask, float("-inf"))
        return (weights @ v)[:, -1, ...].add(1.0, alpha=2)


class Writer(nn.Module):
    """In-place writes and random numbers whose results nobody uses."""

    def forward(self, x):
        y = x.clone()
        y.add_(1)
        y.fill_diagonal_(0.0)
        torch.rand(2)
        return {"sum": y.sum(), "pair": (y, [x, None])}


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


IMAGE = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
SEQUENCE = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(2))

MODELS = {
    "mlp": (MLP, (SEQUENCE[0],)),
    "convolution": (ConvNet, (IMAGE,)),
    "attention": (Attention, (SEQUENCE,)),
    "writer": (Writer, (SEQUENCE[0],)),
    "tied": (Tied, (SEQUENCE[0],)),
    "encoder": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.Flatten(), nn.LazyLinear(2)), (IMAGE,)),
}
