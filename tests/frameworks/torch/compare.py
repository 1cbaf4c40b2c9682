"""Equality of what torch programs give, and of the random numbers that they have drawn."""

from __future__ import annotations

from typing import Any

import torch


def same(left: Any, right: Any) -> bool:
    """Whether two nests hold the same tensors and numbers, bit for bit."""
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and left.shape == right.shape and torch.equal(left, right)
    return bool(left == right)


def run(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """The result on copies of the arguments, and the next random number."""
    torch.manual_seed(11)
    result = function(*(part.clone() if isinstance(part, torch.Tensor) else part for part in arguments))
    return result, torch.rand(1)
