"""Loops over rows whose bodies branch: one loop of the graph with a branch in it, however many rows there are.

What a round leaves may be a number on one path and a tensor on another, and a list may grow on some paths only.
Where each row doubles the paths of the program all the same, the capture stops at a limit and says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import clew
from clew.errors import CaptureError, GuardError, TraceWarning


def number_or_tensor(x: Tensor) -> Any:
    total = 0
    for row in x:
        if row.sum() > 0:
            total += row.max()
        elif row.min() < -1:
            total -= 1
    return total


def other_side(x: Tensor) -> Any:
    total = 0.0
    for row in x:
        if row.sum() > 0:
            total = total + row.sum()
        else:
            total = total - row.mean()
    return total


def some_rows(x: Tensor) -> Tensor:
    kept = []
    for row in x:
        if row.sum() > 0:
            kept.append(row)
    return torch.stack(kept)


def two_lists(x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    above, below = [], []
    for row in x:
        if row.sum() > 0:
            above.append(row)
        else:
            below.append(row)
            below.append(-row)
    return above, below


def comprehension_with_if(x: Tensor) -> list[Tensor]:
    return [row * 2 for row in x if row.sum() > 0 if row[0] < 1]


def list_given_back(x: Tensor) -> list[Tensor]:
    return [row * 2 for row in x]


def sum_with_if(x: Tensor) -> Any:
    return sum(row.sum() for row in x if row.sum() > 0)


def sum_of_choices(x: Tensor) -> Any:
    return sum(row.sum() if row.sum() > 0 else 0 for row in x)


def sum_from_a_tensor(x: Tensor) -> Tensor:
    scores = [row.sum() for row in x]
    return sum(scores, torch.ones(()))


def count_of_rows(x: Tensor) -> Tensor:
    return x * sum(1 for row in x if row.sum() > 0)


def largest_and_smallest(x: Tensor) -> tuple[Tensor, Tensor]:
    return max(row.sum() for row in x), min(x[:, 0])


def any_and_all(x: Tensor) -> tuple[bool, bool]:
    return any(row.sum() > 2 for row in x), all((row > -2).all() for row in x)


def first_that_fits(x: Tensor) -> Tensor | None:
    return next((row for row in x if row.sum() > 1), None)


def rows_by_number(x: Tensor) -> Tensor:
    kept = [place for place, row in enumerate(x) if row[0] > 0]
    return x[kept]


def suppression(x: Tensor) -> Tensor:
    kept: list[int] = []
    for i in range(x.shape[0]):
        is_free = True
        for j in kept:
            if (x[i] - x[j]).abs().sum() < 3.0:
                is_free = False
                break
        if is_free:
            kept.append(i)
    return x[kept]


PROGRAMS = [
    number_or_tensor,
    other_side,
    some_rows,
    two_lists,
    comprehension_with_if,
    list_given_back,
    sum_with_if,
    sum_of_choices,
    sum_from_a_tensor,
    count_of_rows,
    largest_and_smallest,
    any_and_all,
    first_that_fits,
    rows_by_number,
    suppression,
]


def _rows(count: int, seed: int) -> Tensor:
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))


def _result(function: Callable[..., Any], x: Tensor) -> Any:
    """What a function gives, written out, or the class and text of the error that it raises."""
    try:
        return repr(function(x))
    except GuardError:
        raise
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_one_loop_serves_any_number_of_rows(program: Callable[..., Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", TraceWarning)
        captured = clew.trace(program, args=(_rows(8, 0),))
    assert len(captured.code.splitlines()) < 60
    for seed, count in enumerate((8, 8, 8, 8, 3, 1, 0, 12)):
        x = _rows(count, seed)
        assert _result(captured, x) == _result(program, x)


def of_a_dict(x: Tensor) -> dict[int, Tensor]:
    return {place: row for place, row in enumerate(x) if row.sum() > 0}


def test_a_line_that_decides_too_much_is_guarded_and_named() -> None:
    with pytest.warns(TraceWarning, match="more than 64 paths") as warned:
        captured = clew.trace(of_a_dict, args=(_rows(8, 0),))
    (warning,) = warned
    assert warning.filename == __file__
    assert warning.lineno == of_a_dict.__code__.co_firstlineno + 1
    assert "max_paths=128" in str(warning.message)
    assert len(captured.code.splitlines()) < 60
    assert repr(captured(_rows(8, 0))) == repr(of_a_dict(_rows(8, 0)))
    with pytest.raises(GuardError, match="decides about more than 64 paths"):
        captured(-_rows(8, 0))


def test_the_limit_is_an_option() -> None:
    x = _rows(3, 0)
    captured = clew.trace(of_a_dict, args=(x,), max_paths=8)
    assert repr(captured(-x)) == repr(of_a_dict(-x))
    with pytest.warns(TraceWarning, match="more than 7 paths"):
        captured = clew.trace(of_a_dict, args=(x,), max_paths=7)
    with pytest.raises(GuardError):
        captured(-x)
    with pytest.raises(CaptureError, match="max_paths=0 allows no path"):
        clew.trace(of_a_dict, args=(x,), max_paths=0)
