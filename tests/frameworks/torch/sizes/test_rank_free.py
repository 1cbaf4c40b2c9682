"""What is squeezed only to be repeated along all dimensions has a rank that nobody sees: a batch of one runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import clew
from clew.errors import GuardError


def for_each_head(x: Tensor) -> Tensor:
    batch, length = x.shape
    return x.squeeze().repeat(1, 4, 1).reshape(batch * 4, length)


def with_dimensions_of_one(x: Tensor) -> Tensor:
    batch, length = x.shape
    return x[:, None, None, :].squeeze().repeat(1, 4, 1).reshape(batch * 4, length)


def measured_after(x: Tensor) -> tuple[Tensor, Any]:
    x = x * x.shape[0]
    repeated = x.squeeze().repeat(1, 4, 1)
    return repeated * repeated.shape[1] + repeated.ndim, repeated.shape


def held(x: Tensor) -> tuple[Tensor, int]:
    x = x * x.shape[0]
    found = x.squeeze()
    return found.repeat(1, 4, 1), found.ndim


def called_at_once(x: Tensor) -> Tensor:
    return (x * x.shape[0]).squeeze().tanh()


@pytest.mark.parametrize("program", [for_each_head, with_dimensions_of_one, measured_after])
def test_a_batch_of_one_runs(program: Callable[[Tensor], Any]) -> None:
    captured = clew.trace(program, (torch.randn(2, 5),))
    for sizes in ((1, 5), (3, 5), (2, 7)):
        x = torch.randn(sizes)
        torch.testing.assert_close(captured(x), program(x), rtol=0, atol=0)
    with pytest.raises(GuardError, match=r"x\.shape\[1\] != 1"):  # the first of several would be the last one
        captured(torch.randn(2, 1))


@pytest.mark.parametrize("program", [held, called_at_once])
def test_a_rank_that_may_be_seen_is_relied_on(program: Callable[[Tensor], Any]) -> None:
    captured = clew.trace(program, (torch.randn(2, 5),))
    with pytest.raises(GuardError, match=r"x\.shape\[0\] != 1"):
        captured(torch.randn(1, 5))
