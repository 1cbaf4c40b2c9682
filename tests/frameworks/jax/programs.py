"""A corpus of real algorithms in JAX, tiny: each with an example, and with other values of the same kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

Program = tuple[Callable[..., Any], tuple[Any, ...]]
PROGRAMS: dict[str, Program] = {}


def program(*example: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Take a function into the corpus, with an example for it."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = (function, example)
        return function

    return register


def others(example: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same arguments with other values: floats are moved a little, integers and keys stay in bounds."""

    def other(leaf: Any) -> Any:
        if isinstance(leaf, float):
            return leaf * 0.5
        if not isinstance(leaf, jax.Array) or not jnp.issubdtype(leaf.dtype, jnp.number):
            return jax.random.split(leaf)[1] if is_key(leaf) else leaf
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            return (leaf * 0.9 + 0.01).astype(leaf.dtype)
        return leaf if leaf.dtype == jnp.uint32 else leaf[::-1] if leaf.ndim else leaf

    return tuple(jax.tree_util.tree_map(other, example))


def is_key(leaf: Any) -> bool:
    """Whether a leaf is an array of random keys of the new style."""
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


class Layer(NamedTuple):
    weight: jax.Array
    bias: jax.Array


class Moments(NamedTuple):
    count: jax.Array
    mean: Any
    square: Any


def wave(*shape: int) -> jax.Array:
    """An array of these sizes with values of all signs."""
    size = 1
    for part in shape:
        size *= part
    return jnp.sin(jnp.arange(size, dtype=jnp.float32) * 1.7 + 0.3).reshape(shape)


LAYERS = [Layer(wave(3, 4), wave(4)), Layer(wave(4, 2), wave(2))]
POSITIVE = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]])
KEY = jax.random.key(3)
OLD_KEY = jax.random.PRNGKey(3)


# ---- networks ------------------------------------------------------------------------------------------------------


@program(wave(2, 3, 4), wave(2, 3, 4), wave(2, 3, 4))
def attention(query, key, value):
    scores = jnp.einsum("bqd,bkd->bqk", query, key) / jnp.sqrt(query.shape[-1])
    allowed = jnp.tril(jnp.ones((query.shape[1], key.shape[1]), bool))
    return jax.nn.softmax(jnp.where(allowed, scores, -jnp.inf), axis=-1) @ value


@program(wave(2, 4), wave(4), wave(4))
def layer_norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    spread = jnp.mean(jnp.square(x - mean), -1, keepdims=True)
    return (x - mean) * lax.rsqrt(spread + 1e-5) * scale + shift


@program(wave(2, 4), wave(4))
def rms_norm(x, scale):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def forward(layers, x):
    for layer in layers[:-1]:
        x = jax.nn.gelu(x @ layer.weight + layer.bias)
    return x @ layers[-1].weight + layers[-1].bias


@program(LAYERS, wave(5, 3), jnp.array([0, 1, 1, 0, 1]), 0.1)
def train_step(layers, x, labels, rate):
    def loss(layers):
        logits = jax.nn.log_softmax(forward(layers, x))
        return -jnp.take_along_axis(logits, labels[:, None], 1).mean()

    value, gradient = jax.value_and_grad(loss)(layers)
    return value, jax.tree_util.tree_map(lambda p, g: p - rate * g, layers, gradient)


@program(LAYERS, list(LAYERS), Moments(jnp.int32(2), list(LAYERS), list(LAYERS)), 0.01)
def adam_step(parameters, gradient, moments, rate):
    count = moments.count + 1
    mean = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, moments.mean, gradient)
    square = jax.tree_util.tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, moments.square, gradient)

    def update(p, m, v):
        return p - rate * (m / (1 - 0.9**count)) / (jnp.sqrt(jnp.abs(v) / (1 - 0.999**count)) + 1e-8)

    return jax.tree_util.tree_map(update, parameters, mean, square), Moments(count, mean, square)


@program(wave(4, 3), wave(3, 5), wave(5, 5), wave(5))
def recurrent_network(inputs, to_hidden, between, bias):
    def step(hidden, x):
        hidden = jnp.tanh(x @ to_hidden + hidden @ between + bias)
        return hidden, hidden

    return lax.scan(step, jnp.zeros(5), inputs)


@program(wave(4, 2), wave(2, 12), wave(3, 12), wave(12))
def lstm(inputs, to_hidden, between, bias):
    def step(carry, x):
        hidden, cell = carry
        gates = jnp.split(x @ to_hidden + hidden @ between + bias, 4)
        cell = jax.nn.sigmoid(gates[0]) * cell + jax.nn.sigmoid(gates[1]) * jnp.tanh(gates[2])
        hidden = jax.nn.sigmoid(gates[3]) * jnp.tanh(cell)
        return (hidden, cell), hidden

    return lax.scan(step, (jnp.zeros(3), jnp.zeros(3)), inputs)


