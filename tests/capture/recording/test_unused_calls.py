"""A call whose result nobody uses stays where it may raise, and goes where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

import clew


def mean(x: torch.Tensor) -> torch.Tensor:
    x.mean(dim=0)
    return x


def view(x: torch.Tensor) -> torch.Tensor:
    x.t().view(-1)
    return x


def item(x: torch.Tensor) -> torch.Tensor:
    int(x.sum())
    return x


def row(x: torch.Tensor) -> torch.Tensor:
    x[1]
    return x


def product(x: torch.Tensor) -> torch.Tensor:
    x @ x
    return x


RAISING: dict[str, tuple[Callable[[Any], Any], torch.Tensor, torch.Tensor]] = {
    "mean of whole numbers": (mean, torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int64)),
    "view of other strides": (view, torch.ones(2, 2).t(), torch.ones(2, 2)),
    "number of nan": (item, torch.ones(2, 2), torch.full((2, 2), float("nan"))),
    "row that is not there": (row, torch.ones(2, 2), torch.ones(1, 2)),
    "product of other sizes": (product, torch.ones(2, 2), torch.ones(2, 3)),
}


@pytest.mark.parametrize("name", RAISING)
def test_an_unused_call_still_raises(name: str) -> None:
    program, example, other = RAISING[name]
    captured = clew.trace(program, args=(example,))
    assert torch.equal(captured(example), program(example))
    with pytest.raises((RuntimeError, ValueError, IndexError)) as of_original:
        program(other)
    with pytest.raises((RuntimeError, ValueError, IndexError)) as of_capture:
        captured(other)
    is_guarded = isinstance(of_capture.value, clew.GuardError)
    assert is_guarded or str(of_capture.value) == str(of_original.value)


def test_the_same_in_numpy() -> None:
    def program(x: Any) -> Any:
        x @ x
        return x

    captured = clew.trace(program, args=(numpy.ones((2, 2)),))
    with pytest.raises((ValueError, clew.GuardError)):
        captured(numpy.ones((2, 3)))


def test_what_cannot_raise_is_dropped() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.detach()
        torch.zeros_like(x)
        x.shape[0] * 2 + 1  # noqa: B018
        return x * 2

    captured = clew.trace(program, args=(torch.ones(2),))
    assert [node.op for node in captured.graph.nodes] == ["placeholder", "call_function", "output"]


def test_unused_calls_that_raise_go_when_dead_code_is_eliminated() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.view(-1)
        return x + 1

    captured = clew.trace(program, args=(torch.ones(2, 3),))
    with pytest.raises(RuntimeError, match="view size"):
        captured(torch.ones(3, 2).t())
    captured.graph.eliminate_dead_code()
    assert torch.equal(captured(torch.ones(3, 2).t()), torch.ones(2, 3) + 1)


def compared(x: Any) -> Any:
    assert -1 < x.sum().item() < 3 or True
    return x


def test_an_unused_comparison_of_complex_numbers_raises() -> None:
    captured = clew.trace(compared, args=(numpy.ones(2),))
    with pytest.raises(TypeError):
        captured(numpy.ones(2) * 1j)


def summed(x: Any) -> Any:
    for row in x:
        y = row
    turn = 0
    while turn < min(x.ndim, 4):
        turn += 1
        y.sum(x.argmax().item() % 2)
    return x


def test_an_unused_method_of_an_array_without_a_type_raises() -> None:
    captured = clew.trace(summed, args=(numpy.array([[[1.0], [2.0]]]),))
    other = numpy.array([[1.0, 2.0]])
    with pytest.raises(numpy.exceptions.AxisError):
        summed(other)
    with pytest.raises((numpy.exceptions.AxisError, clew.GuardError)):
        captured(other)
