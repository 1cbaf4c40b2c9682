"""Functions that TensorFlow traces once and goes on with; what only some calls would raise; tensors given twice."""

from __future__ import annotations

import tensorflow as tf

from tests.frameworks.tensorflow.hard.ledger import LONG, X, Y, made, program

NANS = tf.constant([float("nan"), 1.0, 2.0])
EARLIER = "at an earlier call"


@made((X,), (Y,), (LONG,), refused=EARLIER)
def function_reads_a_counter(world):
    world.scale = 1.0

    @tf.function
    def scaled(v):
        return v * world.scale

    def step(x):
        out = scaled(x)
        world.scale += 1
        return out

    return step


@made((X,), (Y,), (LONG,), refused=EARLIER)
def function_was_traced_before(world):
    world.scale = 1.0

    @tf.function
    def scaled(v):
        return v * world.scale

    scaled(X)
    world.scale = 3.0
    return lambda x: scaled(x) + 1


@made((X,), (Y,), (LONG,))
def function_was_traced_before_alike(world):
    world.scale, world.total = 2.0, tf.Variable(1.0)

    @tf.function
    def scaled(v):
        for row in v:
            if row > 0:
                world.total.assign_add(row)
        return v * world.scale * world.total

    scaled(X)
    return lambda x: scaled(x) + 1


class Layer(tf.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0
        self.held = tf.function(self._held)

    @tf.function
    def __call__(self, x):
        return x * self.scale

    def _held(self, x):
        return x + self.scale


@made((X,), (Y,), refused=EARLIER)
def method_was_traced_before(world):
    world.layer = Layer()
    world.layer(X)
    world.layer.scale = 5.0
    return world.layer


@made((X,), (Y,), refused=EARLIER)
def held_method_was_traced_before(world):
    world.layer = Layer()
    world.layer.held(X)
    world.layer.scale = 5.0
    return lambda x: world.layer.held(x)


@program((X, Y), (X, X), (LONG, LONG))
def gradients_of_one_tensor_given_twice(x, y):
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        total = tf.reduce_sum(x * y + tf.sin(x))
    return tape.gradient(total, [x, y])


@program((X,), (NANS,), (LONG,))
def whole_number_that_nobody_uses(x):
    int(x[0])
    return x + 1


@program((X,), (X[:1],), (LONG,))
def truth_that_nobody_uses(x):
    bool(x)
    return x + 1


@program((tf.constant([1.0]),), (X,), (tf.zeros(0),))
def truth_of_one_item_that_nobody_uses(x):
    bool(x)
    return x + 1


@program((["a b", "c"],), (["a b", "c"],), (["x"],))
def texts_in_a_list(words):
    return tf.strings.split(tf.constant(words)).row_lengths(), tf.strings.join([words, words])


@program((X,), (Y,), refused="an item of an empty list is carried by a loop")
def emptied_list_is_set_in_a_loop(x):
    items = [x]
    items.pop()
    turn = 0
    while turn < len(tf.where(x > 0.5)) and len(items) > 3:
        turn += 1
        items[0] += -0.5
    return x + turn
