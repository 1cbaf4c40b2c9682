"""Programs that the tools are tried on, and a way to break a captured graph on purpose."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from clew.ir.node import Node

SCALE = torch.tensor([1.0, 2.0, 3.0])
GENERATOR = torch.Generator()


class Net(nn.Module):
    """A module with a parameter, running statistics, random numbers and a buffer that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        self.count.add_(1)
        hidden = self.layer(x)
        hidden = self.drop(self.norm(hidden).relu())
        return {"hidden": hidden, "total": hidden.sum()}


def arithmetic(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    first = x * 2
    second = first + y
    return second.relu()


def branching(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 3:
        return x + 1
    return x - 1


def writing(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)
    return y * 2


def drawing(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand(x.shape)


def drawing_from_own(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand(3, generator=GENERATOR)


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * SCALE


def catching(x: torch.Tensor) -> torch.Tensor:
    try:
        return x @ x
    except RuntimeError:
        return x


def refused(x: torch.Tensor) -> torch.Tensor:
    return torch.func.functionalize(torch.sin)(x)


def failing(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1, 5)


def node_named(captured: Any, name: str) -> Node:
    """The node of that name."""
    return next(node for node in captured.graph.nodes if node.name == name)
