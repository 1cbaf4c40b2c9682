"""What no capture can promise, as docs/capture.md lists it: each hole is shown, so that a change of it is noticed."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import nn

import clew


def test_a_variable_found_through_the_interpreter_is_not_looked_at() -> None:
    sys.modules[__name__].HIDDEN = 2.0  # type: ignore[attr-defined]
    captured = clew.trace(lambda x: x * sys.modules[__name__].HIDDEN, (torch.ones(1),))  # type: ignore[attr-defined]
    sys.modules[__name__].HIDDEN = 5.0  # type: ignore[attr-defined]
    assert captured(torch.ones(1)).item() == 2.0


def test_state_that_was_changed_before_an_error_is_not_changed_by_the_graph() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            self.calls += 1
            return x @ y

    model = Counting()
    captured = clew.trace(model, (torch.ones(2, 2), torch.ones(2, 2)))
    for program, calls in ((model, 1), (captured, 0)):
        with pytest.raises(RuntimeError, match="shapes"):
            program(torch.ones(2, 2), torch.ones(3, 3))
        assert program.calls == calls
