"""Programs with derivatives, batches, keys of random numbers and rules of their own."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from tests.frameworks.jax.hard.ledger import LONG, M, X, Y, made, program


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def scaled(x, factor):
    return x * factor


scaled.defvjp(lambda x, factor: (x * factor, None), lambda factor, kept, g: (g * factor * 100,))


@jax.custom_jvp
def clipped(x):
    return jnp.clip(x, -1, 1)


@clipped.defjvp
def _clipped_rule(primals, tangents):
    return clipped(primals[0]), tangents[0] * 7


@program((X, 2.0), (Y, 3.0), (X, 2.0))
def gradient_with_rule(x, factor):
    return jax.grad(lambda v: scaled(v, factor).sum())(x), jax.value_and_grad(lambda v: clipped(v).sum())(x)


@program((X, Y), (Y, X))
def jacobians(x, y):
    def f(a, b):
        return jnp.sin(a) * b.sum()

    return jax.jacfwd(f)(x, y), jax.jacrev(f, argnums=1)(x, y), jax.hessian(lambda a: (a**3).sum())(x)


@program((M, X), (M + 1, Y))
def batches(m, x):
    pair = jax.vmap(lambda row, v: (row @ v, row.max()), in_axes=(0, None), out_axes=(0, 0))
    return pair(m, x), jax.vmap(jax.vmap(jnp.sin))(m), jax.vmap(lambda c: c.sum(), in_axes=1)(m)


@program((X, Y), (Y, X))
def forward_and_reverse(x, y):
    value, tangent = jax.jvp(lambda v: jnp.tanh(v) * 2, (x,), (y,))
    out, pull = jax.vjp(lambda v: v * v.sum(), x)
    _, line = jax.linearize(jnp.cos, x)
    return value, tangent, out, pull(y), line(y)


@program((X,), (Y,))
def stopped(x):
    return jax.grad(lambda v: (v * jax.lax.stop_gradient(v)).sum())(x)


@program((jax.random.PRNGKey(0), X), (jax.random.PRNGKey(5), Y))
def draws(key, x):
    first, second = jax.random.split(key)
    mask = jax.random.bernoulli(first, 0.5, x.shape)
    return jnp.where(mask, x, 0) + jax.random.uniform(second, x.shape), jax.random.fold_in(key, 3)


@program((jax.random.key(0), 2), (jax.random.key(1), 2), (jax.random.key(0), 3), (jax.random.PRNGKey(0), 2))
def keys_of_both_kinds(key, n):
    return jax.random.normal(key, (n,)), jax.random.split(key, n)


@program((3, X), (4, X), (jnp.int32(3), X))
def key_from_number(seed, x):
    return x + jax.random.normal(jax.random.PRNGKey(seed), x.shape)


@program((X,), (Y,))
def rematerialised(x):
    return jax.grad(lambda v: jax.checkpoint(lambda a: jnp.sin(jnp.sin(a)))(v).sum())(x)


@program((LONG,), (LONG * 2,))
def gradient_through_scan(x):
    def loss(v):
        return jax.lax.scan(lambda c, e: (c * 0.5 + e, c), jnp.float32(1), v)[1].sum()

    return jax.grad(loss)(x)


@made((X,), (Y,), (X,))
def optimiser(world):
    world.weights = {"w": jnp.ones(3), "b": jnp.float32(0)}

    def loss(weights, x):
        return ((weights["w"] @ x + weights["b"] - 1) ** 2).sum()

    def step(x):
        value, slopes = jax.value_and_grad(loss)(world.weights, x)
        world.weights = jax.tree_util.tree_map(lambda w, g: w - 0.1 * g, world.weights, slopes)
        return value

    return step


@program((X,), (Y,), (M,))
def has_aux(x):
    def f(v):
        return (v**2).sum(), {"v": v, "n": v.size}

    return jax.value_and_grad(f, has_aux=True)(x)


@program((X, 1), (X, 2), (X, 0))
def order_of_derivative(x, order):
    f = jnp.sin
    for _ in range(order):
        f = (lambda g: lambda v: jax.grad(lambda u: g(u).sum())(v))(f)
    return f(x)


@program((X.astype(jnp.int32), X), (Y.astype(jnp.int32), X))
def integers_are_not_differentiated(i, x):
    return jax.grad(lambda v: (v * i).sum())(x), jax.grad(lambda v: (v[i % 3] ** 2).sum())(x)


@program((X,), (Y,))
def closure_conversion(x):
    def f(y):
        return y * x

    return jax.vmap(f)(jnp.arange(3.0)), jax.linear_transpose(f, x)(x)
