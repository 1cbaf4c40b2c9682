"""explain on branches and loops that were not captured: which line, why, and what to change; the guard says so too."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import clew
from clew.errors import GuardError
from clew.tools.explain import explain


def divided(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    number = by.item()
    if number != 0:
        return x * (1 / number)
    return x


def rows_in_dicts(x: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    found = []
    while x.norm() > 1:
        x = x / 2
        found.append({"row": x})
    return found


def as_many_rounds(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    for i in range(int(n)):
        x = x + i
    return x


def list_or_number(x: torch.Tensor) -> Any:
    for i in range(3):
        if x[i] > 0:
            met = [x]
        else:
            met = i
        x = x + (met[0] if isinstance(met, list) else met)
    return x


CASES = {
    "a way that fails": (
        divided, (torch.ones(2), torch.tensor(0.0)), "if number != 0:",
        "ZeroDivisionError", "an example on which this way can be run",
    ),
    "a list of dicts": (
        rows_in_dicts, (torch.ones(2) * 3,), "while x.norm() > 1:", "not simply appended to", "a tensor with a mask",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("program", "args", "line", "why", "change"), CASES.values(), ids=CASES)
def test_what_is_guarded_says_which_line_why_and_what_to_change(
    program: Any, args: tuple[Any, ...], line: str, why: str, change: str
) -> None:
    hints = [row for row in explain(program, args).hints if row["why"]]
    assert hints and all(row["line"].endswith(line) for row in hints)
    assert why in hints[0]["why"] and change in hints[0]["what to do"]
    assert hints.count(hints[0]) == 1


def test_the_guard_says_why() -> None:
    captured = clew.trace(divided, args=(torch.ones(2), torch.tensor(0.0)))
    with pytest.raises(GuardError, match="(?s)number != 0.*why: .*ZeroDivisionError"):
        captured(torch.ones(2), torch.tensor(2.0))


def test_branches_themselves_are_no_calls_that_nobody_vouches_for() -> None:
    found = explain(divided, (torch.ones(2), torch.tensor(0.0)))
    assert found.opaque == []


@pytest.mark.parametrize("rounds", [0, 2])
def test_a_loop_is_captured_whether_the_example_has_rounds_or_not(rounds: int) -> None:
    args = (torch.ones(2), torch.tensor(rounds))
    assert [row for row in explain(as_many_rounds, args).hints if row["why"]] == []
    captured = clew.trace(as_many_rounds, args=args)
    for other in (0, 1, 5):
        given = (torch.ones(2), torch.tensor(other))
        assert torch.equal(captured(*given), as_many_rounds(*given))


def test_a_size_can_be_left_free() -> None:
    found = explain(lambda x: x + 1 if x.shape[0] > 3 else x, (torch.ones(2),))
    assert "dynamic=True" in found.hints[0]["what to do"]


def test_values_that_do_not_fit_together() -> None:
    captured = clew.trace(list_or_number, args=(torch.ones(3),))
    for x in (torch.ones(3), -torch.ones(3), torch.tensor([1.0, -9.0, 2.0])):
        assert torch.equal(captured(x), list_or_number(x))
