"""Programs whose arguments are dicts in another order, more or fewer of them, or None until later."""

from __future__ import annotations

import collections
import dataclasses
import json
from typing import Any

import jax
import jax.numpy as jnp

from tests.frameworks.jax.hard.ledger import LONG, M, X, Y, made, program

# ---- the order of keys -----------------------------------------------------------------------------------------------


@program(
    ({"a": X, "b": Y, "c": X * 2},),
    ({"c": X * 2, "b": Y, "a": X},),
    ({"b": X, "c": Y, "a": X},),
    ({"a": X, "c": Y, "b": X},),
)
def middle_one_of_three(held):
    return list(held.values())[1] * 2


@program(({"a": X, "b": Y},), ({"b": Y, "a": X},), ({"b": X, "a": Y},))
def last_one_is_taken_out(held):
    key, value = held.popitem()
    return value * 2 if key == "a" else value * 3


@program(({"a": X, "b": Y},), ({"b": Y, "a": X},))
def keys_as_text(held):
    return json.dumps(list(held)), "-".join(held), X


@program((collections.OrderedDict(a=X, b=Y),), (collections.OrderedDict(b=X, a=Y),))
def moved_to_the_end(held):
    held.move_to_end("a")
    return [value * 2 for value in held.values()], held


@made(({"a": X, "b": Y},), ({"b": Y, "a": X},), ({"b": Y, "a": X},))
def order_is_remembered(world):
    world.seen = []

    def step(held):
        world.seen.append(list(held))
        return sum(held.values(), jnp.zeros(3))

    return step


@program(({"a": X, "b": -Y},), ({"b": Y, "a": -X},), ({"b": -Y, "a": X},))
def order_counts_on_one_side_only(held):
    if held["a"].sum() > held["b"].sum():
        return next(iter(held.values()))
    return held["a"] + held["b"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Batch:
    parts: dict[str, Any]


@program((Batch({"a": X, "b": Y}),), (Batch({"b": X, "a": Y}),))
def dict_in_a_dataclass(batch):
    first, second = batch.parts.values()
    batch.parts["c"] = first - second
    return first, list(batch.parts)


@program(({"w": M.T, "b": X[:2]}, {"w": M.T, "b": X[:2]}, M), ({"b": X[:2], "w": M.T}, {"w": M.T, "b": X[:2]}, M))
def two_trees_of_one_shape(params, grads, x):
    updated = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    norm = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(updated))
    return {name: leaf / norm for name, leaf in updated.items()}, x @ updated["w"]


@program((X, {"scale": 2.0, "shift": 1}), (Y, {"shift": 2, "scale": 3.0}), (LONG, {"shift": 0, "scale": 0.5}))
def settings_in_any_order(x, settings):
    for name, value in settings.items():
        x = x * value if name == "scale" else x + value
    return x


@program((1, 2, X), (2, 1, X))
def dict_of_keywords(a, b, x):
    def inner(**given):
        return [name for name in given], sum(given.values())

    return inner(b=b, a=a), x


# ---- state that is None at first, and lists that grow ----------------------------------------------------------------


@made((X,), (Y,), (LONG[:3],), (X,))
def mean_that_begins_with_nothing(world):
    world.state = {"mean": None, "count": 0}

    def step(x):
        state = world.state
        state["count"] += 1
        if state["mean"] is None:
            state["mean"] = x
        else:
            state["mean"] = state["mean"] + (x - state["mean"]) / state["count"]
        return state["mean"]

    return step


class Momentum:
    def __init__(self):
        self.velocity, self.last = None, None

    def step(self, params, grads):
        if self.velocity is None:
            self.velocity = jax.tree.map(jnp.zeros_like, grads)
        self.velocity = jax.tree.map(lambda v, g: 0.9 * v + g, self.velocity, grads)
        change = 0.0 if self.last is None else jnp.sum(params - self.last)
        self.last = params
        return params - 0.1 * self.velocity, change


@made((X, Y), (Y, X), (X, X), lambda world: setattr(world.rule, "last", None), (X, Y))
def optimizer_that_is_begun_at_its_first_call(world):
    world.rule = Momentum()
    return world.rule.step


@made((X, 1.0), (Y, 2.0), (X, -1.0), (Y, 0.5))
def history_of_losses(world):
    world.losses = []

    def step(x, rate):
        world.losses.append(float(jnp.sum(x) * rate))
        return max(world.losses), sum(world.losses) / len(world.losses), x

    return step


@made((X,), (X + 1,), lambda world: world.losses.append(3), (X,), lambda world: world.losses.clear(), (X,))
def history_that_others_change(world):
    world.losses = []

    def step(x):
        world.losses.append(float(jnp.sum(x)))
        return min(world.losses), sum(world.losses)

    return step


@made((X, 2), (Y, 3), (X, 0), (X, 1))
def history_that_a_loop_fills(world):
    world.losses = []

    def step(x, n):
        best = jnp.zeros(())
        for i in range(n):
            world.losses.append(jnp.sum(x) * i)
            best = best + sum(world.losses)
        return best, len(world.losses)

    return step


@made((X,), (-X,), (X,), (-X,))
def history_of_one_side(world):
    world.rows = []

    def step(x):
        if x.sum() > 0:
            world.rows.append(x)
            return sum(world.rows, jnp.zeros(3))
        return jnp.stack([x, *world.rows]).sum(0) if world.rows else x

    return step


