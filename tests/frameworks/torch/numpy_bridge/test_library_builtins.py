"""Builtins in functions of packages that a program merely uses: lengths and numbers stay general there too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import clew

SOURCE = """
import torch


class Reducer(torch.nn.Module):
    def forward(self, losses, places):
        getattr(self, "check_{}".format("pairs"))(losses, places)
        return losses.sum() / max(int(losses.shape[0] / 2), 1)

    def check_pairs(self, losses, places):
        assert all(len(place) == len(losses) for place in places)


def halves(x):
    return x[: int(x.shape[0] * 0.5) + 1] * len(x)


def level(x):
    return x * float(x.mean())


class Tools:
    @staticmethod
    def split(x):
        return x.narrow(0, 0, int(len(x) / 2) + 1)

    @property
    def scale(self):
        return 2


def tools(x):
    return Tools.split(x) * Tools().scale


def listed(x):
    return torch.zeros([0] * len(x)).numel() + x
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that looks installed."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "counting_library.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(folder))
    import counting_library  # noqa: PLC0415  made just now

    yield counting_library
    del sys.modules["counting_library"]


@pytest.mark.parametrize("name", ["halves", "level", "tools"])
def test_sizes_and_numbers_stay_general(library: Any, name: str) -> None:
    function = getattr(library, name)

    def program(x: torch.Tensor) -> torch.Tensor:
        return function(x) + 1

    code = function.__code__
    captured = clew.trace(program, args=(torch.rand(4, 3),))
    assert function.__code__ is code
    for size in (4, 2, 7, 1):
        x = torch.rand(size, 3)
        assert torch.equal(captured(x), program(x))


def test_a_method_that_is_found_by_text(library: Any) -> None:
    module = library.Reducer()
    captured = clew.trace(module, args=(torch.rand(4), [torch.arange(4), torch.arange(4)]))
    for size in (4, 9, 1):
        given = torch.rand(size), [torch.arange(size), torch.arange(size)]
        assert torch.equal(captured(*given), module(*given))
    with pytest.raises((clew.GuardError, AssertionError)):
        captured(torch.rand(4), [torch.arange(4), torch.arange(3)])


def test_a_length_that_python_needs_is_still_guarded(library: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return library.listed(x)

    captured = clew.trace(program, args=(torch.rand(2),))
    assert torch.equal(captured(torch.ones(2)), program(torch.ones(2)))
    with pytest.raises(clew.GuardError, match=r"x\.shape\[0\] == 2"):
        captured(torch.rand(3))
