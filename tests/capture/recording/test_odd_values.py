"""Values that answer otherwise than most: comparisons that are none, tuples without a length, seeds of NumPy."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import clew


class Pair(tuple[Any, ...]):
    """A tuple that does not tell its length."""

    def __len__(self) -> int:
        raise NotImplementedError

    def __contains__(self, item: object) -> bool:
        raise NotImplementedError


class Weighted(torch.nn.Module):
    """Holds such tuples, also inside of others."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs = [Pair((2, Pair((3,))))]
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> Any:
        for times, inner in self.pairs:
            x = x * times + next(iter(inner))
        return self.linear(x)


PAIR = Pair((1, 2))


def of_a_pair(x: torch.Tensor) -> torch.Tensor:
    first, second = PAIR
    return x * first + second


def with_none(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if not x == None else x  # noqa: E711  as some write it


def with_text(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x != "mean" else x


class Answering:
    def __rmul__(self, other: Any) -> Any:
        return other + 1


ANSWERING = Answering()


def with_an_object(x: torch.Tensor) -> Any:
    return x * ANSWERING


@pytest.mark.parametrize("program", [of_a_pair, with_none, with_text, with_an_object], ids=lambda one: one.__name__)
def test_captured_as_it_is(program: Callable[..., Any]) -> None:
    captured = clew.trace(program, args=(torch.rand(2, 3),))
    for size in (2, 5):
        x = torch.rand(size, 3)
        assert torch.equal(captured(x), program(x))


class Logger:
    """Keeps a lock and counts, as loggers of packages do."""

    __module__ = "loguru._logger"

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.messages = 0

    def warning(self, text: str) -> None:
        with self.lock:
            self.messages += 1


LOGGER = Logger()


def logged(x: torch.Tensor) -> torch.Tensor:
    LOGGER.warning(f"got {x.shape[0]} rows")
    return x * 2


def test_a_logger_of_a_package_is_no_state_of_the_program() -> None:
    captured = clew.trace(logged, args=(torch.rand(2, 3),))
    x = torch.rand(2, 3)
    assert torch.equal(captured(x), x * 2)
    assert torch.equal(captured(x), logged(x))


def test_tuples_without_a_length_in_a_module() -> None:
    module = Weighted()
    captured = clew.trace(module, args=(torch.rand(3, 2),))
    x = torch.rand(4, 2)
    assert torch.equal(captured(x), module(x))


def _scaled(x: torch.Tensor) -> torch.Tensor:
    seed = int(torch.randint(0, 100, ()).item())
    return x * float(np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).random())


def seeded_inside(x: torch.Tensor) -> torch.Tensor:
    return _scaled(x) + 1


def test_a_seed_that_the_program_draws_stays_inside_one_call() -> None:
    captured = clew.trace(seeded_inside, args=(torch.rand(3),))
    for seed in (1, 2):
        x = torch.rand(3)
        torch.manual_seed(seed)
        wanted = seeded_inside(x)
        torch.manual_seed(seed)
        assert torch.equal(captured(x), wanted)


def test_classes_of_generators_are_classes_during_a_capture() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if isinstance(stream.bit_generator, np.random.PCG64) else x

    stream = np.random.default_rng(1)
    assert torch.equal(clew.trace(program)(torch.ones(2)), torch.ones(2) * 2)
