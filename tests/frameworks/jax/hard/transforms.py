"""Programs with derivatives, batches, keys of random numbers and rules of their own."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy

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


@program((LONG, 2, True), (X, 0, False), (-X, 3, True), (jnp.ones(4), 1, 1))
def scan_that_is_configured(x, rounds, adds):
    def step(total, value):
        total = total + value if adds else total - value
        for _ in range(rounds):
            total = total * 0.5
        return total, total

    return jax.lax.scan(step, 0.0, x)


@program((X, 3), (X, 1), (X, jnp.array(3)), (X, 2.5), (X, True), (M, 1))
def number_decides_inside_of_jit(x, n):
    return jax.jit(lambda v: v * 3 if n > 2 else v)(x)


@program((X, 2), (X, 3), (X, 1), (M[0], 0))
def while_on_a_number_inside_of_a_gradient(x, n):
    def loss(v):
        total, i = 0.0, 0
        while i < n:
            total = total + (v ** (i + 1)).sum()
            i += 1
        return total

    return jax.grad(loss)(x), jax.hessian(loss)(x)


@program((M, 2), (M, 3), (M[:1], 1))
def list_inside_of_a_batch(x, n):
    def f(v):
        return jnp.stack([v * i for i in range(n)]).sum(0)

    return jax.vmap(f)(x)


@program((X,), (-X,), (Y,))
def data_decide_inside_of_a_gradient(x):
    def loss(v):
        if v.sum() > 0:
            return (v**2).sum()
        return (v**3).sum()

    return jax.grad(loss)(x)


@program((X, X), (X, -X), (X, Y))
def data_around_decide_inside_of_a_gradient(x, y):
    return jax.grad(lambda v: ((v * 2) if y[0] > 0 else v).sum())(x)


@program((X, 2), (X, 1), (Y, 5), refused="a function that JAX is handed changes state on one side of a branch alone")
def counts_inside_of_jit(x, n):
    counts = {"calls": 0}

    def f(v):
        if n > 1:
            counts["calls"] += 1
        return v * 2

    return jax.jit(f)(x), counts["calls"]


@program((X, 2), (X, 1), (Y, 4), (X, 0))
def recursion_on_a_static_number(x, n):
    def f(v, k):
        return v if k == 0 else f(jnp.sin(v), k - 1)

    return jax.jit(f, static_argnums=1)(x, n)


@program((X, 0.0), (X, -0.0), (X, 0.0), (X, 2.0))
def zeros_of_both_signs_inside_of_jit(x, n):
    return jax.jit(lambda v: jnp.copysign(v, n))(x)


@program((X, numpy.array([1.0, 2.0])), (X, numpy.array([-1.0, 2.0])), (X, numpy.array([3.0])))
def array_of_numpy_inside_of_jit(x, weights):
    return jax.jit(lambda v: v * weights.sum() if weights[0] > 0 else v)(x)


@program((X, 3, 2), (X, 1, 0), (X, 5, 4))
def gradients_in_a_batch_with_loops(x, n, rounds):
    def outer(v):
        def inner(u):
            for i in range(rounds):
                u = jnp.sin(u) if i % 2 else u * 2
            return u.sum()

        slope = jax.grad(inner)(v)
        return slope * n if n > rounds else slope

    return jax.vmap(outer)(jnp.stack([x, x + 1]))
