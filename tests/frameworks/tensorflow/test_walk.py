"""Every public function of tf.math, tf.nn, tf.linalg and tf.signal: captured, equal, and back from text."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import tensorflow as tf

import clew
from tests.frameworks.tensorflow.arguments import ARGUMENTS
from tests.frameworks.tensorflow.calls import CALLS, GAPS
from tests.frameworks.tensorflow.compare import difference

MODULES = ("math", "nn", "linalg", "signal")
NAMES = {name: arguments for arguments, names in CALLS.items() for name in names.split()}


def function_at(name: str) -> Any:
    module, _, last = name.partition(".")
    return getattr(getattr(tf, module), last)


def public() -> set[str]:
    """The functions that the four modules show."""
    found = {f"{module}.{name}" for module in MODULES for name in dir(getattr(tf, module)) if not name.startswith("_")}
    return {name for name in found if callable(function_at(name)) and not inspect.isclass(function_at(name))}


def test_nothing_is_left_out() -> None:
    gaps = {name for names in GAPS for name in names.split()}
    assert public() == set(NAMES) | gaps
    assert not set(NAMES) & gaps and all(GAPS.values())


@pytest.mark.parametrize("arguments", CALLS)
def test_captured_and_equal(arguments: str) -> None:
    seen: dict[int, str] = {}
    for name in CALLS[arguments].split():
        function, args = function_at(name), ARGUMENTS[arguments]
        if seen.setdefault(id(function), name) != name:
            continue  # one function under two names
        tf.random.set_seed(1)
        wanted = function(*args)
        graph = clew.trace(function, args)
        tf.random.set_seed(1)
        assert difference(wanted, graph(*args)) == "", name
        text, objects = clew.text_and_objects(graph.graph)
        assert clew.difference(clew.parse(text, objects=objects, allow=("tests",)), graph.graph) is None, name
