"""Programs with effects on the outside: printing, callbacks, asserts, random numbers, clocks, errors."""

from __future__ import annotations

import random
import time

import numpy
import tensorflow as tf

from tests.frameworks.tensorflow.hard.ledger import I, X, Y, made, program


@made((X,), (Y,), (X,))
def python_function(world):
    world.log = []
    log = world.log

    def note(value):
        log.append(value.numpy().tolist())
        return value * 2

    return lambda x: tf.py_function(note, [x], tf.float32) + 1


@made((X,), (Y,))
def numpy_function(world):
    return lambda x: tf.numpy_function(lambda a: numpy.sort(a), [x], tf.float32)


@program((X, Y), (Y, X), (X, X))
def asserts(x, y):
    tf.debugging.assert_less(tf.reduce_sum(x), 100.0)
    tf.Assert(tf.reduce_all(x != y) | tf.reduce_all(x == x), [x])
    return x + y


@program((X,), (X - 100,), (Y,))
def assert_fails(x):
    tf.debugging.assert_greater(tf.reduce_sum(x), 0.0)
    return x


@program((X, 2), (X, -2), (Y, 2))
def raises(x, n):
    if n < 0:
        raise ValueError(f"{n} is negative")
    return x * n


@program((X,), (Y,))
def random_numbers(x):
    return x + tf.random.normal([3]), tf.random.uniform([2], maxval=9, dtype=tf.int32), tf.random.shuffle(x)


@program((X,), (Y,), (X,))
def seeded_random_numbers(x):
    return x + tf.random.normal([3], seed=5)


@program((X, 3), (Y, 3), (X, 4))
def stateless_random_numbers(x, seed):
    return x + tf.random.stateless_normal([3], [seed, 1])


@made((X,), (Y,), (X,))
def generator_of_random_numbers(world):
    generator = tf.random.Generator.from_seed(3)
    return lambda x: x + generator.normal([3])


@program((X,), (Y,), refused="random numbers of Python are drawn once by a trace")
def python_random(x):
    return x * random.random()


@program((X,), (Y,), refused="a clock is read once by a trace")
def clock(x):
    return x * 0 + (time.time() > 0)


@program((X,), (Y,), refused="a print of Python would be done once by a trace")
def prints(x):
    print("called")
    return x


@program((X,), (-X,))
def asks_for_value(x):
    return x * 2 if x.numpy().sum() > 0 else x


@program((X,), (-X,), refused="whether an error is raised may depend on the input")
def catches(x):
    try:
        tf.debugging.assert_greater(tf.reduce_sum(x), 0.0)
    except tf.errors.InvalidArgumentError:
        return x * 0
    return x


@program((X, I), (Y, I), (X, I * 0))
def scatter_and_gather(x, i):
    place = (i % 3)[:, None]
    return tf.tensor_scatter_nd_update(x, place, x), tf.gather(x, i % 3), tf.gather_nd(x, place)


@made((X,), lambda world: tf.config.optimizer.set_jit(False), (Y,))
def compiled_inside(world):
    @tf.function(jit_compile=True)
    def inner(x):
        return tf.reduce_sum(x * x) + x

    return lambda x: inner(x) * 2


@program((X,), (Y,))
def device_and_name_scopes(x):
    with tf.device("/CPU:0"), tf.name_scope("inside"):
        return tf.identity(x, name="renamed") * 2


@program((X,), (Y,))
def unique_and_sets(x):
    values, places = tf.unique(tf.cast(x, tf.int32))
    return values, places, tf.where(x > 0), tf.sort(x, direction="DESCENDING"), tf.math.top_k(x, 2)


@program((X,), (Y,))
def linear_algebra(x):
    matrix = tf.linalg.diag(tf.abs(x) + 1) + x[:, None] * 0.01
    return tf.linalg.inv(matrix), tf.linalg.svd(matrix)[0], tf.linalg.eigh(matrix + tf.transpose(matrix))[0]
