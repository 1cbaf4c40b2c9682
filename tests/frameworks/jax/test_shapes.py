"""Shapes that JAX programs hand on, take apart or show: of any rank where they are only handed on, else guarded."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest

import clew

M = jnp.arange(6.0).reshape(2, 3)
OTHERS = (M, jnp.ones((4, 2)), jnp.ones(3), jnp.ones((2, 2, 2)))
ALL, SIZES, SAME = 4, 2, 1
"""How many of these a capture takes: of any rank, of other sizes, the same shape."""


@functools.partial(jax.jit, static_argnums=1)
def filled(x, shape):
    return jnp.full(shape, 2.0) + x.sum()


def kept(x):
    return numpy.zeros(x.shape) + 1, x.shape, {"shape": x.shape}


def handed_on(x):
    return jnp.zeros(x.shape) + x, jnp.broadcast_to(x[0], shape=x.shape), x.reshape(x.shape), x.shape == x.T.shape


def drawn(x):
    return jax.random.normal(jax.random.key(0), x.shape), jax.image.resize(x, x.shape, "nearest")


def static(x):
    return filled(x, x.shape)


def in_nests(x):
    return jax.tree.map(lambda size: size * 2, x.shape), math.prod(x.shape), jnp.asarray(x.shape)


def cut(x):
    return jnp.ones((2, *x.shape)), jnp.ones(x.shape[1:]), x.shape[:1] + (4,), x.reshape(x.shape[::-1])


def operands(x):
    return jax.lax.cond(x.sum() > 0, lambda shape: shape[0] * len(shape), lambda shape: shape[0] * 2, x.shape)


def in_bodies(x):
    rounds = jax.lax.fori_loop(0, 3, lambda _, total: total + jnp.ones(x.shape), x)
    return rounds, jax.vmap(lambda row: jnp.zeros(x.shape) + row.sum())(x), jax.grad(lambda w: (w * x.size).sum())(x)


def walked(x):
    count = 1
    for size in x.shape:
        count = count * size
    return x.reshape(count), len(x.shape), max(x.shape), tuple(x.shape), isinstance(x.shape, tuple)


def shown(x):
    return f"{x.shape}", x.shape in ((2, 3),), {(2, 3): 1}.get(x.shape, 5)


PROGRAMS = (
    (kept, ALL), (handed_on, ALL), (drawn, ALL), (static, SIZES), (in_nests, SIZES), (cut, SIZES),
    (operands, SIZES), (in_bodies, SIZES), (walked, SIZES), (shown, SAME),
)  # fmt: skip


@pytest.mark.parametrize(("program", "count"), PROGRAMS, ids=lambda one: getattr(one, "__name__", ""))
def test_shapes(program: Any, count: int) -> None:
    captured = clew.trace(program, (M,))
    taken = []
    for place, x in enumerate(OTHERS):
        try:
            found = captured(x)
        except clew.GuardError:
            continue
        wanted = program(x)
        assert jax.tree.structure(wanted) == jax.tree.structure(found)
        for one, other in zip(jax.tree.leaves(wanted), jax.tree.leaves(found), strict=True):
            assert type(one) is type(other)
            assert numpy.array_equal(one, other)
        taken.append(place)
    assert taken == list(range(count))
