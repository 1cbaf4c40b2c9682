"""Programs that hand nests to JAX: lists of the state, dicts of other classes, objects that were changed before."""

from __future__ import annotations

import collections
import dataclasses

import jax
import jax.numpy as jnp

from tests.frameworks.jax.hard.ledger import M, X, Y, made, program


@made((X,), (Y,), (X,))
def list_of_the_state_is_mapped(world):
    world.params = [X, Y]

    def step(x):
        world.params = jax.tree.map(lambda p: p - x, world.params)
        return world.params[0]

    return step


@made((X,), (Y,), (X,))
def list_of_the_state_beside_its_gradients(world):
    world.params = [{"w": X}, {"w": Y}]

    def step(x):
        grads = jax.grad(lambda params: sum(jnp.sum(p["w"] ** 2 * x) for p in params))(world.params)
        world.params = jax.tree.map(lambda p, g: p - 0.1 * g, world.params, grads)
        return world.params[0]["w"]

    return step


@made((X,), (Y,), (X,))
def list_of_the_state_is_mapped_while_it_grows(world):
    world.log = []

    def step(x):
        world.log.append(x)
        same = jax.tree.structure(world.log) == jax.tree.structure([x])
        return jax.tree.map(jnp.sum, world.log), same

    return step


@program((M,), (M + 1,), (M[:1],))
def list_of_rows_is_mapped(x):
    rows = [row * 2 for row in x]
    return jax.tree.map(jnp.sin, rows), jax.grad(lambda rows: sum(rows, 0.0).sum())(rows), jax.tree.leaves({"a": rows})


def weighted(nest):
    return sum(jnp.sum(value**2 * (place + 1)) for place, value in enumerate(nest.values()))


@program((X,), (Y,))
def ordered_dict_that_is_made(x):
    nest = collections.OrderedDict(b=x, a=x * 2)
    grads = jax.grad(weighted)(nest)
    doubled = jax.vmap(lambda nest: collections.OrderedDict((key, v * 2) for key, v in nest.items()))(nest)
    return grads, jax.jit(lambda nest: [value + 1 for value in nest.values()])(nest), doubled


@program((collections.OrderedDict(b=X, a=Y), X), (collections.OrderedDict(b=Y, a=X), Y))
def ordered_dict_that_is_given(nest, x):
    before = jax.grad(weighted)(nest)
    nest["b"] = x * 3
    return before, jax.grad(weighted)(nest), type(before).__name__


@program((X,), (Y,))
def default_dict(x):
    nest = collections.defaultdict(list)
    nest["b"].append(x)
    nest["a"].append(x + 1)
    return jax.grad(lambda nest: (nest["b"][0] * nest["a"][0]).sum())(nest), nest["c"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Affine:
    weight: jax.Array
    bias: jax.Array


@program((X, Affine(X, Y)), (Y, Affine(X, Y)), (Y, Affine(Y, X)))
def object_that_was_changed_before(x, layer):
    layer.weight = layer.weight * 2
    grads = jax.grad(lambda layer: jnp.sum((layer.weight * x + layer.bias) ** 2))(layer)
    return grads.weight, grads.bias


@program((X,), (Y,))
def object_that_is_made(x):
    layer = Affine(x, x + 1)
    grads = jax.grad(lambda layer: jnp.sum((layer.weight * x + layer.bias) ** 2))(layer)
    return grads.weight, grads.bias, jax.jit(lambda layer: layer.weight - layer.bias)(layer)
