"""Programs in the manner of libraries for JAX: modules that are trees, optimizers as functions, train states, keys."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax import lax

from tests.frameworks.jax.hard import practice
from tests.frameworks.jax.hard.ledger import LONG, PROGRAMS, M, X, Y, made, program
from tests.frameworks.jax.hard.practice import SQUARE, WIDE, forward, layers


class Transform(NamedTuple):
    """An optimizer as optax has them."""

    init: Callable[..., Any]
    update: Callable[..., Any]


def scale(rate):
    return Transform(
        lambda params: (), lambda grads, state, params=None: (jax.tree.map(lambda g: g * rate, grads), state)
    )


def momentum(decay):
    def update(grads, state, params=None):
        state = jax.tree.map(lambda m, g: decay * m + g, state, grads)
        return state, state

    return Transform(lambda params: jax.tree.map(jnp.zeros_like, params), update)


def clip(limit):
    def update(grads, state, params=None):
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        factor = jnp.minimum(1.0, limit / (norm + 1e-9))
        return jax.tree.map(lambda g: g * factor, grads), state

    return Transform(lambda params: (), update)


def chain(*transforms):
    def init(params):
        return tuple(one.init(params) for one in transforms)

    def update(grads, states, params=None):
        new = []
        for one, state in zip(transforms, states, strict=True):
            grads, state = one.update(grads, state, params)
            new.append(state)
        return grads, tuple(new)

    return Transform(init, update)


PARAMS = {"dense": {"kernel": M.T, "bias": jnp.zeros(2)}, "scale": jnp.float32(1.5)}


def loss_of(params, x, y):
    out = x @ params["dense"]["kernel"] + params["dense"]["bias"]
    return jnp.mean((out * params["scale"] - y) ** 2)


@program(
    (PARAMS, WIDE, WIDE[:, :2]),
    (jax.tree.map(lambda p: p + 1, PARAMS), M, M[:, :2]),
    ({"scale": jnp.float32(2), "dense": {"bias": jnp.ones(2), "kernel": M.T * 2}}, WIDE, WIDE[:, 1:]),
)
def chained_optimizers(params, x, y):
    optimizer = chain(clip(1.0), momentum(0.9), scale(-0.1))
    state = optimizer.init(params)
    for _ in range(3):
        grads = jax.grad(loss_of)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        params = jax.tree.map(lambda p, u: p + u, params, updates)
    return params, state


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass
class TrainState:
    params: Any
    opt_state: Any
    step: Any
    apply_fn: Callable[..., Any]

    def tree_flatten(self):
        return (self.params, self.opt_state, self.step), self.apply_fn

    @classmethod
    def tree_unflatten(cls, fn, children):
        return cls(*children, fn)

    def replace(self, **changes):
        return dataclasses.replace(self, **changes)


def affine(params, x):
    return x @ params["w"] + params["b"]


SMALL = {"w": M.T, "b": jnp.zeros(2)}
NONE = jax.tree.map(jnp.zeros_like, SMALL)


@program(
    (TrainState(SMALL, NONE, 0, affine), WIDE, WIDE[:, :2]),
    (TrainState(SMALL, SMALL, 7, affine), M, M[:, :2]),
    (TrainState(SMALL, SMALL, jnp.int32(7), affine), M, M[:, :2]),
)
def train_state_step(state, x, y):
    @jax.jit
    def step(state, x, y):
        def loss(params):
            return jnp.mean((state.apply_fn(params, x) - y) ** 2)

        value, grads = jax.value_and_grad(loss)(state.params)
        velocity = jax.tree.map(lambda m, g: 0.9 * m + g, state.opt_state, grads)
        params = jax.tree.map(lambda p, m: p - 0.1 * m, state.params, velocity)
        return state.replace(params=params, opt_state=velocity, step=state.step + 1), value

    state, value = step(state, x, y)
    return state.params, state.opt_state, state.step, value


@jax.tree_util.register_pytree_with_keys_class
class Module:
    """A module that is a tree of its attributes."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def tree_flatten_with_keys(self):
        names = tuple(sorted(vars(self)))
        return [(jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in names], names

    @classmethod
    def tree_unflatten(cls, names, children):
        return cls(**dict(zip(names, children, strict=True)))


class Linear(Module):
    def __call__(self, x):
        return x @ self.weight + self.bias


class Perceptron(Module):
    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


for kind in (Linear, Perceptron):
    jax.tree_util.register_pytree_with_keys_class(kind)


def perceptron(*sizes, seed=0):
    return Perceptron(layers=[Linear(weight=one["w"], bias=one["b"]) for one in layers(*sizes, seed=seed)])


@program((WIDE, WIDE[:, :1]), (M, M[:, :1]), (WIDE[:1], WIDE[:1, :1]))
def module_as_a_tree(x, y):
    model = perceptron(3, 4, 1)

    def loss(model):
        return jnp.mean((model(x) - y) ** 2)

    value, grads = jax.value_and_grad(loss)(model)
    model = jax.tree.map(lambda p, g: p - 0.05 * g, model, grads)
    return value, model(x), [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(model)]


@made(
    (WIDE, WIDE[:, :1]),
    (M, M[:, :1]),
    lambda world: setattr(world.model, "layers", perceptron(3, 4, 1, seed=2).layers),
    (WIDE, WIDE[:, :1]),
)
def module_that_is_kept(world):
    world.model = perceptron(3, 4, 1)

    def step(x, y):
        grads = jax.grad(lambda model: jnp.mean((model(x) - y) ** 2))(world.model)
        world.model.layers = jax.tree.map(lambda p, g: p - 0.05 * g, world.model.layers, grads.layers)
        return world.model(x)

    return step


def partition(tree, keep):
    chosen = jax.tree.map(lambda leaf: leaf if keep(leaf) else None, tree)
    rest = jax.tree.map(lambda leaf: None if keep(leaf) else leaf, tree)
    return chosen, rest


def combine(left, right):
    return jax.tree.map(lambda a, b: b if a is None else a, left, right, is_leaf=lambda leaf: leaf is None)


def is_float(leaf):
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)


