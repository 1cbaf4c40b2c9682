"""Functions that JAX traces once and goes on with, whatever variables around them hold by then; functions it gives."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from tests.frameworks.jax.hard.ledger import LONG, M, X, Y, made, program

CHANGES = "at an earlier call"


@made((X,), (Y,), (X,))
def jitted_function_reads_a_counter(world):
    world.scale = 1.0
    scaled = jax.jit(lambda v: v * world.scale)

    def step(x):
        out = scaled(x)
        world.scale += 1
        return out

    return step


@made((X,), (Y,), (X,))
def body_of_scan_reads_a_counter(world):
    world.scale = 1.0

    def body(total, v):
        return total + v * world.scale, total

    def step(x):
        out = lax.scan(body, 0.0, x)
        world.scale += 1
        return out

    return step


@made((X,), lambda world: setattr(world, "scale", 5.0), (X,), (LONG,), (X,))
def jitted_function_is_called_with_others_later(world):
    world.scale = 1.0
    scaled = jax.jit(lambda v: v * world.scale)

    def step(x):
        out = scaled(x)
        if out.sum() > 0:
            world.scale += 1
        else:
            out = scaled(out)
        return out

    return step


@made((X,), (Y,), lambda world: setattr(world, "scale", Y), (X,))
def jitted_function_gives_a_nest(world):
    world.scale = jnp.ones(3)

    @jax.jit
    def scaled(v):
        return {"a": v * world.scale, "b": [v + 1]}

    def step(x):
        for _ in range(2):
            found = scaled(x)
            x = found["a"]
        world.scale = world.scale + 1
        return found

    return step


class Layer:
    def __init__(self):
        self.weight = jnp.ones(3)
        self.apply = jax.jit(self._apply)

    def _apply(self, x):
        return x * self.weight

    @partial(jax.jit, static_argnums=0)
    def applied(self, x):
        return x + self.weight

    def __call__(self, x):
        out = self.apply(x) + self.applied(x)
        self.weight = self.weight + 1
        return out


@made((X,), (Y,), (X,))
def jitted_methods_read_a_weight_that_learns(world):
    world.layer = Layer()
    return world.layer


@made((X,), lambda world: setattr(world.layer, "weight", Y), (X,), (Y,))
def jitted_methods_read_a_weight_that_others_set(world):
    world.layer = Layer()
    return lambda x: world.layer.apply(x) + 1


@program((X,), (Y,), (LONG,))
def closure_of_jitted_function_changes(x):
    rounds = 1
    scaled = jax.jit(lambda v: v * rounds)
    first = scaled(x)
    rounds = 2
    return first, scaled(x)


@program((X,), (Y,), (LONG,))
def closure_of_branch_changes(x):
    factor = x.sum()

    def scaled(v):
        return v * factor

    first = lax.cond(x[0] > 0, scaled, jnp.negative, x)
    factor = factor + 1
    return first, lax.cond(x[0] > 0, scaled, jnp.negative, x)


@program((X, Y), (Y, X), (LONG, X), refused=CHANGES)
def closure_changes_between_other_arguments(x, y):
    rounds = 1
    scaled = jax.jit(lambda v: v * rounds)
    first = scaled(x)
    rounds = 2
    return first, scaled(y), scaled(x)


@program((X,), (Y,), (LONG,))
def closure_changes_twice(x):
    kept = {"scale": 1}
    scaled = jax.jit(lambda v, w: v * kept["scale"] + w)
    found = []
    for scale in (1, 2, 3):
        kept["scale"] = scale
        found.append(scaled(x, x + 1))
    return found, scaled(x, 1.0)


@program((X,), (Y,), (LONG,), refused=CHANGES)
def closure_of_rematerialised_function_changes(x):
    rounds = 1
    slope = jax.checkpoint(lambda v: jnp.sin(v).sum() * rounds)
    first = jax.grad(slope)(x)
    rounds = 2
    return first, jax.grad(slope)(x)


@program((X,), (Y,), (LONG,))
def closure_of_gradient_changes(x):
    rounds = 1
    slope = jax.grad(lambda v: jnp.sin(v).sum() * rounds)
    first = slope(x)
    rounds = 2
    return first, slope(x)


@program((X,), (Y,), (LONG,), refused=CHANGES)
def jitted_in_a_loop_that_changes_its_closure(x):
    count = 0
    shifted = jax.jit(lambda v: v + count)
    while x.sum() < 20 and count < 5:
        x = shifted(x) + 1
        count = count + 1
    return x


@program((X,), (Y,), (LONG,))
def jitted_anew_in_each_round(x):
    count = 0
    while x.sum() < 20 and count < 5:
        shifted = jax.jit(lambda v: v + count)  # noqa: B023 - called in its round
        x = shifted(x) + 1
        count = count + 1
    return x


@made((X,), (Y,), (LONG,))
def body_of_scan_was_traced_before(world):
    world.scale = 1.0

    def body(total, v):
        return total + v * world.scale, total

    lax.scan(body, 0.0, X)
    world.scale = 2.0
    return lambda x: lax.scan(body, 0.0, x)


@made((X,), (Y,), (LONG,))
def body_of_fori_loop_was_traced_before(world):
    world.scale = 1.0

    def body(i, v):
        return v * world.scale + i

    lax.fori_loop(0, 3, body, X)
    world.scale = 2.0
    return lambda x: lax.fori_loop(0, 3, body, x)


@made((X,), (Y,), (LONG,))
def body_of_while_loop_was_traced_before(world):
    world.scale = 2.0

    def body(v):
        return v * world.scale + 1

    def step(x):
        return lax.while_loop(lambda v: v.sum() < 20, body, x)

    step(X)
    return step


# ---- functions that JAX gives -----------------------------------------------------------------------------------


@program((X, Y), (X, X), (LONG, LONG), (M, M))
def gradient_by_vjp(x, y):
    value, back = jax.vjp(lambda a, b: (jnp.sin(a) * b).sum(), x, y)
    return back(1.0), value


@program((X, X), (X, Y), (LONG, LONG))
def linearized(x, y):
    value, forward = jax.linearize(lambda a, b: a * b + jnp.sin(a), x, y)
    return forward(y, x), value


@program((X,), (Y,), (LONG,), (M,))
def vjp_in_rounds(x):
    for i in range(3):
        value, back = jax.vjp(lambda v: jnp.sin(v) * i, x)  # noqa: B023 - called in its round
        x = x - 0.1 * back(value)[0]
    return x


@program((X,), (Y,), refused="it looks into what jax.vjp gives")
def leaves_of_vjp(x):
    value, back = jax.vjp(jnp.sin, x)
    return value, jax.tree.leaves(back)
