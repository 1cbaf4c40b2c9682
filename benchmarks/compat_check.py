"""What an installed Clew must be able to do, in any environment: run by ``benchmarks.compat`` in each of them.

Prints one JSON object: for each check that the installed packages allow, "ok" or the error. It imports no test and no
benchmark, so that it can run beside a wheel alone.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import clew


def _standardised(data: Any, floor: float = 1e-6) -> Any:
    spread = data.std(axis=0)
    if data.sum() < 0:
        spread = spread + 1
    return (data - data.mean(axis=0)) / np.maximum(spread, floor), data.shape[0]


def numpy_capture() -> None:
    """Capture, check on another size, save, load, and write as plain Python."""
    table = np.arange(12.0).reshape(4, 3)
    captured = clew.trace(_standardised, args=(table,))
    assert clew.verify(captured, _standardised, ((table,), {})).ok
    with tempfile.TemporaryDirectory() as folder:
        clew.save(captured, Path(folder) / "program.clew")
        loaded = clew.load(Path(folder) / "program.clew")
        assert np.array_equal(loaded(table[:2] ** 2)[0], _standardised(table[:2] ** 2)[0])
        captured.to_python(folder)
        captured.view(Path(folder) / "program.html")


def jax_capture() -> None:
    """Capture a program of JAX, with a gradient in it."""
    jax = importlib.import_module("jax")

    def program(x: Any) -> Any:
        return jax.grad(lambda y: jax.numpy.sin(y).sum())(x) + jax.nn.relu(x)

    x = jax.numpy.arange(3.0)
    captured = clew.trace(program, (x,))
    assert np.array_equal(captured(x * 2), program(x * 2))


def torch_capture() -> None:
    """Capture a module of PyTorch, check it, train it, save and load it."""
    torch = importlib.import_module("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.LSTM(4, 2))
    x = torch.randn(5, 3)
    captured = clew.trace(model, (x,))
    assert clew.verify(captured, model, ((x,), {})).ok
    captured(x)[0].sum().backward()
    with tempfile.TemporaryDirectory() as folder:
        clew.save(captured, Path(folder) / "model.clew")
        assert torch.equal(clew.load(Path(folder) / "model.clew")(x)[0], model(x)[0])


def command_line() -> None:
    """The command runs and says that Clew can."""
    command = [sys.executable, "-m", "clew", "doctor", "--json"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout)["usable"]


def main() -> None:
    """Run all checks that the installed packages allow."""
    checks: dict[str, Callable[[], None]] = {"numpy": numpy_capture, "command line": command_line}
    for package, check in (("jax", jax_capture), ("torch", torch_capture)):
        if importlib.util.find_spec(package) is not None:
            checks[package] = check
    outcome = {}
    for name, check in checks.items():
        try:
            check()
            outcome[name] = "ok"
        except Exception as error:
            outcome[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