@program(wave(1, 2, 5, 5), wave(3, 2, 3, 3))
def convolution(image, kernel):
    found = lax.conv_general_dilated(image, kernel, (1, 1), "SAME")
    return lax.reduce_window(jax.nn.relu(found), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


@program(KEY, wave(3, 4))
def dropout(key, x):
    keep = jax.random.bernoulli(key, 0.5, x.shape)
    return jnp.where(keep, x / 0.5, 0.0)


@program(wave(2, 3, 4))
def rotary_positions(x):
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * 10.0 ** -jnp.arange(half)
    left, right = x[..., :half], x[..., half:]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([left * cos - right * sin, left * sin + right * cos], -1)


@program(wave(3, 5), wave(3, 5))
def contrastive_loss(left, right):
    left = left / jnp.linalg.norm(left, axis=1, keepdims=True)
    right = right / jnp.linalg.norm(right, axis=1, keepdims=True)
    logits = left @ right.T * 5.0
    return -jnp.diag(jax.nn.log_softmax(logits)).mean()


@program(wave(2, 3), wave(3, 3))
def remat_block(x, weight):
    block = jax.checkpoint(lambda y: jnp.tanh(y @ weight))
    return jax.grad(lambda y: block(block(y)).sum())(x)


# ---- statistics ----------------------------------------------------------------------------------------------------


@program(wave(6, 2), wave(3, 2))
def kmeans_step(points, centers):
    distances = jnp.sum((points[:, None] - centers[None]) ** 2, -1)
    nearest = jnp.argmin(distances, 1)
    member = jax.nn.one_hot(nearest, centers.shape[0])
    return (member.T @ points) / jnp.maximum(member.sum(0)[:, None], 1.0), nearest


@program(wave(5, 3))
def principal_components(x):
    centered = x - x.mean(0)
    values, vectors = jnp.linalg.eigh(centered.T @ centered / (x.shape[0] - 1))
    return values[::-1], jnp.abs(vectors[:, ::-1])


@program(wave(4, 1), jnp.eye(2) + 0.1, jnp.ones((1, 2)), jnp.eye(2) * 0.1, jnp.eye(1) * 0.2)
def kalman_filter(measurements, transition, observation, noise, error):
    def step(carry, z):
        mean, spread = carry
        mean, spread = transition @ mean, transition @ spread @ transition.T + noise
        gain = spread @ observation.T @ jnp.linalg.inv(observation @ spread @ observation.T + error)
        mean = mean + gain @ (z - observation @ mean)
        return (mean, (jnp.eye(2) - gain @ observation) @ spread), mean

    return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), measurements)


@program(KEY, wave(3), 0.3)
def metropolis_step(key, position, width):
    propose, accept = jax.random.split(key)
    proposal = position + width * jax.random.normal(propose, position.shape)
    ratio = -0.5 * (proposal @ proposal - position @ position)
    is_taken = jnp.log(jax.random.uniform(accept)) < ratio
    return lax.cond(is_taken, lambda: proposal, lambda: position), is_taken


@program(OLD_KEY)
def monte_carlo_pi(key):
    points = jax.random.uniform(key, (64, 2))
    return 4 * jnp.mean(jnp.sum(points**2, 1) < 1)


@program(KEY, wave(4))
def sample_tokens(key, logits):
    keys = jax.random.split(key, 3)
    return jax.vmap(lambda one: jax.random.categorical(one, logits))(keys)


@program(wave(5), wave(5))
def linear_regression(x, y):
    features = jnp.stack([jnp.ones_like(x), x], 1)
    return jnp.linalg.solve(features.T @ features + 0.1 * jnp.eye(2), features.T @ y)


@program(wave(6, 2), jnp.array([0, 1, 1, 0, 1, 0]), wave(2))
def logistic_newton(x, labels, weights):
    def loss(w):
        return jnp.mean(jax.nn.softplus(x @ w) - labels * (x @ w)) + 0.1 * w @ w

    return weights - jnp.linalg.solve(jax.hessian(loss)(weights), jax.grad(loss)(weights))


@program(wave(5), jnp.array([0, 2, 1, 2, 0]))
def segment_means(values, segments):
    total = jax.ops.segment_sum(values, segments, num_segments=3)
    return total / jax.ops.segment_sum(jnp.ones_like(values), segments, num_segments=3)


