"""Layers and models of Keras: flags of training, statistics, random numbers, masks, state."""

from __future__ import annotations

import tensorflow as tf

from tests.frameworks.tensorflow.hard.ledger import M, X, made


def _variables(world, model):
    """The variables of a model as parts of the world, so that they are compared."""
    world.model = model
    for place, variable in enumerate(model.variables):
        setattr(world, f"variable {place}", variable.value)
    return model


def keras():
    """Keras, imported as late as possible: it takes a second."""
    import keras  # noqa: PLC0415

    keras.utils.set_random_seed(0)
    return keras


@made((M, True), (M + 1, True), (M, False))
def batch_normalisation(world):
    layer = keras().layers.BatchNormalization()
    layer.build([None, 3])
    _variables(world, layer)
    return lambda x, training: layer(x, training=training)


@made((M,), lambda world: setattr(world.model, "trainable", False), (M,))
def frozen_later(world):
    layer = keras().layers.BatchNormalization()
    layer.build([None, 3])
    _variables(world, layer)
    return lambda x: layer(x, training=True)


@made((M, False), (M, True), (M + 1, False))
def dropout(world):
    layer = keras().layers.Dropout(0.5, seed=3)
    layer.build([None, 3])
    return lambda x, training: layer(x, training=training)


@made((M, True), (M, True), (M, True))
def dropout_draws_on(world):
    layer = keras().layers.Dropout(0.5, seed=3)
    layer.build([None, 3])
    return lambda x, training: layer(x, training=training)


@made((M,), (M + 1,))
def model_with_dropout_in_inference(world):
    layers = keras().layers
    return _variables(world, keras().Sequential([layers.Input([3]), layers.Dense(4, "relu"), layers.Dropout(0.5)]))


@made((M[None],), (M[None] + 1,))
def recurrent(world):
    layer = keras().layers.LSTM(2)
    layer.build([None, 2, 3])
    return _variables(world, layer)


@made((M[None],), (M[None] + 1,), (M[None],))
def recurrent_with_state(world):
    layers = keras().layers
    model = keras().Sequential([layers.Input(batch_shape=(1, 2, 3)), layers.GRU(2, stateful=True)])
    return _variables(world, model)


@made((tf.constant([[1, 2, 0]]),), (tf.constant([[1, 0, 0]]),))
def masks(world):
    layers = keras().layers
    model = keras().Sequential(
        [layers.Input([3], dtype="int32"), layers.Embedding(4, 2, mask_zero=True), layers.LSTM(2)]
    )
    return _variables(world, model)


@made((M,), (M * 2,))
def own_layer_with_counter(world):
    class Counting(keras().layers.Layer):
        def build(self, shape):
            self.count = self.add_weight(shape=(), initializer="zeros", trainable=False)

        def call(self, x):
            self.count.assign_add(1.0)
            return x * self.count

    layer = Counting()
    layer.build([None, 3])
    return _variables(world, layer)


@made((M,), (M * 2,), (M,))
def own_layer_with_python_counter(world):
    class Counting(keras().layers.Layer):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def call(self, x):
            self.calls += 1
            return x * self.calls

    return Counting()


@made((M,), (M - 9,))
def own_layer_with_branch(world):
    class Branching(keras().layers.Layer):
        def call(self, x):
            if tf.reduce_sum(x) > 0:
                return x * 2
            return -x

    return Branching()


@made((M,), (M + 1,))
def noise_layer(world):
    layer = keras().layers.GaussianNoise(1.0, seed=7)
    layer.build([None, 3])
    return lambda x: layer(x, training=True)


@made((M,), lambda world: world.model.layers[0].kernel.assign(tf.ones([3, 2])), (M,))
def weights_set_later(world):
    layers = keras().layers
    return _variables(world, keras().Sequential([layers.Input([3]), layers.Dense(2)]))


@made((M, X), (M + 1, X))
def multihead_attention(world):
    layer = keras().layers.MultiHeadAttention(2, 3)
    layer.build([None, 2, 3], [None, 2, 3])
    return lambda m, x: layer(m[None], m[None]) + x
