"""Flags, texts, optional arguments, numbers of other kinds, and containers of arrays among the arguments."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import numpy as np

from tests.frameworks.numpy.realistic.register import Named, floats, grid, noise, program, symmetric

X = noise(0, 4)


@program(
    (X, floats(1, 2, 3, 4)), (X, X), (X, noise(1, 4), "sum"), (noise(2, 2, 3), noise(3, 2, 3)), (X, noise(1, 4), "none")
)
def squared_error(prediction, target, reduction="mean"):
    losses = (prediction - target) ** 2
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    return losses


@program((X,), (noise(1, 6),), (X, "max"), (noise(1, 3, 2), "std"), (np.arange(3),), (X, "range"))
def scaled_by_name(x, method="std"):
    scales = {"std": np.std, "max": np.max, "mean": np.mean}
    if method not in scales:
        raise ValueError(method)
    return x / scales[method](x)


@program((X, "relu"), (noise(1, 3), "relu"), (X, "tanh"), (noise(1, 2, 2), "relu"), (np.arange(-2, 3), "relu"))
def activation_by_name(x, name):
    if name == "relu":
        return np.maximum(x, 0)
    elif name == "tanh":
        return np.tanh(x)
    raise ValueError(f"unknown activation {name}")


@program((X,), (noise(1, 7),), (X, floats(1, 0, 1, 0)), (noise(2, 2, 3),), (noise(2, 2, 3), noise(3, 2, 3) > 0))
def masked_mean(x, mask=None):
    if mask is None:
        return x.mean()
    total = np.maximum(mask.sum(), 1)
    return (x * mask).sum() / total


@program(
    (X, floats(1, 1, 1, 1)),
    (noise(1, 2), floats(1, 2)),
    (X, None),
    (noise(1, 3), None),
    (np.arange(4), floats(1, 0, 0, 0)),
)
def weighted_average(values, weights):
    if weights is None:
        weights = np.ones(len(values))
    return np.dot(values, weights) / weights.sum()


@program((X, True), (X, False), (noise(1, 3), True), (noise(1, 3, 2), False), (np.arange(3), True))
def optional_centre(x, centre):
    if centre:
        x = x - x.mean(axis=0)
    return x / 2


@program((X,), (X, 2.0), (X, 2), (noise(1, 3), 0.5), (np.arange(4), 1), (noise(1, 2, 2), np.float64(3)))
def scaled(x, factor=1.0):
    return x * factor + factor


@program((2.0, 3.0), (2, 3), (0.5, 1), (np.float64(2.0), 3.0), (np.float32(1.5), 2))
def number_arithmetic(a, b):
    return a * b + np.sqrt(a) - b / a


@program((X, 1), (X, 2), (noise(1, 6), 3), (noise(1, 3, 2), 1), (np.arange(5), np.int64(2)))
def shifted(x, steps):
    return np.concatenate([x[steps:], x[:steps]])


@program((X, 0.5), (X, 1), (noise(1, 6), 0.0), (noise(1, 3, 2), -1), (np.arange(5), 2.5))
def threshold(x, limit):
    if limit < 0:
        raise ValueError("negative")
    return np.where(x > limit, x, 0)


@program((grid(2, 3), 0), (grid(2, 3), 1), (noise(1, 4), 0), (noise(2, 2, 2, 2), 2), (np.arange(4).reshape(2, 2), -1))
def along(x, axis):
    return np.cumsum(x, axis=axis) / x.shape[axis]


@program(
    ([floats(1, 2), floats(3, 4)],),
    ([floats(1), floats(2), floats(3)],),
    ([noise(0, 2, 2)],),
    ([np.arange(2)] * 2,),
    ([X] * 4,),
)
def mean_of_list(arrays):
    total = np.zeros_like(arrays[0], dtype=float)
    for array in arrays:
        total += array
    return total / len(arrays)


@program(
    ([floats(1, 2), floats(3)],),
    ([floats(1), floats(2), floats(3)],),
    ([noise(0, 2, 2), X],),
    ([np.arange(2)],),
    ([X, floats(1), X],),
)
def padded_batch(arrays):
    longest = max(len(array) for array in arrays)
    batch = np.zeros((len(arrays), longest))
    mask = np.zeros((len(arrays), longest), dtype=bool)
    for i, array in enumerate(arrays):
        batch[i, : len(array)] = array
        mask[i, : len(array)] = True
    return batch, mask


@program(
    ([X, X], [X, X]),
    ([X], [floats(1, 1, 1, 1)]),
    ([floats(1), floats(2), floats(3)], [floats(1)] * 3),
    ([], []),
    ([np.arange(2)], [floats(1, 2)]),
)
def dot_pairs(left, right):
    return sum(float(np.dot(a, b)) for a, b in zip(left, right))


@program(
    ([floats(1, 2), floats(3, 4), floats(5, 6)], 1),
    ([floats(1, 2), floats(3, 4)], 0),
    ([X, X, X, X], 3),
    ([X, X, X], -1),
    ([np.arange(2)] * 2, 1),
)
def chosen_of_list(arrays, index):
    return arrays[index] * len(arrays)


@program(
    ([floats(1, 2), floats(3, 4)], np.array([1, 0])),
    ([floats(1, 2), floats(3, 4)], np.array([0, 0, 1])),
    ([X, X + 1, X + 2], np.array([2])),
)
@program.more(([X], np.array([0, 0])), ([floats(1), floats(3), floats(5)], np.array([2, 1, 0])))
def gathered_from_list(arrays, places):
    return np.stack([arrays[place] for place in places])


_W = {"w": noise(0, 3, 2), "b": noise(1, 2)}


@program(
    (_W, noise(2, 4, 3)),
    ({"w": noise(5, 3, 2), "b": noise(6, 2)}, noise(3, 2, 3)),
    ({"b": noise(6, 2), "w": noise(5, 3, 2)}, noise(3, 1, 3)),
)
@program.more(
    ({"w": noise(5, 4, 1), "b": noise(6, 1)}, noise(3, 2, 4)), ({"w": noise(5, 4, 1), "b": 1.0}, noise(3, 2, 4))
)
def linear_layer(parameters, x):
    return x @ parameters["w"] + parameters["b"]


@program(
    ({"a": X, "b": X},),
    ({"a": floats(1), "b": floats(2)},),
    ({"b": X, "a": X},),
    ({"a": X},),
    ({"x": X, "y": X, "z": noise(1, 2, 2)},),
)
def norms_of_dict(parameters):
    return {name: float(np.sqrt((value**2).sum())) for name, value in parameters.items()}


@program(
    ({"w": X, "b": floats(1)}, {"w": X, "b": floats(2)}, 0.1), ({"w": X, "b": floats(1)}, {"b": floats(2), "w": X}, 0.1)
)
@program.more(
    ({"w": X}, {"w": X}, 1),
    ({"w": noise(1, 2, 2)}, {"w": noise(2, 2, 2)}, 0.5),
    ({"a": X, "c": X, "d": X}, {"a": X, "c": X, "d": X}, 0.1),
)
def update_dict(parameters, gradients, rate):
    for name in parameters:
        parameters[name] -= rate * gradients[name]
    return parameters


_LAYERS = [(noise(0, 3, 4), noise(1, 4)), (noise(2, 4, 2), noise(3, 2))]


@program(
    (_LAYERS, noise(4, 5, 3)),
    (_LAYERS, noise(5, 2, 3)),
    ([(noise(0, 3, 2), noise(1, 2))], noise(4, 5, 3)),
    (_LAYERS, noise(6, 3)),
)
@program.more(([*_LAYERS, (noise(7, 2, 2), noise(8, 2))], noise(4, 5, 3)))
def multilayer_perceptron(layers, x):
    for i, (weights, bias) in enumerate(layers):
        x = x @ weights + bias
        if i < len(layers) - 1:
            x = np.maximum(x, 0)
    return x


@program(
    (X,), (X, Named(scale=2.0)), (X, Named(offset=1)), (noise(1, 2), Named(scale=0.5, offset=1.0)), (X, Named(wrong=1))
)
def by_keywords(x, **options):
    unknown = set(options) - {"scale", "offset"}
    if unknown:
        raise TypeError(f"unknown: {sorted(unknown)}")
    return x * options.get("scale", 1.0) + options.get("offset", 0.0)


@program((X, X), (X,), (X, X, X), (noise(1, 2, 2), noise(2, 2, 2)), (floats(1), floats(2), floats(3), floats(4)))
def sum_of_all(first, *others):
    total = first.copy()
    for other in others:
        total = total + other
    return total


@dataclass
class Settings:
    """What a filter is told."""

    rate: float = 0.1
    steps: int = 3
    clip: float | None = None


@program(
    (X, Settings()),
    (noise(1, 3), Settings()),
    (X, Settings(0.5)),
    (X, Settings(0.1, 5)),
    (X, Settings(0.1, 3, 0.2)),
    (X, Settings(1, 1)),
)
def decay(x, settings):
    for _ in range(settings.steps):
        step = settings.rate * x
        if settings.clip is not None:
            step = np.clip(step, -settings.clip, settings.clip)
        x = x - step
    return x


Box = namedtuple("Box", "low high")


@program(
    (X, Box(0.0, 1.0)),
    (noise(1, 3), Box(-1.0, 0.5)),
    (noise(1, 3, 3), Box(-1, 1)),
    (np.arange(4), Box(1.0, 2.0)),
    (X, Box(floats(0, 0, 0, 0), 1.0)),
)
def into_box(x, box):
    return np.clip(x, box.low, box.high), box._replace(low=box.low - 1)


@program((X, (2, 2)), (noise(1, 6), (2, 3)), (noise(1, 6), (3, 2)), (np.arange(8), (2, 2, 2)), (noise(1, 6), (6,)))
def reshaped(x, shape):
    return x.reshape(shape).sum(axis=0)


@program(
    (noise(0, 3, 4), (0,)),
    (noise(0, 3, 4), (1,)),
    (noise(0, 2, 3, 4), (0, 2)),
    (noise(0, 3, 4), None),
    (np.arange(6).reshape(2, 3), 1),
)
def mean_over(x, axes):
    return x.mean(axis=axes)


@program((X, "float32"), (X, "float64"), (noise(1, 2, 2), "float32"), (np.arange(3), "float32"), (X, "int64"))
def cast(x, dtype):
    return (x + 1).astype(dtype)


@program(
    (X, [1.0, 2.0]), (X, [1.0, 2.0, 3.0]), (noise(1, 3), [0.5, 1]), (np.arange(3), [1.0]), (noise(1, 2, 2), [1.0, 0.0])
)
def polynomial(x, coefficients):
    result = np.zeros_like(x, dtype=float)
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


@program(("abca",), ("aab",), ("",), ("xyz",), ("zzzzzz",))
def letter_counts(text):
    codes = np.frombuffer(text.encode(), dtype=np.uint8)
    return np.bincount(codes, minlength=128)[97:123]


def _twice(values):
    return values * 2


@program((X, _twice), (noise(1, 3), _twice), (noise(1, 2, 2), _twice), (np.arange(3), _twice), (np.float32(X), _twice))
def applied(x, function):
    return function(x) + 1


@program((X, None, None), (noise(1, 6), None, None), (X, 0.0, None), (X, None, 0.5), (X, -0.5, 0.5))
def clipped(x, low, high):
    if low is not None:
        x = np.maximum(x, low)
    if high is not None:
        x = np.minimum(x, high)
    return x


@program((X,), (noise(1, 2, 3),), (np.arange(3),), (3.5,), ([1, 2, 3],), (np.float64(2),))
def anything_like_an_array(x):
    x = np.asarray(x, dtype=float)
    return np.log1p(np.abs(x)).sum()


@program(([1.0, 2.0, 4.0],), ([3.0, 1.0],), ([1, 2, 3, 4],), ([0.5],), ([2.0, 2.0, 1.0, 5.0, 4.0],))
def from_a_list_of_numbers(values):
    x = np.array(values)
    return x.mean(), x.max() - x.min(), np.diff(x)


@program(([[1.0, 2.0], [3.0, 4.0]],), ([[1.0, 2.0, 3.0]],), ([[1, 2], [3, 4], [5, 6]],), ([[0.5]],), ([[1.0], [2.0]],))
def from_nested_lists(rows):
    matrix = np.array(rows)
    return matrix.sum(axis=0), matrix @ matrix.T


@program(
    (symmetric(0, 2), "fro"),
    (symmetric(1, 3), "fro"),
    (symmetric(0, 2), "nuc"),
    (noise(1, 2, 3), "fro"),
    (symmetric(0, 2), "max"),
)
def matrix_norm(matrix, kind):
    match kind:
        case "fro":
            return np.sqrt((matrix**2).sum())
        case "nuc":
            return np.linalg.svd(matrix, compute_uv=False).sum()
        case _:
            return np.abs(matrix).max()


@program((X, 1.0), (X, 2.0), (noise(1, 3), 1), (np.arange(1, 4), 2), (X, np.inf), (noise(1, 2, 2), 3))
def p_norm(x, p):
    if p == np.inf:
        return np.abs(x).max()
    return (np.abs(x) ** p).sum() ** (1 / p)


@program((X, {"low": 0.0}), (X, {"low": 0.5}), (X, {"low": 0.0, "high": 1.0}), (noise(1, 3), {}), (X, {"high": 1}))
def clipped_by_dict(x, limits):
    low, high = limits.get("low"), limits.get("high")
    if low is None and high is None:
        return x
    return np.clip(x, low, high)
