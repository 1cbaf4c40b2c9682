"""Random numbers of Python and NumPy are drawn by the graph; functions with a cache are recorded, not their caches."""

from __future__ import annotations

import datetime
import functools
import os
import random
import time
from random import uniform
from typing import Any

import numpy as np
import pytest
import torch

import clew
from clew.errors import CaptureError


def drawn(x: torch.Tensor) -> Any:
    order = list(range(4))
    random.shuffle(order)
    factor = random.random() + uniform(1, 2) + np.random.rand() + random.randint(0, x.shape[0])
    return x * factor, x[order], random.sample(range(10), 2)


def test_draws_follow_the_seed() -> None:
    random.seed(3)
    np.random.seed(3)
    before = random.getstate()
    captured = clew.trace(drawn, (torch.ones(4),))
    assert random.getstate() == before
    for size in (4, 7):
        results = []
        for function in (captured, drawn):
            random.seed(5)
            np.random.seed(5)
            results.append(function(torch.arange(float(size))))
        torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)


def test_a_failing_guard_puts_the_stream_back() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x if random.random() < 0.5 else -x

    lazy = clew.trace(program, control_flow="guard")
    random.seed(1)
    mine = [float(lazy(torch.ones(()))) for _ in range(12)]
    random.seed(1)
    assert mine == [float(program(torch.ones(()))) for _ in range(12)]
    assert len(lazy.captures) == 2


def test_a_draw_that_is_not_seen_is_refused() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x * random.random() * random.randbytes(1)[0]

    with pytest.raises(CaptureError, match="random numbers"):
        clew.trace(program, (torch.ones(2),))


def jittered(x: torch.Tensor) -> torch.Tensor:
    return x + torch.from_numpy(np.random.rand(x.shape[0]))


clew.wrap("jittered")


def test_a_wrapped_function_may_draw() -> None:
    captured = clew.trace(lambda x: jittered(x) * random.random(), (torch.ones(2),))
    results = []
    for function in (captured, lambda x: jittered(x) * random.random()):
        random.seed(1)
        np.random.seed(1)
        results.append(function(torch.ones(3)))
    assert torch.equal(*results)


@functools.lru_cache
def positions(length: int) -> torch.Tensor:
    return torch.arange(length) * 2.0


@functools.lru_cache
def noise(length: int) -> torch.Tensor:
    return torch.randn(length)


@functools.lru_cache
def marker() -> object:
    return object()


@pytest.mark.parametrize("filled", [False, True])
def test_a_cached_function_is_recorded(filled: bool) -> None:
    positions.cache_clear()
    if filled:
        positions(4)
    captured = clew.trace(lambda x: x + positions(x.shape[0]), (torch.ones(4),))
    assert torch.equal(captured(torch.zeros(3)), torch.tensor([0.0, 2.0, 4.0]))


def test_what_a_cache_would_hide_is_refused() -> None:
    with pytest.raises(CaptureError, match="a function with a cache"):
        clew.trace(lambda x: x + noise(3), (torch.ones(3),))
    with pytest.raises(CaptureError, match="writes to what its cache holds"):
        clew.trace(lambda x: positions(4).add_(x), (torch.ones(4),))


def test_objects_from_a_cache_stay_the_same_ones() -> None:
    captured = clew.trace(lambda x: x + (marker() is marker()), (torch.ones(1),))
    assert float(captured(torch.ones(1))) == 2.0


def test_clocks_are_read_again() -> None:
    def program(x: torch.Tensor) -> Any:
        return x * 2, time.perf_counter()

    captured = clew.trace(program, (torch.ones(1),))
    first, second = captured(torch.ones(1))[1], captured(torch.ones(1))[1]
    assert type(first) is float and first < second


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * np.random.default_rng().random(),
        lambda x: x * np.random.RandomState().rand(),
        lambda x: x * random.Random().random(),
        lambda x: x * os.urandom(1)[0],
        lambda x: x * datetime.datetime.now().year,
    ],
    ids=["numpy", "state", "python", "system", "date"],
)
def test_what_cannot_be_seeded_is_refused(program: Any) -> None:
    with pytest.raises(CaptureError, match="cannot be captured"):
        clew.trace(program, (torch.ones(1),))


def test_seeded_generators_are_the_same_at_each_call() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x * random.Random(3).random() * np.random.default_rng(3).random()

    assert torch.equal(clew.trace(program, (torch.ones(1),))(torch.ones(2)), program(torch.ones(2)))


def test_a_generator_made_inside() -> None:
    def program(x: torch.Tensor, seed: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return x * torch.randperm(len(x), generator=generator)

    captured = clew.trace(program, (torch.ones(6), 1))
    for size, seed in ((6, 2), (9, 1)):
        assert torch.equal(captured(torch.ones(size), seed), program(torch.ones(size), seed))
    assert isinstance(torch.Generator(), torch.Generator) and type(torch.Generator()) is torch._C.Generator


def test_a_forked_stream() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        with torch.random.fork_rng():
            noise = torch.rand(x.shape)
        return x + noise + torch.rand(x.shape)

    captured = clew.trace(program, (torch.ones(3),))
    results = []
    for function in (captured, program):
        torch.manual_seed(2)
        results.append(function(torch.ones(5)))
    assert torch.equal(*results)


def test_a_layer_made_inside() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.Linear(x.shape[-1], 2)(x)

    captured = clew.trace(program, (torch.ones(2, 3),))
    results = []
    for function in (captured, program):
        torch.manual_seed(2)
        results.append(function(torch.ones(5, 3)))
    assert torch.equal(*results)


@functools.lru_cache(maxsize=4)
def embedded(shape: Any, mask: torch.Tensor | None = None) -> torch.Tensor:
    ramp = torch.arange(shape[1]) * 1.0
    return ramp.expand(shape[0], shape[1]) if mask is None else mask.cumsum(1) + ramp


def test_a_cache_that_takes_a_shape_or_a_new_tensor_stays_general() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x + embedded(x.shape) + embedded(x.shape, x > 1)

    captured = clew.trace(program, (torch.ones(2, 3),))
    for size in (3, 5):
        x = torch.arange(2.0 * size).view(2, size)
        assert torch.equal(captured(x), program(x))


def test_a_cache_that_takes_a_tensor_from_outside_is_asked_again() -> None:
    class Program(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.ones(1, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + embedded(x.shape, self.table)

    program, x = Program(), torch.zeros(2, 3)
    program(x)
    captured = clew.trace(program, (x,))
    program.table.add_(1)  # the cache gives what it gave before
    assert torch.equal(captured(x), program(x))
    assert torch.equal(captured(torch.zeros(4, 3)), program(torch.zeros(4, 3)))


def test_a_write_to_what_a_cache_was_asked_with_is_refused() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        first = embedded((2, 3), y)
        y.mul_(2)
        return first + embedded((2, 3), y)

    with pytest.raises(CaptureError, match="writes to what its cache holds"):
        clew.trace(program, (torch.ones(2, 3),))
