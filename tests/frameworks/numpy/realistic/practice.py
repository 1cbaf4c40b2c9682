"""Programs as practitioners write them: clustering, filters, images, tables, samplers, options, gaps in data."""

from __future__ import annotations

import numpy as np

from tests.frameworks.numpy.realistic.register import floats, grid, noise, program, symmetric

X = noise(0, 6)
POINTS = noise(1, 8, 2)


@program((POINTS, 2), (noise(2, 12, 2), 3), (noise(3, 6, 3), 2), (noise(4, 9, 2), 3, 2), (POINTS * 2, 2))
def k_means_with_empty_groups(points, k, rounds=5):
    centres = points[:k].copy()
    for _ in range(rounds):
        distances = ((points[:, None] - centres[None]) ** 2).sum(-1)
        labels = distances.argmin(1)
        for i in range(k):
            mine = points[labels == i]
            if len(mine) > 0:
                centres[i] = mine.mean(0)
    return centres, labels


@program((X, 0.1, 0.5), (noise(1, 9), 0.2, 0.1), (noise(2, 1), 0.1, 0.5), (X, 1, 2), (X * 3, 0.01, 0.1))
def kalman_filter_of_a_signal(measured, process, sensor):
    estimate, error = measured[0], 1.0
    found = np.zeros_like(measured)
    for i, value in enumerate(measured):
        error = error + process
        gain = error / (error + sensor)
        estimate = estimate + gain * (value - estimate)
        error = (1 - gain) * error
        found[i] = estimate
    return found


@program((noise(0, 16), 3), (noise(1, 32), 5), (noise(2, 15), 2), (noise(3, 8), 1), (noise(4, 64), 20))
def low_pass_in_practice(signal, keep):
    spectrum = np.fft.rfft(signal)
    spectrum[keep:] = 0
    return np.fft.irfft(spectrum, n=len(signal))


@program(
    (grid(5, 5), np.ones((3, 3))),
    (noise(0, 6, 7), noise(1, 2, 2)),
    (grid(4, 4), np.eye(2)),
    (grid(3, 3), np.ones((3, 3))),
    (noise(1, 8, 5), np.ones((1, 3))),
)
def convolved(image, kernel):
    windows = np.lib.stride_tricks.sliding_window_view(image, kernel.shape)
    return np.einsum("ijkl,kl->ij", windows, kernel[::-1, ::-1])


@program(
    (floats(1, 3, 2), floats(2, 3)), (X, noise(1, 4)), (floats(1), floats(1)), (np.arange(5), np.arange(3)), (X, X)
)
def warped_distance(a, b):
    costs = np.full((len(a) + 1, len(b) + 1), np.inf)
    costs[0, 0] = 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            step = min(costs[i - 1, j], costs[i, j - 1], costs[i - 1, j - 1])
            costs[i, j] = abs(a[i - 1] - b[j - 1]) + step
    return costs[-1, -1]


@program(
    (np.random.default_rng(0), 50),
    (np.random.default_rng(3), 50),
    (np.random.default_rng(0), 10),
    (np.random.default_rng(1), 200),
    (np.random.default_rng(2), 1),
)
def estimate_of_pi(rng, count):
    points = rng.random((count, 2))
    return 4 * np.mean((points**2).sum(1) < 1)


@program((POINTS, 1), (noise(2, 12, 3), 2), (noise(3, 5, 4), 1), (POINTS, 2), (np.arange(12.0).reshape(4, 3) ** 2, 1))
def principal_components_in_practice(data, count):
    centred = data - data.mean(0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:count].T, sizes**2 / (len(data) - 1)


@program((X,), (floats(1, np.nan, 3),), (noise(1, 3, 2),), (np.arange(4),), (floats(np.nan, np.nan),))
def statistics_without_gaps(x):
    valid = ~np.isnan(x)
    if not valid.any():
        return {"count": 0}
    return {"count": int(valid.sum()), "mean": x[valid].mean(), "spread": x[valid].std()}


@program((X,), (X, "reflect"), (X, "edge", 2), (noise(1, 9), "wrap"), (X, "constant", 3))
def smoothed(x, mode="edge", width=1):
    padded = np.pad(x, width, mode=mode)
    kernel = np.ones(2 * width + 1) / (2 * width + 1)
    return np.convolve(padded, kernel, mode="valid")


@program((X, "minmax"), (X, "zscore"), (noise(1, 4, 2), "zscore"), (X, None), (noise(2, 3), "minmax"))
def scaled_features(x, how=None):
    if how is None:
        return x
    if how == "minmax":
        low, high = x.min(0), x.max(0)
        return (x - low) / (high - low)
    elif how == "zscore":
        return (x - x.mean(0)) / x.std(0)
    raise ValueError("unknown scaling")


