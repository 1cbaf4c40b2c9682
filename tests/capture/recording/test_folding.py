"""Values that follow from literals of the program alone need no branches and no guards, unless they are written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import clew


def walks_a_table(x: torch.Tensor) -> torch.Tensor:
    times = torch.arange(0, 9, 4).flip(0)
    weights = torch.linspace(0.0, 1.0, 9)
    for time in times:
        place = int((times == time).nonzero()[0].item())
        if time > 0 and weights[int(time)] > 0.4:
            x = x * weights[int(time)]
        x = x + place
    return x


def test_a_loop_over_a_table_leaves_no_branch_and_no_guard() -> None:
    captured = clew.trace(walks_a_table, args=(torch.rand(2, 3),))
    for size in (2, 5, 1):
        x = torch.rand(size, 3)
        assert torch.equal(captured(x), walks_a_table(x))
    assert "cond" not in captured.code and "unbind" not in captured.code
    assert "the defaults of torch are unchanged" in map(str, captured.guards)
    assert not [guard for guard in captured.guards if "shape" in str(guard) or "len" in str(guard)]


def test_what_was_decided_holds_for_the_defaults_of_the_capture_only() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if torch.zeros(1).dtype == torch.float32 and torch.tensor(0.1).item() != 0.1 else x

    captured = clew.trace(program, args=(torch.rand(2),))
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(clew.GuardError, match="defaults"):
            captured(torch.rand(2, dtype=torch.float32))
    finally:
        torch.set_default_dtype(torch.float32)


def _view_by_size(x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(3)
    view = table[x.shape[0] - 1 :]
    view += 1
    return x * 2 if table[1] > 0 else x


def _through_data(x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(3)
    table.view(3).data.add_(x[0])
    return x * 2 if table[0] > 0 else x


def _item_of_a_tuple(x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(3)
    view = table.unbind(0)[0].view(1)
    early = view + 1
    table.add_(x[0])
    return x + view + early


def _in_a_branch(x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(3)
    if x.sum() > 0:
        table.add_(1)
    return x * 2 if table[0] > 0 else x


def _in_a_loop(x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(3)
    while x.sum() < 5:
        x = x + 1
        table += x[0]
    return x * 2 if table[0] > 0 else x


def _through_numpy(x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(3)
    table.numpy()[0] = float(x[0, 0])
    return x * 2 if table[0] > 0 else x


def _one_of_two_views(x: torch.Tensor) -> torch.Tensor:
    first, second = torch.zeros(3), torch.zeros(3)
    _, view = torch.atleast_1d(first, second)
    view += 1
    return x + second


def _broadcast(x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(1, 3)
    _, view = torch.broadcast_tensors(x[:1], table)
    view += 1
    return x + table


def _drawn(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if torch.rand(1)[0] > 0.5 else x


WRITERS = [_view_by_size, _through_data, _item_of_a_tuple, _in_a_branch, _in_a_loop, _through_numpy, _one_of_two_views]
WRITERS += [_broadcast, _drawn]


@pytest.mark.parametrize("program", WRITERS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_written_to_decides_nothing(program: Callable[..., Any], sign: int) -> None:
    captured = clew.trace(program, args=(torch.rand(2, 3) * sign,))
    for other in (1, -1, 1):
        for size in (2, 3, 1):
            x = torch.rand(size, 3) * other
            torch.manual_seed(size)
            wanted = program(x.clone())
            torch.manual_seed(size)
            assert torch.equal(captured(x.clone()), wanted)
