"""XLA compiles segments of JAX programs: values, plain numbers, islands, kinds of arguments, and what it refuses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
import torch

import clew


def program(x: Any, n: int) -> Any:
    y = jnp.sin(x) * 2
    z = jax.nn.softmax(y)
    if y.sum() > 0:
        z = z + 1
    for _ in range(n):
        z = z * 2 + 1
    return {"result": z, "twice": n * 2, "rows": x.shape[0], "given": x}


def assert_alike(found: Any, wanted: Any) -> None:
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert type(found[key]) is type(value)
        numpy.testing.assert_allclose(numpy.asarray(found[key]), numpy.asarray(value), rtol=1e-5, atol=1e-6)
        assert getattr(found[key], "weak_type", None) == getattr(value, "weak_type", None)


def test_branches_loops_and_plain_numbers() -> None:
    made = clew.compile(program, "xla", (jnp.ones((3, 4)), 2))
    for x, n in ((jnp.ones((3, 4)), 2), (-jnp.ones((3, 4)), 3), (jnp.ones((2, 5)), 0), (jnp.ones((3, 4)), 2)):
        assert_alike(made(x, n), program(x, n))
    assert "segment_0" in made.code and "if " in made.code


def test_transformations_of_the_users_go_through() -> None:
    made = clew.compile(lambda x: jnp.tanh(x) * jnp.exp(x), "xla", (jnp.ones(3),))
    x = jnp.linspace(0, 1, 3)
    made(x)
    gradient = jax.grad(lambda x: made(x).sum())(x)
    numpy.testing.assert_allclose(gradient, jax.grad(lambda x: (jnp.tanh(x) * jnp.exp(x)).sum())(x), rtol=1e-6)


def test_numpy_and_values_are_islands() -> None:
    def mixed(x: Any) -> Any:
        y = jnp.cos(x) + 1
        scale = numpy.ones(3) * 2
        return jnp.exp(y) * scale, float(y.sum())

    made = clew.compile(mixed, "xla", (jnp.ones(3),))
    x = jnp.linspace(0, 1, 3)
    found, wanted = made(x), mixed(x)
    numpy.testing.assert_allclose(found[0], wanted[0], rtol=1e-6)
    assert type(found[1]) is float and found[1] == pytest.approx(wanted[1])
    assert "asks for a plain value" in str(clew.explain(made))


def test_kinds_of_arguments_are_bounded_and_errors_are_the_programs_own() -> None:
    made = clew.compile(lambda x, y: jnp.dot(x, y) * 2, "xla", (jnp.ones(2), jnp.ones(2)))
    with pytest.raises(TypeError, match="dot_general|incompatible|shape"):
        made(jnp.ones(2), jnp.ones(3))
    with pytest.warns(RuntimeWarning, match="16 kinds"):
        for size in range(1, 19):
            assert float(made(jnp.ones(size), jnp.ones(size))) == 2 * size


def test_programs_of_torch_are_translated_first() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU())
    x = torch.randn(2, 4)
    captured = clew.trace(model, (x,))
    with pytest.raises(clew.ClewError, match=r'clew.translate\(captured, to="jax"\)'):
        clew.compile(captured, "xla")
    made = clew.compile(clew.translate(captured, to="jax"), "xla")
    found = made(jnp.asarray(x.numpy()))
    numpy.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    made.params = {name: value * 2 for name, value in made.params.items()}
    assert not numpy.allclose(found, made(jnp.asarray(x.numpy())))
