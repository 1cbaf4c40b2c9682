"""Images, signals, statistics and linear algebra on whole arrays: masks, windows, sorting, views, in-place updates."""

from __future__ import annotations

import numpy as np

from tests.frameworks.numpy.realistic.register import floats, grid, noise, program, symmetric


@program(
    (grid(4, 4), np.ones((3, 3))),
    (noise(0, 5, 6), noise(1, 3, 3)),
    (grid(2, 2), np.ones((1, 1))),
    (np.arange(9).reshape(3, 3), np.eye(2)),
)
@program.more((noise(0, 5, 6), noise(1, 2, 3)))
def convolve_by_loops(image, kernel):
    rows = image.shape[0] - kernel.shape[0] + 1
    columns = image.shape[1] - kernel.shape[1] + 1
    result = np.zeros((rows, columns))
    for i in range(rows):
        for j in range(columns):
            result[i, j] = np.sum(image[i : i + kernel.shape[0], j : j + kernel.shape[1]] * kernel)
    return result


@program((grid(4, 4),), (noise(0, 3, 5),), (np.arange(12).reshape(3, 4),), (np.uint8(grid(3, 3)),), (noise(1, 6, 2),))
def box_blur(image):
    padded = np.pad(image, 1, mode="edge")
    total = np.zeros(image.shape)
    for i in range(3):
        for j in range(3):
            total += padded[i : i + image.shape[0], j : j + image.shape[1]]
    return total / 9


@program(
    (noise(0, 4, 4),),
    (noise(1, 5, 3),),
    (np.arange(9).reshape(3, 3),),
    (noise(2, 6, 6),),
    (np.float32(noise(3, 3, 3)),),
)
def sobel_edges(image):
    horizontal = image[1:-1, 2:] - image[1:-1, :-2]
    vertical = image[2:, 1:-1] - image[:-2, 1:-1]
    size = np.hypot(horizontal, vertical)
    if size.max() > 0:
        size = size / size.max()
    return size > 0.5


@program((noise(0, 7),), (noise(1, 5),), (noise(2, 9), 5), (np.arange(6),), (noise(3, 4), 1))
def median_filter(signal, width=3):
    half = width // 2
    padded = np.pad(signal, half, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)
    return np.median(windows, axis=-1)


@program((noise(0, 8), 3), (noise(1, 8), 2), (noise(2, 5), 5), (np.arange(7), 3), (noise(3, 6), 1))
def moving_average(signal, width):
    sums = np.cumsum(np.insert(signal, 0, 0.0))
    return (sums[width:] - sums[:-width]) / width


@program((noise(0, 8),), (noise(1, 8), 0.9), (np.arange(5),), (noise(2, 1),), (noise(3, 4, 2),))
def exponential_smoothing(values, alpha=0.5):
    result = np.empty(values.shape)
    result[0] = values[0]
    for t in range(1, len(values)):
        result[t] = alpha * values[t] + (1 - alpha) * result[t - 1]
    return result


@program(
    (noise(0, 3, 4),),
    (noise(1, 5),),
    (noise(2, 2, 3, 4),),
    (np.arange(6).reshape(2, 3),),
    (np.float32(noise(3, 2, 2)),),
)
def softmax(x):
    shifted = x - x.max(axis=-1, keepdims=True)
    weights = np.exp(shifted)
    return weights / weights.sum(axis=-1, keepdims=True)


@program((noise(0, 3, 4),), (noise(1, 5),), (noise(2, 2, 3, 4),), (np.arange(6).reshape(2, 3),), (noise(3, 2, 2), 0.1))
def layer_norm(x, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps)


@program((noise(0, 4, 3), noise(1, 5, 3), noise(2, 5, 2)), (noise(3, 2, 4), noise(4, 3, 4), noise(5, 3, 3)))
@program.more(
    (noise(0, 2, 4, 3), noise(1, 2, 5, 3), noise(2, 2, 5, 2)), (noise(0, 1, 1), noise(1, 1, 1), noise(2, 1, 1))
)
@program.more((noise(0, 4, 3), noise(1, 5, 3), noise(2, 5, 2), np.arange(20).reshape(4, 5) % 3 > 0))
def attention(query, key, value, mask=None):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights @ value


