"""Branches and loops on values, gradients, and TensorFlow's own control flow."""

from __future__ import annotations

import tensorflow as tf

from tests.frameworks.tensorflow.general.ledger import MATRICES, VECTORS, floats, ints, made, program


@program(*VECTORS)
def sign_branch(x):
    if tf.reduce_sum(x) > 0:
        y = x * 2
    else:
        y = -x
    return y


@program(*VECTORS)
def newton(x):
    guess = tf.ones_like(x)
    for _ in tf.range(8):
        guess = (guess + tf.abs(x) / guess) / 2
    return guess


@program(*VECTORS)
def until_small(x):
    rounds = 0
    while tf.reduce_max(tf.abs(x)) > 0.1:
        x = x * 0.5
        rounds += 1
    return x, rounds


@program(*MATRICES)
def break_in_rows(x):
    total = tf.constant(0.0)
    for row in x:
        if tf.reduce_sum(row) > 1:
            break
        total += tf.reduce_sum(row)
    return total


@program(*VECTORS)
def tensor_array(x):
    kept = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
    state = tf.constant(0.0)
    for i in tf.range(tf.shape(x)[0]):
        state = state * 0.5 + x[i]
        kept = kept.write(i, state)
    return kept.stack()


@program(*MATRICES)
def scanned(x):
    return tf.scan(lambda a, row: a * 0.5 + row, x), tf.map_fn(tf.reduce_sum, x)


@program(*VECTORS)
def while_loop(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + tf.cast(i, y.dtype)), (0, x))


@program(*VECTORS)
def cond_function(x):
    return tf.cond(tf.reduce_any(x > 1), lambda: x - 1, lambda: x + 1)


@program(*VECTORS)
def gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sin(x) ** 2)
    return y, tape.gradient(y, x)


@program(*VECTORS)
def hessian_vector(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(x**3)
        slope = inner.gradient(y, x)
        product = tf.reduce_sum(slope * x)
    return outer.gradient(product, x)


@made(*VECTORS)
def tf_function_inside(world):
    @tf.function
    def inner(x):
        return tf.nn.softmax(x) if tf.reduce_max(x) > 0 else x

    return lambda x: inner(x) * 2


@made(*VECTORS)
def tf_function_itself(world):
    @tf.function
    def outer(x):
        y = x
        for i in tf.range(3):
            y = y + tf.cast(i, tf.float32)
        return y

    return outer


@program(*VECTORS)
def bool_of_tensor(x):
    is_large = bool(tf.reduce_any(tf.abs(x) > 1))
    return (x / 2 if is_large else x), is_large


@program(*VECTORS)
def caught_error(x):
    try:
        return tf.reshape(x, [2, 2])
    except tf.errors.InvalidArgumentError:
        return x


@program((floats(3, 3),), (tf.eye(3),), (tf.eye(2) * -1,), (tf.eye(5) * 4,), (floats(1, 1),))
def cholesky_or_eye(x):
    try:
        return tf.linalg.cholesky(x)
    except tf.errors.InvalidArgumentError:
        return tf.eye(x.shape[0])


@program((floats(3) ** 2,), (floats(3),), (floats(5) ** 2,), (floats(1),), (floats(1) ** 2,))
def debugging_assert(x):
    tf.debugging.assert_non_negative(x)
    return tf.sqrt(x)


@program(*VECTORS)
def raises_by_value(x):
    if tf.reduce_sum(x) > 3:
        raise ValueError("too large")
    return x + 1


@program((ints(6),), (ints(6, seed=4),), (ints(2),), (ints(1),), (ints(9),))
def unique_and_counts(i):
    values, places, counts = tf.unique_with_counts(i)
    return values, tf.gather(counts, places)


@program(*VECTORS)
def masked(x):
    kept = x[x > 0]
    return kept, tf.where(x > 0), tf.boolean_mask(x, x < 1)


@program(*VECTORS)
def early_returns(x):
    if tf.size(x) < 2:
        return x
    if x[0] > x[1]:
        return x[::-1]
    return tf.sort(x)


@program(*MATRICES)
def unused_item(x):
    x[0, 3]
    return x * 2


@program(
    (floats(3), floats(3)),
    (floats(4), floats(4)),
    (floats(1), floats(4)),
    (floats(2), floats(3)),
    (floats(1), floats(1)),
)
def unused_sum(x, y):
    total = x + y
    del total
    return x - 1
