"""NumPy -> each target: algorithms as people write them give the same at other values and sizes, or are refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jax
import numpy
import pytest
import torch

import clew
from clew import tree
from clew.errors import GuardError, TranslationError
from clew.translate.program import conversion
from tests.frameworks.numpy.algorithms import ALGORITHMS

EVERYWHERE = (
    "k_means game_of_life power_iteration page_rank overlap_of_boxes one_hot layer_norm summed_area nearest_neighbours "
    "haar_wavelet heat_diffusion rotation_about_axis max_pooling"
).split()
NOT_IN_TENSORFLOW = "low_pass ridge_regression cellular_automaton attention".split()
CASES = [(to, name) for to in ("torch", "jax") for name in EVERYWHERE + NOT_IN_TENSORFLOW]
CASES += [("jax", "gradient_descent"), *(("tensorflow", name) for name in EVERYWHERE)]


@pytest.fixture
def wide() -> Iterator[None]:
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def there(nest: Any, to: str) -> Any:
    _, convert = conversion("numpy", to)
    leaves, structure = tree.flatten(nest)
    return tree.unflatten([convert(one) if isinstance(one, numpy.ndarray) else one for one in leaves], structure)


def check(made: Any, fn: Any, call: Any, to: str) -> None:
    got = tree.flatten(made(*there(copy.deepcopy(call), to)))[0]
    wanted = tree.flatten(fn(*copy.deepcopy(call)))[0]
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        assert numpy.asarray(one).dtype == numpy.asarray(other).dtype
        numpy.testing.assert_allclose(numpy.asarray(one), other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("to", "name"), CASES)
def test_algorithms(to: str, name: str, wide: None) -> None:
    fn, calls = ALGORITHMS[name]
    made = clew.translate(clew.trace(fn, calls[0]), to)
    assert "numpy" not in made.code.replace("jax.numpy", "").replace("experimental.numpy", "")
    for call in calls:
        check(made, fn, call, to)


def test_an_algorithm_becomes_torch_and_takes_gradients() -> None:
    def loss(x: Any, steps: int = 3) -> Any:
        for _ in range(steps):
            x = x - 0.1 * numpy.tanh(x)
        return (x**2).sum()

    made = clew.translate(clew.trace(loss, (numpy.ones(3),)), "torch")
    x = torch.linspace(-1, 1, 5, dtype=torch.float64, requires_grad=True)
    made(x, 4).backward()
    step = 1e-6
    for place in range(5):
        moved = numpy.linspace(-1, 1, 5)
        moved[place] += step
        slope = (loss(moved, 4) - loss(numpy.linspace(-1, 1, 5), 4)) / step
        assert abs(float(x.grad[place]) - slope) < 1e-4


def test_arrays_that_are_held_are_buffers_of_a_module() -> None:
    table = numpy.arange(12.0).reshape(4, 3)

    def fn(i: Any) -> Any:
        return table[i] * 2

    made = clew.translate(clew.trace(fn, (numpy.array([0, 2]),)), "torch")
    assert isinstance(made, torch.nn.Module)
    assert [tuple(one.shape) for one in made.buffers()] == [(4, 3)]
    assert made(torch.tensor([3, 1, 1])).tolist() == fn(numpy.array([3, 1, 1])).tolist()


def test_numbers_of_another_kind_and_arrays_of_another_dtype_are_guarded() -> None:
    made = clew.translate(clew.trace(lambda x, n: x * n, (numpy.ones(2), 3)), "torch")
    with pytest.raises(GuardError, match=r"type\(n\) is int"):
        made(torch.ones(2, dtype=torch.float64), 2.5)
    with pytest.raises(GuardError, match="x.dtype is float64"):
        made(torch.ones(2), 2)


@pytest.mark.parametrize("fn", [
    lambda x: numpy.linalg.svd(x)[0],
    lambda x: x[x > 0],
    lambda x: numpy.unique(x),
    lambda x: numpy.arange(4) // numpy.arange(4),
])  # fmt: skip
def test_what_differs_is_refused(fn: Any) -> None:
    with pytest.raises(TranslationError):
        clew.translate(clew.trace(fn, (numpy.eye(3) + 1,)), "torch")


def test_float64_into_a_jax_of_32_bits_is_refused() -> None:
    with pytest.raises(TranslationError, match="it computes in float64, and JAX has 32 bits"):
        clew.translate(clew.trace(lambda x: x * 2, (numpy.ones(2),)), "jax")