@program((floats(1, -2, 3),), (noise(0, 5),), (noise(1, 2, 3),), (np.array([1, -5, 2]),), (np.float32([1, -1]),))
def clip_outliers(x):
    limit = 1.5 * np.abs(x).mean()
    result = x.copy()
    result[result > limit] = limit
    result[result < -limit] = -limit
    return result


@program(
    (floats(1, np.nan, 3),), (floats(np.nan, 2),), (noise(0, 4),), (floats(np.nan, np.nan, 1, 2, np.nan),), (floats(1),)
)
def fill_missing(values):
    result = values.copy()
    missing = np.isnan(result)
    if missing.any():
        places = np.arange(len(result))
        result[missing] = np.interp(places[missing], places[~missing], result[~missing])
    return result


@program((noise(0, 6),), (noise(1, 3),), (noise(2, 4, 3),), (np.array([3, 1, 2]),), (floats(2, 2, 1),))
def ranks(x):
    order = x.argsort(axis=0)
    result = np.empty(x.shape, dtype=int)
    np.put_along_axis(result, order, np.arange(x.shape[0]).reshape((-1,) + (1,) * (x.ndim - 1)), axis=0)
    return result


@program((noise(0, 6, 2), floats(0, 0), 3), (noise(1, 4, 2), floats(1, 0), 1), (noise(2, 5, 3), floats(1, 0, 0), 2))
@program.more((noise(0, 6, 2), floats(0, 0), 6), (np.arange(8).reshape(4, 2), np.array([1, 1]), 2))
def nearest_neighbours(points, query, k):
    distances = np.sqrt(((points - query) ** 2).sum(axis=1))
    chosen = np.argsort(distances, kind="stable")[:k]
    return chosen, distances[chosen]


@program(
    (noise(0, 8, 3),), (noise(1, 5, 2),), (noise(2, 12, 4), 1), (np.arange(12).reshape(4, 3), 1), (noise(3, 6, 3), 3)
)
def principal_components(data, count=2):
    centred = data - data.mean(axis=0)
    covariance = centred.T @ centred / (len(data) - 1)
    values, vectors = np.linalg.eigh(covariance)
    order = np.argsort(values)[::-1][:count]
    return values[order], np.abs(centred @ vectors[:, order])


@program(
    (symmetric(0, 3), floats(1, 2, 3)),
    (symmetric(1, 3), noise(1, 3)),
    (np.zeros((2, 2)), floats(1, 1)),
    (symmetric(2, 4), noise(2, 4)),
)
@program.more((np.ones((2, 2)), floats(1, 3)), (symmetric(2, 2), noise(2, 2, 3)))
def solve_or_least_squares(matrix, target):
    try:
        return np.linalg.solve(matrix, target)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(matrix) @ target


