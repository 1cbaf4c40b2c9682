"""Programs that go one way or another by what their inputs are."""

from __future__ import annotations

import numpy as np

from tests.frameworks.numpy.hard.ledger import LONG, PLACES, A, B, J, M, N, program


@program("branches", (A,), (B,), (-A,))
def branch_on_sum(x):
    return x * 2 if x.sum() > 0 else x - 1


@program("branches", (A,), (LONG,))
def branch_on_length(x):
    return x[:2] if len(x) > 5 else x[::-1]


@program("branches", (A,), (M,), (LONG,))
def branch_on_rank(x):
    return x.sum(axis=1) if x.ndim == 2 else x.sum()


@program("branches", (A,), (PLACES,), (A.astype(np.float32),))
def branch_on_dtype(x):
    return x / 2 if x.dtype == np.float64 else x * 2


@program("branches", (A,), (PLACES,))
def branch_on_kind(x):
    return np.floor(x) if np.issubdtype(x.dtype, np.floating) else x + 1


@program("branches", (A,), (np.zeros(4),), (np.array([np.nan, 1, 2, 3]),))
def branch_on_any(x):
    if np.isnan(x).any():
        return np.nan_to_num(x)
    return x if x.all() else x + 1


@program("branches", (A, B), (A, LONG[:4]), (A, A))
def branch_on_array_equal(x, y):
    return x if np.array_equal(x, y) else y


@program("branches", (A,), (B,))
def ternary_on_element(x):
    return x[0] if x[0] > x[1] else x[1]


@program("branches", (A,), (B,))
def and_or_on_elements(x):
    return (x[0] > 0 and x[1]) or x[2]


@program("branches", (A,), (B,), (np.full(4, 100.0),))
def loop_until_small(x):
    steps = 0
    while np.abs(x).max() > 0.5:
        x = x / 2
        steps += 1
    return x, steps


@program("branches", (A,), (B,))
def early_return(x):
    for value in x:
        if value < 0:
            return value
    return x


@program("branches", (A, 1), (A, 2), (A, 0))
def match_on_number(x, mode):
    match mode:
        case 0:
            return x
        case 1:
            return x + 1
        case _:
            return x - 1


@program("branches", (M,), (N,), (M.T.copy(),))
def branch_on_contiguity(x):
    return x.ravel() if x.flags.c_contiguous else x.T.ravel()


@program("branches", (M.T,), (M,))
def branch_on_fortran(x):
    return x.sum(axis=0) if x.flags["F_CONTIGUOUS"] else x.sum(axis=1)


@program("branches", (M,), (M[:1],), (M[:, :1],))
def branch_on_squeezed_rank(x):
    y = x.squeeze()
    return y.sum() if y.ndim == 2 else y


@program("branches", (np.array([[2.0, 0], [0, 3]]),), (np.array([[0.0, -1], [1, 0]]),))
def branch_on_complex_eigenvalues(x):
    values = np.linalg.eigvals(x)
    return values.imag if np.iscomplexobj(values) else values


@program("branches", (A, True), (A, False))
def flag_argument(x, flag):
    return x if flag else -x


@program("branches", (M, True), (M, False))
def flag_that_changes_rank(x, keep):
    y = x.sum(axis=0, keepdims=keep)
    return y.ndim, y


@program("branches", (PLACES, True), (J, False))
def flag_that_changes_structure(x, counts):
    return np.unique(x, return_counts=counts)
