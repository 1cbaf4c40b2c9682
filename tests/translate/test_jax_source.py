"""JAX -> each target: programs of the corpus, loops, branches, transforms, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
import tensorflow as tf
import torch

import clew
from benchmarks.translate_corpora import Case, examine
from clew.errors import GuardError, TranslationError
from tests.frameworks.jax.programs import PROGRAMS, others

TARGETS = ("numpy", "torch", "tensorflow")
EVERYWHERE = (
    "attention convolution kmeans_step kalman_filter gaussian_process segment_means lstm newton_root fourier_filter "
    "small_machine jacobi_heat beam_step sort_and_rank associative_sums adam_step nested_arguments edit_distance"
).split()
CASES = [(TARGETS[place % 3], name) for place, name in enumerate(EVERYWHERE)]
"""All of them to all frameworks: ``python -m benchmarks.translate_corpora``."""
CASES += [("torch", "train_step"), ("tensorflow", "train_step"), ("torch", "jacobians"), ("tensorflow", "remat_block")]


@pytest.mark.parametrize(("to", "name"), CASES)
def test_programs(to: str, name: str) -> None:
    function, example = PROGRAMS[name]
    found = examine(Case(name, function, (example, others(example))), "jax", to)
    assert found["outcome"] == "translated", found
    assert not any("size" in one for one in found["reasons"])


def test_golden() -> None:
    def fn(x: Any, w: Any) -> Any:
        return jax.nn.relu(x @ w).sum(axis=-1) / x.shape[0]

    made = clew.translate(clew.trace(fn, (jnp.ones((2, 3)), jnp.ones((3, 4)))), "torch")
    assert made.code.split("\n\n")[-1].strip().splitlines()[1:] == [
        "    return torch.sum(torch.relu(x @ w), dim=-1) / x.shape[0]",
    ]


@pytest.mark.parametrize("to", TARGETS)
def test_scans_of_other_lengths_and_backwards(to: str) -> None:
    def fn(xs: Any, start: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            total, count = carry
            return (total * 0.5 + x, count + 1), {"total": total, "square": x * x}

        return jax.lax.scan(step, (start, 0), xs, reverse=True)

    calls = [(jnp.arange(6.0).reshape(3, 2), jnp.ones(2)), (jnp.arange(10.0).reshape(5, 2), jnp.zeros(2))]
    assert examine(Case("scan", fn, tuple(calls)), "jax", to) == {"outcome": "translated", "reasons": [], "notes": []}


@pytest.mark.parametrize("to", TARGETS)
def test_vmap_over_other_axes_and_dynamic_slices(to: str) -> None:
    def fn(x: Any, y: Any, place: Any) -> Any:
        products = jax.vmap(lambda a, b: (a @ b, a.max()), in_axes=(1, None), out_axes=0)(x, y)
        return products, jax.lax.dynamic_slice(y, (place,), (2,)), y.at[place].add(3.0)

    x, y = jnp.arange(12.0).reshape(4, 3), jnp.arange(4.0)
    calls = ((x, y, jnp.int32(1)), (x - 5, y * 2, jnp.int32(2)), (x, y, jnp.int32(-1)))
    assert examine(Case("vmap", fn, calls), "jax", to)["outcome"] == "translated"


def test_segments_of_negative_numbers_are_left_out() -> None:
    def fn(x: Any, groups: Any) -> Any:
        return jax.ops.segment_sum(x, groups, num_segments=3)

    x, groups = jnp.arange(4.0), jnp.array([0, 2, 1, 2])
    for to in TARGETS:
        case = Case("segments", fn, ((x, groups), (x, jnp.array([0, -1, -3, 1]))))
        assert examine(case, "jax", to)["outcome"] == "translated"


def test_dtypes_and_divisions_are_those_of_jax() -> None:
    def fn(i: Any, f: Any) -> Any:
        return i / 2, i + f, i // 3, i > 1.5, jnp.sum(i), jnp.argmax(f), i.astype(bool) + i.astype(bool)

    i, f = jnp.array([1, -7, 4]), jnp.array([0.5, jnp.nan, 2.0])
    for to in TARGETS:
        made = clew.translate(clew.trace(fn, (i, f)), to)
        convert = {"numpy": numpy.asarray, "torch": lambda x: torch.tensor(numpy.array(x)), "tensorflow": tf.constant}[
            to
        ]
        for one, other in zip(made(convert(numpy.asarray(i)), convert(numpy.asarray(f))), fn(i, f), strict=True):
            assert numpy.asarray(one).dtype == other.dtype, to
            numpy.testing.assert_allclose(numpy.asarray(one), other, rtol=1e-6)


def test_derivatives_of_torch_go_on() -> None:
    def fn(x: Any) -> Any:
        return jax.grad(lambda y: (y**3).sum())(x)

    made = clew.translate(clew.trace(fn, (jnp.ones(3),)), "torch")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    made(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [6.0, 12.0]


def test_inputs_in_containers_are_guarded() -> None:
    made = clew.translate(clew.trace(lambda tree: tree["a"][0] + tree["b"], ({"a": (jnp.ones(2),), "b": 3},)), "torch")
    assert made({"a": (torch.ones(5),), "b": 4}).tolist() == [5.0] * 5
    with pytest.raises(GuardError, match=r"tree\['a'\]\[0\].dtype is float32"):
        made({"a": (torch.ones(2, dtype=torch.float64),), "b": 4})
    with pytest.raises(GuardError, match=r"type\(tree\['b'\]\)"):
        made({"a": (torch.ones(2),), "b": 4.5})


def _two_draws(key: Any, x: Any) -> Any:
    return jax.random.normal(key, (3,)) + jax.random.uniform(key, (3,)) + x


@jax.custom_vjp
def _ruled(x: Any) -> Any:
    return x * 2


_ruled.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 0,))


@pytest.mark.parametrize(("fn", "args", "reason", "to"), [
    (lambda x: jax.grad(lambda y: (y * y).sum())(x), (jnp.ones(3),), "numpy takes no derivatives", "numpy"),
    (lambda x: jnp.linalg.svd(x)[0], (jnp.eye(3) + 1,), "unique but for signs", "torch"),
    (lambda x: x // jnp.array([1, 0, 2]), (jnp.arange(3),), "division of integers", "torch"),
    (_two_draws, (jax.random.key(0), jnp.ones(3)), "two different draws from one key", "torch"),
    (lambda x: _ruled(x).sum(), (jnp.ones(3),), "a derivative of its own", "torch"),
    (lambda x: x * 2, (jnp.ones(3, jnp.bfloat16),), "bfloat16", "numpy"),
])  # fmt: skip
def test_what_is_refused(fn: Any, args: Any, reason: str, to: str) -> None:
    with pytest.raises(TranslationError, match=reason):
        clew.translate(clew.trace(fn, args), to)


def test_dropout_draws_from_what_the_program_is_given() -> None:
    def fn(key: Any, x: Any) -> Any:
        first, second = jax.random.split(key)
        return jnp.where(jax.random.bernoulli(first, 0.25, x.shape), x, 0.0), jax.random.normal(second, x.shape)

    made = clew.translate(clew.trace(fn, (jax.random.key(0), jnp.ones((8, 8)))), "numpy")
    kept, noise = made(None, numpy.ones((100, 100), "float32"), rng=numpy.random.default_rng(0))
    assert abs(kept.mean() - 0.25) < 0.03 and abs(noise.std() - 1) < 0.03
    assert "another stream" in made.notes[0]


def test_an_einops_program_by_way_of_what_it_calls() -> None:
    einops = pytest.importorskip("einops")

    def fn(x: Any) -> Any:
        return einops.rearrange(x, "b (h w) c -> b c h w", h=2).mean(axis=1)

    made = clew.translate(clew.trace(fn, (jnp.arange(24.0).reshape(2, 4, 3),)), "torch")
    x = jnp.arange(48.0).reshape(2, 8, 3)
    numpy.testing.assert_allclose(made(torch.tensor(numpy.array(x))), fn(x))


def test_an_array_api_program_by_way_of_what_it_calls() -> None:
    compat = pytest.importorskip("array_api_compat")

    def fn(x: Any) -> Any:
        xp = compat.array_namespace(x)
        return xp.sum(xp.matmul(x, xp.permute_dims(x, (1, 0))), axis=0)

    made = clew.translate(clew.trace(fn, (jnp.ones((2, 3)),)), "tensorflow")
    x = jnp.arange(12.0).reshape(4, 3)
    numpy.testing.assert_allclose(made(tf.constant(numpy.asarray(x))), fn(x))