@program(
    ({"w": X, "count": jnp.int32(1), "name": "a"}, Y),
    ({"w": Y, "count": jnp.int32(5), "name": "a"}, X),
    ({"w": LONG, "count": jnp.int32(5), "name": "a"}, LONG),
)
def gradients_of_the_floats(tree, x):
    moving, fixed = partition(tree, is_float)

    def loss(moving):
        whole = combine(moving, fixed)
        return jnp.sum((whole["w"] * x) ** 2) * whole["count"]

    grads = jax.grad(loss)(moving)
    return combine(jax.tree.map(lambda p, g: p - 0.1 * g, moving, grads), fixed)


@program((SMALL, 0.9, WIDE), (NONE, 0.5, M), (SMALL, 1, WIDE))
def target_network(params, decay, x):
    online = jax.tree.map(lambda p: p + 1, params)
    target = jax.tree.map(lambda t, o: t * decay + (1 - decay) * o, params, online)
    return affine(lax.stop_gradient(target), x).max(-1), target


@made((WIDE,), (M,), (WIDE[:2],))
def replay_buffer_of_fixed_size(world):
    world.buffer, world.place = jnp.zeros((6, 3)), 0

    def push(rows):
        for row in rows:
            world.buffer = world.buffer.at[world.place % 6].set(row)
            world.place += 1
        return world.buffer.sum(0), world.place

    return push


