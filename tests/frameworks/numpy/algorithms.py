"""Forty-odd algorithms as people write them with NumPy, each with the arguments to capture it on and to try it on.

An entry of ``ALGORITHMS`` is the function and a list of calls: the first is the example, the others have other values
and, where the algorithm does not walk over a size in Python, other shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Arguments = tuple[Any, ...]
ALGORITHMS: dict[str, tuple[Callable[..., Any], list[Arguments]]] = {}
_draw = np.random.RandomState(7)


def _normal(*shape: int) -> Any:
    return _draw.standard_normal(shape)


def _uniform(*shape: int) -> Any:
    return _draw.random_sample(shape)


def _ints(high: int, *shape: int) -> Any:
    return _draw.randint(0, high, shape)


def _on(*calls: Arguments) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        ALGORITHMS[function.__name__] = (function, list(calls))
        return function

    return register


@_on((_normal(12, 2), _normal(3, 2)), (_normal(20, 2), _normal(3, 2)), (_normal(9, 4), _normal(3, 4)))
def k_means(points, centers, steps=4):
    centers = centers.copy()
    for _ in range(steps):
        distances = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=-1)
        labels = distances.argmin(axis=1)
        hot = np.eye(len(centers))[labels]
        counts = np.maximum(hot.sum(axis=0), 1)
        centers = hot.T @ points / counts[:, None]
    return centers, labels


@_on((_normal(10, 4), 2), (_normal(15, 4), 2), (_normal(8, 6), 3))
def principal_components(data, count):
    centered = data - data.mean(axis=0)
    covariance = centered.T @ centered / (data.shape[0] - 1)
    values, vectors = np.linalg.eigh(covariance)
    order = np.argsort(values)[::-1][:count]
    return centered @ vectors[:, order], values[order] / values.sum()


@_on((_normal(32), 0.2), (_normal(64), 0.1), (_normal(50), 0.3))
def low_pass(signal, cutoff):
    spectrum = np.fft.rfft(signal)
    frequencies = np.fft.rfftfreq(signal.shape[0])
    spectrum[frequencies > cutoff] = 0
    return np.fft.irfft(spectrum, n=signal.shape[0])


@_on((_normal(6), 1e-3, 0.1), (_normal(6), 1e-2, 0.3))
def kalman_filter(measurements, process, noise):
    estimate, variance = 0.0, 1.0
    estimates = np.zeros_like(measurements)
    for step in range(len(measurements)):
        predicted = variance + process
        gain = predicted / (predicted + noise)
        estimate = estimate + gain * (measurements[step] - estimate)
        variance = (1 - gain) * predicted
        estimates[step] = estimate
    return estimates, variance


@_on((_ints(2, 8, 8),), (_ints(2, 8, 8),), (_ints(2, 5, 9),))
def game_of_life(board):
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    neighbours = sum(np.roll(np.roll(board, i, 0), j, 1) for i, j in shifts)
    return ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(board.dtype)


@_on((_normal(20, 3), _normal(20), 0.1), (_normal(30, 3), _normal(30), 0.05))
def gradient_descent(inputs, targets, rate):
    weights = np.zeros(inputs.shape[1])
    losses = []
    for _ in range(5):
        error = inputs @ weights - targets
        weights -= rate * 2 * inputs.T @ error / len(targets)
        losses.append(np.mean(error**2))
    return weights, np.array(losses)


@_on((_normal(8, 8), _normal(3, 3)), (_normal(10, 7), _normal(3, 3)), (_normal(6, 6), _normal(2, 2)))
def convolution_by_strides(image, kernel):
    rows, columns = kernel.shape
    shape = (image.shape[0] - rows + 1, image.shape[1] - columns + 1, rows, columns)
    windows = np.lib.stride_tricks.as_strided(image, shape, image.strides * 2)
    return np.einsum("ijkl,kl->ij", windows, kernel)


@_on(
    (_normal(5, 4), _ints(3, 5), _normal(4, 6), _normal(6, 3)),
    (_normal(9, 4), _ints(3, 9), _normal(4, 6), _normal(6, 3)),
)
def mlp_forward_and_backward(inputs, labels, first, second):
    hidden = np.maximum(inputs @ first, 0)
    logits = hidden @ second
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    loss = -(shifted - log_sum)[rows, labels].mean()
    gradient = np.exp(shifted - log_sum)
    gradient[rows, labels] -= 1
    gradient /= len(labels)
    second_gradient = hidden.T @ gradient
    hidden_gradient = (gradient @ second.T) * (hidden > 0)
    return loss, inputs.T @ hidden_gradient, second_gradient


@_on((_normal(4, 4), 6), (_normal(5, 5), 6), (_normal(3, 3), 6))
def power_iteration(matrix, steps):
    symmetric = matrix @ matrix.T
    vector = np.ones(symmetric.shape[0])
    for _ in range(steps):
        vector = symmetric @ vector
        vector /= np.linalg.norm(vector)
    return vector, vector @ symmetric @ vector


@_on((_normal(4, 4),), (_normal(6, 6),))
def qr_iteration(matrix):
    current = matrix @ matrix.T
    for _ in range(5):
        orthogonal, upper = np.linalg.qr(current)
        current = upper @ orthogonal
    return np.sort(np.diag(current))


@_on((_ints(2, 5, 5).astype(float), 0.85), (_ints(2, 7, 7).astype(float), 0.9))
def page_rank(links, damping):
    links = links + np.eye(len(links))
    transition = links / links.sum(axis=0)
    rank = np.full(links.shape[0], 1 / links.shape[0])
    for _ in range(10):
        rank = damping * transition @ rank + (1 - damping) / len(rank)
    return rank


@_on((_normal(5), _normal(5)), (_normal(5), _normal(5)))
def dynamic_time_warping(first, second):
    cost = np.full((len(first) + 1, len(second) + 1), np.inf)
    cost[0, 0] = 0
    for i in range(1, len(first) + 1):
        for j in range(1, len(second) + 1):
            step = np.minimum(np.minimum(cost[i - 1, j], cost[i, j - 1]), cost[i - 1, j - 1])
            cost[i, j] = np.abs(first[i - 1] - second[j - 1]) + step
    return cost[-1, -1]


@_on((_ints(256, 16, 16).astype(np.uint8),), (_ints(256, 9, 12).astype(np.uint8),))
def histogram_equalisation(image):
    counts = np.bincount(image.ravel(), minlength=256)
    cumulative = counts.cumsum()
    scaled = (cumulative - cumulative.min()) * 255 / (image.size - cumulative.min())
    return scaled.astype(np.uint8)[image]


@_on((_normal(5, 3),), (_normal(7, 3),))
def gram_schmidt(vectors):
    basis = np.zeros_like(vectors)
    for column in range(vectors.shape[1]):
        vector = vectors[:, column].copy()
        for done in range(column):
            vector -= (basis[:, done] @ vector) * basis[:, done]
        basis[:, column] = vector / np.sqrt(vector @ vector)
    return basis


@_on((_uniform(6, 5), 9, 8), (_uniform(7, 9), 4, 11))
def bilinear_resize(image, height, width):
    rows = np.linspace(0, image.shape[0] - 1, height)
    columns = np.linspace(0, image.shape[1] - 1, width)
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    bottom = np.minimum(top + 1, image.shape[0] - 1)
    right = np.minimum(left + 1, image.shape[1] - 1)
    down, along = (rows - top)[:, None], (columns - left)[None, :]
    upper = image[np.ix_(top, left)] * (1 - along) + image[np.ix_(top, right)] * along
    lower = image[np.ix_(bottom, left)] * (1 - along) + image[np.ix_(bottom, right)] * along
    return upper * (1 - down) + lower * down


@_on((_normal(6, 6) + 1j * _normal(6, 6),), (_normal(8, 4) + 1j * _normal(8, 4),))
def mandelbrot(grid):
    value = np.zeros_like(grid)
    escaped = np.zeros(grid.shape, dtype=int)
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(6):
            value = value * value + grid
            outside = (np.abs(value) > 2) & (escaped == 0)
            escaped[outside] = step
            value[outside] = 2
    return escaped


@_on((100, 3), (250, 4))
def monte_carlo_pi(count, seed):
    generator = np.random.default_rng(seed)
    points = generator.random((count, 2))
    return 4 * np.mean((points**2).sum(axis=1) < 1)


@_on((_normal(12), 30), (_normal(20), 50))
def bootstrap(sample, repeats):
    picks = np.random.randint(0, len(sample), (repeats, len(sample)))
    means = sample[picks].mean(axis=1)
    return np.percentile(means, [2.5, 97.5]), means.std(ddof=1)


@_on((_normal(12), 3), (_normal(20), 5))
def moving_average(values, width):
    totals = np.cumsum(np.insert(values, 0, 0.0))
    return (totals[width:] - totals[:-width]) / width


@_on((_normal(12, 3), _normal(12), 0.5), (_normal(20, 5), _normal(20), 2.0))
def ridge_regression(inputs, targets, strength):
    gram = inputs.T @ inputs + strength * np.identity(inputs.shape[1])
    weights = np.linalg.solve(gram, inputs.T @ targets)
    residual = targets - inputs @ weights
    return weights, 1 - residual.var() / targets.var()


@_on((_normal(6, 5), 2), (_normal(8, 4), 3))
def low_rank(matrix, rank):
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    approximation = (left[:, :rank] * values[:rank]) @ right[:rank]
    return approximation, np.linalg.norm(matrix - approximation)


@_on((_uniform(4, 4),), (_uniform(4, 4),))
def floyd_warshall(weights):
    distance = weights.copy()
    np.fill_diagonal(distance, 0)
    for middle in range(len(distance)):
        np.minimum(distance, distance[:, middle, None] + distance[None, middle, :], out=distance)
    return distance


@_on((_ints(2, 12), 30), (_ints(2, 20), 110))
def cellular_automaton(cells, rule):
    table = (rule >> np.arange(8)) & 1
    rows = [cells]
    for _ in range(4):
        last = rows[-1]
        index = 4 * np.roll(last, 1) + 2 * last + np.roll(last, -1)
        rows.append(table[index])
    return np.stack(rows)


@_on((_uniform(6, 4),), (_uniform(9, 4),))
def overlap_of_boxes(corners):
    low, high = np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])
    inner = np.clip(np.minimum(high[:, None], high) - np.maximum(low[:, None], low), 0, None).prod(axis=-1)
    area = (high - low).prod(axis=-1)
    return inner / (area[:, None] + area - inner)


@_on((_ints(4, 7), 4), (_ints(6, 9), 6))
def one_hot(labels, classes):
    encoded = np.zeros((labels.size, classes), dtype=np.float32)
    encoded[np.arange(labels.size), labels] = 1
    return encoded


@_on((_normal(3, 8), 2), (_normal(3, 10), 4))
def beam_pruning(scores, width):
    flat = scores.ravel()
    best = np.argpartition(-flat, width)[:width]
    best = best[np.argsort(-flat[best], kind="stable")]
    return np.unravel_index(best, scores.shape), flat[best]


@_on((_ints(3, 20),), (_ints(3, 33),))
def run_lengths(values):
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    lengths = np.diff(np.append(starts, values.size))
    return values[starts], lengths


@_on((_normal(5, 8),), (_normal(7, 4),))
def layer_norm(values, epsilon=1e-5):
    mean = values.mean(axis=-1, keepdims=True)
    variance = values.var(axis=-1, keepdims=True)
    return (values - mean) / np.sqrt(variance + epsilon)


@_on((_normal(2, 5, 4), _normal(2, 6, 4), _normal(2, 6, 3)), (_normal(3, 4, 8), _normal(3, 9, 8), _normal(3, 9, 5)))
def attention(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(np.tri(query.shape[1], key.shape[1], dtype=bool), scores, -1e9)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ value


@_on((_normal(10), _normal(10)), (_normal(25), _normal(25)))
def line_fit(x, y):
    design = np.vstack([x, np.ones(len(x))]).T
    solution, residual, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    return solution, residual, rank


@_on((_ints(9, 4, 4),), (_ints(5, 6, 3),))
def summed_area(image):
    table = image.cumsum(axis=0).cumsum(axis=1)
    padded = np.pad(table, ((1, 0), (1, 0)))
    return padded[2:, 2:] - padded[:-2, 2:] - padded[2:, :-2] + padded[:-2, :-2]


@_on((_uniform(40),), (_uniform(60),))
def otsu_threshold(values):
    counts, edges = np.histogram(values, bins=16, range=(0, 1))
    centers = (edges[:-1] + edges[1:]) / 2
    below = counts.cumsum()
    above = below[-1] - below
    low = (counts * centers).cumsum() / np.maximum(below, 1)
    high = ((counts * centers).sum() - (counts * centers).cumsum()) / np.maximum(above, 1)
    return centers[np.argmax(below * above * (low - high) ** 2)]


@_on((_normal(9, 2), _normal(4, 2)), (_normal(12, 3), _normal(5, 3)))
def nearest_neighbours(points, queries):
    squared = (queries**2).sum(1)[:, None] + (points**2).sum(1) - 2 * queries @ points.T
    order = np.argsort(squared, axis=1)[:, :3]
    return order, np.sqrt(np.maximum(np.take_along_axis(squared, order, axis=1), 0))


@_on((_normal(8, 3), _ints(2, 8)), (_normal(11, 5), _ints(2, 11)))
def naive_bayes(features, labels):
    mask = labels.astype(bool)
    means = np.array([features[~mask].mean(axis=0), features[mask].mean(axis=0)])
    spread = features.std(axis=0) + 1e-6
    scores = -(((features[:, None] - means) / spread) ** 2).sum(axis=-1)
    return scores.argmax(axis=1)


@_on((_normal(16),), (_normal(64),))
def haar_wavelet(signal):
    details = []
    for _ in range(3):
        even, odd = signal[::2], signal[1::2]
        details.append((even - odd) / np.sqrt(2))
        signal = (even + odd) / np.sqrt(2)
    return signal, details


@_on((_normal(6, 6), 4), (_normal(9, 9), 4))
def heat_diffusion(field, steps):
    for _ in range(steps):
        inner = field[1:-1, 1:-1]
        around = field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]
        field = field.copy()
        field[1:-1, 1:-1] = inner + 0.1 * (around - 4 * inner)
    return field


@_on((np.array([1.0, -3.0, 2.0]), 0.1), (np.array([2.0, -1.0, -4.0]), 5.0))
def newton_root(coefficients, guess):
    slope = np.polyder(coefficients)
    for _ in range(6):
        guess = guess - np.polyval(coefficients, guess) / np.polyval(slope, guess)
    return guess


@_on((_normal(3), _normal(4, 3)), (_normal(3), _normal(6, 3)))
def rotation_about_axis(axis, points):
    axis = axis / np.linalg.norm(axis)
    cross = np.zeros((3, 3))
    cross[[2, 0, 1], [1, 2, 0]] = axis
    cross -= cross.T
    rotation = np.eye(3) + np.sin(0.5) * cross + (1 - np.cos(0.5)) * cross @ cross
    return points @ rotation.T


@_on((_ints(5, 15),), (_ints(9, 30),))
def entropy(symbols):
    _, counts = np.unique(symbols, return_counts=True)
    probabilities = counts / counts.sum()
    return -(probabilities * np.log2(probabilities)).sum()


@_on((_normal(6, 3), _ints(3, 6)), (_normal(10, 2), _ints(4, 10)))
def scatter_mean(values, groups):
    count = groups.max() + 1
    totals = np.zeros((count, values.shape[1]))
    np.add.at(totals, groups, values)
    sizes = np.bincount(groups, minlength=count)
    return totals / np.maximum(sizes, 1)[:, None]


@_on((_normal(4, 3), _normal(3)), (_normal(8, 5), _normal(5)))
def sgd_with_momentum(gradients, weights):
    velocity = np.zeros_like(weights)
    for gradient in gradients[:3]:
        velocity *= 0.9
        velocity += gradient
        weights -= 0.1 * velocity
    return velocity


@_on((_normal(12),), (_normal(40),))
def trapezoid_and_gradient(values):
    slope = np.gradient(values)
    return np.trapezoid(values), slope, np.interp(0.5, np.arange(len(values)), values)


@_on((_uniform(6, 6), 3), (_uniform(9, 6), 3))
def max_pooling(image, size):
    rows, columns = image.shape[0] // size, image.shape[1] // size
    blocks = image[: rows * size, : columns * size].reshape(rows, size, columns, size)
    return blocks.max(axis=(1, 3)), blocks.transpose(0, 2, 1, 3).reshape(rows, columns, -1).argmax(-1)


@_on((_normal(3, 3),), (_normal(5, 5),))
def cholesky_sampling(matrix):
    covariance = matrix @ matrix.T + np.eye(len(matrix))
    lower = np.linalg.cholesky(covariance)
    noise = np.random.standard_normal((4, len(matrix)))
    return noise @ lower.T, 2 * np.log(np.diag(lower)).sum()


@_on((_ints(9, 10), 3), (_ints(20, 15), 5))
def top_counts(values, count):
    unique, counts = np.unique(values, return_counts=True)
    order = np.lexsort((unique, -counts))[:count]
    return dict(values=unique[order], counts=counts[order])
