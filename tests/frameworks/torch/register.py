"""The register of torch's algorithms: each function with its calls, the first of which is the example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Arguments = tuple[Any, ...]
ALGORITHMS: dict[str, tuple[Callable[..., Any], list[Arguments]]] = {}
_draw = torch.Generator().manual_seed(7)


def normal(*shape: int) -> Any:
    """Normal numbers."""
    return torch.randn(shape, generator=_draw)


def uniform(*shape: int) -> Any:
    """Numbers between 0 and 1."""
    return torch.rand(shape, generator=_draw)


def integers(high: int, *shape: int) -> Any:
    """Small integers."""
    return torch.randint(0, high, shape, generator=_draw)


def positive_definite(size: int) -> Any:
    """A matrix that has a Cholesky factor."""
    part = normal(size, size)
    return part @ part.T + size * torch.eye(size)


def on(*calls: Arguments) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function: the first call is the example, the others have other values and sizes."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        ALGORITHMS[function.__name__] = (function, list(calls))
        return function

    return register