@program(wave(4), wave(5))
def gaussian_process(x, at):
    def kernel(a, b):
        return jnp.exp(-0.5 * (a[:, None] - b[None]) ** 2)

    factor = jax.scipy.linalg.cho_factor(kernel(x, x) + 0.1 * jnp.eye(4))
    return kernel(at, x) @ jax.scipy.linalg.cho_solve(factor, jnp.sin(x))


@program(wave(3, 3), jnp.array([0.2, 0.3, 0.5]), jnp.array([2, 0, 1, 1]))
def hidden_markov(logits, start, seen):
    step = jax.nn.softmax(logits)

    def forward(alpha, symbol):
        alpha = (alpha @ step) * step[:, symbol]
        total = alpha.sum()
        return alpha / total, jnp.log(total)

    return lax.scan(forward, start, seen)[1].sum()


# ---- numerics ------------------------------------------------------------------------------------------------------


@program(jnp.float32(3.0))
def newton_root(x):
    def step(carry):
        value, _, count = carry
        new = value - (value**3 - 2) / (3 * value**2)
        return new, jnp.abs(new - value), count + 1

    return lax.while_loop(lambda c: (c[1] > 1e-6) & (c[2] < 50), step, (x, jnp.float32(1.0), 0))


@program(POSITIVE, jnp.array([1.0, 2.0, 3.0]))
def conjugate_gradient(matrix, right):
    def step(carry, _):
        x, r, p = carry
        alpha = (r @ r) / (p @ matrix @ p)
        x, new = x + alpha * p, r - alpha * (matrix @ p)
        return (x, new, new + (new @ new) / (r @ r) * p), new @ new

    return lax.scan(step, (jnp.zeros(3), right, right), None, length=3)


@program(jnp.array([1.0, 0.0]), 0.1)
def runge_kutta(state, step):
    def slope(y):
        return jnp.array([y[1], -y[0]])

    def advance(y, _):
        a = slope(y)
        b = slope(y + step / 2 * a)
        c = slope(y + step / 2 * b)
        d = slope(y + step * c)
        return y + step / 6 * (a + 2 * b + 2 * c + d), y

    return lax.scan(advance, state, None, length=5)


@program(wave(8))
def fourier_filter(signal):
    spectrum = jnp.fft.rfft(signal)
    return jnp.fft.irfft(jnp.where(jnp.arange(spectrum.size) < 3, spectrum, 0), signal.size)


@program(wave(3, 4) + 1.5)
def sinkhorn(cost):
    kernel = jnp.exp(-cost)

    def step(_, carry):
        rows, columns = carry
        rows = (1 / 3) / (kernel @ columns)
        return rows, (1 / 4) / (kernel.T @ rows)

    rows, columns = lax.fori_loop(0, 10, step, (jnp.ones(3), jnp.ones(4)))
    return rows[:, None] * kernel * columns[None]


@program(jnp.array([[0, 1, 1], [1, 0, 0], [1, 1, 0]]))
def page_rank(links):
    chances = links / jnp.maximum(links.sum(1, keepdims=True), 1)

    def step(carry):
        rank, _ = carry
        new = 0.15 / 3 + 0.85 * rank @ chances
        return new, jnp.abs(new - rank).sum()

    return lax.while_loop(lambda c: c[1] > 1e-4, step, (jnp.full(3, 1 / 3), jnp.float32(1.0)))[0]


@program(POSITIVE, jnp.ones(3))
def power_iteration(matrix, start):
    def step(_, v):
        v = matrix @ v
        return v / jnp.linalg.norm(v)

    vector = lax.fori_loop(0, 20, step, start)
    return vector @ matrix @ vector, vector


@program(wave(4, 4))
def jacobi_heat(grid):
    def step(field, _):
        padded = jnp.pad(field, 1, mode="edge")
        field = (padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]) / 4
        return field, field.max()

    return lax.scan(step, grid, None, length=4)


@program(jnp.array([[0, 1, 0], [0, 1, 0], [0, 1, 0]]))
def game_of_life(cells):
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    around = sum(jnp.roll(cells, shift, (0, 1)) for shift in shifts)
    return ((around == 3) | ((cells == 1) & (around == 2))).astype(cells.dtype)


@program(wave(3))
def jacobians(x):
    def f(y):
        return jnp.stack([jnp.sin(y[0]) * y[1], y[1] ** 2 * y[2], jnp.exp(y[2])])

    return jax.vmap(jax.jacfwd(f))(jnp.stack([x, 2 * x])), jax.jacrev(f)(x)


@program(wave(4), wave(4))
def hessian_vector_product(x, v):
    def rosenbrock(y):
        return jnp.sum(100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)

    return jax.jvp(jax.grad(rosenbrock), (x,), (v,))


