"""keras on JAX leaves no trace in a graph: ``KERAS_BACKEND=jax python -m tests.wrappers.keras_on_jax``.

A script, because keras chooses its backend when it is imported. It prints the names of the programs that passed. Graphs
call JAX alone, follow the variables of layers, and keep statistics and seeds as the layers do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import keras
import numpy

import clew
from benchmarks import keras_programs
from benchmarks.wrapped_programs import Program
from clew.ir.arguments import all_nodes

BACKEND = {"jax", "_operator", "operator", "builtins"}


def packages_in(captured: Any) -> Iterator[str]:
    """The packages of the functions that a graph calls, apart from guards, branches and variables."""
    for node in all_nodes(captured.graph):
        if node.op == "call_function" and node.target not in (clew.guard, clew.cond):
            module = getattr(node.target, "__module__", None) or type(node.target).__module__
            if not module.startswith(("clew.capture.", "clew.frameworks.jax.")):
                yield module.partition(".")[0]


def check(program: Program) -> None:
    captured = clew.trace(program.function, args=program.inputs(2))
    assert set(packages_in(captured)) <= BACKEND, set(packages_in(captured))
    given = tuple(part + 1 for part in program.inputs(2))
    numpy.testing.assert_array_equal(captured(*given), program.function(*given))
    lazy = clew.trace(program.function)
    for size in (2, 5):
        numpy.testing.assert_array_equal(lazy(*program.inputs(size)), program.function(*program.inputs(size)))


def check_weights() -> None:
    """A weight that is set after the capture counts, and a graph of a saved process is not needed for it."""
    model = keras_programs.perceptron()
    captured = clew.trace(model, args=(jnp.ones((2, 4)),))
    model.layers[0].kernel.assign(jnp.full((4, 8), 0.5))
    numpy.testing.assert_array_equal(captured(jnp.ones((2, 4))), model(jnp.ones((2, 4))))
    model.layers[0].activation = keras.activations.tanh
    try:
        captured(jnp.ones((2, 4)))
    except clew.GuardError as error:
        assert "activation" in str(error)
    else:
        raise AssertionError("another activation was not seen")


def check_state() -> None:
    """Statistics and seeds of random numbers go on in the graph as they do in the layers."""
    layers = [keras.layers.BatchNormalization(), keras.layers.Dropout(0.5, seed=3)]
    for layer in layers:
        layer.build((None, 4))
    variables = [*layers[0].non_trainable_variables, layers[1].seed_generator.state]
    before = [numpy.array(variable) for variable in variables]

    def program(x: Any) -> Any:
        return layers[1](layers[0](x, training=True), training=True)

    captured = clew.trace(program, args=(jnp.ones((3, 4)),))
    assert all(map(numpy.array_equal, before, variables)), "the capture left a trace"
    x = jnp.arange(12.0).reshape(3, 4)
    ours = [numpy.array(captured(x)) for _ in range(3)]
    left = [numpy.array(variable) for variable in variables]
    for variable, value in zip(variables, before, strict=True):
        variable.assign(value)
    theirs = [numpy.array(program(x)) for _ in range(3)]
    assert all(map(numpy.array_equal, ours, theirs)) and not numpy.array_equal(ours[0], ours[1])
    assert all(map(numpy.allclose, left, variables))


def check_unbuilt() -> None:
    """A layer that would make its variables in the trace is refused."""
    try:
        clew.trace(keras.layers.Dense(3), args=(jnp.ones((2, 4)),))
    except clew.CaptureError as error:
        assert "not built" in str(error)
    else:
        raise AssertionError("an unbuilt layer was captured")


def main() -> None:
    """Check everything."""
    for name, program in keras_programs.programs().items():
        check(program)
        print(name)
    for part in (check_weights, check_state, check_unbuilt):
        part()
        print(part.__name__)


if __name__ == "__main__":
    main()
