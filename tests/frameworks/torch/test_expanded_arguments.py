"""Arguments whose elements share memory: a guard that fails inside leaves them as they were, and says why."""

from __future__ import annotations

import pytest
import torch

import clew
from clew.errors import GuardError
from clew.frameworks.torch.undo import each_once


def written_then_asked(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2 if places.sum() > 12 else x * 3


def expanded(length: int = 3, start: int = 0) -> torch.Tensor:
    return torch.arange(start, start + length).expand(2, 2, length)


def test_a_failing_guard_puts_expanded_arguments_back() -> None:
    captured = clew.trace(written_then_asked, (torch.ones(2), expanded()), control_flow="guard")
    assert torch.equal(captured(torch.ones(2), expanded()), written_then_asked(torch.ones(2), expanded()))
    x, places = torch.ones(2), expanded(start=1)
    with pytest.raises(GuardError):
        captured(x, places)
    assert torch.equal(x, torch.ones(2)) and torch.equal(places, expanded(start=1))
    assert places.stride() == expanded(start=1).stride()


def test_each_element_once() -> None:
    tensor = torch.arange(3.0).expand(2, 4, 3)
    view = each_once(tensor)
    assert view.shape == (1, 1, 3) and view.data_ptr() == tensor.data_ptr()
    view.copy_(torch.zeros(1, 1, 3))
    assert not tensor.any()
    plain = torch.ones(2, 3).t()
    assert each_once(plain).shape == (3, 2)


def test_verify_takes_expanded_arguments() -> None:
    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1

    given = torch.ones(3).expand(2, 3)
    captured = clew.trace(shifted, (given,))
    assert clew.verify(captured, shifted, ((given,), {})).ok
