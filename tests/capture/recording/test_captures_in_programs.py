"""Programs that call captures: what an earlier capture relies on, reads and changes counts for the later one too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import clew

FACTOR = 3
COUNT = 0
TABLE: dict[str, Any] = {"a": 1.0}
HISTORY: list[int] = []
SETTINGS = {"rate": 2.0}
X = torch.tensor([1.0, -2.0])


def helper(x: Any) -> Any:
    return x * 2


def reading(x: Any) -> Any:
    return helper(x) + (1 if FACTOR > 2 else 5) + len(TABLE)


def writing(x: Any) -> Any:
    global COUNT
    COUNT += 1
    HISTORY.append(COUNT)
    SETTINGS["rate"] += 1
    return x * COUNT + len(HISTORY) + SETTINGS["rate"]


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "COUNT", 0)
    monkeypatch.setitem(globals(), "HISTORY", [])
    monkeypatch.setitem(globals(), "SETTINGS", {"rate": 2.0})


def in_another(captured: Callable[..., Any], guards: str = "read") -> Any:
    return clew.trace(lambda x: captured(x + 1) * 2, (X,), guards=guards)


def in_a_module(captured: Callable[..., Any], guards: str = "read") -> Any:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return captured(x + 1) * 2

    return clew.trace(Model(), (X,), guards=guards)


def twice(captured: Callable[..., Any], guards: str = "read") -> Any:
    return clew.trace(in_another(captured, guards), (X,), guards=guards)


@pytest.mark.parametrize("guards", ["read", "all"])
@pytest.mark.parametrize("way", [in_another, in_a_module, twice])
@pytest.mark.parametrize("calls", [0, 3])  # from the second call on bound code runs
@pytest.mark.parametrize(
    ("name", "value"), [("FACTOR", 1), ("TABLE", {}), ("helper", lambda x: x * 7)], ids=["number", "dict", "function"]
)
def test_what_an_inner_capture_relies_on_is_guarded(
    way: Callable[..., Any], guards: str, calls: int, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = clew.trace(reading, (X,), guards=guards)
    for _ in range(calls):
        captured(X)
    outer = way(captured, guards)
    assert torch.equal(outer(X), reading(X + 1) * 2)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), name, value)
        with pytest.raises(clew.GuardError, match=name):
            outer(X)
    assert torch.equal(outer(X), reading(X + 1) * 2)


@pytest.mark.parametrize("way", [in_another, in_a_module, twice])
def test_what_an_inner_capture_changes_is_changed(way: Callable[..., Any]) -> None:
    outer = way(clew.trace(writing, (X,)))
    assert (COUNT, HISTORY, SETTINGS) == (0, [], {"rate": 2.0})
    results = [outer(X), outer(X * 2)]
    assert (COUNT, HISTORY, SETTINGS) == (2, [1, 2], {"rate": 4.0})
    state_before = {"COUNT": 0, "HISTORY": [], "SETTINGS": {"rate": 2.0}}
    globals().update(state_before)
    assert all(map(torch.equal, results, [writing(X + 1) * 2, writing(X * 2 + 1) * 2]))


def test_without_guards_none_are_taken_over() -> None:
    outer = in_another(clew.trace(reading, (X,)), "none")
    assert [one for one in outer.guards.entry if one.test == "variable"] == []
