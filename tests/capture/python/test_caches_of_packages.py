"""Caches of packages that a program merely uses: no number of a capture stays in them, and sizes stay general."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import clew

SOURCE = """
import functools

CALLS = []


class ShapeError(RuntimeError):
    pass


def _halved(shape, parts):
    found = []
    for size in shape:
        if size % parts != 0:
            raise ShapeError(f"{size} is no multiple of {parts}")
        found.append(size // parts)
    return found


cached = functools.lru_cache(64)(_halved)


@functools.lru_cache(maxsize=64)
def counted(size):
    CALLS.append(size)
    return size + 1


class Planner:
    @functools.lru_cache(maxsize=64)
    def plan(self, size):
        return (size, size * 2)


PLANNER = Planner()


def fold(x):
    try:
        return x.reshape(*cached(tuple(x.shape), 2), -1)
    except ShapeError as error:
        raise ShapeError(f"cannot fold: {error}")


def grow(x):
    return x.new_zeros(counted(x.shape[0]))


def planned(x):
    return x.repeat(PLANNER.plan(x.shape[0])[1])


def guarded(x):
    try:
        return x.reshape(cached(tuple(x.shape), 2))
    except RuntimeError:
        return x
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module that looks installed."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "folding_library.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(folder))
    import folding_library  # noqa: PLC0415  made just now

    yield folding_library
    del sys.modules["folding_library"]


def test_sizes_stay_general_through_a_cache_that_only_calculates(library: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return library.fold(x) * 2

    captured = clew.trace(program, args=(torch.rand(4, 6),))
    for shape in ((4, 6), (2, 8), (10, 2)):
        x = torch.rand(shape)
        assert torch.equal(captured(x), program(x))
    with pytest.raises(clew.GuardError, match=r"x\.shape\[0\] % 2"):
        captured(torch.rand(3, 4))
    assert "attempt" not in captured.code


@pytest.mark.parametrize("name", ["fold", "grow", "planned"])
def test_no_number_of_a_capture_stays_in_a_cache(library: Any, name: str) -> None:
    function = getattr(library, name)

    def program(x: torch.Tensor) -> torch.Tensor:
        return function(x) + 1

    x = torch.ones(6)
    captured = clew.trace(program, args=(x,))
    assert torch.equal(program(x), captured(x))
    assert all(type(size) is int for size in library.CALLS)
    assert all(type(size) is int for size in (*library.cached((6,), 2), library.counted(6), *library.PLANNER.plan(6)))


def test_a_cached_function_that_does_more_than_calculate_is_guarded(library: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return library.grow(x)

    captured = clew.trace(program, args=(torch.ones(6),))
    assert captured(torch.ones(6)).shape == (7,)
    with pytest.raises(clew.GuardError, match=r"x\.shape\[0\] == 6"):
        captured(torch.ones(5))


def test_an_except_that_can_catch_makes_an_attempt(library: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return library.guarded(x)

    x = torch.rand(4, 1)
    assert torch.equal(clew.trace(program)(x), x)


def own_error(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    try:
        return x @ y
    except (KeyError, clew.GuardError):
        return x


class Own(Exception):
    pass


def only_own(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    try:
        return x @ y
    except Own:
        return x


def any_error(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    try:
        return x @ y
    except Own:
        return y
    except Exception:
        return x


def test_only_what_can_be_caught_is_an_attempt() -> None:
    x = torch.rand(2, 2)
    attempted = {
        function: "attempt" in clew.trace(function, args=(x, x + 1)).code
        for function in (own_error, only_own, any_error)
    }
    assert attempted == {own_error: True, only_own: False, any_error: True}
    with pytest.raises(clew.GuardError, match="does not fail"):
        clew.trace(any_error, args=(x, x + 1))(x, torch.rand(3, 3))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        clew.trace(only_own, args=(x, x + 1))(x, torch.rand(3, 3))
