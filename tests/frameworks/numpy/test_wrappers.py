"""Wrapper libraries vanish: only NumPy's calls are in the graph; functions of compiled packages are one call each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import array_api_compat
import einops
import numpy as np
import pytest
import scipy.linalg
import scipy.special

import clew
from clew.capture.bytecode.try_blocks import attempt
from clew.errors import CaptureError
from clew.ir.format import qualified_name
from tests.frameworks.numpy.comparing import EQUAL, outcome

ROOT = Path(__file__).parents[3]
OF_NUMPY = ("clew.guard", "numpy.", "_operator.", "operator.", "builtins.", "math.")


def _functions(graph: Any) -> set[str]:
    """The functions that a graph calls, guards left out."""
    nodes = [node for node in graph.graph.nodes if node.op == "call_function"]
    targets = [node.args[0] if node.target is attempt else node.target for node in nodes]
    names = {qualified_name(target) for target in targets if callable(target)}
    return {name for name in names if not name.startswith("clew.capture.example.")}


def rearranged(x):
    return einops.rearrange(x, "b (h w) c -> b c h w", h=2), einops.reduce(x, "b t c -> b c", "mean")


def repeated(x, w):
    return einops.repeat(x[0], "t c -> t k c", k=3), einops.einsum(x, w, "b t c, c d -> b t d")


def by_the_standard(x):
    xp = array_api_compat.array_namespace(x)
    y = xp.permute_dims(x, (1, 0))
    both = xp.concat([xp.astype(x, xp.float32), xp.zeros(x.shape, dtype=xp.float32)])
    return xp.matmul(x, y), xp.std(x, correction=1), both, array_api_compat.is_numpy_array(x)


def _noise(*shape: int) -> Any:
    return np.random.RandomState(sum(shape)).random_sample(shape)


CALLS = {
    rearranged: [(_noise(2, 6, 3),), (_noise(4, 8, 5),)],
    repeated: [(_noise(2, 6, 3), _noise(3, 4)), (_noise(3, 5, 3), _noise(3, 2))],
    by_the_standard: [(_noise(3, 4),), (_noise(2, 5),)],
}


@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__name__)
def test_only_calls_of_numpy_are_left(function: Any) -> None:
    graph = clew.trace(function, CALLS[function][0])
    assert [outcome(graph, function, call) for call in CALLS[function]] == [EQUAL] * len(CALLS[function])
    assert all(name.startswith(OF_NUMPY) for name in _functions(graph)), _functions(graph)


def test_functions_of_scipy_are_calls() -> None:
    def solved(matrix, right):
        return scipy.linalg.solve(matrix, right), scipy.special.expit(right)

    calls = [(_noise(3, 3) + np.eye(3), _noise(3)), (_noise(4, 4) + np.eye(4), _noise(4))]
    graph = clew.trace(solved, calls[0])
    assert [outcome(graph, solved, call) for call in calls] == [EQUAL, EQUAL]
    assert any(name.startswith("scipy.linalg") for name in _functions(graph))
    assert "scipy.special.expit" in _functions(graph)
    with pytest.raises(CaptureError, match="solve would stay one call"):
        clew.trace(solved, calls[0], opaque="error")


def test_numpy_is_enough() -> None:
    program = """
import sys
sys.modules["torch"] = sys.modules["jax"] = sys.modules["tensorflow"] = None
import clew
import numpy as np
def f(x, k):
    return np.maximum(x, 0) * k
graph = clew.trace(f, (np.arange(4.0) - 2, 3))
assert (graph(np.arange(6.0) - 2, 4) == f(np.arange(6.0) - 2, 4)).all()
assert clew.verify(graph, f, ((np.arange(4.0), 3), {})).ok
assert "numpy.maximum" in graph.code and "f is captured" in str(clew.explain(f, (np.arange(4.0), 3)))
lazy = clew.trace(lambda n: n * 2 + 1)
assert lazy(3) == 7 and lazy(4) == 9 and len(lazy.captures) == 1
print("done")
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.strip() == "done", done.stderr[-2000:]
