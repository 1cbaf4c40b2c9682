"""Programs as practitioners write them: training steps, modules by hand, solvers, samplers, attention, pytrees."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from tests.frameworks.jax.hard.ledger import LONG, PROGRAMS, M, X, Y, made, program

WIDE = jnp.linspace(-1, 1, 12).reshape(4, 3)
SQUARE = jnp.array([[2.0, 0.5, 0.0], [0.5, 3.0, 0.25], [0.0, 0.25, 1.0]])


def layers(*sizes, seed=0):
    keys = jax.random.split(jax.random.key(seed), len(sizes) - 1)
    return [
        {"w": jax.random.normal(key, (before, after)) * 0.5, "b": jnp.zeros(after)}
        for key, before, after in zip(keys, sizes, sizes[1:], strict=False)
    ]


def forward(parameters, x):
    for layer in parameters[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ parameters[-1]["w"] + parameters[-1]["b"]


@program((layers(3, 4, 2), M, M[:, :2]), (layers(3, 4, 2, seed=1), WIDE, WIDE[:, :2]), (layers(3, 8, 2), M, M[:, :2]))
def training_step(parameters, x, y):
    def loss(parameters):
        return jnp.mean((forward(parameters, x) - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(parameters)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


class Adam(NamedTuple):
    step: jax.Array
    mean: dict
    square: dict


START = {"w": M.T, "b": jnp.zeros(2)}
ZEROS = jax.tree.map(jnp.zeros_like, START)


@program(
    (START, Adam(jnp.array(0), ZEROS, ZEROS), START, 1e-3),
    (START, Adam(jnp.array(3), START, START), ZEROS, 1e-2),
    ({"b": jnp.ones(2), "w": M.T}, Adam(jnp.array(0), ZEROS, ZEROS), START, 1),
)
def adam_update(parameters, state, gradients, rate):
    step = state.step + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, gradients)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, state.square, gradients)

    def update(p, m, v):
        return p - rate * (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8)

    return jax.tree.map(update, parameters, mean, square), Adam(step, mean, square)


@program((WIDE, jnp.zeros(3), SQUARE), (M, jnp.ones(3), SQUARE * 2), (WIDE[:1], X, SQUARE))
def recurrent(inputs, state, weight):
    def cell(state, x):
        state = jnp.tanh(state @ weight + x)
        return state, state.sum()

    return lax.scan(cell, state, inputs)


@program((X, 0.1, 1.0), (Y, 0.05, 0.5), (LONG, 0.1, 2.0), (X, 1, 3))
def euler_solver(y, step, until):
    def go_on(state):
        return state[0] < until

    def advance(state):
        time, y = state
        return time + step, y + step * (-y + jnp.sin(time))

    return lax.while_loop(go_on, advance, (0.0, y))


@program((layers(3, 2), WIDE), (layers(3, 2, seed=3), M), (layers(3, 4, 2), WIDE))
def gradients_of_examples(parameters, xs):
    def loss(parameters, x):
        return (forward(parameters, x) ** 2).sum()

    found = jax.vmap(jax.grad(loss), in_axes=(None, 0))(parameters, xs)
    return jax.tree.map(lambda g: jnp.sqrt((g**2).sum(tuple(range(1, g.ndim)))), found)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Linear:
    weight: jax.Array
    bias: jax.Array

    def __call__(self, x):
        return x @ self.weight + self.bias


@program((Linear(M.T, jnp.zeros(2)), M), (Linear(M.T + 1, jnp.ones(2)), WIDE), (Linear(WIDE.T, jnp.zeros(4)), M))
def module_by_hand(layer, x):
    gradient = jax.grad(lambda layer: jnp.sum(layer(x) ** 2))(layer)
    return layer(x), gradient.weight, gradient.bias


@jax.custom_jvp
def log1pexp(x):
    return jnp.log1p(jnp.exp(x))


@log1pexp.defjvp
def _log1pexp_rule(primals, tangents):
    return log1pexp(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]


@program((X,), (Y,), (LONG,), (M,))
def stable_softplus(x):
    return log1pexp(x), jax.grad(lambda v: log1pexp(v).sum())(x)


@program((WIDE, WIDE, WIDE), (M, WIDE, WIDE), (M, WIDE, WIDE, jnp.ones((2, 4), bool)), (WIDE, M, M))
def attention(query, key, value, mask=None):
    scores = query @ key.T / jnp.sqrt(query.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    return jax.nn.softmax(scores, axis=-1) @ value


@program((M, "mean"), (WIDE, "sum"), (M, "none"), (WIDE, "mean"))
def loss_with_reduction(x, reduction="mean"):
    losses = jax.nn.relu(x) ** 2
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    return losses


@program((jax.random.key(0), X), (jax.random.key(7), LONG), (jax.random.key(0), M))
def dropout(key, x, rate=0.5):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


@program((jax.random.key(0), 100), (jax.random.key(3), 50), (jax.random.key(3), 1000))
def monte_carlo_pi(key, count):
    points = jax.random.uniform(key, (count, 2))
    return 4 * jnp.mean((points**2).sum(1) < 1)


@program((SQUARE, X), (SQUARE + jnp.eye(3), Y), (jnp.eye(2), X[:2]))
def conjugate_gradient(matrix, wanted):
    x = jnp.zeros_like(wanted)
    residual = wanted - matrix @ x
    direction, squares = residual, residual @ residual
    for _ in range(len(wanted)):
        if squares < 1e-10:
            break
        applied = matrix @ direction
        step = squares / (direction @ applied)
        x, residual = x + step * direction, residual - step * applied
        direction = residual + (residual @ residual) / squares * direction
        squares = residual @ residual
    return x


@program((jax.random.key(0), X), (jax.random.key(1), Y), (jax.random.key(0), M), (jax.random.PRNGKey(3), X))
def metropolis(key, x):
    accepted = 0
    for one in jax.random.split(key, 4):
        step, decision = jax.random.split(one)
        proposed = x + jax.random.normal(step, x.shape)
        if jnp.log(jax.random.uniform(decision)) < (x**2).sum() - (proposed**2).sum():
            x, accepted = proposed, accepted + 1
    return x, accepted


@program((X, 1e-3), (Y, 0.5), (LONG, 1e-1), (X, 10.0))
def halved_until_small(x, tolerance):
    rounds = 0
    while jnp.abs(x).max() > tolerance and rounds < 30:
        x = x * 0.5
        rounds += 1
    return x, rounds


@program((X, 1.0), (Y, 2), (LONG, 0.5), (X, 1.0, 10))
def newton(x, wanted, steps=5):
    for _ in range(steps):
        x = x - (x**2 - wanted) / (2 * x + 1e-3)
    return x


@program((WIDE,), (M,), (WIDE * 2,))
def batch_statistics(x):
    mean, variance = x.mean(0), x.var(0)
    return {"normal": (x - mean) * lax.rsqrt(variance + 1e-5), "mean": mean, "variance": variance}


@made((M,), (WIDE,), (M,))
def running_mean(world):
    world.mean, world.count = jnp.zeros(3), 0

    def update(x):
        world.count += 1
        world.mean = world.mean + (x.mean(0) - world.mean) / world.count
        return x - world.mean

    return update


@program(([X, Y],), ([X],), ([X, Y, X],), ([LONG, LONG],))
def average_of_models(models):
    total = models[0] * 0
    for model in models:
        total = total + model
    return total / len(models)


@partial(jax.jit, static_argnames=("axis",))
def normalised(x, axis=-1):
    return x / jnp.linalg.norm(x, axis=axis, keepdims=True)


@program((M,), (WIDE,), (M, 0), (X,))
def calls_a_jitted_helper(x, axis=-1):
    return normalised(x, axis=axis) * 2


@program((X, True), (Y, True), (X, False), (LONG, False))
def layer_with_training_flag(x, training):
    scale = 0.5 if training else 1.0
    y = x * scale
    return lax.stop_gradient(y) if training else y


@program((WIDE, 2), (WIDE, 3), (M, 1), (M, 2))
def top_rows(x, k):
    values, places = lax.top_k(x.sum(1), k)
    return x[places], values


@program((X,), (Y,), (LONG,), (-X,))
def masked_mean(x):
    chosen = x[x > 0]
    if chosen.size == 0:
        return jnp.zeros(())
    return chosen.mean()


@program((X, {"scale": 2.0, "shift": 1.0}), (Y, {"shift": 0.5, "scale": 1.0}), (LONG, {"scale": 3.0, "shift": 0}))
def configured(x, config):
    return x * config["scale"] + config["shift"]


SAMPLE = frozenset(
    {
        "metropolis",
        "halved_until_small",
        "loss_with_reduction",
        "newton",
        "module_by_hand",
        "average_of_models",
        "configured",
    }
)
"""Those that tests run; ``python -m tests.frameworks.jax.general`` runs all."""
UNTESTED = frozenset(name for name in PROGRAMS if name in globals()) - SAMPLE
