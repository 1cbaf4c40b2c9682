"""Models of Keras: sequential, functional and subclassed, recurrent and convolutional, in both modes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tests.frameworks.tensorflow.program import Program, integers, normal

layers = keras.layers


def sequential() -> Any:
    return keras.Sequential(
        [layers.Dense(4, activation="relu"), layers.Dropout(0.3, seed=1), layers.BatchNormalization(), layers.Dense(2)]
    )


def functional() -> Any:
    inputs = keras.Input((6, 6, 2))
    x = layers.Conv2D(4, 3, padding="same", activation="silu")(inputs)
    x = layers.LayerNormalization()(layers.Add()([x, layers.Conv2D(4, 1)(inputs)]))
    x = layers.GlobalAveragePooling2D()(layers.MaxPooling2D()(x))
    return keras.Model(inputs, {"scores": layers.Dense(3, activation="softmax")(x), "features": x})


class Branching(keras.Model):
    """A model whose own code branches on a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(4)
        self.dropout = layers.Dropout(0.5, seed=2)
        self.scale = 2.0

    def call(self, x, training=False):
        y = self.dense(x)
        if tf.reduce_sum(y) > 0:
            y = y * self.scale
        return self.dropout(y, training=training)


class Encoder(keras.Model):
    """A block of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 3, dropout=0.1, seed=3)
        self.norm = layers.LayerNormalization()
        self.dense = layers.Dense(4, activation="gelu")

    def call(self, x, training=False):
        return self.dense(self.norm(x + self.attention(x, x, training=training)))


def recurrent() -> Any:
    return keras.Sequential([layers.Bidirectional(layers.LSTM(3, return_sequences=True)), layers.GRU(2)])


def masked() -> Any:
    return keras.Sequential([layers.Embedding(10, 4, mask_zero=True), layers.LSTM(3)])


def convolutional() -> Any:
    return keras.Sequential(
        [
            layers.SeparableConv2D(4, 3, activation="relu"),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.UpSampling2D(),
            layers.Conv2DTranspose(2, 3),
            layers.Flatten(),
        ]
    )


def augmenting() -> Any:
    return keras.Sequential([layers.RandomFlip(seed=1), layers.RandomRotation(0.1, seed=2)])


_MAKERS: list[tuple[Callable[[], Any], Callable[[Any, int], tuple[Any, ...]], tuple[bool, ...]]] = [
    (sequential, lambda g, n: (normal(g, 3, 5),), (True, False)),
    (functional, lambda g, n: (normal(g, 2, 6, 6, 2),), (False,)),
    (Branching, lambda g, n: (normal(g, 2, 5),), (True, False)),
    (Encoder, lambda g, n: (normal(g, 2, 3, 4),), (True, False)),
    (recurrent, lambda g, n: (normal(g, 2, 4, 3),), (False,)),
    (masked, lambda g, n: (integers(g, 10, 2, 4),), (False,)),
    (convolutional, lambda g, n: (normal(g, 2, 6, 6, 2),), (False,)),
    (augmenting, lambda g, n: (normal(g, 2, 6, 6, 3),), (True,)),
]


def _program(make: Any, arguments: Any, training: bool) -> Program:
    """A model, called once so that it has its variables, in one of its modes."""
    model = make()
    call = functools.partial(model, training=training)
    probe = Program(call, arguments)
    call(*probe.call(0))
    name = f"{make.__name__}_{'training' if training else 'inference'}"
    return Program(call, arguments, None, tuple(variable.value for variable in model.variables), name)


def programs() -> list[Program]:
    """All models in all modes; the same weights in each run."""
    keras.utils.set_random_seed(5)
    return [_program(make, arguments, mode) for make, arguments, modes in _MAKERS for mode in modes]
