"""Tuples that are default values: an equal one may be given, and the captured program can be called again and again."""

from __future__ import annotations

import pytest
import torch

import clew

KERNEL = (3, 5)


SIDES = ((1.0, "a"),)


def padded(
    x: torch.Tensor, size: tuple[int, ...] = (3, 3), sides: tuple[tuple[float, str], ...] = SIDES
) -> torch.Tensor:
    if any(part % 2 == 0 for part in size):
        raise ValueError("the sizes must be odd")
    return x * size[0] + sides[0][0]


def compared(x: torch.Tensor, size: tuple[int, int] = KERNEL) -> torch.Tensor:
    return x * 2 if size is KERNEL else x


def test_a_default_holds_at_every_call() -> None:
    captured = clew.trace(padded, args=(torch.rand(2),))
    for size in (2, 3, 1, 4, 5):
        x = torch.rand(size)
        assert torch.equal(captured(x), padded(x))
        assert torch.equal(captured(x, tuple([3, 3])), padded(x))


@pytest.mark.parametrize("given", [(3, 5), (3.0, 3), (True, 3), (3,), [3, 3], ()])
def test_any_other_value_is_refused(given: object) -> None:
    captured = clew.trace(padded, args=(torch.rand(2),))
    with pytest.raises(clew.GuardError, match="size"):
        captured(torch.rand(2), given)


def test_what_is_nested_counts_too() -> None:
    captured = clew.trace(padded, args=(torch.rand(2),))
    with pytest.raises(clew.GuardError, match="sides"):
        captured(torch.rand(2), (3, 3), ((1.0, "b"),))


def test_a_program_that_compares_objects_gets_the_same_object_or_an_error() -> None:
    captured = clew.trace(compared, args=(torch.rand(2),))
    with pytest.raises(clew.GuardError):
        captured(torch.rand(2), tuple([3, 5]))
