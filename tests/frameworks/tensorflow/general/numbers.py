"""Python's numbers, flags and texts among the arguments, and numbers that come out of tensors."""

from __future__ import annotations

import math

import tensorflow as tf

from tests.frameworks.tensorflow.general.ledger import VECTORS, floats, ints, made, program

V, W = floats(4), floats(6)


@program((V, 0.5), (V, 2.0), (W, 0.25), (W, 3), (floats(1), -1.0))
def scaled(x, alpha):
    return x * alpha + 1


@program((V,), (V, 0.9), (W, 0.1), (W,), (floats(1), 1.0))
def left_at_its_default(x, decay=0.99):
    return decay * x + (1 - decay) * tf.reduce_mean(x)


@program((V, 2), (V, 3), (W, 1), (floats(1), 5), (W, 4))
def power_by_number(x, n):
    return x**n / math.sqrt(4.0)


@program((V, 1e-3), (W, 1e-5), (floats(1), 1.0), (V * 0, 1e-8), (V, 2))
def normalised(x, epsilon=1e-6):
    return x / tf.sqrt(tf.reduce_sum(tf.square(x)) + epsilon)


@program((V, 0.1, 10), (V, 0.2, 10), (W, 0.1, 3), (W, 0.1, 0), (floats(1), 0.5, 100))
def schedule(x, rate, step):
    return x * (rate * (1 + math.cos(math.pi * min(step, 50) / 50)) / 2)


@program((V, 2), (V, 3), (W, 2), (floats(1), 1), (W, 5))
def top_k(x, k):
    k = min(k, x.shape[0])
    return tf.math.top_k(x, k=k)


@program((V, 1.0), (V, -1.0), (W, 0.0), (floats(1), 2), (W, -3))
def branch_on_number(x, gain):
    if gain > 0:
        return x * gain
    return x - gain


@program((V, 3), (V, 0), (W, 5), (W, 1), (floats(1), 2))
def rounds_by_number(x, n):
    for _ in range(n):
        x = x + tf.sin(x)
    return x


@program((V,), (V * 4,), (W,), (floats(1),), (-W,))
def float_of_tensor(x):
    largest = float(tf.reduce_max(x))
    return x / (abs(largest) + 1.0), largest


@program((V,), (V * 4,), (W,), (floats(1),), (-W,))
def numpy_of_scalar(x):
    total = tf.reduce_sum(x).numpy()
    if total > 0:
        return x / total
    return x


@program((ints(5),), (ints(5, seed=4),), (ints(9),), (ints(1),), (ints(2),))
def int_of_tensor(i):
    n = int(tf.reduce_max(i)) + 1
    return tf.one_hot(i, n)


@program((ints(4),), (ints(4, seed=3),), (ints(7),), (ints(1),), (ints(3, seed=8),))
def rounds_by_tensor(i):
    total = 0
    for k in range(int(i[0])):
        total += k
    return total, i + total


@program((V, "mean"), (W, "mean"), (floats(1), "mean"), (-V, "mean"), (V * 2, "mean"))
def text_chooses(x, reduction="mean"):
    if reduction == "mean":
        return tf.reduce_mean(x)
    if reduction == "sum":
        return tf.reduce_sum(x)
    raise ValueError(reduction)


@program((V, None), (W, None), (floats(1), None), (-V, None), (V * 2, None))
def optional_mask(x, mask=None):
    if mask is not None:
        x = tf.boolean_mask(x, mask)
    return tf.nn.softmax(x)


@program((V, True), (W, True), (floats(1), True), (-V, True), (V * 2, True))
def flag(x, training=False):
    if training:
        x = x * 2
    return x + 1


@program((V, 0.5), (V, 0.9), (W, 0.1), (floats(1), 0.5), (-W, 0.7))
def number_and_its_complement(x, p):
    keep = 1.0 - p
    return tf.where(x > 0, x / keep, x * p), keep


@program(*VECTORS)
def while_on_float(x):
    norm = float(tf.norm(x))
    rounds = 0
    while norm > 1.0:
        x = x / 2
        norm = norm / 2
        rounds += 1
    return x, rounds


@program((V, [0.5, 2.0]), (W, [1.5, 0.0]), (floats(1), [1.0, 1.0]), (-V, [3, 4]), (V, [0.25, -1.0]))
def numbers_in_a_list(x, weights):
    return x * weights[0] + weights[1]


@made((V, 0.5), (V, 0.1), (W, 0.9), (floats(1), 0.3), (V, 1.0))
def momentum_of_a_variable(world):
    world.v = tf.Variable(0.0)

    v = world.v

    def run(x, rate):
        v.assign(rate * v + (1 - rate) * tf.reduce_mean(x))
        return x - v

    return run


@program((V, 7), (V, 8), (W, 3), (floats(1), 1), (W, 100))
def arithmetic_of_integers(x, n):
    half = n // 2
    rest = n % 3
    return x * half + rest, half * 2 + rest == n, n / 4
