"""The register of realistic programs, and arrays for their probes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """How a program is made, and the arguments of its calls: the first are the example."""

    make: Callable[[], Callable[..., Any]]
    calls: list[Any]


PROGRAMS: dict[str, Program] = {}


class _Registering:
    """``@program(call, ...)`` on a function, ``@program.made(call, ...)`` on what makes one; ``more`` adds calls."""

    def __call__(self, *calls: Any) -> Callable[[Any], Any]:
        return lambda function: self._add(function, lambda: function, calls)

    def made(self, *calls: Any) -> Callable[[Any], Any]:
        return lambda make: self._add(make, make, calls)

    def more(self, *calls: Any) -> Callable[[Any], Any]:
        def add(function: Any) -> Any:
            function._calls = [*getattr(function, "_calls", ()), *calls]
            return function

        return add

    def _add(self, function: Any, make: Callable[[], Any], calls: tuple[Any, ...]) -> Any:
        assert function.__name__ not in PROGRAMS, function.__name__
        more = function.__dict__.pop("_calls", [])
        PROGRAMS[function.__name__] = Program(make, [*calls, *more])
        return function


program = _Registering()


class Named(dict[str, Any]):
    """Arguments of a call that are given by name."""


def floats(*values: float) -> Any:
    return np.array(values, dtype=float)


def grid(*shape: int) -> Any:
    return np.arange(float(np.prod(shape))).reshape(shape)


def noise(seed: int, *shape: int) -> Any:
    return np.round(np.random.default_rng(seed).normal(size=shape), 3)


def symmetric(seed: int, size: int) -> Any:
    """A positive definite matrix."""
    made = noise(seed, size, size)
    return made @ made.T + size * np.eye(size)
