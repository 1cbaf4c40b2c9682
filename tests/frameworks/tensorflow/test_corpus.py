"""Every program of the corpus is captured, holds on other values and sizes, and runs again in a fresh process."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import tensorflow as tf

import clew
from tests.frameworks.tensorflow import corpus_algorithms, corpus_keras, corpus_networks
from tests.frameworks.tensorflow.compare import difference
from tests.frameworks.tensorflow.program import Program

PROGRAMS = [*corpus_networks.ALL, *corpus_algorithms.ALL, *corpus_keras.programs()]
ROOT = Path(__file__).parents[3]
_captures: dict[str, Any] = {}


def captured(program: Program) -> Any:
    """The capture of a program from its first example, made once."""
    if program.label not in _captures:
        _captures[program.label] = clew.trace(program.function, program.call(0))
    return _captures[program.label]


def run(function: Any, program: Program, args: tuple[Any, ...], before: list[Any]) -> tuple[Any, list[Any]]:
    """The result of a call on the given state, and the state after it."""
    for variable, value in zip(program.variables, before, strict=True):
        variable.assign(value)
    result = function(*args)
    return result, [variable.numpy() for variable in program.variables]


def check(captured: Any, program: Program, args: tuple[Any, ...]) -> None:
    before = [variable.numpy() for variable in program.variables]
    wanted, left = run(program.function, program, args, before)
    found, kept = run(captured, program, args, before)
    assert difference(wanted, found) == ""
    for one, other in zip(left, kept, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_the_corpus_is_large_enough() -> None:
    assert len(PROGRAMS) >= 60
    assert len({program.label for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.label)
def test_other_values(program: Program) -> None:
    for seed in (0, 1, 2):
        check(captured(program), program, program.call(seed))


@pytest.mark.parametrize(
    "program", [program for program in PROGRAMS if program.specs is not None], ids=lambda program: program.label
)
def test_other_sizes(program: Program) -> None:
    general = clew.trace(program.function, program.specs)
    for seed, size in ((0, 4), (1, 5), (2, 3)):
        check(general, program, program.call(seed, size))


@pytest.mark.parametrize("label", ["dense_network", "means", "long_memory_of_any_length", "chosen_branch", "counted"])
def test_inside_a_tf_function(label: str) -> None:
    program = next(program for program in PROGRAMS if program.label == label)
    graph = captured(program)
    for seed in (0, 1):
        args = program.call(seed)
        before = [variable.numpy() for variable in program.variables]
        wanted, left = run(graph, program, args, before)
        found, kept = run(tf.function(graph), program, args, before)
        assert difference(tf.nest.flatten(_tensors(wanted)), tf.nest.flatten(_tensors(found))) == ""
        assert all(map(numpy.allclose, left, kept))


def _tensors(nest: Any) -> Any:
    return tf.nest.map_structure(tf.convert_to_tensor, nest)


def test_text_in_a_fresh_process(tmp_path: Path) -> None:
    """One process runs them all: text, the attributes of the root, an example and what it must give."""
    cases = []
    for program in PROGRAMS:
        if not program.alone:
            continue
        graph = captured(program)
        text, objects = clew.text_and_objects(graph.graph)
        assert objects == {}, program.label
        state = {path: value for path, value in vars(graph.root).items()}
        saved = pickle.dumps((text, state, program.call(3)))
        wanted = graph(*program.call(3))
        leaves = [_plain(leaf) for leaf in tf.nest.flatten(wanted, expand_composites=True)]
        cases.append((program.label, saved, leaves))
    path = tmp_path / "cases.pickle"
    path.write_bytes(pickle.dumps(cases))
    command = [sys.executable, "-m", "tests.frameworks.tensorflow.fresh", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["same", str(len(cases))]
    assert len(cases) >= 40


def _plain(leaf: Any) -> Any:
    return leaf.numpy() if isinstance(leaf, tf.Tensor) else leaf
