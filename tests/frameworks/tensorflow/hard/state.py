"""Programs that keep something between calls, or that read what others change."""

from __future__ import annotations

import functools

import numpy
import tensorflow as tf

from tests.frameworks.tensorflow.hard.ledger import X, Y, made


@made((X,), (Y,), (X,))
def variable_assigned(world):
    world.total = tf.Variable(tf.zeros(3))

    def step(x):
        world.total.assign_add(x)
        return world.total * 2

    return step


@made((X,), (Y,))
def order_of_assignments(world):
    world.v = tf.Variable(tf.ones(3))

    def step(x):
        before = world.v.read_value()
        world.v.assign(x)
        middle = world.v + 0
        world.v.assign_sub(before)
        return before, middle, world.v

    return step


@made((X,), (Y,))
def variable_swapped_with_another(world):
    world.a, world.b = tf.Variable(tf.ones(3)), tf.Variable(tf.zeros(3))

    def step(x):
        old = tf.identity(world.a)
        world.a.assign(world.b + x)
        world.b.assign(old)
        return world.a - world.b

    return step


@made((X,), (Y,))
def variable_in_branch(world):
    world.count = tf.Variable(0)

    def step(x):
        if tf.reduce_sum(x) > 2:
            world.count.assign_add(1)
        else:
            world.count.assign_sub(10)
        return x * tf.cast(world.count, tf.float32)

    return step


@made((X,), (Y,))
def variable_in_loop(world):
    world.v = tf.Variable(0.0)

    def step(x):
        for value in x:
            world.v.assign(world.v * 0.5 + value)
        return world.v.read_value()

    return step


@made((X,), (Y,))
def control_dependencies(world):
    world.v = tf.Variable(1.0)

    def step(x):
        with tf.control_dependencies([world.v.assign(world.v * 2)]):
            return x * world.v

    return step


@made((X,), lambda world: world.v.assign([9.0, 9.0, 9.0]), (X,))
def variable_changed_from_outside(world):
    world.v = tf.Variable(tf.ones(3))
    return lambda x: x * world.v


@made((X,), lambda world: world.table.__setitem__("weight", Y), (X,))
def dict_changed_later(world):
    world.table = {"weight": X}
    table = world.table
    return lambda x: x * table["weight"]


@made((X,), lambda world: world.array.__setitem__(0, 9.0), (X,))
def numpy_array_changed_later(world):
    world.array = numpy.ones(3, numpy.float32)
    array = world.array
    return lambda x: x + array


@made((X,), lambda world: setattr(world.model, "scale", 5.0), (X,))
def attribute_changed_later(world):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0

        def __call__(self, x):
            return x * self.scale

    world.model = Model()
    return world.model


@made((X,), lambda world: world.weights.append(Y), (X,))
def list_extended_later(world):
    world.weights = [X, Y]
    weights = world.weights

    def total(x):
        for weight in weights:
            x = x * weight
        return x

    return total


@made((X,), (Y,), (X,))
def counter_in_closure(world):
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return x * count

    return step


@made((X,), (Y,), (X,))
def counter_in_object(world):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.count = 0

        def __call__(self, x):
            self.count += 1
            return x * self.count

    world.model = Model()
    return world.model


@made((X,), (Y,), (X,))
def list_of_history(world):
    world.seen = []
    seen = world.seen

    def step(x):
        seen.append(x)
        return x * len(seen)

    return step


@made(({"x": X},), ({"x": Y},))
def argument_changed(world):
    def step(state):
        state["x"] = state["x"] * 2
        return state["x"]

    return step


@made((X,), (Y,), (X,))
def first_call_differs(world):
    ready = [False]

    def step(x):
        if not ready[0]:
            ready[0] = True
            return x * 100
        return x

    return step


@made((X,), (Y,), (X,))
def memoised_helper(world):
    @functools.lru_cache
    def table(size):
        return tf.range(float(size))

    return lambda x: x * table(3)


@made((X,), (Y,), (X,), refused="a cached body with an effect acts only when the cache has no result yet")
def memoised_helper_with_effect(world):
    world.calls = []
    calls = world.calls

    @functools.lru_cache
    def table(size):
        calls.append(size)
        return numpy.arange(size, dtype="float32")

    return lambda x: x * table(3)


@made((X,), (Y,))
def default_argument_grows(world):
    def step(x, kept=[]):  # noqa: B006
        kept.append(1)
        return x * len(kept)

    return step


@made((X,), lambda world: setattr(world.kind, "rate", 3.0), (X,))
def class_attribute_changed_later(world):
    class Settings:
        rate = 2.0

    world.kind = Settings
    return lambda x: x * Settings.rate


@made((X,), (Y,), (X,))
def optimiser(world):
    world.w = tf.Variable(tf.ones(3))
    world.momentum = tf.Variable(tf.zeros(3))

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((world.w * x - 1) ** 2)
        world.momentum.assign(0.9 * world.momentum + tape.gradient(loss, world.w))
        world.w.assign_sub(0.1 * world.momentum)
        return loss

    return step


@made((X,), (Y,))
def keras_optimiser(world):
    import keras  # noqa: PLC0415  slow to import, and needed here alone

    world.w = tf.Variable(tf.ones(3))
    optimizer = keras.optimizers.SGD(0.1, momentum=0.5)
    optimizer.build([world.w])

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((world.w * x - 1) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, world.w), world.w)])
        return loss

    return step


COUNT = 0


def counted(value):
    global COUNT
    COUNT += 1
    return value * COUNT


@made((X,), (-X,), (Y,), refused="each side of a branch would set a variable around the program")
def variable_set_by_a_helper_in_branches(world):
    global COUNT
    COUNT = 0

    def step(x):
        if tf.reduce_sum(x) > 0.5:
            x = counted(x**2)
        else:
            x = counted(x - 1)
        world.count = COUNT
        return x

    return step