@jax.custom_vjp
def clip_gradient(x, limit):
    return x


clip_gradient.defvjp(lambda x, limit: (x, limit), lambda limit, g: (jnp.clip(g, -limit, limit), None))


@program(wave(4), jnp.float32(0.5))
def clipped_gradient(x, limit):
    return jax.grad(lambda y: jnp.sum(clip_gradient(y, limit) ** 3 * 10))(x)


@jax.custom_jvp
def log1pexp(x):
    return jnp.log1p(jnp.exp(x))


log1pexp.defjvp(lambda primals, tangents: (log1pexp(primals[0]), (1 - 1 / (1 + jnp.exp(primals[0]))) * tangents[0]))


@program(wave(3) * 50)
def stable_softplus(x):
    return log1pexp(x), jax.vmap(jax.grad(log1pexp))(x)


# ---- algorithms ----------------------------------------------------------------------------------------------------


@program(wave(2, 3), wave(2), 2)
def beam_step(logits, scores, width):
    total = scores[:, None] + jax.nn.log_softmax(logits)
    best, places = lax.top_k(total.reshape(-1), width)
    return best, places // 3, places % 3


@program(wave(6), jnp.array([1, 0, 1, 1, 0, 1]))
def sort_and_rank(values, groups):
    order = jnp.lexsort((values, groups))
    return values[order], jnp.argsort(order), jnp.searchsorted(jnp.sort(values), values)


@program(jnp.array([[0.0, 3.0, 9.0], [3.0, 0.0, 2.0], [9.0, 2.0, 0.0]]))
def shortest_paths(distances):
    def through(found, middle):
        return jnp.minimum(found, found[:, middle][:, None] + found[middle][None]), None

    return lax.scan(through, distances, jnp.arange(3))[0]


@program(jnp.array([1, 2, 3, 4]), jnp.array([2, 3, 5]))
def edit_distance(left, right):
    def row(above, symbol):
        def cell(before, inputs):
            diagonal, up, other = inputs
            value = jnp.minimum(jnp.minimum(before, up) + 1, diagonal + (symbol != other))
            return value, value

        _, values = lax.scan(cell, above[0] + 1, (above[:-1], above[1:], right))
        return jnp.concatenate([above[:1] + 1, values]), None

    return lax.scan(row, jnp.arange(right.size + 1), left)[0][-1]


@program(wave(3, 3, 3), jnp.array([0, 1, 2, 1]))
def viterbi(scores, seen):
    def step(best, symbol):
        total = best[:, None] + scores[symbol]
        return total.max(0), total.argmax(0)

    return lax.scan(step, jnp.zeros(3), seen)


@program(wave(8))
def associative_sums(x):
    return lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (jnp.cos(x), x))


@program(jnp.int32(2), wave(3))
def small_machine(operation, x):
    return lax.switch(operation, [jnp.sin, jnp.cos, lambda y: y * 2, lambda y: -y], x)


@program(jnp.array([3, 1, 2]), wave(4, 2))
def embedding_lookup(tokens, table):
    return table[tokens], table.at[tokens].add(1.0), jnp.take(table, tokens, axis=0, mode="clip")


@program(wave(5))
def online_statistics(values):
    def add(carry, x):
        count, mean, square = carry
        count = count + 1
        difference = x - mean
        mean = mean + difference / count
        return (count, mean, square + difference * (x - mean)), mean

    return lax.scan(add, (0, 0.0, 0.0), values)


@program({"left": wave(2, 2), "right": [wave(2), (wave(2), 2.0)]})
def nested_arguments(tree):
    pair, factor = tree["right"][1]
    return {"sum": tree["left"] @ tree["right"][0] + factor * pair, "same": tree["left"]}


@program(wave(4), 3)
def repeated_smoothing(x, times):
    for _ in range(times):
        x = (x + jnp.roll(x, 1)) / 2
    return x


@jax.jit
def compiled_part(x, y):
    return jnp.sum(x * y) + jnp.sin(x)


@program(wave(3), wave(3))
def jitted_inside(x, y):
    return compiled_part(x, y) * compiled_part(y, x)


@program(wave(2, 2), wave(2, 2))
def einsum_chain(a, b):
    return jnp.einsum("ij,jk,kl->il", a, b, a), jnp.einsum("ii->i", a), jnp.einsum("ij->", b)


@program(wave(3).astype(jnp.float16), wave(3).astype(jnp.bfloat16))
def mixed_precision(half, brain):
    return half * 2 + 1, brain.astype(jnp.float32) @ half.astype(jnp.float32), half.sum() * brain.max()
