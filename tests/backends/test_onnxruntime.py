"""onnxruntime runs segments: values, views, strides, islands, weights that change, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import clew
from clew.backends import registry


def made_and_wanted(program: Any, *args: Any) -> tuple[Any, Any]:
    made = clew.compile(program, "onnxruntime", args)
    with torch.no_grad():
        return made, (made(*args), program(*args))


def test_a_model_with_weights_that_change_and_other_sizes() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 2)).eval()
    x = torch.randn(3, 4)
    made, results = made_and_wanted(model, x)
    torch.testing.assert_close(*results)
    with torch.no_grad():
        model[0].weight.mul_(2)
        for rows in (3, 5):
            x = torch.randn(rows, 4)
            torch.testing.assert_close(made(x), model(x))
    with pytest.raises(clew.ClewError, match=r"no backward pass"):
        made(x)


def test_branches_writes_and_random_numbers_are_islands() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x.sin() * 2
        if y.sum() > 0:
            y = y.exp() + 1
        y = y + torch.rand(3)
        y.mul_(3)
        return y.cos() - 1

    for sign in (1, -1):
        x = sign * torch.rand(3)
        torch.manual_seed(1)
        made = clew.compile(program, "onnxruntime", (torch.rand(3),))
        torch.manual_seed(1)
        found = made(x)
        torch.manual_seed(1)
        torch.testing.assert_close(found, program(x))
    islands = str(clew.explain(made))
    assert "it draws random numbers" in islands and "it writes into memory" in islands


def test_views_and_strides_are_those_of_torch() -> None:
    def program(x: torch.Tensor) -> Any:
        y = x * 2
        return x[1:], y.t(), y, x.permute(1, 0)

    x = torch.randn(3, 4)
    _, (found, wanted) = made_and_wanted(program, x)
    torch.testing.assert_close(found, wanted)
    assert [one.stride() for one in found] == [one.stride() for one in wanted]
    found[0].zero_()
    assert not x[1:].any() and not found[3][:, 1:].any()


def test_results_that_overlap_and_missing_packages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def overlapping(x: torch.Tensor) -> Any:
        y = x * 2
        return y[:2], y[1:]

    with pytest.raises(clew.ClewError, match="views of the same values"):
        made_and_wanted(overlapping, torch.randn(3))
    plain = clew.compile(overlapping, "onnxruntime", (torch.randn(3),), fallback=True)
    with pytest.warns(RuntimeWarning, match="runs in Python"):
        plain(torch.randn(3))
    find = registry.importlib.util.find_spec
    monkeypatch.setattr(
        registry.importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else find(name)
    )
    with pytest.raises(clew.ClewError, match="needs onnxruntime, which is not installed"):
        clew.compile(overlapping, "onnxruntime", (torch.randn(3),))