@program(
    (symmetric(0, 3),),
    (symmetric(1, 2),),
    (-np.eye(2),),
    (np.array([[1.0, 2.0], [2.0, 1.0]]),),
    (symmetric(2, 5), 1e-3),
)
def cholesky_with_jitter(matrix, jitter=1e-6):
    for _ in range(8):
        try:
            return np.linalg.cholesky(matrix + jitter * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            jitter *= 10
    raise ValueError("not positive definite")


@program((symmetric(0, 2),), (symmetric(1, 3),), (np.zeros((2, 2)),), (np.eye(4),), (np.ones((3, 3)),))
def is_invertible(matrix):
    try:
        np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


@program(
    (noise(0, 2, 3), noise(1, 3, 4)),
    (noise(2, 1, 5), noise(3, 5, 1)),
    (grid(2, 2), np.arange(4).reshape(2, 2)),
    (noise(0, 3, 3), noise(1, 3, 3)),
)
@program.more((np.float32(noise(2, 2, 2)), noise(3, 2, 2)))
def traces_by_einsum(a, b):
    product = np.einsum("ij,jk->ik", a, b)
    return product, np.einsum("ij->", product), np.einsum("ij,ij->i", a, a)


@program((noise(0, 8),), (noise(1, 16),), (noise(2, 5),), (np.arange(6),), (noise(3, 8), 0.5))
def low_pass(signal, share=0.25):
    spectrum = np.fft.rfft(signal)
    kept = int(len(spectrum) * share) + 1
    spectrum[kept:] = 0
    return np.fft.irfft(spectrum, n=len(signal))


@program((noise(0, 16), 8, 4), (noise(1, 20), 8, 4), (noise(2, 16), 4, 2), (np.arange(16), 8, 8), (noise(3, 9), 3, 3))
def spectrogram(signal, width, hop):
    window = np.hanning(width)
    frames = [np.abs(np.fft.rfft(window * signal[s : s + width])) for s in range(0, len(signal) - width + 1, hop)]
    return np.stack(frames)


@program((noise(0, 9),), (noise(1, 4),), (np.array([1, 3, 1, 5, 1]),), (floats(0, 1, 0),), (floats(3, 2, 1),))
def find_peaks(x):
    inner = x[1:-1]
    places = np.where((inner > x[:-2]) & (inner > x[2:]))[0] + 1
    if places.size == 0:
        return None
    return places, x[places]


@program((floats(1, -1, 1),), (floats(1, 2),), (np.array([-1, 1, -1, 1]),), (noise(0, 7),), (np.float32([0, 1]),))
def zero_crossings(signal):
    return int(np.sum(np.signbit(signal[1:]) != np.signbit(signal[:-1])))


@program(
    (noise(0, 5), noise(1, 5)),
    (noise(2, 3), noise(3, 3)),
    (np.arange(4), noise(1, 4)),
    (noise(0, 2, 3), noise(1, 2, 3)),
)
@program.more((np.zeros(3), noise(1, 3)))
def cosine_similarity(a, b):
    size = np.linalg.norm(a) * np.linalg.norm(b)
    if size == 0:
        return 0.0
    return float((a * b).sum() / size)


@program((noise(0, 6), 3), (noise(1, 4), 2), (noise(2, 6, 2), 3), (np.arange(9), 4), (floats(1), 1))
def top_k(values, k):
    places = np.argpartition(-values, k - 1, axis=0)[:k]
    return np.sort(np.take_along_axis(values, places, axis=0), axis=0)[::-1]


@program(
    (np.array([0, 2, 1]), 3),
    (np.array([1, 1]), 2),
    (np.array([], dtype=int), 2),
    (np.array([[0, 1], [1, 0]]), 2),
    (np.uint8([3, 0]), 4),
)
def one_hot(labels, count):
    result = np.zeros(labels.shape + (count,))
    np.put_along_axis(result, labels[..., None], 1.0, axis=-1)
    return result


@program(
    (np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0])),
    (np.array([2, 1]), np.array([1, 2])),
    (np.array([0]), np.array([0])),
)
@program.more((np.array([3, 0, 1]), np.array([3, 3, 1])), (np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])))
def confusion_matrix(truth, guess):
    size = max(truth.max(), guess.max()) + 1
    matrix = np.zeros((size, size), dtype=int)
    np.add.at(matrix, (truth, guess), 1)
    return matrix, np.trace(matrix) / matrix.sum()


@program(
    (floats(0.1, 0.9), np.array([0, 1])), (floats(0.2, 0.3, 0.8), np.array([1, 0, 1])), (noise(0, 6), np.arange(6) % 2)
)
@program.more((floats(0.5, 0.5), np.array([0, 1])), (noise(1, 4), np.array([True, False, True, False])))
def area_under_curve(scores, labels):
    positive, negative = scores[labels == 1], scores[labels == 0]
    wins = (positive[:, None] > negative[None, :]).sum() + 0.5 * (positive[:, None] == negative[None, :]).sum()
    return wins / (len(positive) * len(negative))


