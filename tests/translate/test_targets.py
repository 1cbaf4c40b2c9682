"""torch -> each target: equal results, also at other sizes; state, random numbers, branches; no torch in the code."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import tensorflow as tf
import torch
from torch import nn

import clew
from clew.errors import MissingInput
from clew.translate.program import conversion
from tests.translate.test_torch_to_jax import PROGRAMS, Convolutional, Small

TARGETS = ("numpy", "tensorflow")
KEYS = {
    "numpy": {"rng": numpy.random.default_rng(0)},
    "tensorflow": {"generator": tf.random.Generator.from_seed(0)},
}


def there(value: torch.Tensor, to: str) -> Any:
    source, convert = conversion("torch", to)
    return convert(source.to_numpy(value))


def same(found: Any, wanted: torch.Tensor) -> None:
    numpy.testing.assert_allclose(numpy.asarray(found), wanted.detach().numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("to", TARGETS)
def test_a_perceptron_and_a_convolution_at_other_sizes(to: str) -> None:
    torch.manual_seed(0)
    for model, sizes in ((Small(), ((2, 4), (5, 4))), (Convolutional().eval(), ((2, 3, 16, 16), (5, 3, 16, 16)))):
        made = clew.translate(clew.trace(model, (torch.randn(sizes[0]),)), to)
        assert "torch" not in made.code
        for size in sizes:
            x = torch.randn(size)
            same(made(there(x, to)), model(x))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("to", TARGETS)
def test_semantics_that_bite(to: str, name: str) -> None:
    torch.manual_seed(0)
    fn, x = PROGRAMS[name]
    made = clew.translate(clew.trace(fn, (x,)), to)
    same(made(there(x, to)), fn(x))


@pytest.mark.parametrize("to", TARGETS)
def test_running_statistics_are_state(to: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
    x = torch.randn(6, 4)
    made = clew.translate(clew.trace(model, (x,)), to)
    result, state = made.pure(made.params, made.state, there(x, to))
    same(result, model(x))
    same(state["1.running_var"], model[1].running_var)


@pytest.mark.parametrize("to", TARGETS)
def test_random_numbers_come_from_what_the_call_is_given(to: str) -> None:
    made = clew.translate(clew.trace(nn.Dropout(0.25), (torch.ones(100, 100),)), to)
    with pytest.raises(MissingInput, match=f"the call has no {next(iter(KEYS[to]))}"):
        made(there(torch.ones(100, 100), to))
    y = numpy.asarray(made(there(torch.ones(100, 100), to), **KEYS[to]))
    assert set(numpy.unique(y)) == {0.0, numpy.float32(1 / 0.75)}
    assert abs(float((y == 0).mean()) - 0.25) < 0.02


@pytest.mark.parametrize("to", TARGETS)
def test_branches_loops_and_writes(to: str) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        y[:, 0] = x[:, 1]
        y.index_add_(1, torch.tensor([1, 1]), x[:, :2])
        if x.sum() > 0:
            return y * 2
        return y - 1

    made = clew.translate(clew.trace(fn, (torch.ones(3, 3),)), to)
    for sign in (1.0, -1.0):
        same(made(there(torch.full((3, 3), sign), to)), fn(torch.full((3, 3), sign)))


@pytest.mark.parametrize("to", TARGETS)
def test_a_check_inside_of_a_branch_that_gives_nothing_is_made(to: str) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 3:
            if not x[0] > 0:
                raise AssertionError  # as ``assert``, which pytest writes anew
        return x * 2

    def hidden(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 3:
            float(x[0])  # which nobody needs
        for row in x:
            if row > 100:
                raise ValueError("too large")
        return x * 2

    made = clew.translate(clew.trace(fn, (torch.ones(3),)), to)
    same(made(there(torch.ones(3), to)), torch.ones(3) * 2)
    with pytest.raises(AssertionError):
        made(there(torch.tensor([-1.0, 3.0, 3.0]), to))
    made = clew.translate(clew.trace(hidden, (torch.ones(3),)), to)
    same(made(there(torch.ones(3) * 2, to)), torch.ones(3) * 4)
    with pytest.raises(ValueError, match="too large"):
        made(there(torch.tensor([1.0, 300.0, 3.0]), to))


def test_variables_of_tensorflow_are_trained_as_torch_trains() -> None:
    torch.manual_seed(0)
    model, x = Small(), torch.randn(6, 4)
    made = clew.translate(clew.trace(model, (x,)), "tensorflow")
    (model(x) ** 2).sum().backward()
    given = there(x, "tensorflow")
    for call in (made, tf.function(lambda x: made(x))):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(call(given) ** 2)
        slopes = dict(zip(made.params, tape.gradient(loss, made.trainable_variables), strict=True))
        for name, value in model.named_parameters():
            same(slopes[name], value.grad)