@program((jax.random.key(0), WIDE, 2), (jax.random.key(1), M, 1), (jax.random.key(0), LONG[:, None] + jnp.zeros(3), 3))
def k_means_with_keys(key, points, k):
    start = jax.random.choice(key, points.shape[0], (k,), replace=False)
    centres = points[start]

    def step(centres, _):
        distance = ((points[:, None] - centres) ** 2).sum(-1)
        label = distance.argmin(1)
        one_hot = jax.nn.one_hot(label, k)
        counts = one_hot.sum(0)
        moved = (one_hot.T @ points) / jnp.maximum(counts, 1)[:, None]
        return jnp.where(counts[:, None] > 0, moved, centres), label

    centres, labels = lax.scan(step, centres, None, length=4)
    return centres, labels[-1]


@program((SQUARE, 5), (SQUARE * 2 - jnp.eye(3), 10), (jnp.eye(2) * 3, 1), (SQUARE, 0))
def power_iteration(matrix, rounds):
    v = jnp.ones(matrix.shape[0]) / matrix.shape[0]
    for _ in range(rounds):
        v = matrix @ v
        v = v / jnp.linalg.norm(v)
    return v @ matrix @ v, v


@program((X, Y), (LONG, LONG + 1), (X[:1], Y[:1]))
def gauss_newton(t, y):
    def residual(p):
        return p[0] * jnp.exp(-p[1] * t) - y

    p = jnp.array([1.0, 0.1])
    for _ in range(4):
        r, jac = residual(p), jax.jacfwd(residual)(p)
        p = p - jnp.linalg.solve(jac.T @ jac + 1e-2 * jnp.eye(2), jac.T @ r)
    return p, jnp.sum(residual(p) ** 2)


@program((jax.random.key(0), X, 1.0), (jax.random.key(3), Y, 0.5), (jax.random.key(3), LONG, 2))
def simulated_annealing(key, x, heat):
    def energy(v):
        return jnp.sum(v**2 - jnp.cos(3 * v))

    def step(state, key):
        x, heat = state
        move, accept = jax.random.split(key)
        new = x + heat * jax.random.normal(move, x.shape)
        worse = energy(new) - energy(x)
        take = jnp.logical_or(worse < 0, jax.random.uniform(accept) < jnp.exp(-worse / heat))
        return (jnp.where(take, new, x), heat * 0.9), energy(x)

    (x, heat), energies = lax.scan(step, (x, heat * 1.0), jax.random.split(key, 6))
    return x, heat, energies


@program(
    (jax.random.key(0), jnp.log(jnp.array([[0.7, 0.3], [0.4, 0.6]])), jnp.array([0, 1, 1, 0])),
    (jax.random.key(0), jnp.log(jnp.array([[0.5, 0.5], [0.1, 0.9]])), jnp.array([1, 1, 0])),
)
def viterbi(key, transition, seen):
    emission = jnp.log(jnp.array([[0.8, 0.2], [0.3, 0.7]]))

    def step(score, obs):
        candidates = score[:, None] + transition
        return candidates.max(0) + emission[:, obs], candidates.argmax(0)

    score, back = lax.scan(step, emission[:, seen[0]], seen[1:])
    path = [score.argmax()]
    for pointers in back[::-1]:
        path.append(pointers[path[-1]])
    return jnp.stack(path[::-1]), score.max()


@functools.partial(jax.jit, static_argnames=("mode", "steps"))
def rolled(x, steps, mode="sum"):
    for _ in range(steps):
        x = jnp.tanh(x)
    if mode == "sum":
        return x.sum()
    return x.mean() if mode == "mean" else x


@program((X, 2, "sum"), (Y, 3, "sum"), (X, 2, "mean"), (LONG, 1, "none"))
def static_arguments(x, steps, mode):
    return rolled(x, steps=steps, mode=mode) + 1


@functools.partial(jax.jit, static_argnums=(1,))
def doubled_when(x, flag):
    return x * 2 if flag else x


@program((X, True), (X, False), (Y, True))
def static_flag(x, flag):
    return doubled_when(x, flag)


