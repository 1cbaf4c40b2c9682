"""Programs with state, random numbers, closures and objects."""

from __future__ import annotations

import random

import numpy as np

from tests.frameworks.numpy.realistic.register import floats, grid, noise, program

X = noise(0, 4)


@program.made((X,), (noise(1, 4),), (noise(2, 4),), (np.arange(4),), (X,))
def running_average():
    class Average:
        def __init__(self):
            self.count, self.mean = 0, 0.0

        def __call__(self, x):
            self.count += 1
            self.mean = self.mean + (x - self.mean) / self.count
            return self.mean

    return Average()


@program.made((X, noise(1, 4)), (noise(2, 4), noise(3, 4)), (X, X), (np.arange(4), X), (X, np.zeros(4)))
def adam():
    class Adam:
        def __init__(self):
            self.first = self.second = None
            self.step = 0

        def update(self, weights, gradient):
            if self.first is None:
                self.first, self.second = np.zeros_like(gradient), np.zeros_like(gradient)
            self.step += 1
            self.first = 0.9 * self.first + 0.1 * gradient
            self.second = 0.999 * self.second + 0.001 * gradient**2
            m, v = self.first / (1 - 0.9**self.step), self.second / (1 - 0.999**self.step)
            return weights - 0.1 * m / (np.sqrt(v) + 1e-8)

    return Adam().update


@program.made((noise(0, 5, 3),), (noise(1, 5, 3),), (noise(2, 2, 3),), (noise(3, 1, 3),), (np.float32(noise(4, 5, 3)),))
def batch_norm():
    class BatchNorm:
        mean, variance = np.zeros(3), np.ones(3)

        def __init__(self):
            self.mean, self.variance, self.training = np.zeros(3), np.ones(3), True

        def __call__(self, x):
            if self.training:
                mean, variance = x.mean(0), x.var(0)
                self.mean = 0.9 * self.mean + 0.1 * mean
                self.variance = 0.9 * self.variance + 0.1 * variance
            else:
                mean, variance = self.mean, self.variance
            return (x - mean) / np.sqrt(variance + 1e-5)

    return BatchNorm()


@program.made((X,), (noise(1, 4),), (noise(2, 4),), (noise(3, 4),), (noise(4, 4),))
def last_three():
    history = []

    def program(x):
        history.append(x.sum())
        if len(history) > 3:
            history.pop(0)
        return sum(history) / len(history)

    return program


@program.made((0,), (2,), (1,), (3,), (np.int64(1),))
def ring_buffer():
    class Ring:
        def __init__(self):
            self.data, self.place = np.zeros(4), 0

        def __call__(self, value):
            self.data[self.place % len(self.data)] = value
            self.place += 1
            return self.data.copy()

    return Ring()


@program.made((floats(1, 0),), (floats(0, 1),), (floats(2, 2),), (np.array([1, 1]),), (floats(0.5, 0),))
def kalman_filter():
    class Kalman:
        def __init__(self):
            self.x, self.p = np.zeros(2), np.eye(2)

        def step(self, measured):
            self.p = self.p + 0.1 * np.eye(2)
            gain = self.p @ np.linalg.inv(self.p + 0.5 * np.eye(2))
            self.x = self.x + gain @ (measured - self.x)
            self.p = (np.eye(2) - gain) @ self.p
            return self.x

    return Kalman().step


def rng(seed):
    return np.random.default_rng(seed)


@program((rng(0), X), (rng(1), X), (rng(2), noise(1, 6)), (rng(3), noise(1, 2, 3)), (rng(4), X, 0.9))
def dropout(generator, x, rate=0.5):
    kept = generator.random(x.shape) >= rate
    return x * kept / (1 - rate)


@program((rng(0), 3.0, 10), (rng(1), 3.0, 10), (rng(2), -1.0, 25), (rng(3), 2, 1), (rng(4), 0.0, 5))
def simulated_annealing(generator, start, steps):
    current = best = start
    temperature = 1.0
    for _ in range(steps):
        candidate = current + generator.normal()
        change = candidate**2 - current**2
        if change < 0 or generator.random() < np.exp(-change / temperature):
            current = candidate
            if current**2 < best**2:
                best = current
        temperature *= 0.9
    return best


@program((rng(0), 10), (rng(1), 10), (rng(2), 50), (rng(3), 1), (rng(4), 7))
def monte_carlo_pi(generator, count):
    points = generator.uniform(-1, 1, size=(count, 2))
    return 4 * np.mean((points**2).sum(axis=1) <= 1)


