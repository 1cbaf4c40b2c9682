"""Programs with nests, registered classes, loops with structured state, static arguments."""

from __future__ import annotations

import collections
import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from tests.frameworks.jax.hard.ledger import LONG, I, M, X, Y, program


class State(NamedTuple):
    count: object
    total: object


@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, left, right, label):
        self.left, self.right, self.label = left, right, label

    def tree_flatten(self):
        return (self.left, self.right), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)


@dataclasses.dataclass(frozen=True)
class Config:
    rate: float = 0.5
    axis: int = 0


@program((LONG,), (LONG + 1,), (X,))
def scan_with_structure(x):
    def step(state, value):
        state = {"pair": State(state["pair"].count + 1, state["pair"].total + value), "none": None}
        return state, (value * 2, None)

    return jax.lax.scan(step, {"pair": State(0, jnp.float32(0)), "none": None}, x)


@program((X, 5), (Y, 3), (X, 0))
def while_with_structure(x, n):
    def body(state):
        return State(state.count + 1, state.total * 0.5 + x)

    return jax.lax.while_loop(lambda state: state.count < n, body, State(0, x))


@program((X, 0), (X, 1), (Y, 5), (Y, -1))
def switch_by_number(x, which):
    return jax.lax.switch(which, [jnp.sin, jnp.cos, lambda v: v * 2], x)


@program((X, True), (X, False), (Y, jnp.asarray(True)))
def cond_by_flag(x, flag):
    return jax.lax.cond(flag, lambda v: {"a": v, "b": 1}, lambda v: {"a": -v, "b": 2}, x)


@program((Pair(X, Y, "a"),), (Pair(Y, X, "a"),), (Pair(X, Y, "b"),))
def registered_class(pair):
    scale = 2 if pair.label == "a" else 3
    return Pair(pair.left * scale, pair.right, pair.label + "!")


def equal_pairs(left, right):
    return left.label == right.label


@program((X, Config()), (X, Config(0.25)), (M, Config(0.5, 1)))
def frozen_dataclass(x, config):
    return jnp.sum(x * config.rate, axis=config.axis)


@program((collections.OrderedDict(b=X, a=Y),), (collections.OrderedDict(a=Y, b=X),))
def ordered_dict(held):
    return next(iter(held.values())) * 2, jax.tree_util.tree_map(lambda leaf: leaf + 1, held)


@program((X, Y), (X,), (X, Y, X), (Y, Y))
def many_arguments(*arrays):
    return jnp.stack(arrays).sum(0) * len(arrays)


@program((X, State(I, Y)), (X, State(I, X)), (X, (I, Y)))
def named_tuple(x, state):
    return state._replace(total=x + state.total), type(state).__name__


@program((X, 2), (X, 3), (X, 2))
def nested_jit(x, n):
    @functools.partial(jax.jit, static_argnames="n")
    def inner(x, n):
        return jnp.tile(x, n) if n > 2 else x * n

    return jax.jit(lambda v: inner(v, n=n) + 1)(x)


@functools.partial(jax.jit, static_argnums=1)
def jitted_with_static(x, how):
    return x.sum() if how == "sum" else x.max()


@program((X, "sum"), (Y, "sum"), (X, "max"))
def calls_jitted_with_static(x, how):
    return jitted_with_static(x, how)


@program((LONG, 2), (LONG, 3))
def fori_by_number(x, n):
    return jax.lax.fori_loop(0, n, lambda i, v: v.at[i].add(i), x)


@program((M,), (M + 1,))
def map_of_nest(x):
    return jax.lax.map(lambda row: {"sum": row.sum(), "row": row[::-1]}, x)


@program((X, I), (Y, I), (X, I * 0), (X, I + 10))
def scatter_and_gather(x, i):
    return x.at[i].set(9.0), x.at[i].add(1.0, mode="drop"), x[i], jnp.take(x, i, mode="clip")


@program((LONG, 3), (LONG, 4), (LONG, 6))
def dynamic_slices(x, n):
    return jax.lax.dynamic_slice(x, (n,), (2,)), jax.lax.dynamic_update_slice(x, jnp.ones(2), (n,))


@program(([X, Y], {"k": [X]}), ([Y, Y], {"k": [Y]}), ([X], {"k": [X]}), ([X, Y], {"j": [X]}))
def nests_are_returned(arrays, held):
    arrays.append(held["k"][0] + 1)
    return held, arrays


@program((X,), (Y,))
def associative(x):
    return jax.lax.associative_scan(jnp.add, x), jnp.cumsum(x[::-1])


@program((X, functools.partial(jnp.multiply, 2.0)), (X, functools.partial(jnp.multiply, 3.0)), (X, jnp.sin))
def callable_as_argument(x, fn):
    return fn(x)


@program((X, [X, Y]), (Y, [X * 0, Y]), (Y, [jnp.float32(0), Y]), (X, []))
def loop_asks_for_a_list(x, arrays):
    turn = 0
    while turn < 3 and arrays:
        turn += 1
        if x.sum() > 0:
            x = x - 1
    return x
