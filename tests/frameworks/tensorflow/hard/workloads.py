"""Programs as people write them with TensorFlow: training steps, modules with state, loops, decoders, tables."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
from typing import NamedTuple

import numpy
import tensorflow as tf

from tests.frameworks.tensorflow.hard.ledger import LONG, I, M, X, Y, made, program

WIDE = tf.reshape(tf.linspace(-1.0, 1.0, 12), [4, 3])
SQUARE = tf.constant([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])


class Dense(tf.Module):
    def __init__(self, before, after, name=None):
        super().__init__(name=name)
        self.kernel = tf.Variable(tf.reshape(tf.range(before * after, dtype=tf.float32), [before, after]) / 10)
        self.bias = tf.Variable(tf.zeros(after))
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x @ self.kernel + self.bias


class Network(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense(3, 4), Dense(4, 2)]
        self.steps = tf.Variable(0, trainable=False)

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = tf.nn.relu(layer(x))
        return self.layers[-1](x)


@made((WIDE, WIDE[:, :2]), (M, M[:, :2]), (WIDE, WIDE[:, 1:]))
def step_of_gradient_descent(world):
    model = Network()
    world.weights = list(model.trainable_variables)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        grads = tape.gradient(loss, world.weights)
        for weight, grad in zip(world.weights, grads, strict=True):
            weight.assign_sub(0.1 * grad)
        model.steps.assign_add(1)
        return loss, model.steps.read_value()

    return step


@made((X,), (Y,), (X,))
def momentum_in_a_dict(world):
    world.w = tf.Variable([1.0, 2.0, 3.0])
    world.slots = {}

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((world.w * x) ** 2)
        grad = tape.gradient(loss, world.w)
        if "m" not in world.slots:
            world.slots["m"] = tf.Variable(tf.zeros(3))
        world.slots["m"].assign(0.9 * world.slots["m"] + grad)
        world.w.assign_sub(0.01 * world.slots["m"])
        return loss

    return step


@made((X,), (Y,), (LONG[:3],))
def best_loss_so_far(world):
    world.best, world.history = float("inf"), []

    def step(x):
        loss = float(tf.reduce_sum(x**2))
        world.history.append(loss)
        if loss < world.best:
            world.best = loss
        return world.best, len(world.history)

    return step


@program((SQUARE, 5), (SQUARE * 2, 10), (tf.eye(2) * 3, 1), (SQUARE, 0))
def power_iterations(matrix, rounds):
    v = tf.ones(tf.shape(matrix)[0])
    for _ in range(rounds):
        v = tf.linalg.matvec(matrix, v)
        v = v / tf.norm(v)
    return tf.tensordot(v, tf.linalg.matvec(matrix, v), 1), v


@program((SQUARE, X), (tf.eye(3), Y), (tf.eye(2), X[:2]))
def conjugate_gradients(matrix, b):
    x = tf.zeros_like(b)
    r = b - tf.linalg.matvec(matrix, x)
    p, old = r, tf.tensordot(r, r, 1)
    for _ in tf.range(tf.size(b)):
        ap = tf.linalg.matvec(matrix, p)
        alpha = old / (tf.tensordot(p, ap, 1) + 1e-9)
        x += alpha * p
        r -= alpha * ap
        new = tf.tensordot(r, r, 1)
        p = r + new / (old + 1e-9) * p
        old = new
        if new < 1e-8:
            break
    return x


@program((WIDE, 2), (M, 1), (LONG[:, None] + tf.zeros(3), 3))
def k_means(points, k):
    centres = points[:k]
    for _ in range(3):
        distance = tf.reduce_sum((points[:, None] - centres[None]) ** 2, -1)
        labels = tf.argmin(distance, 1)
        sums = tf.math.unsorted_segment_sum(points, labels, k)
        counts = tf.math.unsorted_segment_sum(tf.ones(tf.shape(points)[0]), labels, k)
        centres = tf.where(counts[:, None] > 0, sums / tf.maximum(counts, 1.0)[:, None], centres)
    return centres, labels


@program((tf.constant([1, 1, 2, 2, 3]),), (tf.constant([5]),), (tf.constant([1, 2, 1]),))
def runs(values):
    change = tf.concat([[True], values[1:] != values[:-1]], 0)
    starts = tf.where(change)[:, 0]
    lengths = tf.concat([starts[1:], [tf.size(values, out_type=tf.int64)]], 0) - starts
    return tf.gather(values, starts), lengths


@program((X, 4), (Y, 2), (LONG, 0), (X, 1))
def filled_array(x, count):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    total = tf.reduce_sum(x)
    for i in tf.range(count):
        array = array.write(i, total * tf.cast(i, tf.float32))
        if i % 2 == 1:
            total = total + 1
    return array.stack(), array.size()


@program((tf.ragged.constant([[1.0, 2.0], [3.0], []]),), (tf.ragged.constant([[1.0], [2.0, 3.0, 4.0]]),))
def ragged_rows(rows):
    return tf.reduce_sum(rows, 1), rows.row_lengths(), rows.to_tensor(-1.0), (rows * 2).values


@program((X, "relu"), (Y, "tanh"), (X, "none"), (LONG, "relu"))
def switched_by_text(x, name):
    if name == "relu":
        return tf.nn.relu(x)
    elif name == "tanh":
        return tf.tanh(x)
    return x


@program((X, "sum"), (Y, "max"), (M, "mean"))
def looked_up_by_text(x, name):
    return {"sum": tf.reduce_sum, "max": tf.reduce_max, "mean": tf.reduce_mean}[name](x)


@program((X, 10.0), (Y, 100.0), (LONG, -1.0), (X, 3))
def while_loop_with_structure(x, limit):
    def cond(i, state):
        return tf.logical_and(tf.reduce_sum(state["v"]) < limit, i < 10)

    def body(i, state):
        return i + 1, {"v": state["v"] * 1.5 + 0.5, "n": state["n"] + tf.reduce_max(state["v"])}

    return tf.while_loop(cond, body, (tf.constant(0), {"v": x, "n": tf.constant(0.0)}))


@program((X, 0), (X, 1), (Y, 2), (Y, 9))
def switch_case(x, which):
    return tf.switch_case(tf.constant(which), [lambda: x, lambda: x * 2, lambda: -x], default=lambda: x * 0)


class State(NamedTuple):
    mean: tf.Tensor
    count: object


@program((X, State(tf.zeros(3), 0)), (Y, State(X, 5)), (Y, State(X, tf.constant(5))))
def named_state(x, state):
    count = state.count + 1
    mean = state.mean + (x - state.mean) / tf.cast(count, tf.float32)
    return State(mean, count)


@program((X, Y), (Y, X), (LONG, LONG))
def persistent_tape(x, y):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = x * y
        w = tf.reduce_sum(z**2)
        with tape.stop_recording():
            v = tf.reduce_sum(x) * 3
    return tape.gradient(w, x), tape.gradient(z, y), tape.gradient(v, x)


@program((X,), (Y,), (LONG,))
def gradient_of_a_gradient(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.sin(x) * x)
        slope = inner.gradient(y, x)
    return slope, outer.jacobian(slope, x)


@program((X, 0.5), (Y, 2.0), (LONG, 1.0))
def gradient_by_rule(x, rate):
    @tf.custom_gradient
    def clipped(v):
        def back(up):
            return tf.clip_by_value(up, -rate, rate)

        return v * 2, back

    with tf.GradientTape() as tape:
        tape.watch(x)
        out = tf.reduce_sum(clipped(x) ** 2)
    return tape.gradient(out, x)


@made((X,), (Y,), (X,))
def python_loop_over_variables(world):
    world.parts = [tf.Variable(float(i)) for i in range(3)]

    def step(x):
        total = 0.0
        for i, part in enumerate(world.parts):
            part.assign_add(tf.reduce_sum(x) * i)
            total += part
        return total, [part.read_value() for part in world.parts]

    return step


@made((X,), (Y,), (LONG,), (X,))
def cache_by_size(world):
    world.cache = {}

    def step(x):
        size = int(x.shape[0])
        if size not in world.cache:
            world.cache[size] = tf.range(size, dtype=tf.float32)
        return x + world.cache[size], len(world.cache)

    return step


@made((X,), (Y,), (LONG,))
def cached_by_decorator(world):
    @functools.lru_cache
    def table(size):
        return numpy.arange(size, dtype=numpy.float32)

    return lambda x: x * table(x.shape[0])


@made((X,), (Y,), (X,), refused="a variable that the first call makes")
def tf_function_with_a_variable_made_once(world):
    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.count = None

        @tf.function
        def __call__(self, x):
            if self.count is None:
                self.count = tf.Variable(0.0)
            self.count.assign_add(tf.reduce_sum(x))
            return x * self.count

    counter = Counter()
    return lambda x: counter(x)


@made((X, 2), (Y, 3), (X, 2), refused="a tf.function changes a list when it is traced, and not when it is called")
def tf_function_with_a_number(world):
    world.traced = []

    @tf.function
    def power(x, n):
        world.traced.append(n)
        return x**n

    return lambda x, n: power(x, n)


@made((WIDE,), (M,), (WIDE,))
def batch_norm_by_hand(world):
    world.mean, world.variance = tf.Variable(tf.zeros(3)), tf.Variable(tf.ones(3))

    def normalise(x, training=True):
        if training:
            mean, variance = tf.nn.moments(x, [0])
            world.mean.assign(0.9 * world.mean + 0.1 * mean)
            world.variance.assign(0.9 * world.variance + 0.1 * variance)
        else:
            mean, variance = world.mean, world.variance
        return (x - mean) * tf.math.rsqrt(variance + 1e-3)

    return normalise


@program((tf.constant(["a b", "c"]),), (tf.constant(["x"]),), (tf.constant(["p q r", ""]),))
def split_texts(texts):
    parts = tf.strings.split(texts)
    return parts.row_lengths(), tf.strings.upper(texts), tf.strings.length(texts), tf.strings.join([texts, "!"])


@program((X, None), (Y, X > 0), (X, None), (Y, Y > 99))
def masked_mean(x, mask):
    if mask is None:
        return tf.reduce_mean(x)
    kept = tf.boolean_mask(x, mask)
    return tf.cond(tf.size(kept) > 0, lambda: tf.reduce_mean(kept), lambda: tf.constant(0.0))


@program(([X, Y],), ([X],), ([X, Y, X],), ([],))
def list_of_tensors(values):
    values.append(tf.zeros(3))
    return tf.add_n(values), len(values), tf.stack(values)


@program(({"b": X, "a": Y},), ({"a": Y, "b": X},), ({"b": Y},))
def dict_of_tensors(table):
    table["sum"] = tf.add_n(list(table.values()))
    return {key: value * 2 for key, value in table.items()}, tf.nest.flatten(table)[0]


@dataclasses.dataclass
class Options:
    rate: float = 0.1
    clip: object = None


@program((X, Options()), (Y, Options(0.5)), (X, Options(0.1, 1.0)))
def options_of_a_dataclass(x, options):
    if options.clip is not None:
        x = tf.clip_by_norm(x, options.clip)
    return x * options.rate


@program((X, 3), (Y, 0), (LONG, 5), (X, -1))
def raises_for_some(x, n):
    if n < 0:
        raise ValueError(f"{n} is negative")
    tf.debugging.assert_greater(tf.size(x), 0)
    return tf.reshape(x, [-1])[:n]


@program((X, Y), (X, LONG), (M, X), refused="a program that catches errors")
def tries_shapes(x, y):
    try:
        return x + y
    except (ValueError, tf.errors.InvalidArgumentError):
        return tf.concat([tf.reshape(x, [-1]), tf.reshape(y, [-1])], 0)


@program((WIDE, 2), (M, 1), (WIDE, 3))
def beams(scores, width):
    values, places = tf.math.top_k(scores, k=width)
    order = tf.argsort(values[:, 0], direction="DESCENDING")
    return tf.gather(values, order), tf.gather(places, order, axis=0)


@program((WIDE,), (M,), (WIDE[:1],))
def scanned_rows(x):
    totals = tf.scan(lambda total, row: total + row, x, initializer=tf.zeros(3))
    largest = tf.map_fn(lambda row: tf.reduce_max(row), x)
    return totals, largest, tf.vectorized_map(lambda row: row * row[0], x)


@program((WIDE,), (M,))
def numbers_of_numpy(x):
    array = x.numpy() if hasattr(x, "numpy") else numpy.zeros(3)
    return tf.constant(array.mean(0)), float(array.max())


@program((X, tf.constant(2)), (Y, tf.constant(0)), (LONG, tf.constant(4)))
def tensor_as_a_count(x, n):
    out = x
    for _ in tf.range(n):
        out = out * 0.5
    return out, tf.repeat(x, 2), tf.range(n)


@program((I,), (tf.constant([5, 5]),), (tf.constant([0]),))
def collatz(n):
    steps = tf.zeros_like(n)
    while tf.reduce_any(n > 1):
        n = tf.where(n > 1, tf.where(n % 2 == 0, n // 2, 3 * n + 1), n)
        steps += tf.cast(n >= 1, steps.dtype)
        if tf.reduce_max(steps) > 20:
            break
    return steps


@made((X,), (Y,), (X,))
def generator_in_an_object(world):
    world.rng = tf.random.Generator.from_seed(3)

    def step(x):
        noise = world.rng.normal(tf.shape(x))
        keep = tf.cast(world.rng.uniform(tf.shape(x)) < 0.5, tf.float32)
        return x * keep + noise

    return step


@program((X, 7), (Y, 7), (X, 8))
def stateless_draws(x, seed):
    noise = tf.random.stateless_normal(tf.shape(x), seed=[seed, 1])
    return x + noise, tf.random.experimental.stateless_shuffle(x, seed=[seed, 2])


@program((X,), (Y,))
def closures_are_kept(x):
    functions = [lambda v, i=i: v * float(i) for i in range(3)]
    return [f(x) for f in functions], functools.reduce(lambda v, f: f(v) + 1, functions, x)


@made((X,), (Y,), lambda world: setattr(world, "scale", 3.0), (X,))
def global_number_is_changed(world):
    world.scale = 2.0
    return lambda x: x * world.scale


@made((X,), (Y,), (X,))
def deque_of_tensors(world):
    world.last = collections.deque(maxlen=2)

    def step(x):
        world.last.append(x)
        return tf.add_n(list(world.last))

    return step


@program((X, 0.1), (Y, 0.5), (X, 1))
def python_math(x, rate):
    factor = math.exp(-rate) * (1 - rate**2) ** 0.5 if rate < 1 else math.pi
    return x * factor, round(rate, 1), f"{rate:.2f}"


@program((WIDE, X), (M, Y))
def einsum_and_linear_algebra(x, w):
    gram = tf.einsum("ij,kj->ik", x * w, x) + tf.eye(tf.shape(x)[0])
    factor = tf.linalg.cholesky(gram + tf.transpose(gram) + 10 * tf.eye(tf.shape(x)[0]))
    return gram, tf.linalg.logdet(tf.matmul(factor, factor, transpose_b=True)), tf.linalg.band_part(gram, -1, 0)


@program((WIDE,), (M,), (WIDE * 0,))
def attention_that_is_causal(x):
    scores = tf.matmul(x, x, transpose_b=True) / tf.sqrt(tf.cast(tf.shape(x)[-1], x.dtype))
    mask = tf.linalg.band_part(tf.ones_like(scores), -1, 0)
    scores = tf.where(mask > 0, scores, scores.dtype.min)
    return tf.nn.softmax(scores) @ x


@made((WIDE, WIDE[:, :1]), (M, M[:, :1]), (WIDE, WIDE[:, 1:2]))
def keras_model_by_hand(world):
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
    model.build((None, 3))
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        return loss

    return step
