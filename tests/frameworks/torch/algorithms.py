"""Algorithms of numerics, statistics, signals and graphs, as people write them with torch."""

from __future__ import annotations

import math

import torch

from tests.frameworks.torch.register import integers, normal, on, positive_definite, uniform


@on((normal(12, 2), normal(3, 2)), (normal(20, 2), normal(3, 2)), (normal(9, 4), normal(3, 4)))
def k_means(points, centers):
    for _ in range(4):
        labels = torch.cdist(points, centers).argmin(dim=1)
        hot = torch.nn.functional.one_hot(labels, centers.shape[0]).to(points.dtype)
        centers = hot.T @ points / hot.sum(0).clamp(min=1)[:, None]
    return centers, labels


@on((normal(10, 4), 2), (normal(15, 4), 2), (normal(8, 6), 3))
def principal_components(data, count):
    centered = data - data.mean(0)
    values, vectors = torch.linalg.eigh(centered.T @ centered / (data.shape[0] - 1))
    return (centered @ vectors.flip(1)[:, :count]).abs(), values.flip(0)[:count] / values.sum()


@on((normal(16), 0.2), (normal(32), 0.1), (normal(24), 0.3))
def low_pass(signal, limit):
    spectrum = torch.fft.rfft(signal)
    frequencies = torch.fft.rfftfreq(signal.shape[0])
    return torch.fft.irfft(torch.where(frequencies <= limit, spectrum, 0), n=signal.shape[0])


@on((uniform(6),), (uniform(9),), (uniform(1),))
def newton_roots(values):
    guess, rounds = values.clone(), 0
    while (guess * guess - values).abs().max() > 1e-4 and rounds < 30:
        guess = (guess + values / guess) / 2
        rounds += 1
    return guess, rounds


@on((normal(20, 3), normal(20)), (normal(30, 3), normal(30)), (normal(12, 5), normal(12)))
def linear_regression(x, y):
    weights = torch.zeros(x.shape[1])
    for _ in range(5):
        error = x @ weights - y
        weights = weights - 0.1 * x.T @ error / x.shape[0]
    return weights, (error**2).mean()


@on((normal(20, 3), integers(2, 20)), (normal(11, 3), integers(2, 11)))
def logistic_regression(x, labels):
    weights = torch.zeros(x.shape[1])
    for _ in range(4):
        odds = torch.sigmoid(x @ weights)
        weights = weights + 0.5 * x.T @ (labels - odds) / x.shape[0]
    return weights


