"""What programs keep: variables, layers, counters, lists, caches, random streams."""

from __future__ import annotations

import keras
import numpy
import tensorflow as tf

from tests.frameworks.tensorflow.general.ledger import MATRICES, VECTORS, floats, made, program


class Dense(tf.Module):
    """A layer that makes its weights at the first call."""

    def __init__(self, width):
        super().__init__()
        self.width, self.w = width, None

    def __call__(self, x):
        if self.w is None:
            self.w = tf.Variable(tf.ones([x.shape[-1], self.width]) * 0.5)
        return tf.matmul(x, self.w)


ROWS = ((floats(3, 4),), (floats(3, 4, seed=9),), (floats(5, 4),), (floats(1, 4),), (floats(2, 4),))


@made(*ROWS)
def lazily_made_weights(world):
    world.layer = Dense(2)
    return world.layer


@made(*ROWS)
def keras_model(world):
    keras.utils.set_random_seed(3)
    world.model = keras.Sequential([keras.layers.Dense(5, activation="relu"), keras.layers.Dense(2)])
    world.model.build((None, 4))
    return world.model


@made(*ROWS)
def keras_layer_not_built(world):
    keras.utils.set_random_seed(3)
    world.layer = keras.layers.Dense(3, kernel_initializer="ones")
    return world.layer


@made(*ROWS)
def keras_training_step(world):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    world.weights = model.trainable_variables

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x, training=True) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return step


@made(*VECTORS)
def moving_average(world):
    world.average = tf.Variable(0.0)
    average = world.average

    def step(x):
        average.assign(0.9 * average + 0.1 * tf.reduce_mean(x))
        return x - average

    return step


@made(*VECTORS)
def counter_attribute(world):
    class Counting(tf.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            return x * self.calls

    world.model = Counting()
    return world.model


@made(*VECTORS)
def history_list(world):
    world.history = []
    history = world.history

    def step(x):
        history.append(tf.reduce_sum(x))
        return x + len(history)

    return step


@made(*VECTORS)
def last_seen(world):
    class Memory(tf.Module):
        def __init__(self):
            super().__init__()
            self.last = tf.constant(0.0)

        def __call__(self, x):
            y = x + self.last
            self.last = tf.reduce_max(x)
            return y

    world.model = Memory()
    return world.model


@made(*VECTORS)
def closure_counter(world):
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return x + count

    return step


@made(*VECTORS)
def dict_of_results(world):
    world.seen = {"sum": tf.constant(0.0), "calls": 0}
    seen = world.seen

    def step(x):
        seen["sum"] = seen["sum"] + tf.reduce_sum(x)
        seen["calls"] += 1
        return seen["sum"] / seen["calls"]

    return step


@made(*VECTORS)
def keras_metric_like(world):
    world.total, world.count = tf.Variable(0.0), tf.Variable(0)
    total, count = world.total, world.count

    def update(x):
        total.assign_add(tf.reduce_sum(x))
        count.assign_add(tf.size(x))
        return total / tf.cast(count, tf.float32)

    return update


@program(*VECTORS)
def noise(x):
    return x + tf.random.normal(tf.shape(x)), tf.random.uniform([2])


@program(*VECTORS)
def seeded_noise(x):
    return x + tf.random.normal(tf.shape(x), seed=7)


@program(*VECTORS)
def stateless_noise(x):
    return x + tf.random.stateless_normal(tf.shape(x), seed=[1, 2])


@made(*VECTORS)
def generator(world):
    own = tf.random.Generator.from_seed(4)
    world.state = own.state
    return lambda x: x + own.normal(tf.shape(x))


@program(*VECTORS)
def dropout(x):
    return tf.nn.dropout(x, 0.5)


@program(*VECTORS)
def py_function(x):
    return tf.py_function(lambda y: y * 2, [x], tf.float32) + 1


@program(*VECTORS)
def numpy_function(x):
    y = tf.numpy_function(lambda y: numpy.sort(y), [x], tf.float32)
    return y * 2


@program(*MATRICES)
def numpy_inside(x):
    weights = numpy.linspace(0.0, 1.0, 4).astype("float32")
    return x[:, :4] * weights[: x.shape[1]]


@program(*VECTORS)
def numpy_of_tensor(x):
    array = x.numpy()
    return tf.constant(numpy.sort(array) * 2)


@program(
    *(
        (tf.ragged.constant([[1.0, 2.0], [3.0]]),),
        (tf.ragged.constant([[1.0], [], [3.0, 4.0]]),),
        (tf.ragged.constant([[5.0, 2.0]]),),
        (tf.ragged.constant([[1.0, 2.0], [3.0]]) * 2,),
        (tf.ragged.constant([[0.0]] * 5),),
    )
)
def ragged(r):
    return tf.reduce_sum(r, axis=1), r.to_tensor()


@program(
    *(
        (tf.sparse.from_dense(floats(2, 3)), floats(3, 2)),
        (tf.sparse.from_dense(floats(2, 3, seed=4)), floats(3, 2)),
        (tf.sparse.from_dense(floats(4, 3)), floats(3, 1)),
        (tf.sparse.from_dense(tf.eye(2)), floats(2, 2)),
        (tf.sparse.from_dense(floats(1, 5)), floats(5, 5)),
    )
)
def sparse(s, x):
    return tf.sparse.sparse_dense_matmul(s, x)


@program(*(({"a": x, "b": [x, x + 1]},) for (x,) in VECTORS))
def nest_of_tensors(batch):
    return tf.nest.map_structure(lambda leaf: leaf * 2, batch), sum(batch["b"])


@program(*(([x, x * 2],) for (x,) in VECTORS))
def list_of_tensors(xs):
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total / len(xs)