@made((X,), (M,), (X,))
def history_of_other_shapes(world):
    world.rows = []

    def step(x):
        world.rows.append(x)
        return sum(world.rows), jnp.concatenate([row.ravel() for row in world.rows])

    return step


@made((X,), (Y,), (LONG,))
def history_is_stacked(world):
    world.rows = []

    def step(x):
        world.rows.append(x[:3])
        return jnp.stack(world.rows).mean(0), len(world.rows)

    return step


# ---- any number of arguments -----------------------------------------------------------------------------------------


@program((X, Y), (X,), (Y, X, X), (X, Y, X, Y))
def rows_that_are_summed(*rows):
    total = jnp.zeros(3)
    for place, row in enumerate(rows):
        total = total + row * (place + 1)
    return total / len(rows)


@program((2.0, X, Y), (3.0, X), (0.5, Y, X, X), (1, X, Y))
def scaled_rows(scale, *rows, shift=1.0):
    return jnp.stack(rows) * scale + shift, jnp.concatenate(rows)


@program((X, Y), (X,), (X, M), (M, M, M), (X, 1.0))
def rows_of_other_ranks(*rows):
    return [row.sum() for row in rows], rows[0]


@program((X, Y), (X,), (Y, X, X))
def rows_that_are_returned(*rows):
    return rows, len(rows)


@program((X, Y), (X,), (Y, X, -X))
def rows_that_decide(*rows):
    best = rows[0]
    for row in rows:
        if row.sum() > best.sum():
            best = row
    return best


@made((X, Y), (X,), (Y, X, X))
def method_of_many(world):
    class Sum:
        def __init__(self):
            self.calls = 0

        def __call__(self, *rows):
            self.calls += 1
            return sum(rows) * self.calls

    world.total = Sum()
    return world.total.__call__


@program((X, Y), (X,), (Y, X, X))
def calls_itself_with_fewer(*rows):
    return rows[0] if len(rows) == 1 else rows[0] + calls_itself_with_fewer(*rows[1:])


# ---- state that is not there at first --------------------------------------------------------------------------------


@made((X,), (Y,), lambda world: delattr(world.layer, "table"), (X,), (Y,))
def table_that_the_first_call_makes(world):
    class Layer:
        def __call__(self, x):
            if not hasattr(self, "table"):
                self.table = jnp.arange(3.0)
            return x * self.table

    world.layer = Layer()
    return world.layer.__call__


@made((X,), (Y,), lambda world: setattr(world.layer, "weight", "none"), (X,))
def attribute_that_is_tried(world):
    class Layer:
        def __call__(self, x):
            try:
                weight = self.weight
            except AttributeError:
                weight = self.weight = x * 2
            return weight + x

    world.layer = Layer()
    return world.layer.__call__


@made((X,), (Y,), (X,))
def global_that_the_first_call_makes(world):
    def step(x):
        total = vars(world).get("total", 0.0)
        world.total = total + x.sum()
        return world.total

    return step


@made((X,), (Y,), lambda world: world.state.pop("m"), (X,), (Y,))
def items_that_the_first_call_makes(world):
    world.state = {}

    def step(x):
        m = world.state.get("m", jnp.zeros(3)) * 0.9 + x
        world.state["m"] = m
        world.state["count"] = world.state.get("count", 0) + 1
        return m / world.state["count"]

    return step


# ---- dicts of any keys -----------------------------------------------------------------------------------------------


@program(({"a": X, "b": Y},), ({"b": Y, "a": X},), ({"c": X},), (dict.fromkeys("abcde", Y),), ({},))
def norm_of_a_flat_dict(params):
    return jnp.sqrt(sum(jnp.sum(value**2) for value in params.values())), len(params.values())


@program(({"a": X, "b": Y},), ({"b": Y, "a": X},), ({"c": X},), ({"a": M, "b": X},))
def values_are_taken_by_others(params):
    def again(values):
        return [value * 2 for value in values]

    return again(params.values()), max(value.max() for value in params.values())


@program(({"a": X, "b": Y},), ({"b": Y},), ({"b": Y, "a": X},))
def values_that_are_changed_in_between(params):
    total = jnp.zeros(3)
    for value in params.values():
        total = total + value
    params["sum"] = total
    return [value + 1 for value in params.values()], params


@program(({"a": X, "b": Y}, {"a": X, "b": Y}), ({"b": Y}, {"a": X}), ({"a": X}, {"a": X, "b": Y}))
def values_side_by_side(left, right):
    return [a * b for a, b in zip(left.values(), right.values(), strict=False)]


@program((X, [1.0, 2.0]), (X, [1.0, 2.0, 3.0]), (Y, [0.5]), (Y, []))
def polynomial_from_behind(x, coefficients):
    result = jnp.zeros_like(x)
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


@program((X, Y), (X,), (X, Y, -X))
def rows_from_behind(*rows):
    behind = reversed(rows)
    return [row + 1 for row in behind], list(behind), [row * 2 for row in reversed(rows)]


@program(({"a": X, "b": 2.0},), ({"b": 1.0, "a": X},), ({"a": X},), ({"b": 3.0},), ({},))
def trees_of_other_keys(held):
    return jax.tree.map(lambda leaf: leaf * 2, held), held