@program((WIDE, True), (M, True), (WIDE, False))
def static_flag_inside(x, training):
    @functools.partial(jax.jit, static_argnames="training")
    def block(x, training):
        if training:
            mean, variance = x.mean(0), x.var(0)
        else:
            mean, variance = jnp.zeros(x.shape[1]), jnp.ones(x.shape[1])
        return (x - mean) / jnp.sqrt(variance + 1e-5)

    return block(x, training=training) * 2


@program((X, 3), (Y, 2), (X, 1), (X, 5))
def polynomial_of_degree(x, degree):
    @functools.partial(jax.jit, static_argnums=1)
    def features(x, degree):
        return jnp.stack([x**i for i in range(degree)], -1)

    return features(x, degree).sum(-1)


@jax.custom_vjp
def clipped_gradient(x):
    return x


clipped_gradient.defvjp(lambda x: (x, x.shape), lambda shape, g: (jnp.clip(g, -0.1, 0.1).reshape(shape),))


@program((WIDE, X), (M, Y), (WIDE[:1], X))
def rule_in_a_vmapped_gradient(x, w):
    return jax.vmap(jax.grad(lambda row, w: jnp.sum(clipped_gradient(row * w) ** 2), argnums=(0, 1)), (0, None))(x, w)


@program((X, 3), (Y, 2), (LONG, 4))
def higher_derivatives(x, order):
    def f(v):
        return jnp.sin(v) * v

    found = []
    g = f
    for _ in range(order):
        g = jax.grad(g)
        found.append(jax.vmap(g)(x))
    return found


@program((X, Y), (Y, X), (LONG, LONG))
def hessian_vector_products(x, v):
    def f(x):
        return jnp.sum(x**3) + jnp.prod(jnp.sin(x))

    forward_over_reverse = jax.jvp(jax.grad(f), (x,), (v,))[1]
    reverse_over_forward = jax.grad(lambda x: jax.jvp(f, (x,), (v,))[1])(x)
    return forward_over_reverse, reverse_over_forward


@program((X, 0.5), (Y, 2.0), (LONG, 1))
def implicit_fixed_point(x, rate):
    @jax.custom_vjp
    def solve(a):
        return lax.while_loop(
            lambda s: jnp.abs(s[1] - s[0]).max() > 1e-5, lambda s: (s[1], jnp.cos(s[1]) * a), (a, a * 0.5)
        )[1]

    def forwards(a):
        root = solve(a)
        return root, (root, a)

    def backwards(kept, g):
        root, a = kept
        return (g * jnp.cos(root) / (1 + a * jnp.sin(root)),)

    solve.defvjp(forwards, backwards)
    scaled = jnp.tanh(x) * 0.5
    return solve(scaled), jax.grad(lambda v: solve(v).sum() * rate)(scaled)


@program(({"a": WIDE, "b": X}, Y), ({"b": Y, "a": M}, X), ({"a": WIDE[:1], "b": X}, Y))
def vmap_over_dicts(tree, y):
    def one(row, b):
        return {"dot": row @ b, "row": row + y}

    return jax.vmap(one, in_axes=(0, None))(tree["a"], tree["b"]), jax.vmap(
        lambda t: t["a"] * t["b"], in_axes=({"a": 0, "b": None},)
    )(tree)


@program((WIDE, M), (M, WIDE), (WIDE, WIDE))
def nested_vmaps(a, b):
    kernel = lambda p, q: jnp.exp(-0.5 * jnp.sum((p - q) ** 2))  # noqa: E731
    return jax.vmap(lambda p: jax.vmap(lambda q: kernel(p, q))(b))(a)


@program((WIDE, X), (M, Y), (WIDE * 0, X))
def gaussian_process(inputs, lengths):
    def kernel(p, q):
        return jnp.exp(-0.5 * jnp.sum(((p - q) / (1 + lengths**2)) ** 2))

    gram = jax.vmap(jax.vmap(kernel, (None, 0)), (0, None))(inputs, inputs) + 0.1 * jnp.eye(len(inputs))
    factor = jax.scipy.linalg.cho_factor(gram)
    weights = jax.scipy.linalg.cho_solve(factor, inputs.sum(1))
    return gram @ weights, 2 * jnp.log(jnp.diag(factor[0])).sum()


