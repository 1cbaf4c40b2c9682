"""Texts with sizes in them, put together ahead of time and used only for warnings and errors, are no guards."""

import warnings

import pytest
import torch
from torch import Tensor

import clew
from clew.errors import GuardError


def checked(x: Tensor, limit: int = 100) -> Tensor:
    suffix = " Take a shorter one."
    suffix += f" It has {x.shape[0]} rows."
    if x.shape[0] > limit:
        warnings.warn("too long." + suffix, UserWarning, stacklevel=2)
    return x * 2


def told(x: Tensor) -> tuple[Tensor, str]:
    text = f"{x.shape[0]} rows"
    if x.ndim != 2:
        raise ValueError(text)
    return x * 2, text


def looked_up(x: Tensor) -> Tensor:
    table = {"3": 1.0}
    text = f"{table.get(f'{x.shape[0]}', 2.0)}"
    if x.ndim != 2:
        raise ValueError(text)
    return x * table.get(f"{x.shape[0]}", 2.0)


def test_a_text_for_messages_alone() -> None:
    captured = clew.trace(checked, args=(torch.ones(3, 2),))
    assert torch.equal(captured(torch.ones(5, 2)), torch.full((5, 2), 2.0))


def test_a_text_that_is_given_back() -> None:
    captured = clew.trace(told, args=(torch.ones(3, 2),))
    try:
        assert captured(torch.ones(5, 2))[1] == "5 rows"
    except GuardError as error:
        assert "shape[0]" in str(error)


def test_a_text_that_is_a_key() -> None:
    captured = clew.trace(looked_up, args=(torch.ones(3, 2),))
    assert torch.equal(captured(torch.ones(3, 2)), torch.ones(3, 2))
    with pytest.raises(GuardError):
        captured(torch.ones(5, 2))
