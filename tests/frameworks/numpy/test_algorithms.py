"""Algorithms as people write them: captured, equal on other values and shapes, saved as text and run elsewhere."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.ir.text import parse, text_and_objects
from clew.runtime.function import GraphFunction
from tests.frameworks.numpy.algorithms import ALGORITHMS
from tests.frameworks.numpy.comparing import EQUAL, outcome

ROOT = Path(__file__).parents[3]
ELSEWHERE = """
import pickle, sys
import numpy as np
from types import SimpleNamespace
from clew.ir.text import parse
from clew.runtime.function import GraphFunction
assert "torch" not in sys.modules
sys.path.insert(0, sys.argv[2])
from tests.frameworks.numpy.comparing import run, same
for name, (text, constants, arguments, wanted) in pickle.load(open(sys.argv[1], "rb")).items():
    graph = GraphFunction(SimpleNamespace(**constants), parse(text), name)
    assert same(run(graph, arguments), wanted), name
print("all equal")
"""


def _captured(name: str):
    function, calls = ALGORITHMS[name]
    return clew.trace(function, copy.deepcopy(calls[0])), function, calls


def test_there_are_enough() -> None:
    assert len(ALGORITHMS) >= 40


@pytest.mark.parametrize("name", ALGORITHMS)
def test_captured_and_equal(name: str) -> None:
    graph, function, calls = _captured(name)
    assert [outcome(graph, function, call) for call in calls] == [EQUAL] * len(calls)
    assert clew.verify(graph, function, (copy.deepcopy(calls[0]), {})).ok


@pytest.mark.parametrize("name", ALGORITHMS)
def test_copies_and_text_are_equal(name: str) -> None:
    graph, function, calls = _captured(name)
    text, objects = text_and_objects(graph.graph)
    assert not objects
    for twin in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), GraphFunction(graph.root, parse(text))):
        assert [outcome(twin, function, call) for call in calls] == [EQUAL] * len(calls)


def test_run_again_in_a_fresh_process(tmp_path: Path) -> None:
    saved = {}
    for name in ALGORITHMS:
        graph, function, calls = _captured(name)
        np.random.seed(11)
        wanted = (function(*copy.deepcopy(calls[-1])), float(np.random.rand()))
        text = text_and_objects(graph.graph)[0]
        saved[name] = (text, vars(graph.root), copy.deepcopy(calls[-1]), wanted)
    path = tmp_path / "saved.pickle"
    path.write_bytes(pickle.dumps(saved))
    command = [sys.executable, "-c", ELSEWHERE, str(path), str(ROOT)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, env=environment)
    assert done.stdout.strip() == "all equal", done.stderr[-2000:]
