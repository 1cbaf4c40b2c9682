"""Programs that keep something between calls, or draw random numbers."""

from __future__ import annotations

import collections
import functools
import random

import numpy as np

from tests.frameworks.numpy.hard.ledger import A, B, made, program

TABLE = np.array([1.0, 2.0, 4.0, 8.0])
BUFFER = np.zeros(4)
LIMITS = {"low": -1.0, "high": 1.0}
SETTINGS = {"scale": np.array([2.0])}


@made("state", (A,), (B,), (A,))
def counter_in_object():
    class Counter:
        def __init__(self):
            self.calls, self.total, self.history = 0, np.zeros(4), []

        def __call__(self, x):
            self.calls += 1
            self.total = self.total + x
            self.history.append(x.sum())
            return self.total / self.calls, list(self.history)

    return Counter()


@made("state", (A,), (B,), (A,))
def buffer_in_object():
    class Average:
        def __init__(self):
            self.mean = np.zeros(4)

        def update(self, x):
            self.mean *= 0.9
            self.mean += 0.1 * x
            return self.mean

    return Average().update


@made("state", (A,), (B,), (A,))
def counter_in_closure():
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return x * count

    return step


@made("state", (A,), (B,), (A,))
def array_in_closure():
    kept = np.ones(4)

    def step(x):
        kept[1:] += x[:-1]
        return kept.copy()

    return step


@made("state", (A,), (B,), (A,))
def cache_in_dict():
    cache = {}

    def step(x):
        key = x.shape
        if key not in cache:
            cache[key] = np.arange(x.shape[0])
        return x * cache[key]

    return step


@made("state", (A,), (B,), (A,))
def last_value():
    class Delay:
        last = None

        def __call__(self, x):
            before, self.last = self.last, x
            return x if before is None else before

    return Delay()


@made("state", (4,), (6,), (4,))
def cached_function():
    @functools.lru_cache
    def window(n):
        return np.hanning(n)

    def step(n):
        return window(n) * 2

    return step


@made("state", (A,), (B,), (A,))
def mutable_default():
    def step(x, seen=[]):  # noqa: B006
        seen.append(float(x[0]))
        return len(seen)

    return step


@made("state", (A,), (B,))
def default_array():
    def step(x, weights=np.array([1.0, 2.0, 3.0, 4.0])):
        return x @ weights

    return step


@program("state", (A,), (B,))
def global_table(x):
    return x * TABLE, TABLE[1:].sum(), TABLE.max() > 5


@program("state", (A,), (B,), (A,))
def global_buffer(x):
    np.add(BUFFER, x, out=BUFFER)
    return BUFFER.sum()


@program("state", (A,), (B,))
def global_settings(x):
    return np.clip(x, LIMITS["low"], LIMITS["high"]) * SETTINGS["scale"]


@made("state", (A,), (B,))
def deque_of_arrays():
    recent = collections.deque(maxlen=2)

    def step(x):
        recent.append(x)
        return np.mean(list(recent), axis=0)

    return step


@program("random", (3,), (5,))
def legacy_draws(n):
    np.random.seed(n)
    return np.random.rand(n), np.random.normal(0, 1, size=n), np.random.randint(0, 10), np.random.permutation(n)


@program("random", (A,), (B,))
def legacy_state(x):
    return x + np.random.standard_normal(4), np.random.choice(x, 2)


@program("random", (A, 3), (B, 4))
def generator_inside(x, seed):
    rng = np.random.default_rng(seed)
    return x + rng.normal(size=x.shape), rng.integers(0, 9, 3), rng.choice(x)


@program("random", (np.random.default_rng(1), A), (np.random.default_rng(2), B))
def generator_argument(rng, x):
    rng.shuffle(x)
    return x, rng.random()


@program("random", (A,), (B,))
def generator_without_seed(x):
    return np.random.default_rng().random() < 2, x


@program("random", (3,), (4,))
def random_state_object(n):
    state = np.random.RandomState(n)
    return state.rand(2), state.randint(5)


@program("random", (A,), (B,))
def branch_on_draw(x):
    return x if np.random.rand() > 0.5 else -x


@program("random", (A,), (B,))
def python_random(x):
    random.seed(3)
    return x * random.random() + random.randint(1, 6)


@program("random", (A,), (B,))
def shuffled_in_place(x):
    np.random.shuffle(x)
    return x


@made("state", (A,), (B,), (A,))
def cached_body_with_effect():
    calls = []

    @functools.lru_cache
    def table(size):
        calls.append(size)
        return np.arange(float(size))

    return lambda x: x * table(x.shape[0])


@made("state", (A,), (B,), (A,))
def cached_body_that_fills_its_array():
    @functools.lru_cache
    def table(size):
        filled = np.zeros(size)
        filled[0] = 1.0
        filled += 2
        return filled

    return lambda x: x * table(x.shape[0])


@made("state", (A,), (B,), (A,))
def cached_array_written_to():
    table = functools.lru_cache(lambda size: np.zeros(size))

    def step(x):
        kept = table(4)
        kept += x
        return kept.copy()

    return step


@made("state", (A,), (B,), (A,))
def cached_list_extended():
    table = functools.lru_cache(lambda size: [])

    def step(x):
        table(4).append(x.sum())
        return list(table(4))

    return step


@program("arguments", (A, 2, 3), (A, 3, 2), (A, 2, 2))
def numbers_compared_as_objects(x, a, b):
    return x if a == b else x * (a - b), a is b


@program("arguments", (A, slice(0, 2)), (A, slice(1, 4)), (A, slice(None)))
def slice_as_argument(x, part):
    return x[part], part.stop
