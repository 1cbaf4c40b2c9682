"""Algorithms as people write them: captured, equal on other values and shapes, saved as text and run elsewhere."""

from __future__ import annotations

import functools
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clew
from tests.frameworks.torch import algorithms, networks
from tests.frameworks.torch.compare import run, same
from tests.frameworks.torch.register import ALGORITHMS

assert algorithms and networks
ROOT = Path(__file__).parents[3]
ELSEWHERE = """
import pickle, sys
from types import SimpleNamespace
import torch, clew
from tests.frameworks.torch.compare import run, same
for name, (text, constants, arguments, wanted) in pickle.load(open(sys.argv[1], "rb")).items():
    graph = clew.GraphFunction(SimpleNamespace(**constants), clew.parse(text), name)
    assert same(run(graph, arguments), wanted), name
assert "tests.frameworks.torch.register" not in sys.modules
print("all equal")
"""
CAPTURED_BY_SIZE = frozenset(
    "kalman_filter exponential_smoothing all_shortest_paths long_memory viterbi suppressed_boxes".split()
)
"""Algorithms with a loop of Python over a size: a graph of any size takes ``dynamic=True``."""


@functools.cache
def captured(name: str) -> Any:
    """The capture of one algorithm, made once."""
    function, calls = ALGORITHMS[name]
    return clew.trace(function, calls[0], dynamic=name in CAPTURED_BY_SIZE)


def test_there_are_enough() -> None:
    assert len(ALGORITHMS) >= 40


@pytest.mark.parametrize("name", ALGORITHMS)
def test_captured_and_equal(name: str) -> None:
    function, calls = ALGORITHMS[name]
    for call in calls:
        assert same(run(function, call), run(captured(name), call))
    assert clew.verify(captured(name), function, (calls[0], {}))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_text_is_equal(name: str) -> None:
    function, calls = ALGORITHMS[name]
    graph = captured(name)
    text, objects = clew.text_and_objects(graph.graph)
    assert not objects
    again = clew.parse(text)
    assert clew.difference(again, graph.graph) is None
    twin = clew.GraphFunction(graph.root, again)
    assert all(same(run(function, call), run(twin, call)) for call in calls)


def test_run_again_in_a_fresh_process(tmp_path: Path) -> None:
    saved = {}
    for name, (function, calls) in ALGORITHMS.items():
        graph = captured(name)
        constants = {key: value for key, value in vars(graph.root).items() if key not in ("_self", "_state")}
        text = clew.text_and_objects(graph.graph)[0]
        saved[name] = (text, constants, calls[-1], run(function, calls[-1]))
    path = tmp_path / "saved.pickle"
    path.write_bytes(pickle.dumps(saved))
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-c", ELSEWHERE, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, env=environment)
    assert done.stdout.strip() == "all equal", done.stderr[-2000:]
