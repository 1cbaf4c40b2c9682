"""Functions with a backward pass of their own are in a bundle as graphs: nobody needs the classes, to train either."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

import clew
from clew.errors import BundleError
from tests.io.custom_gradients import Once, OwnGradients, OwnTable, angles

_ELSEWHERE = """
import json, sys, torch, clew
model = clew.load(sys.argv[1])
x = torch.tensor(json.loads(sys.argv[2]), requires_grad=True)
model(x).sin().sum().backward()
print(json.dumps([model(x).tolist(), x.grad.tolist(), model.factor.grad.item(), model.linear.weight.grad.tolist()]))
print("tests" in sys.modules)
"""


def _results(model: torch.nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    given = x.clone().requires_grad_()
    model.zero_grad()
    result = model(given)
    result.sin().sum().backward()
    return [result, given.grad, *(one.grad.clone() for one in model.parameters())]


def test_values_and_gradients_are_those_of_the_classes(tmp_path: Path) -> None:
    model = OwnGradients()
    clew.save(clew.trace(model, (torch.randn(2, 3),)), tmp_path / "model.clew")
    loaded = clew.load(tmp_path / "model.clew")
    for size in (2, 5):
        x = torch.randn(size, 3)
        for found, wanted in zip(_results(loaded, x), _results(model, x), strict=True):
            assert torch.equal(found, wanted)
    with zipfile.ZipFile(tmp_path / "model.clew") as file:
        assert json.loads(file.read("manifest.json"))["schema"] == 3
        assert "function tests." not in file.read("graph.txt").decode()


def test_where_the_classes_are_not(tmp_path: Path) -> None:
    model, x = OwnGradients(), torch.randn(4, 3)
    clew.save(clew.trace(model, (torch.randn(2, 3),)), tmp_path / "model.clew")
    command = [sys.executable, "-c", _ELSEWHERE, "model.clew", json.dumps(x.tolist())]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    found, imported = finished.stdout.splitlines()
    result, gradient, factor, weight = json.loads(found)
    wanted = _results(model, x)
    assert imported == "False"
    for one, other in zip((result, gradient), wanted, strict=False):
        torch.testing.assert_close(torch.tensor(one), other)
    assert factor == pytest.approx(model.factor.grad.item())
    torch.testing.assert_close(torch.tensor(weight), model.linear.weight.grad)


def test_what_was_loaded_is_saved_and_captured_again(tmp_path: Path) -> None:
    model, x = OwnGradients(), torch.randn(4, 3)
    clew.save(clew.trace(model, (torch.randn(2, 3),)), tmp_path / "model.clew")
    loaded = clew.load(tmp_path / "model.clew")
    clew.save(loaded, tmp_path / "again.clew")
    captured = clew.trace(loaded, (x,))
    for other in (clew.load(tmp_path / "again.clew"), captured):
        for found, wanted in zip(_results(other, x), _results(model, x), strict=True):
            assert torch.equal(found, wanted)


def test_a_pass_that_is_no_graph_stays_a_name(tmp_path: Path) -> None:
    captured = clew.trace(lambda x: Once.apply(x) + 1, (torch.ones(2),))
    with pytest.warns(UserWarning, match=r"the file names tests.io.custom_gradients.Once.apply"):
        clew.save(captured, tmp_path / "model.clew")
    with pytest.raises(BundleError, match="not allowed"):
        clew.load(tmp_path / "model.clew")
    name = "tests.io.custom_gradients.Once.apply"
    x = torch.ones(2, requires_grad=True)
    clew.load(tmp_path / "model.clew", allow=("torch", name))(x).sum().backward()
    assert torch.equal(x.grad, torch.full((2,), 3.0))


def test_a_cached_function_is_a_graph_where_nobody_writes_to_its_result(tmp_path: Path) -> None:
    model = OwnTable()
    captured = clew.trace(model, (torch.rand(3, 4),))
    assert any(node.target is angles for node in captured.graph.nodes)
    clew.save(captured, tmp_path / "model.clew")
    loaded = clew.load(tmp_path / "model.clew")
    for rows in (3, 5):
        x = torch.rand(rows, 4)
        torch.testing.assert_close(loaded(x), model(x))
    with zipfile.ZipFile(tmp_path / "model.clew") as file:
        assert "function tests." not in file.read("graph.txt").decode()
