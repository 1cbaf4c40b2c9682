"""Code for reading uses a variable again once nobody reads its old value; it still computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew


class Layer(nn.Module):
    """A layer with a branch between calls of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.output = nn.Linear(4, 4)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        hidden = self.query(x).relu()
        hidden = hidden + x
        if mask.all():
            scale = hidden.abs().amax()
        else:
            scale = hidden.sum()
        hidden = self.output(hidden)
        hidden = hidden / scale
        return hidden


def sizes_after_values(x: Tensor, mask: Tensor) -> Tensor:
    y = x * 2
    z = y * 3
    if mask.all():
        z = z + 1
    rows = x.shape[0] * x.shape[1]
    return z.reshape(-1) * rows + (y * y.shape[1]).reshape(-1)


def loops_between(x: Tensor, mask: Tensor) -> Tensor:
    x = x + 1
    x = x * 2
    total = x.sum()
    while total > 1:
        total = total / 2
        x = x - total
    x = x.relu()
    x = x + total
    return x


PROGRAMS = [Layer().eval(), sizes_after_values, loops_between]


@pytest.mark.parametrize("program", PROGRAMS, ids=["layer", "sizes_after_values", "loops_between"])
def test_what_is_shown_computes_the_same(program: Callable[..., Any]) -> None:
    x = torch.rand(3, 4)
    captured = clew.trace(program, (x, torch.ones(3) > 0))
    names: dict[str, Any] = {}
    exec(captured.code, names)
    for sizes in ((3, 4), (2, 4)):
        for mask in (torch.ones(2) > 0, torch.zeros(2) > 0):
            x = torch.rand(sizes)
            assert torch.equal(names["forward"](captured, x, mask), program(x, mask))


def test_variables_and_modules_have_short_names_around_a_branch() -> None:
    code = clew.trace(PROGRAMS[0], (torch.rand(3, 4), torch.ones(3) > 0)).code
    assert code.splitlines()[2:] == [
        "def forward(self, x, mask):",
        "    hidden = self.query(x).relu()",
        "    hidden_1 = hidden + x",
        "    if mask.all():",
        "        scale = hidden_1.abs().amax()",
        "    else:",
        "        scale = hidden_1.sum()",
        "    hidden = self.output(hidden_1)",
        "    hidden = hidden / scale",
        "    return hidden",
    ]
