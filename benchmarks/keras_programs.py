"""Models of keras on torch or JAX as its backend: import this in a process whose KERAS_BACKEND says which.

keras wraps each call to shorten tracebacks, in an ``except`` that hides what happens inside. That is switched off here,
as keras itself offers, so that calls are plain calls.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy

from benchmarks.wrapped_programs import Program

keras.config.disable_traceback_filtering()


def normalised(x: Any, weight: Any) -> Any:
    """A layer in the words of keras.ops."""
    hidden = keras.ops.relu(keras.ops.matmul(x, weight))
    weights = keras.ops.softmax(hidden - keras.ops.max(hidden, axis=-1, keepdims=True))
    return keras.ops.concatenate([weights, keras.ops.square(weights)], axis=1)


def perceptron() -> Any:
    """Dense layers with a normalisation between them."""
    layers = keras.layers
    return _model([layers.Input((4,)), layers.Dense(8, "relu"), layers.LayerNormalization(), layers.Dense(3)])


def convolutional() -> Any:
    """A small network for images."""
    layers = keras.layers
    parts = [layers.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten()]
    return _model([*parts, layers.Dense(2)])


def _model(parts: list[Any]) -> Any:
    keras.utils.set_random_seed(0)
    model = keras.Sequential(parts)
    return model.eval() if keras.config.backend() == "torch" else model


def _arrays(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    generator = numpy.random.default_rng(0)
    return tuple(keras.ops.convert_to_tensor(generator.random(shape).astype("float32")) for shape in shapes)


def programs() -> dict[str, Program]:
    """The programs by name."""
    library = f"keras on {keras.config.backend()}"
    return {
        "normalised": Program(library, normalised, lambda n: _arrays((n, 3), (3, 4))),
        "perceptron": Program(library, perceptron(), lambda n: _arrays((n, 4))),
        "convolutional": Program(library, convolutional(), lambda n: _arrays((n, 8, 8, 3))),
    }
