"""Programs with nested results, errors and settings, and those that hand arrays to other code."""

from __future__ import annotations

import functools
import io
import operator
from typing import Any, NamedTuple

import numpy as np

from tests.frameworks.numpy.hard.ledger import LONG, A, B, M, N, program


@program("results", (A, B), (B, A))
def nested_results(x, y):
    return {"sum": x + y, "parts": [x.min(), (y.max(), None)], "shape": x.shape, "dtype": x.dtype}


@program("results", (A,), (B,))
def same_array_twice(x):
    y = x + 1
    return [y, y, {"again": y}]


class Pair(NamedTuple):
    low: Any
    high: Any


@program("results", (A,), (B,))
def named_results(x):
    return Pair(x.min(), x.max()), np.linalg.eigh(np.outer(x, x) + np.eye(4)).eigenvalues.round(6)


@program("results", ([A, B],), ([B, A],))
def changed_list(arrays):
    arrays.append(arrays[0] + arrays[1])
    arrays[0] = arrays[0] * 2
    return len(arrays)


@program("errors", (M,), (np.ones((2, 2)),), (np.array([[0.0, 0.0], [0.0, 0.0]]),))
def caught_error(x):
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return np.zeros(2)


@program("errors", (np.eye(2),), (np.zeros((2, 2)),))
def error_not_caught(x):
    return np.linalg.inv(x)


@program("errors", (np.eye(2) * 2,), (np.zeros((2, 2)),))
def error_in_try(x):
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return x


@program("errors", (A, B), (A, LONG))
def shapes_that_do_not_fit(x, y):
    return x + y


@program("errors", (A,), (np.zeros(4),))
def raised_by_setting(x):
    with np.errstate(divide="raise"):
        return 1 / x


@program("errors", (A,), (np.zeros(4),))
def caught_floating_error(x):
    try:
        with np.errstate(divide="raise"):
            return 1 / x
    except FloatingPointError:
        return x


@program("errors", (A,), (-A,))
def asserted(x):
    assert x.sum() > 0, "not positive"
    return x


@program("escapes", (A,), (B,))
def python_function_per_element(x):
    return np.vectorize(lambda value: value + 1 if value > 0 else 0.0)(x)


@program("escapes", (M,), (N,))
def function_along_axis(x):
    return np.apply_along_axis(lambda row: row.max() - row.min(), 1, x)


@program("escapes", (A, B), (B, A))
def closure_over_array(x, y):
    return np.apply_along_axis(lambda row: row + y, 0, x)


@program("escapes", (A,), (B,))
def iterator_of_numpy(x):
    return [float(value) for value in np.nditer(x)]


@program("escapes", (M,), (N,))
def enumerated(x):
    return sum(value * index[0] for index, value in np.ndenumerate(x))


@program("escapes", (A,), (B,))
def reduced_by_python(x):
    return functools.reduce(operator.add, x), list(map(abs, x)), any(x > 1), all(x > -9)


@program("escapes", (A,), (B,))
def python_lists_to_arrays(x):
    rows = [[x[0], 1.0], [x[1], x[2]]]
    return np.array(rows) @ np.ones(2), np.sum([x[0], x[3]]), np.maximum([x[0], 0.0], 1.0)


@program("escapes", (A,), (B,))
def joined_by_index(x):
    return np.r_[0, x, x[-1]], np.c_[x, x], np.float32(x[0]), np.int64(x[2])


@program("escapes", (A,), (B,))
def masked(x):
    return np.ma.masked_less(x, 0).sum()


@program("escapes", (A,), (B,))
def matrix_class(x):
    return np.asmatrix(x).T


@program("results", (np.array(["2024-01-01"], dtype="M8[D]"),), (np.array(["2025-03-01"], dtype="M8[D]"),))
def dates(x):
    return x + np.timedelta64(1, "D"), x.astype("M8[M]"), x[0]


@program("escapes", (A,), (B,))
def from_iterators(x):
    return np.fromiter((value * 2 for value in x), dtype=float), np.fromiter(map(abs, x), float)


@program("escapes", (A,), (B,))
def text_by_printing(x):
    shown = io.StringIO()
    print(x[0], file=shown)
    return shown.getvalue()


@program("escapes", (A,), (B,))
def grouped_by_sign(x):
    groups = {}
    for value in x:
        groups.setdefault(value > 0, []).append(value)
    return groups


@program("escapes", (A,), (B,))
def order_by_python(x):
    return sorted(range(len(x)), key=lambda place: x[place]), max(x, key=abs)


@program("escapes", (A,), (B,))
def polynomial_object(x):
    return np.polynomial.Polynomial(x)(2.0), np.poly1d(x)(2.0)
