"""``list(range(n))`` keeps its length free as long as it is handed on, sliced, joined, counted or asked at its ends."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import clew
from clew.errors import GuardError


def reversed_places(x: Tensor) -> Tensor:
    return x + torch.tensor(list(range(x.shape[0]))[::-1])


def pooled(x: Tensor) -> Tensor:
    places = list(range(x.shape[0]))
    kept = [-3, *()] + places[1:-1][::2]
    return torch.arange(kept[0], kept[-1] + 2 * len(kept), dtype=x.dtype).sum() + x * len(places)


def handed_on(x: Tensor) -> tuple[Tensor, list[int]]:
    places = list(range(x.shape[0]))
    longer = places + [7]
    longer.append(8)
    return x[torch.tensor(places)], longer


def walked(x: Tensor) -> Tensor:
    total = x
    for place in list(range(x.shape[0])):
        total = total + place
    return total


def written_into(x: Tensor) -> Tensor:
    places = list(range(x.shape[0]))
    places[1] = 5
    return x * sum(places)


def asked(x: Tensor) -> Tensor:
    places = list(range(x.shape[0]))
    return x if 3 in places else -x


def given_as_range(x: Tensor) -> Tensor:
    return x * sum(list(map(float, range(x.shape[0]))))


def agree(captured: Any, original: Any, length: int) -> None:
    x = torch.randn(length)
    torch.testing.assert_close(captured(x.clone()), original(x), rtol=0, atol=0)


@pytest.mark.parametrize("program", [reversed_places, pooled, handed_on])
def test_other_lengths(program: Any) -> None:
    captured = clew.trace(program, (torch.randn(5),))
    for length in (5, 6, 3, 9):
        agree(captured, program, length)
    assert not [guard for guard in captured.guards if "shape[0] ==" in str(guard)]


@pytest.mark.parametrize("program", [walked, written_into, asked, given_as_range])
def test_whoever_looks_inside_relies_on_the_length_or_follows_it(program: Any) -> None:
    captured = clew.trace(program, (torch.randn(5),))
    agree(captured, program, 5)
    for length in (2, 4, 8):
        try:
            agree(captured, program, length)
        except GuardError as error:
            assert "x.shape[0]" in str(error)


def test_an_empty_range_fails_as_the_original_does() -> None:
    def ends(x: Tensor) -> Tensor:
        return x + list(range(x.shape[0]))[-1]

    captured = clew.trace(ends, (torch.randn(5),))
    agree(captured, ends, 3)
    with pytest.raises((IndexError, GuardError)):
        captured(torch.randn(0))