@program(
    (POINTS, np.array([0, 1] * 4)),
    (noise(2, 5, 2), np.array([0, 0, 1, 1, 1])),
    (noise(3, 6, 3), np.array([0, 1, 2] * 2)),
    (POINTS, np.zeros(8, int)),
    (POINTS, np.arange(8)),
)
def centroids_by_label(points, labels):
    count = labels.max() + 1
    sums = np.zeros((count, points.shape[1]))
    np.add.at(sums, labels, points)
    return sums / np.bincount(labels, minlength=count)[:, None]


@program((symmetric(0, 3),), (symmetric(0, 4),), (np.eye(2),), (symmetric(0, 2) + 1,), (symmetric(0, 5),))
def whitening(matrix):
    values, vectors = np.linalg.eigh(matrix @ matrix.T + np.eye(len(matrix)))
    return vectors @ np.diag(1 / np.sqrt(values)) @ vectors.T


@program(
    (X, floats(0.5, 0.25)),
    (noise(1, 9), floats(1.0)),
    (X, floats(0.1, 0.2, 0.3)),
    (X * 0, floats(1, 1)),
    (noise(2, 5), floats(0.5, 0.25)),
)
def autoregression(start, weights):
    values = list(start[: len(weights)])
    for i in range(len(weights), len(start)):
        past = np.array(values[-len(weights) :])
        values.append(float(past @ weights) + start[i])
    return np.array(values)


@program((grid(4, 4) % 3,), (noise(0, 5, 3),), (np.ones((2, 2)),), (np.arange(9).reshape(3, 3),), (noise(1, 1, 4),))
def row_echelon_rank(matrix):
    reduced = matrix.astype(float)
    row = 0
    for column in range(reduced.shape[1]):
        if row >= reduced.shape[0]:
            break
        pivot = row + np.abs(reduced[row:, column]).argmax()
        if abs(reduced[pivot, column]) < 1e-9:
            continue
        reduced[[row, pivot]] = reduced[[pivot, row]]
        reduced[row + 1 :] -= np.outer(reduced[row + 1 :, column] / reduced[row, column], reduced[row])
        row += 1
    return row


@program((X, 0.3), (noise(1, 10), 0.5), (X, 1), (noise(2, 3), 0.0), (np.arange(5), 0.9))
def exponential_average(values, weight):
    found = np.empty(len(values))
    state = values[0]
    for i in range(len(values)):
        state = weight * values[i] + (1 - weight) * state
        found[i] = state
    return found


@program(
    (X, floats(1, 1, 1, 1, 1, 1)),
    (noise(1, 4), noise(2, 4)),
    (X, X),
    (np.arange(3), np.arange(3)),
    (noise(1, 2, 3), noise(2, 2, 3)),
)
def cosine_similarity_in_practice(a, b):
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return (a * b).sum() / size if size > 0 else 0.0


@program(
    (np.array([3, 1, 2]), 4),
    (np.array([5]), 5),
    (np.array([1, 2, 3, 4]), 6),
    (np.array([2, 2]), 3),
    (np.array([7, 1]), 9),
)
def subset_sum(weights, capacity):
    best = np.zeros(capacity + 1, dtype=int)
    for weight in weights:
        for room in range(capacity, 0, -1):
            if weight <= room:
                best[room] = max(best[room], best[room - weight] + weight)
    return best[capacity]


@program((X,), (noise(1, 3),), (np.sort(X),), (noise(2, 9),), (floats(1.0),))
def running_maximum_drawdown(prices):
    peak = prices[0]
    worst = 0.0
    for price in prices:
        peak = max(peak, price)
        worst = max(worst, peak - price)
    return worst


@program(
    (noise(0, 4, 3), {"kind": "relu", "bias": floats(1, 2, 3)}),
    (noise(1, 2, 3), {"kind": "tanh", "bias": floats(0, 0, 0)}),
    (noise(0, 4, 3), {"bias": floats(1, 1, 1), "kind": "relu"}),
    (noise(2, 3), {"kind": "relu", "bias": 0.5}),
    (noise(0, 4, 3), {"kind": "none", "bias": floats(1, 2, 3)}),
)
def configured_layer(x, config):
    x = x + config["bias"]
    if config["kind"] == "relu":
        return np.maximum(x, 0)
    if config["kind"] == "tanh":
        return np.tanh(x)
    return x


@program(
    (X, True, False),
    (X, False, True),
    (noise(1, 4), True, True),
    (noise(1, 2, 3), False, False),
    (np.arange(4), True, False),
)
def with_flags(x, centre, scale):
    if centre:
        x = x - x.mean()
    if scale:
        x = x / (np.abs(x).max() + 1e-9)
    return x
