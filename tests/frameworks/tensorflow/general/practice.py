"""Programs as practitioners write them: layers, losses, tapes, recurrences, options, ragged and sparse tensors."""

from __future__ import annotations

import tensorflow as tf

from tests.frameworks.tensorflow.general import ledger
from tests.frameworks.tensorflow.general.ledger import MATRICES, VECTORS, floats, ints


def program(*calls):
    """A program with these calls; the first ones are made again, so that there are five."""
    return ledger.program(*calls, *calls[: 5 - len(calls)])


def made(*calls):
    """The same for what makes a program."""
    return ledger.made(*calls, *calls[: 5 - len(calls)])


@made(*MATRICES[:4])
def dense_stack(world):
    kernel, bias = tf.Variable(floats(4, 3, seed=1)), tf.Variable(tf.zeros(3))
    return lambda x: tf.nn.softmax(tf.nn.relu(x @ kernel + bias), axis=-1)


@made(*MATRICES[:4])
def step_by_tape(world):
    world.weight = tf.Variable(floats(4, 1, seed=2))

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ world.weight) ** 2)
        gradient = tape.gradient(loss, world.weight)
        world.weight.assign_sub(0.1 * gradient)
        return loss

    return step


@program((floats(3, 4), "mean"), (floats(2, 4), "sum"), (floats(3, 4), "none"), (floats(5, 4), "mean"))
def reduced(x, reduction="mean"):
    losses = tf.square(x)
    if reduction == "mean":
        return tf.reduce_mean(losses)
    if reduction == "sum":
        return tf.reduce_sum(losses)
    return losses


@program((floats(3, 4),), (floats(3, 4), tf.ones((3, 4))), (floats(5, 2),), (floats(2, 2), tf.zeros((2, 2))))
def masked_average(x, mask=None):
    if mask is None:
        return tf.reduce_mean(x)
    return tf.reduce_sum(x * mask) / tf.maximum(tf.reduce_sum(mask), 1.0)


@program((floats(5, 3), floats(3)), (floats(2, 3), floats(3, seed=4)), (floats(1, 3), floats(3)))
def recurrent_cell(inputs, state):
    kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(tf.shape(inputs)[0]):
        state = tf.tanh(state * 0.5 + inputs[i])
        kept = kept.write(i, state)
    return kept.stack(), state


@program(*VECTORS)
def collatz_like(x):
    return tf.while_loop(lambda i, v: tf.reduce_sum(tf.abs(v)) > 1, lambda i, v: (i + 1, v / 2), (tf.constant(0), x))


@program((floats(3, 4), True), (floats(2, 4), False), (floats(5, 2), True), (floats(1, 1), False))
def normalised_in_practice(x, training):
    if training:
        mean, variance = tf.nn.moments(x, axes=[0])
    else:
        mean, variance = tf.zeros(tf.shape(x)[-1]), tf.ones(tf.shape(x)[-1])
    return (x - mean) * tf.math.rsqrt(variance + 1e-3)


@program((ints(3, 4), 9), (ints(2, 6), 9), (ints(5, 1), 12), (ints(1, 8), 20))
def bag_of_tokens(tokens, count):
    return tf.reduce_sum(tf.one_hot(tokens, count), axis=1)


@program((floats(2, 4, 8), floats(2, 6, 8)), (floats(1, 3, 8), floats(1, 3, 8)), (floats(3, 1, 4), floats(3, 2, 4)))
def attended(query, keys):
    scores = tf.matmul(query, keys, transpose_b=True) / tf.sqrt(tf.cast(tf.shape(query)[-1], tf.float32))
    return tf.matmul(tf.nn.softmax(scores), keys)


@program((floats(6), ints(6, most=3)), (floats(9), ints(9, most=3)), (floats(3), ints(3, most=2)))
def grouped_means(values, labels):
    count = tf.reduce_max(labels) + 1
    return tf.math.unsorted_segment_mean(values, labels, count)


@program(*VECTORS)
def ragged_rows(x):
    rows = tf.RaggedTensor.from_row_lengths(x, [tf.size(x) - 1, 1])
    return tf.reduce_sum(rows, axis=1)


@program(*MATRICES)
def sparse_product(x):
    sparse = tf.sparse.from_dense(tf.where(x > 0, x, tf.zeros_like(x)))
    return tf.sparse.sparse_dense_matmul(sparse, x, adjoint_b=True)


@program((floats(2, 8, 8, 3),), (floats(1, 8, 8, 3),), (floats(3, 12, 10, 3),))
def pooled_features(images):
    return tf.reduce_mean(tf.nn.max_pool2d(images, 2, 2, "VALID"), axis=[1, 2])


@program((floats(3, 4), 2), (floats(3, 4), 3), (floats(5, 6), 1), (floats(2, 4), 4))
def best_of(x, k):
    values, places = tf.math.top_k(x, k)
    return values, tf.gather(x, places, batch_dims=1)


@program((floats(4), 0.1, 5), (floats(6), 0.2, 3), (floats(1), 1, 1), (floats(4), 0.1, 10))
def descent(x, rate, steps):
    for _ in range(steps):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum((x - 1) ** 2)
        x = x - rate * tape.gradient(loss, x)
    return x


@made(*MATRICES[:4])
def moving_average_in_practice(world):
    world.average, world.calls = tf.Variable(0.0), 0

    def update(x):
        world.calls += 1
        world.average.assign(0.9 * world.average + 0.1 * tf.reduce_mean(x))
        return x - world.average, world.calls

    return update


@tf.function
def clipped(x, limit):
    if tf.norm(x) > limit:
        return x * limit / tf.norm(x)
    return x


@program((floats(4), 1.0), (floats(7), 0.5), (floats(1), 2), (floats(4), 100.0))
def calls_a_function(x, limit):
    return clipped(x, limit) + 1


@program(([floats(3), floats(3, seed=1)],), ([floats(3)],), ([floats(3)] * 4,), ([floats(5), floats(5)],))
def averaged(arrays):
    total = tf.zeros_like(arrays[0])
    for array in arrays:
        total += array
    return total / len(arrays)


@program(
    (floats(3, 4), {"scale": 2.0, "shift": 1.0}),
    (floats(2, 2), {"shift": 0.5, "scale": 1.0}),
    (floats(5), {"scale": 3.0, "shift": 0.0}),
)
def configured(x, config):
    return x * config["scale"] + config["shift"]


@program(*MATRICES)
def whitened(x):
    centred = x - tf.reduce_mean(x, axis=0)
    covariance = tf.matmul(centred, centred, transpose_a=True) / tf.cast(tf.shape(x)[0], x.dtype)
    return tf.linalg.diag_part(covariance), tf.linalg.trace(covariance)
