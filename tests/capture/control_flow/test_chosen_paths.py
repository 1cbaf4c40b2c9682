"""Paths that are not written as ``if``: an item that data chooses out of a list or dict, and errors that are caught.

A handler that asks for one class of errors, and does not look at the error, is a path of the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew
from clew.errors import GuardError

SCALES = {0: 1.0, 1: 20.0, 2: 300.0}
FUNCTIONS = [torch.sin, torch.cos, torch.exp]


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.experts[row.argmax().item()](row) for row in x])


def chosen_of_two(x: Tensor) -> Tensor:
    return (x * 2, x / 2)[int(x.sum() > 0)]


def chosen_function(x: Tensor) -> Tensor:
    return FUNCTIONS[x[0].argmax()](x)


def chosen_of_a_dict(x: Tensor) -> Tensor:
    return x * SCALES[x[0].argmax().item()]


def chosen_or_default(x: Tensor) -> tuple[Tensor, str]:
    place = int(x[0].argmax())
    return x - place, {0: "low", 2: "high"}.get(place, "middle")


@pytest.mark.parametrize(
    "program",
    [Experts(), chosen_of_two, chosen_function, chosen_of_a_dict, chosen_or_default],
    ids=lambda one: getattr(one, "__name__", "experts"),
)
def test_each_item_is_a_path(program: Callable[..., Any]) -> None:
    captured = clew.trace(program, args=(torch.eye(3),))
    for seed in range(12):
        x = torch.randn(2 + seed % 3, 3, generator=torch.Generator().manual_seed(seed))
        assert repr(captured(x)) == repr(program(x))


def test_a_key_that_is_added_later_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    captured = clew.trace(chosen_of_a_dict, args=(torch.eye(3),))
    monkeypatch.setitem(SCALES, 3, 4.0)
    with pytest.raises(GuardError):
        captured(torch.eye(4).flip(0))


def inverted(matrix: Tensor) -> Tensor:
    try:
        return torch.linalg.inv(matrix)
    except RuntimeError:
        return torch.linalg.pinv(matrix)


def shifted(matrix: Tensor) -> tuple[Tensor, int]:
    for attempt in range(3):
        try:
            return torch.linalg.cholesky(matrix + 10.0 * attempt), attempt
        except torch.linalg.LinAlgError:
            matrix = matrix + torch.eye(2) * 20
    raise ValueError("not positive definite")


def added(x: Tensor) -> Tensor:
    try:
        return x + torch.ones(2)
    except RuntimeError:
        return x.sum()


@pytest.mark.parametrize("program", [inverted, shifted, added], ids=lambda one: one.__name__)
def test_a_handler_is_a_path(program: Callable[..., Any]) -> None:
    captured = clew.trace(program, args=(torch.eye(2) * 2,))
    for x in (torch.eye(2) * 2, torch.zeros(2, 2), -torch.eye(2), -90 * torch.eye(2), torch.ones(2, 2)):
        try:
            wanted: Any = repr(program(x))
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)):
                captured(x)
        else:
            assert repr(captured(x)) == wanted
    assert torch.equal(clew.trace(added, args=(torch.ones(2),))(torch.ones(3)), torch.tensor(3.0))


def test_an_error_of_another_class_is_no_path() -> None:
    captured = clew.trace(shifted, args=(torch.eye(2),))
    with pytest.raises(GuardError, match="does not fail"):
        captured(torch.ones(2))


def looks(x: Tensor) -> Any:
    try:
        return x + torch.ones(2)
    except RuntimeError as error:
        return str(error)


def raises_again(x: Tensor) -> Tensor:
    try:
        return x + torch.ones(2)
    except RuntimeError:
        raise


@pytest.mark.parametrize("program", [looks, raises_again])
def test_a_handler_that_knows_the_error_is_guarded(program: Callable[..., Any]) -> None:
    captured = clew.trace(program, args=(torch.ones(2),))
    assert torch.equal(captured(torch.zeros(2)), torch.ones(2))
    with pytest.raises(GuardError):
        captured(torch.ones(3))