@program(
    (np.array([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0]]), floats(0.9, 0.8)),
    (noise(0, 4, 4), noise(1, 4)),
    (np.array([[0, 0, 1, 1]]), floats(1)),
)
@program.more(
    (np.array([[0.0, 0, 2, 2], [0, 0, 2, 2], [5, 5, 6, 6]]), floats(0.1, 0.5, 0.2)), (grid(3, 4), floats(1, 2, 3), 0.1)
)
def non_maximum_suppression(boxes, scores, limit=0.5):
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order = scores.argsort()[::-1]
    kept = []
    while order.size > 0:
        best = order[0]
        kept.append(int(best))
        low = np.maximum(boxes[best, :2], boxes[order[1:], :2])
        high = np.minimum(boxes[best, 2:], boxes[order[1:], 2:])
        sides = np.clip(high - low, 0, None)
        overlap = sides[:, 0] * sides[:, 1]
        share = overlap / (areas[best] + areas[order[1:]] - overlap)
        order = order[1:][share <= limit]
    return kept


@program(
    (noise(0, 3, 3),),
    (noise(1, 2, 5),),
    (np.arange(4).reshape(2, 2),),
    (noise(2, 4, 1),),
    (np.float32(noise(3, 2, 2)),),
)
def in_place_rows(matrix):
    for row in matrix:
        row -= row.min()
        largest = row.max()
        if largest > 0:
            row /= largest
    return matrix


@program((noise(0, 6),), (noise(1, 3),), (np.array([5, 1, 2]),), (noise(2, 1),), (floats(1, 1, 1),))
def reverse_through_view(x):
    view = x[::-1]
    half = len(x) // 2
    first = view[:half].copy()
    view[:half] = x[:half]
    x[:half] = first
    return view, x


@program((floats(-1, 0.5, 2),), (noise(0, 5),), (grid(2, 2),), (floats(3),), (floats(-3, -4),))
def by_pieces(x):
    return np.piecewise(x, [x < 0, (x >= 0) & (x < 1)], [lambda v: -v, lambda v: v * v, 1.0])


@program((floats(-1, 0.5, 2),), (noise(0, 5),), (grid(2, 2),), (np.array([1, -2]),), (floats(3),))
def by_vectorize(x):
    def clip(value):
        if value < 0:
            return 0.0
        return float(min(value, 1))

    return np.vectorize(clip, otypes=[float])(x)


@program((noise(0, 2, 3),), (noise(1, 4, 2),), (np.arange(4).reshape(2, 2),), (noise(2, 1, 3),), (noise(3, 2, 2, 2),))
def along_axis(x):
    return np.apply_along_axis(lambda row: row / np.abs(row).sum(), -1, x)


@program(
    (floats(1, 2), floats(3, 4)),
    (noise(0, 3), noise(1, 3)),
    (noise(0, 1), noise(1, 1)),
    (np.arange(3), np.arange(3)),
    (noise(5, 6), noise(6, 6)),
)
def structured_points(x, y):
    points = np.zeros(len(x), dtype=[("x", float), ("y", float)])
    points["x"], points["y"] = x, y
    points["x"] += 1
    order = np.argsort(points, order=("x", "y"))
    return points["x"][order] + points["y"][order]


@program(
    (noise(0, 6), floats(0.2, 0.8)),
    (noise(1, 3), floats(0.5)),
    (np.arange(5), floats(0.25, 0.75)),
    (noise(2, 4, 2), floats(0.5)),
    (noise(2, 4), 0.5),
)
def quantiles(values, shares):
    ordered = np.sort(values, axis=0)
    return np.quantile(ordered, shares, axis=0)


@program(
    (noise(0, 8, 2), 0.5),
    (noise(1, 5, 2), 1.0),
    (noise(2, 6, 3), 1),
    (np.arange(8).reshape(4, 2), 2.0),
    (noise(3, 2, 2), 0.1),
)
def density_clusters(points, radius):
    n = len(points)
    labels = np.full(n, -1)
    near = np.linalg.norm(points[:, None] - points[None], axis=-1) <= radius
    current = 0
    for i in range(n):
        if labels[i] >= 0:
            continue
        labels[i] = current
        waiting = [i]
        while waiting:
            j = waiting.pop()
            for other in np.flatnonzero(near[j] & (labels < 0)):
                labels[other] = current
                waiting.append(other)
        current += 1
    return labels, current


