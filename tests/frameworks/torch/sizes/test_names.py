"""Sizes in generated code bear the names that the program gives them; unused calls that cannot fail are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import clew


def unpacked(x: Tensor, mask: Tensor) -> Tensor:
    batch, length = x.shape
    if mask.all():
        return x + torch.arange(length) * batch
    return x - length


def inner(y: Tensor) -> Tensor:
    return y.reshape(y.shape[1], y.shape[0])


def of_the_caller(x: Tensor, mask: Tensor) -> Tensor:
    rows = x.size(0)
    y = inner(x)
    return y * rows if mask.any() else y - rows


def without_a_name(x: Tensor, mask: Tensor) -> Tensor:
    return x.reshape(x.shape[1], -1) if mask.any() else x.reshape(-1, x.shape[1])


CODE = {
    unpacked: """\
    batch = x.shape[0]
        return x + (torch.arange(length) * batch)
    return x - length""",
    of_the_caller: """\
    rows = x.shape[0]
    y = x.reshape(x.shape[1], rows)
    if mask.any():
        getitem = y * rows""",
    without_a_name: """\
    x_dim1 = x.shape[1]
    if any_1:
        getitem = x.reshape(x_dim1, -1)""",
}


@pytest.mark.parametrize("program", CODE, ids=lambda program: program.__name__)
def test_sizes_have_the_names_of_the_variables_that_hold_them(program: Callable[..., Any]) -> None:
    captured = clew.trace(program, (torch.ones(3, 4), torch.ones(3) > 0))
    written = captured.code.splitlines()
    assert [line for line in CODE[program].splitlines() if line not in written] == []
    for sizes in ((3, 4), (2, 6)):
        for mask in (torch.ones(2) > 0, torch.zeros(2) > 0):
            x = torch.rand(sizes)
            assert torch.equal(captured(x, mask), program(x, mask))


def made_on_the_device(x: Tensor, mask: Tensor) -> Tensor:
    if mask.all():
        heads = torch.arange(1, device=x.device)
        heads[None, :, None]
        rows = torch.arange(x.shape[0], device=x.device)
        rows[3]
    return x.new_ones(()) + x


def test_unused_calls_on_what_was_just_made_are_left_out_unless_they_can_fail() -> None:
    captured = clew.trace(made_on_the_device, (torch.ones(4, 4), torch.ones(3) > 0))
    assert "heads" not in captured.code
    assert "rows[3]" in captured.code
    assert "x.new_ones(())" in captured.code
    with pytest.raises(IndexError):
        captured(torch.ones(2, 4), torch.ones(3) > 0)
    assert torch.equal(captured(torch.ones(2, 4), torch.zeros(3) > 0), torch.full((2, 4), 2.0))


def test_guards_on_sizes_are_comparisons_without_not() -> None:
    def program(x: Tensor) -> Tensor:
        return x if x.shape[0] > 3 or x.shape[1] == 1 or x.shape[1] < 2 else x * 2

    captured = clew.trace(program, (torch.ones(3, 4),), control_flow="guard")
    texts = [str(guard) for guard in captured.guards if guard.kind == "size"]
    assert texts[:2] == ["x.ndim == 2", "x.shape[0] <= 3"]
    assert not [text for text in texts if text.startswith("not ")]
    for sizes in ((5, 4), (3, 1)):
        with pytest.raises(clew.GuardError, match="which does not hold"):
            captured(torch.ones(sizes))
