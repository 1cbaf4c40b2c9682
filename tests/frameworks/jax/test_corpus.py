"""Every program of the corpus is captured, right on other values, and runs again from its text in a new process."""

from __future__ import annotations

import functools
import os
import pickle
import subprocess
import sys
from typing import Any

import jax
import pytest

import clew
from clew.capture.guards.notes import Variable
from tests.architecture.test_no_framework import SOURCE

from .compare import assert_same, bits
from .programs import PROGRAMS, others

AGAIN = """
import pickle, sys
from types import SimpleNamespace
import clew, jax
from tests.frameworks.jax.compare import bits

with open(sys.argv[1], "rb") as file:
    saved = pickle.load(file)
for name, (text, objects, constants, args, wanted) in saved.items():
    graph = clew.parse(text, objects=objects, allow=("tests",))
    function = clew.GraphFunction(SimpleNamespace(**constants), graph, name)
    args = jax.tree_util.tree_map(lambda leaf: jax.random.wrap_key_data(leaf[1]) if type(leaf) is tuple else leaf, args,
                                  is_leaf=lambda leaf: type(leaf) is tuple and leaf[:1] == ("key",))
    got = [bits(leaf) for leaf in jax.tree_util.tree_leaves(function(*args))]
    assert got == wanted, name
assert "tests.frameworks.jax.programs" in sys.modules  # for the classes of arguments alone
print(len(saved))
"""


@functools.cache
def captured(name: str) -> Any:
    """The capture of one program, made once."""
    function, example = PROGRAMS[name]
    return clew.trace(function, example)


def test_the_corpus_is_large() -> None:
    assert len(PROGRAMS) >= 40


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_on_other_values(name: str) -> None:
    function, example = PROGRAMS[name]
    graph = captured(name)
    assert_same(function(*example), graph(*example))
    if name != "repeated_smoothing":
        assert_same(function(*others(example)), graph(*others(example)))


def test_all_run_from_text_in_a_new_process(tmp_path: Any) -> None:
    saved = {}
    for name, (_, example) in PROGRAMS.items():
        graph = captured(name)
        text, objects = clew.text_and_objects(graph.graph)
        assert all(type(one) is Variable for one in objects.values()), (name, objects)
        assert clew.difference(clew.parse(text, objects=objects, allow=("tests",)), graph.graph) is None
        wanted = [bits(leaf) for leaf in jax.tree_util.tree_leaves(graph(*example))]
        keys = jax.tree_util.tree_map(_without_keys, example)
        saved[name] = (text, objects, vars(graph.root), keys, wanted)
    file = tmp_path / "saved.pickle"
    file.write_bytes(pickle.dumps(saved))
    paths = f"{SOURCE}:{SOURCE.parent}"
    # Variables set the number of threads, which decides the last bits of eigenvectors: both processes have the same.
    environment = {**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu", "PATH": ""}
    finished = subprocess.run(
        [sys.executable, "-c", AGAIN, str(file)], capture_output=True, text=True, env=environment, timeout=300
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert int(finished.stdout) == len(PROGRAMS)


def _without_keys(leaf: Any) -> Any:
    """Random keys of the new style cannot be pickled: their data can."""
    is_key = isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return ("key", jax.random.key_data(leaf)) if is_key else leaf
