"""A small Python module, to be traced as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import relu

LIMIT = 3.0


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor


def shifted(x: torch.Tensor) -> torch.Tensor:
    return relu(x - LIMIT)


def scaled(x: torch.Tensor, scale: Scale) -> torch.Tensor:
    return shifted(x) * scale.factor


def rows(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield from x
