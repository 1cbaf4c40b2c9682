"""TensorFlow -> each target: programs of the corpora, sizes, variables, loops, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
import tensorflow as tf
import torch

import clew
from benchmarks.translate_corpora import Case, examine
from clew.errors import GuardError, TranslationError
from tests.frameworks.tensorflow import corpus_algorithms, corpus_networks

TARGETS = ("numpy", "torch", "jax")
PROGRAMS = {one.label: one for one in (*corpus_networks.ALL, *corpus_algorithms.ALL)}
CHOSEN = (
    "dense_gradients adam_step batch_normalization_training heads_of_attention convolution_network upsampling means "
    "separable_convolution long_memory_of_any_length by_sign nested_loops low_pass edit_distance best_path mandelbrot "
    "regression ranking over_rows counted nest_of_everything"
).split()


@pytest.mark.parametrize(("to", "name"), [(TARGETS[place % 3], name) for place, name in enumerate(CHOSEN)])
def test_programs(to: str, name: str) -> None:
    one = PROGRAMS[name]
    calls = tuple([one.call(seed) for seed in range(2)] + ([] if one.specs is None else [one.call(3, 5)]))
    found = examine(Case(name, one.function, calls, tuple(one.variables)), "tensorflow", to)
    assert found["outcome"] == "translated", found


def test_sizes_are_numbers() -> None:
    def fn(x: Any) -> Any:
        shape = tf.shape(x)
        return tf.reshape(x, [shape[0] * shape[1], -1]) / tf.cast(shape[0], tf.float32)

    made = clew.translate(clew.trace(fn, (tf.ones((2, 3, 4)),)), "jax")
    assert jax.jit(made)(jnp.ones((5, 2, 3))).shape == (10, 3)
    assert made.code.split("\n\n")[-1].strip().splitlines()[1:] == [
        "    reshape = jax.numpy.reshape(x, ((x.shape[0] * x.shape[1]), -1))",
        "    cast = jax.numpy.asarray(x.shape[0], dtype=jax.numpy.int32).astype(jax.numpy.float32)",
        "    return reshape / cast",
    ]


def test_variables_become_weights_and_state() -> None:
    weight, counter = tf.Variable([[1.0, 2.0]], name="weight"), tf.Variable(0, trainable=False, name="counter")

    def fn(x: Any) -> Any:
        before = weight.value()
        weight.assign_sub(0.5 * before)
        counter.assign_add(1)
        return x @ tf.transpose(before), weight.value()

    captured = clew.trace(fn, (tf.ones((3, 2)),))
    weight.assign([[1.0, 2.0]])
    counter.assign(0)
    made = clew.translate(captured, "numpy")
    x = numpy.ones((1, 2), "float32")
    first, second = made(x), made(x)
    assert first[0].tolist() == [[3.0]] and first[1].tolist() == [[0.5, 1.0]]
    assert second[0].tolist() == [[1.5]] and made.state["counter"] == 2


def test_segments_of_negative_numbers_are_left_out_and_argmax_passes_over_nan() -> None:
    def fn(x: Any, groups: Any) -> Any:
        return tf.math.unsorted_segment_sum(x, groups, 2), tf.argmax(x), tf.reduce_max(x)

    x, groups = tf.constant([1.0, float("nan"), 3.0]), tf.constant([0, -1, 1])
    for to in TARGETS:
        assert (
            examine(Case("segments", fn, ((x, groups), (x[::-1], groups))), "tensorflow", to)["outcome"] == "translated"
        )


def test_a_keras_model() -> None:
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras is on another backend")
    model = keras.Sequential([keras.layers.Dense(4, activation="gelu"), keras.layers.LayerNormalization()])
    x = tf.constant(numpy.random.default_rng(0).normal(size=(3, 5)).astype("float32"))
    model(x)
    made = clew.translate(clew.trace(model, (x,)), "torch")
    assert isinstance(made, torch.nn.Module) and len(list(made.parameters())) == 4
    y = numpy.random.default_rng(1).normal(size=(6, 5)).astype("float32")
    numpy.testing.assert_allclose(made(torch.tensor(y)).detach(), model(tf.constant(y)), atol=1e-5)


@pytest.mark.parametrize(("fn", "args", "reason", "to"), [
    (lambda x: tf.linalg.svd(x)[1], (tf.eye(3),), "unique but for signs", "torch"),
    (lambda x: tf.strings.lower(x), (tf.constant(["A"]),), "StringLower", "torch"),
    (lambda x: tf.boolean_mask(x, x > 0), (tf.ones(3),), "depends on the data", "jax"),
    (lambda x: tf.reduce_mean(x), (tf.constant([1, 2]),), "a mean of integers", "numpy"),
    (lambda x, y: x // y, (tf.constant([4, 2]), tf.constant([1, 2])), "division of integers", "jax"),
])  # fmt: skip
def test_what_is_refused(fn: Any, args: Any, reason: str, to: str) -> None:
    with pytest.raises(TranslationError, match=reason):
        clew.translate(clew.trace(fn, args), to)


def test_inputs_are_guarded() -> None:
    made = clew.translate(clew.trace(lambda x: x + 1.0, (tf.ones((2, 3)),)), "torch")
    with pytest.raises(GuardError, match="ndim"):
        made(torch.ones(2))
    with pytest.raises(GuardError, match="x.dtype is float32"):
        made(torch.ones((2, 3), dtype=torch.float64))
