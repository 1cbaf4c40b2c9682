"""Models of keras on torch as its backend. Import this in a process whose KERAS_BACKEND is torch.

keras wraps each call to shorten tracebacks, in an ``except`` that hides what happens inside. That is switched off here,
as keras itself offers, so that calls are plain calls.
"""

from __future__ import annotations

from typing import Any

import keras
import torch

from benchmarks.wrapped_programs import Program

keras.config.disable_traceback_filtering()


def normalised(x: Any, weight: Any) -> Any:
    """A layer in the words of keras.ops."""
    hidden = keras.ops.relu(keras.ops.matmul(x, weight))
    weights = keras.ops.softmax(hidden - keras.ops.max(hidden, axis=-1, keepdims=True))
    return keras.ops.concatenate([weights, keras.ops.square(weights)], axis=1)


def perceptron() -> Any:
    """Dense layers with a normalisation between them."""
    keras.utils.set_random_seed(0)
    layers = keras.layers
    parts = [layers.Input((4,)), layers.Dense(8, activation="relu"), layers.LayerNormalization(), layers.Dense(3)]
    return keras.Sequential(parts).eval()


def convolutional() -> Any:
    """A small network for images."""
    keras.utils.set_random_seed(0)
    layers = keras.layers
    parts = [layers.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten()]
    return keras.Sequential([*parts, layers.Dense(2)]).eval()


def programs() -> dict[str, Program]:
    """The programs by name."""
    return {
        "normalised": Program("keras", normalised, lambda n: (torch.rand(n, 3), torch.rand(3, 4))),
        "perceptron": Program("keras", perceptron(), lambda n: (torch.rand(n, 4),)),
        "convolutional": Program("keras", convolutional(), lambda n: (torch.rand(n, 8, 8, 3),)),
    }
