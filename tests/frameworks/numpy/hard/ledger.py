"""The register of hard programs.

An entry of ``PROGRAMS`` makes the program anew (with its state), and lists the calls: the first is the example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Arguments = tuple[Any, ...]


class Program(NamedTuple):
    """How a program is made, its calls, and its kind."""

    make: Callable[[], Callable[..., Any]]
    calls: list[Arguments]
    kind: str


PROGRAMS: dict[str, Program] = {}
A = np.array([0.5, -1.0, 2.0, 3.0])
B = np.array([4.0, 1.0, -2.0, -3.0])
LONG = np.arange(6.0)
M = np.arange(12.0).reshape(3, 4) / 5
N = np.arange(8.0).reshape(2, 4) - 3
PLACES = np.array([3, 0, 1, 2])
J = np.array([1, 1, 0, 3])


def program(kind: str, *calls: Arguments) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that keeps no state of its own."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = Program(lambda: function, list(calls), kind)
        return function

    return register


def made(kind: str, *calls: Arguments) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register what makes a program with state of its own."""

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[make.__name__] = Program(make, list(calls), kind)
        return make

    return register
