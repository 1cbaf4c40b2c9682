"""A round of a loop may rely on what was there before it, the same in each round; not on what rounds change."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import clew
from clew.errors import GuardError


def scanned(x: Tensor, is_long: bool = False) -> Tensor:
    out = torch.zeros_like(x)
    state, kind = x[:, 0] * 0, x.dtype
    for place in range(x.shape[1]):
        state = state * 0.5 + x[:, place].float()
        out[:, place] = state.to(out.dtype) if kind == torch.float32 else state.double()
    return out


def asked_in_rounds(x: Tensor, bound: Tensor) -> Tensor:
    is_high = bound > 0
    total = x[:, 0]
    for place in range(x.shape[1]):
        total = total + (x[:, place] if bool(is_high) else -x[:, place])
    return total


def asked_of_rounds(x: Tensor, bound: Tensor) -> Tensor:
    total = x[:, 0]
    for place in range(x.shape[1]):
        total = total + (x[:, place] if bool(total.sum() > bound) else -x[:, place])
    return total


def agree(captured: Any, original: Any, *args: Tensor) -> None:
    torch.testing.assert_close(captured(*args), original(*args), rtol=0, atol=0)


def test_a_fact_from_before_the_loop() -> None:
    captured = clew.trace(scanned, (torch.randn(2, 4),))
    for length in (4, 7, 2):
        agree(captured, scanned, torch.randn(3, length))


@pytest.mark.parametrize("program", [asked_in_rounds, asked_of_rounds])
@pytest.mark.parametrize("flow", ["capture", "guard"])
def test_data_that_rounds_ask_for(program: Any, flow: Any) -> None:
    captured = clew.trace(program, (torch.randn(2, 4), torch.tensor(0.3)), control_flow=flow)
    for seed in range(6):
        torch.manual_seed(seed)
        for length in (4, 6):
            args = torch.randn(2, length), torch.randn(())
            try:
                found = captured(*args)
            except GuardError:
                continue
            assert torch.equal(found, program(*args))
