"""Programs that keep something between calls, or that read what others change."""

from __future__ import annotations

import collections
import functools

import jax
import jax.numpy as jnp
import numpy

from tests.frameworks.jax.hard.ledger import M, X, Y, made


@made((X,), lambda world: world.table.__setitem__("weight", Y), (X,))
def dict_changed_later(world):
    world.table = {"weight": X}
    table = world.table
    return lambda x: x * table["weight"]


@made((X,), lambda world: world.array.__setitem__(0, 9.0), (X,))
def numpy_array_changed_later(world):
    world.array = numpy.ones(3, numpy.float32)
    array = world.array
    return lambda x: x + jnp.asarray(array)


@made((X,), lambda world: world.weights.append(Y), (X,))
def list_extended_later(world):
    world.weights = [X, Y]
    weights = world.weights
    return lambda x: sum((x * weight for weight in weights), jnp.zeros(3))


@made((X,), lambda world: setattr(world.model, "scale", 5.0), (X,))
def attribute_changed_later(world):
    class Model:
        def __init__(self):
            self.scale = 2.0

        def __call__(self, x):
            return x * self.scale

    world.model = Model()
    return world.model.__call__


@made((X,), (Y,), (X,))
def counter_in_closure(world):
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return x * count

    return step


@made((X,), (Y,), (X,))
def state_in_object(world):
    world.seen, world.total = [], jnp.zeros(3)

    def step(x):
        world.total = world.total + x
        world.seen.append(x.shape)
        return world.total / len(world.seen)

    return step


@made((X,), (Y,), (X,))
def history_of_arrays(world):
    world.history = collections.deque(maxlen=2)

    def step(x):
        world.history.append(x)
        return sum(world.history, jnp.zeros(3))

    return step


@made((X,), (Y,), (M,), (X,))
def cache_by_shape(world):
    world.cache = {}

    def step(x):
        if x.shape not in world.cache:
            world.cache[x.shape] = jnp.arange(x.size).reshape(x.shape)
        return x + world.cache[x.shape]

    return step


@made((X,), (Y,), (X,), refused="a cached body with an effect acts only when the cache has no result yet")
def memoised_helper(world):
    world.calls = []

    @functools.lru_cache
    def table(size):
        world.calls.append(size)
        return numpy.arange(size, dtype=numpy.float32)

    return lambda x: x * table(x.shape[0])


@made(({"x": X},), ({"x": Y},))
def argument_changed(world):
    def step(state):
        state["x"] = state["x"] * 2
        state.setdefault("count", 0)
        state["count"] += 1
        return state["x"]

    return step


@made(([X, Y],), ([Y, X],))
def list_argument_popped(world):
    def step(arrays):
        last = arrays.pop()
        arrays.insert(0, last + 1)
        return last

    return step


@made((X,), (Y,), (X,))
def first_call_differs(world):
    world.ready = False

    def step(x):
        if not world.ready:
            world.ready = True
            return x * 100
        return x

    return step


@made((X,), lambda world: setattr(world, "fn", jnp.cos), (X,))
def function_replaced_later(world):
    world.fn = jnp.sin
    return lambda x: world.fn(x)


@made((X,), (Y,))
def random_key_in_object(world):
    world.key = jax.random.PRNGKey(0)

    def step(x):
        world.key, now = jax.random.split(world.key)
        return x + jax.random.normal(now, x.shape)

    return step


@made((X,), (Y,), (X,), refused="an iterator gives another value at each use")
def generator_walks_on(world):
    source = iter(range(10))
    return lambda x: x * next(source)


@made((X,), (X,))
def default_argument_grows(world):
    def step(x, kept=[]):  # noqa: B006
        kept.append(x)
        return sum(kept, jnp.zeros(3))

    return step


@made((X,), (Y,))
def attribute_of_function(world):
    def step(x):
        step.calls = getattr(step, "calls", 0) + 1
        return x * step.calls

    return step


@made((X,), (Y,), (X,))
def set_of_shapes(world):
    world.shapes = set()

    def step(x):
        world.shapes.add(x.ndim)
        return x * len(world.shapes)

    return step


@made((X, M), (X, M), (M, X))
def set_of_shapes_again(world):
    world.shapes = set()

    def step(x, y):
        world.shapes.add(x.ndim)
        world.shapes.add(y.ndim)
        return x.sum() * len(world.shapes)

    return step


@made((X,), lambda world: world.kind.__setattr__("rate", 3.0) if False else setattr(world.kind, "rate", 3.0), (X,))
def class_attribute_changed_later(world):
    class Settings:
        rate = 2.0

    world.kind = Settings
    return lambda x: x * Settings.rate


class Layer:
    def __init__(self):
        self.weight, self.parts = X, {"scale": Y, "shift": X}
        self.blocks = [{"w": X}, {"w": Y}]

    def __call__(self, x):
        for block in self.blocks:
            x = x * block["w"]
        return x * self.weight * self.parts["scale"] + self.parts["shift"]


def learn(world):
    layer = world.layer
    layer.weight, layer.parts = layer.weight - 0.1, {"shift": Y, "scale": layer.parts["scale"] * 2}
    layer.blocks[1] = {"w": layer.blocks[1]["w"] * 3}


@made((X,), learn, (X,), learn, (Y,))
def weights_set_anew(world):
    world.layer = Layer()
    return world.layer.__call__


@made((M,), (X,), lambda world: setattr(world, "count", 9), (M + 1,))
def error_after_a_change(world):
    world.count = 0

    def step(x):
        world.count += 1
        return x[1][1] * world.count

    return step


@made(({"b": X, "a": Y},), ({"a": Y, "b": X},))
def order_of_keys_is_seen(world):
    def step(held):
        first, second = held.values()
        return first - second * 2, {key: value + 1 for key, value in held.items()}

    return step


@made(({"b": X, "a": Y},), ({"a": Y, "b": X},), ({"a": Y, "c": X},))
def order_of_keys_is_not_seen(world):
    def step(held):
        return jax.tree.map(lambda leaf: leaf + 1, held), held, {"sum": held["a"] - held["b"]}

    return step


@made((X,), (-X,), (Y,))
def changed_after_a_loop(world):
    world.count = 0

    def step(x):
        total = jax.lax.fori_loop(0, 1, lambda round, sums: sums * 0.5 + round, x)
        world.count = world.count + len(jnp.flatnonzero(total > -0.5))
        if total.sum() > 0 and world.count > 1:
            x = x + 1
        return x

    return step
