"""Programs with effects on the outside: printing, callbacks, text, errors, clocks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy
from jax.experimental import io_callback

from tests.frameworks.jax.hard.ledger import I, X, Y, made, program

SPEC = jax.ShapeDtypeStruct((3,), jnp.float32)


@program((X, 1), (Y, 2))
def prints(x, n):
    print("called with", n)
    print(x)
    return x * n


@made((X,), (Y,), (X,))
def io_callbacks_in_order(world):
    world.log = []

    def note(value):
        world.log.append(value.tolist())
        return value * 2

    def step(x):
        first = io_callback(note, SPEC, x, ordered=True)
        return io_callback(note, SPEC, first, ordered=True)

    return step


@made((X,), (Y,))
def pure_callbacks(world):
    scale = numpy.float32(2)
    return lambda x: jax.pure_callback(lambda a: numpy.asarray(a) * scale, SPEC, x) + 1


@made((X,), (Y,), (X,))
def callback_without_result(world):
    world.log = []

    def step(x):
        jax.debug.callback(lambda a: world.log.append(float(a)), x.sum(), ordered=True)
        return x + 1

    def waiting(x):
        result = step(x)
        jax.effects_barrier()
        return result

    return waiting


@program((X,), (Y,))
def branches(x):
    return x if x.sum() > 0 else -x


@program((X, 2), (X, -2), (Y, 2))
def raises(x, n):
    if n < 0:
        raise ValueError(f"{n} is negative")
    return x * n


@program((X, Y), (X, X[:2]), (Y, X))
def checks_shapes(x, y):
    assert x.shape == y.shape, "other shapes"
    return x + y


@program((X, {"a": 1.0}), (X, {}), (X, {"a": 2.0}))
def catches_missing_key(x, rates):
    try:
        return x * rates["a"]
    except KeyError:
        return x


@program((X, X), (X, Y))
def same_object(x, y):
    return x * 2 if x is y else x * 3


@program((I,), (I + 1,), (X,))
def asks_for_dtype(x):
    return x / 2 if jnp.issubdtype(x.dtype, jnp.integer) else x * 2


@program((X,), (numpy.asarray(X),), ([1.0, 2.0, 3.0],))
def asks_for_class(x):
    return jnp.asarray(x) * 2 if isinstance(x, jax.Array) else jnp.asarray(x) * 3


@program((X, Y), (Y, X))
def donated(x, y):
    update = jax.jit(lambda a, b: a * 2 + b, donate_argnums=(0,))
    return update(x + 0, y)


@program((X,), (Y,), (X + jnp.nan,))
def nan_checks(x):
    return jnp.where(jnp.isnan(x).any(), 0.0, x)


@made((X,), lambda world: jax.config.update("jax_default_matmul_precision", "float32"), (X,))
def precision_changed_later(world):
    return lambda x: x @ x


@program((X, [X, None, (Y, None)]), (Y, [X, None, (Y, None)]), (X, [X, Y, (Y, None)]))
def none_leaves(x, nest):
    leaves = jax.tree_util.tree_leaves(nest)
    return sum(leaves, x), nest