@program((layers(3, 4, 2), WIDE), (layers(3, 4, 2, seed=2), M), (layers(3, 6, 2), WIDE))
def checkpointed_layers(params, x):
    def block(layer, x):
        return jnp.tanh(x @ layer["w"] + layer["b"])

    def loss(params):
        h = x
        for layer in params:
            h = jax.checkpoint(block)(layer, h)
        return (h**2).mean()

    return jax.grad(loss)(params)


@program((jax.random.key(0), WIDE, 0.5), (jax.random.key(5), M, 0.1), (jax.random.key(5), WIDE, 0.9))
def keys_by_fold_in(key, x, rate):
    for i in range(2):
        now = jax.random.fold_in(key, i)
        keep = jax.random.bernoulli(now, 1 - rate, x.shape)
        x = jnp.where(keep, x / (1 - rate), 0.0)
    return x, jax.random.permutation(key, x.shape[0])


class Sequence:
    """Keys one after another, as haiku hands them out."""

    def __init__(self, seed):
        self.key = jax.random.key(seed)
        self.drawn = 0

    def __next__(self):
        self.key, now = jax.random.split(self.key)
        self.drawn += 1
        return now


@made((WIDE,), (M,), (WIDE,))
def sequence_of_keys(world):
    world.keys = Sequence(0)
    return lambda x: x + jax.random.normal(next(world.keys), x.shape) + jax.random.uniform(next(world.keys))


@program((jax.random.key(0), 4), (jax.random.key(1), 4), (jax.random.key(1), 6))
def random_walks(key, count):
    def walk(key):
        steps = jax.random.choice(key, jnp.array([-1, 1]), (5,))
        return jnp.cumsum(steps)

    paths = jax.vmap(walk)(jax.random.split(key, count))
    return paths, (paths > 0).mean(0)


@program((LONG, 3), (X, 2), (LONG * 0 + 1, 2))
def windows_by_slices(x, size):
    starts = jnp.arange(x.shape[0] - size + 1)
    return jax.vmap(lambda at: lax.dynamic_slice(x, (at,), (size,)))(starts).mean(1)


@program((jnp.array([1, 1, 2, 2, 2, 3]),), (jnp.array([5, 5, 5]),), (jnp.array([1, 2, 1, 2]),), (jnp.array([7]),))
def runs_of_equal_items(x):
    change = jnp.concatenate([jnp.array([True]), x[1:] != x[:-1]])
    starts = jnp.flatnonzero(change)
    lengths = jnp.diff(jnp.append(starts, x.shape[0]))
    return x[starts], lengths, int(lengths.max())


@program((X, X > 0), (Y, Y < 0), (LONG, LONG > 9), (X, X > -9))
def masks_in_python(x, mask):
    if not mask.any():
        return jnp.full_like(x, -1)
    best, where = -jnp.inf, -1
    for i, value in enumerate(x):
        if mask[i] and value > best:
            best, where = value, i
    return best, where


@program((jnp.array([3.0, 1.0, 2.0]), 3), (jnp.array([5.0, -1.0, 0.0, 2.0]), 2), (jnp.array([1.0]), 1))
def beam_of_scores(scores, width):
    values, places = lax.top_k(scores, width)
    beams = [(values[i], [places[i]]) for i in range(width)]
    beams.sort(key=lambda beam: -float(beam[0] ** 2))
    return [value for value, _ in beams], beams[0][1]


@program((X, Y), (Y, X), (LONG, LONG[:3]))
def segment_sums(x, y):
    ids = jnp.arange(x.shape[0]) % 2
    sums = jax.ops.segment_sum(x, ids, num_segments=2)
    return sums, jnp.zeros(2).at[ids].max(x), jnp.bincount(ids, length=3), y.sum()


