"""Programs that write to arrays, and see what they wrote through other arrays."""

from __future__ import annotations

import copy

import numpy as np

from tests.frameworks.numpy.hard.ledger import LONG, PLACES, A, B, J, M, N, program


@program("writes", (A,), (B,))
def write_to_argument(x):
    x[1:3] *= 10
    x += 1
    return x.sum()


@program("writes", (M,), (N,))
def write_through_view(x):
    row = x[0]
    row[:] = row[::-1].copy()
    x.T[1] = 7
    return x


@program("writes", (A, B), (B, A))
def out_arguments(x, y):
    np.add(x, y, out=y)
    np.multiply(x, 2, x)
    return np.clip(y, 0, 1, out=y) is y


@program("writes", (A,), (B,), (np.array([1.0, -1, 1, -1]),))
def mask_assignment(x):
    x[x < 0] = 0
    x[np.where(x > 1)] -= 1
    return x


@program("writes", (A, PLACES), (B, J))
def ufunc_at(x, places):
    np.add.at(x, places, 1)
    np.put(x, [0], 9)
    return x


@program("writes", (A,), (B,))
def sort_in_place(x):
    before = x.copy()
    x.sort()
    return before, x[0]


@program("writes", (A,), (B,))
def overlapping_write(x):
    x[1:] = x[:-1]
    x[::2] += x[1::2]
    return x


@program("writes", (A, A), (A, B))
def two_names_of_one(x, y):
    x += 1
    return y * 2


@program("writes", (LONG,), (LONG + 1,))
def overlapping_arguments(x):
    left, right = x[:4], x[2:]
    left *= 2
    return right.sum(), np.shares_memory(left, right)


@program("writes", (M,), (M.T.copy(),), (np.asfortranarray(M),))
def reshape_view_or_copy(x):
    flat = x.reshape(-1)
    flat[0] = 99
    return x[0, 0]


@program("writes", (A,), (B,))
def result_is_argument(x):
    return x, np.asarray(x) is x, x[:], x.T


@program("writes", (A,), (B,))
def where_keyword(x):
    out = np.full_like(x, -1)
    return np.sqrt(x, out=out, where=x > 0), np.sum(x, where=x > 0)


@program("writes", (M,), (N,))
def flat_and_diagonal(x):
    x.flat[1] = 5
    x.flat[2:4] = 6
    np.fill_diagonal(x, 0)
    return x, list(x.flat)[:3]


@program("writes", (A + 1j,), (B - 2j,))
def real_and_imaginary(x):
    x.real = 3
    x.imag[0] = 4
    return x.real, np.conj(x)


@program("writes", (A,), (B,))
def copy_then_write(x):
    y, z = x.copy(), copy.copy(x)
    y[0], z[1] = 100, 200
    w = copy.deepcopy(x)
    w[2] = 300
    return x, y, z, w


@program("writes", (A,), (B,))
def written_constant(x):
    table = np.arange(4.0)
    turned = table[::-1]
    table[0] = x[0]
    return x + np.cos(turned * 2)


@program("writes", (M,), (N,))
def shape_set(x):
    x.shape = (-1,)
    return x


@program("writes", (np.zeros(2, dtype=[("a", "f8"), ("b", "i4")]),), (np.ones(2, dtype=[("a", "f8"), ("b", "i4")]),))
def structured(x):
    x["a"] += 1.5
    return x["b"].sum(), x[0]["a"]
