"""einops, array-api-compat and keras vanish: their programs are captured as calls of the backend, for all sizes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from einops import rearrange
from einops.layers.torch import Rearrange, Reduce
from torch import nn

import clew
from benchmarks.wrapped_programs import PROGRAMS

from .checks import check, packages_in

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_calls_of_the_backend_are_left(name: str) -> None:
    check(PROGRAMS[name])


def test_layers_of_einops() -> None:
    model = nn.Sequential(
        Rearrange("b c h w -> b (c h w)"), nn.Linear(12, 6), Reduce("b (n two) -> b n", "mean", two=2)
    )
    captured = clew.trace(model, args=(torch.rand(2, 3, 2, 2),))
    x = torch.rand(5, 3, 2, 2)
    assert torch.equal(captured(x), model(x)) and set(packages_in(captured)) <= {"torch", "_operator", "builtins"}


def test_a_size_that_does_not_fit_is_refused_or_recaptured() -> None:
    def halves(x: torch.Tensor) -> torch.Tensor:
        return rearrange(x, "(two n) -> two n", two=2)

    captured = clew.trace(halves, args=(torch.rand(6),))
    with pytest.raises(clew.GuardError, match=r"x\.shape\[0\] % 2"):
        captured(torch.rand(5))


def test_dynamic_sizes() -> None:
    def halves(x: torch.Tensor) -> torch.Tensor:
        return rearrange(x, "(two n) -> two n", two=2)

    captured = clew.trace(halves, args=(torch.rand(6),), dynamic=True)
    for size in (6, 10):
        x = torch.rand(size)
        assert torch.equal(captured(x), halves(x))
    with pytest.raises(clew.GuardError, match=r"x\.shape\[0\]"):
        captured(torch.rand(5))


def test_the_library_is_as_it_was_afterwards() -> None:
    def turned(x: torch.Tensor) -> torch.Tensor:
        return rearrange(x, "(a b) c -> b (a c)", b=11)

    captured = clew.trace(turned, args=(torch.rand(22, 13),))
    x = torch.rand(22, 13)
    assert torch.equal(turned(x), captured(x)) and turned(x).shape == (11, 26)


@pytest.mark.parametrize(
    ("backend", "script", "passed"),
    [
        ("torch", "checks", ["normalised", "perceptron", "convolutional"]),
        (
            "jax",
            "keras_on_jax",
            ["normalised", "perceptron", "convolutional", "check_weights", "check_state", "check_unbuilt"],
        ),
    ],
    ids=["torch", "jax"],
)
def test_keras(backend: str, script: str, passed: list[str]) -> None:
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    environment["JAX_PLATFORMS"] = "cpu"
    command = [sys.executable, "-m", f"tests.wrappers.{script}"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == passed