@program((WIDE, {"axis": 0}), (M, {"axis": 1}), (WIDE, {"axis": -1, "keepdims": True}))
def keyword_dict(x, options):
    return jnp.mean(x, **options) * 2


@program((X,), (Y,), (LONG,))
def loops_with_closures(x):
    scale, rows = x.sum(), []
    for i in range(3):
        rows.append(lax.fori_loop(0, i + 1, lambda j, v, i=i: v * scale + i + j, x))
    return jnp.stack(rows)


@program((X, 1), (Y, 0), (LONG, 2), (X, 7))
def switch_with_closures(x, which):
    shift = x.mean()
    branches = [lambda v, i=i: v * i + shift for i in range(3)]
    return lax.switch(which, branches, x)


@program((X, 3.0), (Y, 100.0), (LONG, 0.5), (X, -1.0))
def while_loop_on_values(x, limit):
    def cond(state):
        i, v = state
        return (jnp.sum(v) < limit) & (i < 10)

    return lax.while_loop(cond, lambda state: (state[0] + 1, state[1] * 1.5 + 0.5), (0, x))


@made((X,), (Y,), lambda world: world.params.update(w=Y), (X,))
def jitted_once_with_parameters_passed(world):
    world.params = {"w": X, "b": jnp.float32(0)}

    @jax.jit
    def update(params, x):
        value, grads = jax.value_and_grad(lambda p: jnp.sum((p["w"] * x + p["b"]) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value

    def step(x):
        params, value = update(world.params, x)
        world.params.update(params)
        return value

    return step


@made((X,), (Y,), (X,), (LONG,))
def best_so_far(world):
    world.best, world.losses = None, []

    def step(x):
        loss = jnp.sum(x**2)
        if world.best is None or loss < world.best:
            world.best = loss
        world.losses.append(float(loss))
        return world.best, min(world.losses), len(world.losses)

    return step


@made((X, 0.5), (Y, 0.5), (Y, 0.1), (X, 0.5))
def early_stopping(world):
    world.patience, world.last = 2, float("inf")

    def step(x, tolerance):
        loss = float(jnp.abs(x).mean())
        if loss < world.last - tolerance:
            world.last, world.patience = loss, 2
        else:
            world.patience -= 1
        if world.patience < 0:
            raise StopIteration("no progress")
        return world.last, world.patience

    return step


@program((X, [0.1, 0.2, 0.3]), (Y, [0.5]), (LONG, []), (X, [0.1, 1]))
def schedule_in_a_list(x, rates):
    for rate in rates:
        x = x - rate * jax.grad(lambda v: jnp.sum(v**4))(x)
    return x


@program((numpy.arange(6.0).reshape(2, 3), X), (numpy.ones((4, 3)), Y), (numpy.zeros((1, 3)), X))
def batches_of_numpy(data, w):
    order = numpy.argsort(data[:, 0])[::-1]
    total = jnp.zeros(())
    for row in data[order]:
        total = total + jnp.vdot(jnp.asarray(row, jnp.float32), w)
    return total, numpy.asarray(w) * 2


@program((M, "relu"), (WIDE, "tanh"), (M, "gelu"), (M, "none"))
def activation_by_name(x, name):
    table = {"relu": jax.nn.relu, "tanh": jnp.tanh, "gelu": jax.nn.gelu}
    return table[name](x) if name in table else x


@program((WIDE, M, None), (M, WIDE, None), (WIDE, M, WIDE[:, :2] > 0), (M, WIDE, M[:, :1] > 9))
def attention_with_mask(q, k, mask):
    logits = jnp.einsum("td,sd->ts", q, k) / jnp.sqrt(k.shape[-1])
    if mask is not None:
        logits = jnp.where(mask, logits, jnp.finfo(logits.dtype).min)
    weights = jax.nn.softmax(logits)
    return weights @ k, weights.argmax(-1)


@program((WIDE, 2), (WIDE, 4), (M, 1), (M, 2))
def microbatches(x, parts):
    pieces = x.reshape(parts, -1, x.shape[-1])

    def add(total, piece):
        return jax.tree.map(jnp.add, total, {"sum": piece.sum(0), "count": piece.shape[0]}), piece.mean()

    total, means = lax.scan(add, {"sum": jnp.zeros(x.shape[-1]), "count": 0}, pieces)
    return total["sum"] / total["count"], means


@program((layers(3, 4, 4, 2), WIDE), (layers(3, 4, 4, 2, seed=4), M), (layers(3, 5, 5, 2), WIDE))
def stacked_layers_in_a_scan(params, x):
    x = jnp.tanh(x @ params[0]["w"])
    middle = jax.tree.map(lambda *leaves: jnp.stack(leaves), *params[1:-1], params[1])
    x, norms = lax.scan(lambda h, p: (jnp.tanh(h @ p["w"] + p["b"]), jnp.linalg.norm(h)), x, middle)
    return forward(params[-1:], x), norms


@program((jnp.array([0.5, 0.2]), 8), (jnp.array([1.5, 0.0]), 3), (jnp.array([0.1, 0.1]), 0))
def runge_kutta(y, steps):
    def slope(y):
        return jnp.array([y[1], -y[0]])

    h, path = 0.1, [y]
    for _ in range(steps):
        a = slope(y)
        b = slope(y + h / 2 * a)
        y = y + h * b
        path.append(y)
    return jnp.stack(path)


@program((X, 2), (Y, 1), (LONG, 3), (X, 0))
def function_of_functions(x, depth):
    def compose(n):
        if n == 0:
            return lambda v: v
        inner = compose(n - 1)
        return lambda v: jnp.sin(inner(v)) + n

    return compose(depth)(x)


@program((X, Y), (Y, X), (LONG, LONG))
def linear_solve_without_a_matrix(x, b):
    def apply(v):
        return v * (2 + x**2) + v.sum() * 0.1

    found, _ = jax.scipy.sparse.linalg.cg(apply, b, tol=1e-6)
    return found, jnp.linalg.norm(apply(found) - b) < 1e-2


@program((M, 0.5), (WIDE, 0.9), (M, 0))
def quantiles_and_sorts(x, q):
    order = jnp.argsort(x, axis=-1)
    return jnp.quantile(x, q, axis=0), jnp.take_along_axis(x, order, -1), jnp.searchsorted(jnp.sort(x[0]), q)


@program(
    (X, {"momentum": 0.9, "nesterov": True}),
    (Y, {"momentum": 0.5, "nesterov": True}),
    (X, {"momentum": 0.9, "nesterov": False}),
)
def options_with_flags(x, options):
    velocity = options["momentum"] * x
    if options["nesterov"]:
        velocity = options.get("momentum", 0.0) * velocity + x
    return velocity * options.get("rate", 0.1)


@program((jnp.array([1.0, 2.0, 3.0]) + 0j,), (jnp.array([1j, 2, -1j, 0]),), (jnp.array([0.5 + 1j]),))
def spectra(z):
    spectrum = jnp.fft.fft(z)
    power = jnp.abs(spectrum) ** 2
    peak = int(jnp.argmax(power))
    kept = spectrum.at[peak].set(0)
    return jnp.fft.ifft(kept), power / power.sum(), peak


@program((WIDE > 0,), (M > 2,), (M > 99,))
def game_of_life(board):
    padded = jnp.pad(board.astype(int), 1)
    around = sum(jnp.roll(padded, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return (around == 3) | ((padded == 1) & (around == 2))


SAMPLE = frozenset(
    {
        "chained_optimizers",
        "train_state_step",
        "module_as_a_tree",
        "module_that_is_kept",
        "early_stopping",
        "static_flag",
        "best_so_far",
    }
)
UNTESTED = frozenset(name for name in PROGRAMS if name in globals()) - SAMPLE - practice.SAMPLE - practice.UNTESTED
