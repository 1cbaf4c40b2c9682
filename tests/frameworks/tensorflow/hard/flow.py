"""Programs with branches and loops over tensors, tensor arrays, gradients, functions inside of functions."""

from __future__ import annotations

import tensorflow as tf

from tests.frameworks.tensorflow.hard.ledger import LONG, I, M, X, Y, made, program


@program((X,), (-X,), (Y,))
def branch_with_early_return(x):
    if tf.reduce_sum(x) > 0:
        return x * 2, 1
    return -x, 2


@program((LONG,), (LONG + 3,), (X,))
def loop_with_break(x):
    total, rounds = 0.0, 0
    for value in x:
        if value > 3:
            break
        total += value
        rounds += 1
    return total, rounds


@program((tf.constant(5),), (tf.constant(0),), (tf.constant(2),))
def loop_over_range(n):
    total = tf.constant(0)
    for i in tf.range(n):
        total = total * 2 + i
    return total


@program((X, tf.constant(3)), (Y, tf.constant(0)), (Y, tf.constant(5)))
def while_with_structure(x, n):
    state = {"count": tf.constant(0), "pair": (x, x * 0)}
    while state["count"] < n:
        left, right = state["pair"]
        state = {"count": state["count"] + 1, "pair": (right + 1, left)}
    return state


@program((LONG,), (LONG * 2,), (X,))
def tensor_array(x):
    kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(tf.shape(x)[0]):
        kept = kept.write(i, x[i] * 2)
    return kept.stack(), kept.size()


@program((X, I), (Y, I), (X, I - 3))
def switch_and_case(x, i):
    def by(place):
        return tf.switch_case(place, [lambda: x, lambda: x * 2], default=lambda: x * 3)

    return (
        by(i[0]),
        tf.case([(i[1] > 0, lambda: x + 1)], default=lambda: x - 1),
        tf.cond(i[2] > 1, lambda: 1, lambda: 2),
    )


@program((M,), (M + 1,))
def map_and_scan(m):
    return tf.map_fn(tf.reduce_sum, m), tf.scan(lambda a, b: a + b, m), tf.foldl(lambda a, b: a * b, m)


@program((X,), (Y,))
def gradients(x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.sin(x) * x
        z = tf.reduce_sum(y**2)
    return tape.gradient(z, x), tape.gradient(y, x), tape.gradient(z, y)


@program((X,), (Y,))
def second_derivative(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(x**3)
        slope = inner.gradient(y, x)
    return outer.gradient(slope, x)


@tf.custom_gradient
def clipped(x):
    return tf.clip_by_value(x, -1.0, 1.0), lambda g: g * 7


@program((X,), (Y,))
def own_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = clipped(x) * 2
    return y, tape.gradient(y, x)


@program((X,), (Y,))
def gradient_that_is_not_there(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.constant(3.0)
    return tape.gradient(y, x), tape.gradient(y, x, unconnected_gradients="zero") if False else 0


@made((X, 2), (Y, 2), (X, 3))
def retraced_by_number(world):
    @tf.function
    def inner(x, n):
        return x * n if n > 2 else x - n

    return lambda x, n: inner(x, n) + 1


@made((X,), (Y,), (M,))
def tf_function_itself(world):
    @tf.function(reduce_retracing=True)
    def inner(x):
        if tf.reduce_sum(x) > 2:
            return x * 2
        return x

    return inner


@made((X,), (Y,), refused="a tf.function counts its traces only")
def python_effect_in_tf_function(world):
    world.traces = []
    traces = world.traces

    @tf.function
    def inner(x):
        traces.append(1)
        return x * 2

    return lambda x: inner(x) + len(traces)


@made((X,), (Y,))
def method_that_is_a_tf_function(world):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.ones(3))

        @tf.function
        def __call__(self, x):
            self.w.assign_add(x)
            return self.w * 2

    world.model = Model()
    return world.model


@program((X,), (-X,), (Y,))
def ternaries_and_logic(x):
    total = tf.reduce_sum(x)
    a = x if total > 0 and total < 4 else -x
    b = tf.constant(1) if not total > 0 or x[0] > 1 else tf.constant(2)
    return a, b


@program((X,), (Y,))
def stopped(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * tf.stop_gradient(x)
    return tape.gradient(y, x)


@program((X,), (Y,))
def jacobian(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x) * tf.reduce_sum(x)
    return tape.jacobian(y, x)


@program((M,), (M * 2,))
def vectorised(m):
    return tf.vectorized_map(lambda row: tf.reduce_sum(row) * row, m)


@program((X, 3), (Y, 3), (X, 1))
def comprehension(x, n):
    return [x * i for i in range(n)], {i: x[i] for i in range(2)}


@program((X,), (Y,))
def unpacked(x):
    a, b, c = x
    return c, a + b


@program((X,), (Y,), (tf.constant([-3.0, 1.0, 2.0]),))
def nested_branches(x):
    if x[0] > 0:
        if x[1] > 0:
            y = x * 2
        else:
            y = x * 3
    else:
        y = -x
    while tf.reduce_max(tf.abs(y)) > 1:
        y = y / 2
    return y