@program((rng(0), 5), (rng(1), 8), (rng(2), 5), (rng(3), 1), (rng(4), 20))
def random_walk(generator, steps):
    position, path = 0, []
    for _ in range(steps):
        position += generator.choice([-1, 1])
        path.append(position)
    return np.array(path)


@program((rng(0), X), (rng(1), noise(1, 6)), (rng(2), noise(1, 4, 2)), (rng(3), np.arange(5)), (rng(4), X, 5))
def bootstrap_mean(generator, values, rounds=3):
    means = np.empty(rounds)
    for i in range(rounds):
        places = generator.integers(0, len(values), size=len(values))
        means[i] = values[places].mean()
    return means.mean(), means.std()


@program((X, 3), (noise(1, 6), 4), (X, 1), (np.arange(5), 2), (noise(1, 4, 2), 2))
def shuffled_batches(x, size):
    order = np.random.permutation(len(x))
    return [x[order[i : i + size]].sum(axis=0) for i in range(0, len(x), size)]


@program((X,), (noise(1, 6),), (noise(2, 2, 2),), (np.arange(3),), (X, 0.1))
def noisy(x, scale=1.0):
    return x + scale * np.random.normal(size=x.shape)


@program((4,), (6,), (1,), (10,), (2,))
def reservoir(count):
    kept = None
    for i in range(1, count + 1):
        if random.random() < 1 / i:
            kept = i
    return kept


@program.made((3,), (5,), (3,), (1,), (8,))
def memoised_catalan():
    known = {0: 1}

    def catalan(n):
        if n not in known:
            known[n] = sum(catalan(i) * catalan(n - 1 - i) for i in range(n))
        return known[n]

    return catalan


@program.made((X,), (noise(1, 3),), (noise(2, 2, 2),), (np.arange(4),), (floats(5),))
def extremes_so_far():
    seen = {"low": np.inf, "high": -np.inf}

    def program(x):
        seen["low"] = min(seen["low"], x.min())
        seen["high"] = max(seen["high"], x.max())
        return (x - seen["low"]) / (seen["high"] - seen["low"])

    return program


class Layer:
    """A layer of a network."""

    def __init__(self, seed, rows, columns, activation=None):
        self.weights, self.bias, self.activation = noise(seed, rows, columns), np.zeros(columns), activation

    def __call__(self, x):
        y = x @ self.weights + self.bias
        return y if self.activation is None else self.activation(y)


@program.made((noise(0, 2, 3),), (noise(1, 5, 3),), (noise(2, 3),), (np.arange(3),), (noise(3, 2, 2, 3),))
def small_network():
    layers = [Layer(0, 3, 4, np.tanh), Layer(1, 4, 4, lambda v: np.maximum(v, 0)), Layer(2, 4, 2)]

    def program(x):
        for layer in layers:
            x = layer(x)
        return x

    return program


@program.made((floats(1, 0, 1),), (floats(0, 1),), (noise(0, 6),), (np.array([1, 2]),), (floats(1),))
def echo_network():
    w_in, w = noise(1, 3), noise(2, 3, 3) / 3

    def program(signal):
        state = np.zeros(3)
        states = []
        for value in signal:
            state = np.tanh(w_in * value + w @ state)
            states.append(state)
        return np.array(states)

    return program


@program.made((noise(0, 5, 2),), (noise(1, 3, 2),), (noise(2, 8, 2),), (noise(3, 1, 2),), (np.float32(noise(4, 2, 2)),))
def gated_unit():
    wz, wh = noise(1, 4, 2), noise(2, 4, 2)

    def program(sequence):
        h = np.zeros(2)
        for x in sequence:
            both = np.concatenate([x, h])
            z = 1 / (1 + np.exp(-(both @ wz)))
            h = (1 - z) * h + z * np.tanh(both @ wh)
        return h

    return program


@program((grid(2, 2), 0), (grid(2, 2), 1), (grid(3, 3), 2), (np.eye(2), 5), (np.arange(4).reshape(2, 2), 1))
def writes_to_argument(matrix, row):
    if row >= matrix.shape[0]:
        raise IndexError("no such row")
    matrix[row] = matrix[row] * 2
    matrix[:, 0] += 1
    return matrix.sum()


@program(
    (X, X),
    (noise(1, 3), noise(2, 3)),
    (np.arange(3), np.arange(3)),
    (noise(1, 2, 2), noise(2, 2, 2)),
    (floats(1), floats(2)),
)
def swapped_in_place(a, b):
    temporary = a.copy()
    a[...] = b
    b[...] = temporary
    return a - b
