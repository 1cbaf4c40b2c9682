"""Algorithms that run until their data say stop, each with the arguments to capture it on and to try it on.

All of them are captured with a real loop: the graph holds for inputs that take more rounds, fewer, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Arguments = tuple[Any, ...]
ITERATIVE: dict[str, tuple[Callable[..., Any], list[Arguments]]] = {}
_draw = np.random.RandomState(17)


def _on(*calls: Arguments) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        ITERATIVE[function.__name__] = (function, list(calls))
        return function

    return register


@_on((np.array([2.0, 3.0]),), (np.array([1e6, 1e-3, 5.0]),), (np.array([1.0]),))
def newton_square_root(values):
    guess, rounds = values.copy(), 0
    while np.abs(guess * guess - values).max() > 1e-9 * values.max():
        guess = (guess + values / guess) / 2
        rounds += 1
    return guess, rounds


@_on((_draw.rand(4, 4),), (_draw.rand(6, 6),), (np.eye(3),))
def power_iteration(matrix):
    vector = np.ones(len(matrix)) / np.sqrt(len(matrix))
    value, before = 0.0, np.inf
    rounds = 0
    while abs(value - before) > 1e-10 and rounds < 500:
        product = matrix @ vector
        before, value = value, float(vector @ product)
        vector = product / np.linalg.norm(product)
        rounds += 1
    return value, vector, rounds


def _next_generation(board):
    neighbours = sum(np.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - board
    return ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(int)


@_on((_draw.randint(0, 2, (6, 6)),), (_draw.randint(0, 2, (9, 5)),), (np.zeros((4, 4), int),))
def game_of_life_until_stable(board):
    generation = 0
    while generation < 60:
        following = _next_generation(board)
        if (following == board).all():
            break
        board = following
        generation += 1
    return board, generation


@_on((np.arange(0, 40, 3), 17), (np.arange(0, 90, 2), 88), (np.arange(5), -4), (np.arange(5), 99))
def binary_search(values, wanted):
    low, high = 0, len(values)
    while values[:high].size > low and low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@_on((np.array([12, 18, 100]), np.array([8, 27, 75])), (np.array([7]), np.array([0])), (_draw.randint(1, 999, 9),) * 2)
def gcd_of_arrays(first, second):
    while (second != 0).any():
        rest = first % np.where(second == 0, 1, second)
        first, second = np.where(second == 0, first, second), np.where(second == 0, 0, rest)
    return first


@_on((np.array([0.3 + 0.5j, -1.0 + 0.0j, 1.0 + 1.0j]),), (np.array([2.0 + 2.0j]),), (np.array([0.5 + 0.6j, 3.0 + 0j]),))
def mandelbrot_escape(grid):
    z, counts, rounds = np.zeros_like(grid), np.zeros(grid.shape, int), 0
    inside = np.abs(z) <= 2
    while inside.any() and rounds < 40:
        z = np.where(inside, z * z + grid, z)
        counts[inside] += 1
        inside = np.abs(z) <= 2
        rounds += 1
    return counts, rounds


@_on(
    (_draw.rand(8, 3), _draw.rand(8), 0.1),
    (_draw.rand(20, 2), _draw.rand(20), 0.3),
    (np.zeros((4, 2)), np.zeros(4), 0.1),
)
def gradient_descent_with_stop(inputs, targets, rate):
    weights, losses = np.zeros(inputs.shape[1]), []
    gradient = inputs.T @ (inputs @ weights - targets) / len(targets)
    while np.linalg.norm(gradient) > 1e-3:
        weights = weights - rate * gradient
        errors = inputs @ weights - targets
        losses.append((errors**2).mean())
        gradient = inputs.T @ errors / len(targets)
    return weights, np.array(losses)


@_on((_draw.rand(6, 6) + 8 * np.eye(6), _draw.rand(6)), (_draw.rand(3, 3) + 5 * np.eye(3), _draw.rand(3)))
def jacobi(matrix, right):
    diagonal = np.diag(matrix)
    rest = matrix - np.diagflat(diagonal)
    x, steps = np.zeros_like(right), 0
    while True:
        new = (right - rest @ x) / diagonal
        steps += 1
        if np.abs(new - x).max() < 1e-10 or steps == 200:
            return new, steps
        x = new


@_on((np.array([3.0, 1.0, 2.0]),), (np.array([5.0, 4.0, 1.0]),), (np.array([1.0, 2.0, 3.0]),))
def bubble_sort(values):
    swapped = True
    while swapped:
        swapped = False
        for i in range(2):
            if values[i] > values[i + 1]:
                values[i], values[i + 1] = values[i + 1], values[i]
                swapped = True
    return values


@_on((np.int64(27),), (np.int64(1),), (np.int64(97),))
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@_on((_draw.rand(10, 2), _draw.rand(2, 2)), (_draw.rand(30, 3), _draw.rand(2, 3)))
def k_means_until_settled(points, centers):
    moved = np.inf
    while moved > 1e-6:
        distances = ((points[:, None] - centers[None]) ** 2).sum(-1)
        nearest = distances.argmin(1)
        new = np.stack([_mean_of(points, nearest, k, centers) for k in range(len(centers))])
        moved = np.abs(new - centers).max()
        centers = new
    return centers, nearest


def _mean_of(points, nearest, k, centers):
    weights = (nearest == k)[:, None].astype(float)
    total = weights.sum()
    return np.where(total > 0, (points * weights).sum(0) / np.maximum(total, 1), centers[k])


@_on((np.array([1.0, 6.0]),), (np.array([-4.0, 9.0]),), (np.array([2.0, 2.5]),))
def bisection(bounds):
    low, high = bounds[0], bounds[1]
    while high - low > 1e-9:
        middle = (low + high) / 2
        if middle**3 > 20:
            high = middle
        else:
            low = middle
    return (low + high) / 2


@_on((1.5, 3), (40.0, 5), (0.01, 2))
def random_walk_until(distance, seed):
    generator = np.random.default_rng(seed)
    place, steps = np.zeros(2), 0
    while np.hypot(*place) < distance and steps < 300:
        place = place + generator.normal(size=2)
        steps += 1
    return place, steps
