"""Newton's iteration for the roots of a cubic: as many steps as it takes, halved where they overshoot."""

from collections.abc import Callable

import torch
from torch import Tensor


def root(a: Tensor, b: Tensor, start: Tensor, tolerance: float = 1e-5, most: int = 50) -> tuple[Tensor, int]:
    """A root of x^3 + a x + b near `start`, and the number of steps; a flat place is left by a small push."""
    x = start
    value = x**3 + a * x + b
    steps = 0
    while value.abs() > tolerance and steps < most:
        slope = 3 * x**2 + a
        if slope.abs() < 1e-6:
            x = x + 0.1
            value = x**3 + a * x + b
            steps += 1
            continue
        step = value / slope
        following = x - step
        fresh = following**3 + a * following + b
        while fresh.abs() > value.abs():
            step = step / 2
            following = x - step
            fresh = following**3 + a * following + b
            if step.abs() < 1e-6:
                break
        x, value = following, fresh
        steps += 1
    return x, steps


def make() -> Callable[..., object]:
    """The function itself."""
    return root


def inputs() -> list[tuple[Tensor, ...]]:
    """A root that is near, one already found, a flat place to start at, a start that overshoots, one far away."""
    numbers = [(-1.0, -1.0, 1.0), (-1.0, 0.0, 1.0), (-3.0, 1.0, 1.0), (-2.0, 2.0, 0.1), (1.0, -500.0, 40.0)]
    return [tuple(torch.tensor(number) for number in row) for row in numbers]