@program((noise(0, 3, 4),), (noise(1, 2, 2),), (np.arange(6).reshape(3, 2),), (np.eye(3),), (np.zeros((2, 3)),))
def rank_by_elimination(matrix):
    m = matrix.astype(float)
    rank = 0
    for column in range(m.shape[1]):
        pivots = np.nonzero(np.abs(m[rank:, column]) > 1e-9)[0]
        if len(pivots) == 0:
            continue
        pivot = rank + pivots[0]
        m[[rank, pivot]] = m[[pivot, rank]]
        m[rank] = m[rank] / m[rank, column]
        for row in range(m.shape[0]):
            if row != rank:
                m[row] -= m[row, column] * m[rank]
        rank += 1
        if rank == m.shape[0]:
            break
    return rank


@program(
    (floats(1, 2, 3), floats(0, 1, 0.5)),
    (noise(0, 4), noise(1, 4)),
    (noise(2, 3, 2), noise(3, 3, 2)),
    (np.array([1, 2]), floats(1, 1)),
)
@program.more((np.float32([1, 2]), np.float32([0, 0])))
def huber_loss(prediction, target):
    error = prediction - target
    small = np.abs(error) <= 1.0
    losses = np.where(small, 0.5 * error**2, np.abs(error) - 0.5)
    return losses.mean(), np.where(small, error, np.sign(error))


@program((noise(0, 4, 4),), (noise(1, 6, 2),), (noise(2, 2, 2, 2),), (noise(3, 5),), (np.arange(8).reshape(4, 2),))
def standardise(x):
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    deviation = np.where(deviation == 0, 1.0, deviation)
    return (x - mean) / deviation


@program(
    (noise(0, 4, 6),), (noise(1, 2, 2),), (noise(2, 6, 4), 2), (np.arange(16).reshape(4, 4),), (noise(3, 4, 4, 3),)
)
def max_pool(image, size=2):
    rows, columns = image.shape[0] // size, image.shape[1] // size
    cut = image[: rows * size, : columns * size]
    return cut.reshape(rows, size, columns, size, *image.shape[2:]).max(axis=(1, 3))


@program((noise(0, 3),), (noise(1, 3, 2),), (np.arange(3),), (floats(1),), (np.float32([2, 1]),))
def normalised_or_same(x):
    total = x.sum()
    return x / total if total > 1e-3 else x


@program((floats(1, 2, 3),), (noise(0, 5),), (np.arange(4),), (grid(2, 3),), (np.array([True, False]),))
def asks_kind(x):
    if np.issubdtype(x.dtype, np.integer):
        return x.astype(np.float64) / 2
    if x.dtype == bool:
        return x.sum()
    return x * np.finfo(x.dtype).eps


@program((noise(0, 3),), (noise(1, 2, 3),), (noise(2, 2, 2, 2),), (np.arange(3),), (np.float32(noise(3, 4)),))
def asks_rank(x):
    if x.ndim == 1:
        x = x[None, :]
    return x.reshape(x.shape[0], -1).sum(axis=1)


@program(
    (noise(0, 3, 2),),
    (noise(1, 4),),
    (np.arange(6).reshape(3, 2),),
    (np.float32(noise(2, 2, 2)),),
    (noise(3, 2, 2, 2),),
)
def same_kind_buffer(x):
    result = np.zeros(x.shape, dtype=x.dtype)
    result[0] = x[-1]
    result[1:] = x[:-1]
    return result


@program(
    (noise(0, 3, 2),),
    (noise(1, 4, 3),),
    (np.arange(6).reshape(3, 2),),
    (np.float32(noise(2, 2, 2)),),
    (noise(3, 1, 5),),
)
def text_of_shape(x):
    rows, columns = x.shape
    return {"rows": rows, "columns": columns, "total": x.sum(), "cells": rows * columns}