@on((integers(2, 8, 8),), (integers(2, 6, 10),), (torch.zeros(5, 5, dtype=torch.int64),))
def game_of_life(board):
    around = sum(torch.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((around == 3) | ((board == 1) & (around == 2))).long()


@on((normal(10),), (normal(17),), (normal(3),))
def kalman_filter(measured):
    mean, variance, means = measured[0], torch.tensor(1.0), []
    for place in range(measured.shape[0]):
        variance = variance + 0.1
        gain = variance / (variance + 0.5)
        mean = mean + gain * (measured[place] - mean)
        variance = (1 - gain) * variance
        means.append(mean)
    return torch.stack(means), variance


@on((positive_definite(4), normal(4)), (positive_definite(6), normal(6)))
def conjugate_gradient(matrix, target):
    x = torch.zeros_like(target)
    rest = target - matrix @ x
    direction, size, rounds = rest, rest @ rest, 0
    while size > 1e-8 and rounds < 20:
        rounds += 1
        product = matrix @ direction
        step = size / (direction @ product)
        x = x + step * direction
        rest = rest - step * product
        new = rest @ rest
        direction, size = rest + new / size * direction, new
    return x


@on((normal(4, 4),), (normal(6, 6),))
def power_iteration(matrix):
    matrix = matrix @ matrix.T
    vector = torch.ones(matrix.shape[0])
    for _ in range(10):
        vector = matrix @ vector
        vector = vector / vector.norm()
    return vector @ matrix @ vector, vector


@on((positive_definite(3),), (positive_definite(5),))
def log_determinant(matrix):
    factor = torch.linalg.cholesky(matrix)
    return 2 * factor.diagonal().log().sum(), torch.linalg.solve_triangular(factor, torch.eye(len(matrix)), upper=False)


@on((normal(5, 3),), (normal(8, 3),))
def gram_schmidt(vectors):
    basis = []
    for place in range(vectors.shape[1]):
        column = vectors[:, place]
        for other in basis:
            column = column - (other @ column) * other
        basis.append(column / column.norm())
    return torch.stack(basis, 1)


@on((uniform(5, 5) > 0.5,), (uniform(7, 7) > 0.7,))
def transitive_closure(edges):
    reach = edges | torch.eye(edges.shape[0], dtype=torch.bool)
    for _ in range(3):
        reach = (reach.float() @ reach.float()) > 0
    return reach


@on((uniform(5, 5),), (uniform(8, 8),))
def page_rank(links):
    links = links / links.sum(0)
    rank = torch.full((links.shape[0],), 1.0) / links.shape[0]
    change, rounds = torch.tensor(1.0), 0
    while change > 1e-4 and rounds < 40:
        rounds += 1
        new = 0.85 * links @ rank + 0.15 / links.shape[0]
        change = (new - rank).abs().sum()
        rank = new
    return rank


@on((uniform(4, 4),), (uniform(6, 6),))
def all_shortest_paths(distances):
    for place in range(distances.shape[0]):
        distances = torch.minimum(distances, distances[:, place : place + 1] + distances[place : place + 1])
    return distances


@on((normal(12), 3), (normal(20), 3), (normal(12), 5))
def moving_average(signal, width):
    sums = torch.cumsum(torch.cat([torch.zeros(1), signal]), 0)
    return (sums[width:] - sums[:-width]) / width


@on((normal(10), 0.3), (normal(15), 0.9), (normal(10), 0.0))
def exponential_smoothing(signal, rate):
    total, out = signal[0], torch.empty_like(signal)
    for place in range(signal.shape[0]):
        total = rate * signal[place] + (1 - rate) * total
        out[place] = total
    return out


@on((normal(30), 5), (normal(50), 5), (normal(30), 8))
def histogram(values, bins):
    low, high = values.min(), values.max()
    places = ((values - low) / (high - low) * bins).long().clamp(max=bins - 1)
    return torch.zeros(bins).scatter_add(0, places, torch.ones_like(values))


@on((normal(20), normal(20)), (normal(9), normal(9)))
def rank_correlation(x, y):
    x, y = (values.argsort().argsort().float() for values in (x, y))
    x, y = x - x.mean(), y - y.mean()
    return (x * y).sum() / (x.norm() * y.norm())


@on((normal(50), 20.0), (normal(31), 80.0))
def percentile(values, percent):
    ordered = values.sort().values
    place = percent / 100 * (len(values) - 1)
    low = math.floor(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(values) - 1)] - ordered[low])


@on((normal(4), 0.1), (normal(7), 0.05))
def runge_kutta(state, step):
    def slope(x):
        return torch.sin(x) - 0.5 * x

    for _ in range(3):
        first = slope(state)
        second = slope(state + step / 2 * first)
        third = slope(state + step / 2 * second)
        state = state + step / 6 * (first + 2 * second + 2 * third + slope(state + step * third))
    return state


@on((uniform(6, 6),), (uniform(9, 5),))
def heat_equation(field):
    field = field.clone()
    for _ in range(5):
        field[1:-1, 1:-1] += 0.2 * (
            field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:] - 4 * field[1:-1, 1:-1]
        )
    return field


@on((normal(200),), (normal(500),))
def bisection(values):
    low, high = values.min(), values.max()
    for _ in range(20):
        middle = (low + high) / 2
        below = (values < middle).float().mean() < 0.5
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return middle


@on((integers(9, 12),), (integers(9, 20),), (torch.tensor([4, 4, 4]),))
def run_lengths(values):
    starts = torch.cat([torch.tensor([True]), values[1:] != values[:-1]])
    group = starts.cumsum(0) - 1
    return group, torch.zeros_like(values).scatter_add(0, group, torch.ones_like(values))


@on((torch.tensor(27),), (torch.tensor(6),), (torch.tensor(1),))
def collatz(number):
    steps = 0
    while number > 1 and steps < 200:
        if number % 2 == 0:
            number = number // 2
        else:
            number = 3 * number + 1
        steps += 1
    return steps
