"""Hard NumPy programs: what tempts a capture to freeze, to forget or to mix up something.

An entry of ``PROGRAMS`` makes the program anew (with its state), and lists the calls: the first is the example. The
state that a program keeps can be looked at through ``state``.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import math
import operator
import pickle
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Arguments = tuple[Any, ...]


class Program(NamedTuple):
    """How a program is made, its calls, and its kind."""

    make: Callable[[], Callable[..., Any]]
    calls: list[Arguments]
    kind: str


PROGRAMS: dict[str, Program] = {}
A = np.array([0.5, -1.0, 2.0, 3.0])
B = np.array([4.0, 1.0, -2.0, -3.0])
LONG = np.arange(6.0)
M = np.arange(12.0).reshape(3, 4) / 5
N = np.arange(8.0).reshape(2, 4) - 3
I = np.array([3, 0, 1, 2])
J = np.array([1, 1, 0, 3])
TABLE = np.array([1.0, 2.0, 4.0, 8.0])
BUFFER = np.zeros(4)
LIMITS = {"low": -1.0, "high": 1.0}
SETTINGS = {"scale": np.array([2.0])}
SHARED = np.random.default_rng(5)


def _program(kind: str, *calls: Arguments) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = Program(lambda: function, list(calls), kind)
        return function

    return register


def _made(kind: str, *calls: Arguments) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[make.__name__] = Program(make, list(calls), kind)
        return make

    return register


# ---- branches --------------------------------------------------------------------------------------------------------


@_program("branches", (A,), (B,), (-A,))
def branch_on_sum(x):
    return x * 2 if x.sum() > 0 else x - 1


@_program("branches", (A,), (LONG,))
def branch_on_length(x):
    return x[:2] if len(x) > 5 else x[::-1]


@_program("branches", (A,), (M,), (LONG,))
def branch_on_rank(x):
    return x.sum(axis=1) if x.ndim == 2 else x.sum()


@_program("branches", (A,), (I,), (A.astype(np.float32),))
def branch_on_dtype(x):
    return x / 2 if x.dtype == np.float64 else x * 2


@_program("branches", (A,), (I,))
def branch_on_kind(x):
    return np.floor(x) if np.issubdtype(x.dtype, np.floating) else x + 1


@_program("branches", (A,), (np.zeros(4),), (np.array([np.nan, 1, 2, 3]),))
def branch_on_any(x):
    if np.isnan(x).any():
        return np.nan_to_num(x)
    return x if x.all() else x + 1


@_program("branches", (A, B), (A, LONG[:4]), (A, A))
def branch_on_array_equal(x, y):
    return x if np.array_equal(x, y) else y


@_program("branches", (A,), (B,))
def ternary_on_element(x):
    return x[0] if x[0] > x[1] else x[1]


@_program("branches", (A,), (B,))
def and_or_on_elements(x):
    return (x[0] > 0 and x[1]) or x[2]


@_program("branches", (A,), (B,), (np.full(4, 100.0),))
def loop_until_small(x):
    steps = 0
    while np.abs(x).max() > 0.5:
        x = x / 2
        steps += 1
    return x, steps


@_program("branches", (A,), (B,))
def early_return(x):
    for value in x:
        if value < 0:
            return value
    return x


@_program("branches", (A, 1), (A, 2), (A, 0))
def match_on_number(x, mode):
    match mode:
        case 0:
            return x
        case 1:
            return x + 1
        case _:
            return x - 1


@_program("branches", (M,), (N,), (M.T.copy(),))
def branch_on_contiguity(x):
    return x.ravel() if x.flags.c_contiguous else x.T.ravel()


@_program("branches", (M.T,), (M,))
def branch_on_fortran(x):
    return x.sum(axis=0) if x.flags["F_CONTIGUOUS"] else x.sum(axis=1)


@_program("branches", (M,), (M[:1],), (M[:, :1],))
def branch_on_squeezed_rank(x):
    y = x.squeeze()
    return y.sum() if y.ndim == 2 else y


@_program("branches", (np.array([[2.0, 0], [0, 3]]),), (np.array([[0.0, -1], [1, 0]]),))
def branch_on_complex_eigenvalues(x):
    values = np.linalg.eigvals(x)
    return values.imag if np.iscomplexobj(values) else values


@_program("branches", (A, True), (A, False))
def flag_argument(x, flag):
    return x if flag else -x


@_program("branches", (M, True), (M, False))
def flag_that_changes_rank(x, keep):
    y = x.sum(axis=0, keepdims=keep)
    return y.ndim, y


@_program("branches", (I, True), (J, False))
def flag_that_changes_structure(x, counts):
    return np.unique(x, return_counts=counts)


# ---- arguments -------------------------------------------------------------------------------------------------------


@_program("arguments", (A, 2), (A, 3), (A, 2.5))
def number_argument(x, k):
    return x * k, k + 1


@_program("arguments", (A, "sum"), (A, "mean"), (B, "sum"))
def text_argument(x, how):
    return getattr(x, how)()


@_program("arguments", (A, np.sin), (A, np.cos))
def function_argument(x, function):
    return function(x)


@_program("arguments", (A, np.mean), (A, np.sum))
def function_identity(x, reduce):
    return x.mean() if reduce is np.mean else x.sum()


@_program("arguments", (4, np.zeros), (4, np.ones))
def constructor_identity(n, make):
    return make(n) if make is np.zeros else -make(n)


@_program("arguments", (A, None), (A, B))
def optional_argument(x, y):
    return x if y is None else x + y


@_program("arguments", ([A, B],), ([A, B, A],), ([B],))
def list_argument(arrays):
    return np.stack(arrays).sum(axis=0), len(arrays)


@_program("arguments", ({"a": A, "b": 2},), ({"a": B, "b": 3},), ({"a": A, "c": 2},))
def dict_argument(values):
    return {key: value * 2 for key, value in values.items()}


@_program("arguments", (A, A.copy()), (A, B))
def same_or_other_object(x, y):
    return x if x is y else x + y


@_program("arguments", (np.float64(2.0), A), (np.float64(3.0), B), (np.float32(2.0), A))
def numpy_number_argument(scale, x):
    return scale * x if scale > 1 else x


@_program("arguments", (np.dtype("float32"), A), (np.dtype("int64"), A))
def dtype_argument(dtype, x):
    return x.astype(dtype)


@dataclasses.dataclass
class Batch:
    data: np.ndarray
    weight: float


@_program("arguments", (Batch(A, 1.0),), (Batch(B, 2.0),))
def dataclass_argument(batch):
    batch.data *= batch.weight
    batch.weight = batch.data.sum()
    return batch.data.max()


# ---- numbers that leave ----------------------------------------------------------------------------------------------


@_program("numbers", (A,), (B,))
def item_and_float(x):
    return float(x[0]) + x[1].item(), int(x[2]), math.sqrt(abs(float(x[3])))


@_program("numbers", (A,), (B,))
def to_list(x):
    return [value + 1 for value in x.tolist()]


@_program("numbers", (A,), (B,))
def formatted(x):
    return f"{x[0]:.2f}", str(x.sum()), repr(x[1])


@_program("numbers", (A,), (B,))
def text_of_array(x):
    return str(x)


@_program("numbers", (I,), (J,))
def element_as_index_of_list(x):
    return ["a", "b", "c", "d"][x[0]]


@_program("numbers", (I,), (J,))
def element_as_key(x):
    return {0: "zero", 1: "one", 3: "three"}.get(int(x[0]), "other")


@_program("numbers", (I,), (J,))
def repeated_list(x):
    return [0] * int(x[2]), range(int(x[3]))


@_program("numbers", (A,), (B,))
def python_sum_and_sorted(x):
    return sum(x), sorted(x), max(x), min(x)


@_program("numbers", (A,), (B,))
def unpacked(x):
    a, b, *rest = x
    return a * b, rest


@_program("numbers", (M,), (N,))
def shape_arithmetic(x):
    rows, columns = x.shape
    return np.zeros((rows * 2, columns - 1)), rows / columns, x.reshape(columns, rows)


@_program("numbers", (M,), (N,))
def shape_as_key(x):
    return {(3, 4): "wide", (2, 4): "small"}.get(x.shape, "none")


@_program("numbers", (A,), (LONG,))
def loop_over_size(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * i
    return total


@_program("numbers", (A,), (B,))
def bytes_of_array(x):
    return x.tobytes()


@_program("numbers", (A,), (B,))
def memory_of_array(x):
    return memoryview(x)[0] + 1


@_program("numbers", (A,), (B,))
def pickled(x):
    return pickle.loads(pickle.dumps(x)) + 1


@_program("numbers", (A,), (B,))
def pointer(x):
    return x.ctypes.data != 0, x.__array_interface__["shape"]


@_program("numbers", (A,), (B,))
def class_of_values(x):
    return type(x) is np.ndarray, type(x[0]) is np.float64, isinstance(x.sum(), float), x.__class__.__name__


# ---- writes and aliases ----------------------------------------------------------------------------------------------


@_program("writes", (A,), (B,))
def write_to_argument(x):
    x[1:3] *= 10
    x += 1
    return x.sum()


@_program("writes", (M,), (N,))
def write_through_view(x):
    row = x[0]
    row[:] = row[::-1].copy()
    x.T[1] = 7
    return x


@_program("writes", (A, B), (B, A))
def out_arguments(x, y):
    np.add(x, y, out=y)
    np.multiply(x, 2, x)
    return np.clip(y, 0, 1, out=y) is y


@_program("writes", (A,), (B,), (np.array([1.0, -1, 1, -1]),))
def mask_assignment(x):
    x[x < 0] = 0
    x[np.where(x > 1)] -= 1
    return x


@_program("writes", (A, I), (B, J))
def ufunc_at(x, places):
    np.add.at(x, places, 1)
    np.put(x, [0], 9)
    return x


@_program("writes", (A,), (B,))
def sort_in_place(x):
    before = x.copy()
    x.sort()
    return before, x[0]


@_program("writes", (A,), (B,))
def overlapping_write(x):
    x[1:] = x[:-1]
    x[::2] += x[1::2]
    return x


@_program("writes", (A, A), (A, B))
def two_names_of_one(x, y):
    x += 1
    return y * 2


@_program("writes", (LONG,), (LONG + 1,))
def overlapping_arguments(x):
    left, right = x[:4], x[2:]
    left *= 2
    return right.sum(), np.shares_memory(left, right)


@_program("writes", (M,), (M.T.copy(),), (np.asfortranarray(M),))
def reshape_view_or_copy(x):
    flat = x.reshape(-1)
    flat[0] = 99
    return x[0, 0]


@_program("writes", (A,), (B,))
def result_is_argument(x):
    return x, np.asarray(x) is x, x[:], x.T


@_program("writes", (A,), (B,))
def where_keyword(x):
    out = np.full_like(x, -1)
    return np.sqrt(x, out=out, where=x > 0), np.sum(x, where=x > 0)


@_program("writes", (M,), (N,))
def flat_and_diagonal(x):
    x.flat[1] = 5
    x.flat[2:4] = 6
    np.fill_diagonal(x, 0)
    return x, list(x.flat)[:3]


@_program("writes", (A + 1j,), (B - 2j,))
def real_and_imaginary(x):
    x.real = 3
    x.imag[0] = 4
    return x.real, np.conj(x)


@_program("writes", (A,), (B,))
def copy_then_write(x):
    y, z = x.copy(), copy.copy(x)
    y[0], z[1] = 100, 200
    w = copy.deepcopy(x)
    w[2] = 300
    return x, y, z, w


@_program("writes", (A,), (B,))
def written_constant(x):
    table = np.arange(4.0)
    turned = table[::-1]
    table[0] = x[0]
    return x + np.cos(turned * 2)


@_program("writes", (M,), (N,))
def shape_set(x):
    x.shape = (-1,)
    return x


@_program("writes", (np.zeros(2, dtype=[("a", "f8"), ("b", "i4")]),), (np.ones(2, dtype=[("a", "f8"), ("b", "i4")]),))
def structured(x):
    x["a"] += 1.5
    return x["b"].sum(), x[0]["a"]


# ---- state -----------------------------------------------------------------------------------------------------------


@_made("state", (A,), (B,), (A,))
def counter_in_object():
    class Counter:
        def __init__(self):
            self.calls, self.total, self.history = 0, np.zeros(4), []

        def __call__(self, x):
            self.calls += 1
            self.total = self.total + x
            self.history.append(x.sum())
            return self.total / self.calls, list(self.history)

    return Counter()


@_made("state", (A,), (B,), (A,))
def buffer_in_object():
    class Average:
        def __init__(self):
            self.mean = np.zeros(4)

        def update(self, x):
            self.mean *= 0.9
            self.mean += 0.1 * x
            return self.mean

    return Average().update


@_made("state", (A,), (B,), (A,))
def counter_in_closure():
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return x * count

    return step


@_made("state", (A,), (B,), (A,))
def array_in_closure():
    kept = np.ones(4)

    def step(x):
        kept[1:] += x[:-1]
        return kept.copy()

    return step


@_made("state", (A,), (B,), (A,))
def cache_in_dict():
    cache = {}

    def step(x):
        key = x.shape
        if key not in cache:
            cache[key] = np.arange(x.shape[0])
        return x * cache[key]

    return step


@_made("state", (A,), (B,), (A,))
def last_value():
    class Delay:
        last = None

        def __call__(self, x):
            before, self.last = self.last, x
            return x if before is None else before

    return Delay()


@_made("state", (4,), (6,), (4,))
def cached_function():
    @functools.lru_cache
    def window(n):
        return np.hanning(n)

    def step(n):
        return window(n) * 2

    return step


@_made("state", (A,), (B,), (A,))
def mutable_default():
    def step(x, seen=[]):  # noqa: B006
        seen.append(float(x[0]))
        return len(seen)

    return step


@_made("state", (A,), (B,))
def default_array():
    def step(x, weights=np.array([1.0, 2.0, 3.0, 4.0])):
        return x @ weights

    return step


@_program("state", (A,), (B,))
def global_table(x):
    return x * TABLE, TABLE[1:].sum(), TABLE.max() > 5


@_program("state", (A,), (B,), (A,))
def global_buffer(x):
    np.add(BUFFER, x, out=BUFFER)
    return BUFFER.sum()


@_program("state", (A,), (B,))
def global_settings(x):
    return np.clip(x, LIMITS["low"], LIMITS["high"]) * SETTINGS["scale"]


@_made("state", (A,), (B,))
def deque_of_arrays():
    recent = collections.deque(maxlen=2)

    def step(x):
        recent.append(x)
        return np.mean(list(recent), axis=0)

    return step


# ---- random ----------------------------------------------------------------------------------------------------------


@_program("random", (3,), (5,))
def legacy_draws(n):
    np.random.seed(n)
    return np.random.rand(n), np.random.normal(0, 1, size=n), np.random.randint(0, 10), np.random.permutation(n)


@_program("random", (A,), (B,))
def legacy_state(x):
    return x + np.random.standard_normal(4), np.random.choice(x, 2)


@_program("random", (A, 3), (B, 4))
def generator_inside(x, seed):
    rng = np.random.default_rng(seed)
    return x + rng.normal(size=x.shape), rng.integers(0, 9, 3), rng.choice(x)


@_program("random", (np.random.default_rng(1), A), (np.random.default_rng(2), B))
def generator_argument(rng, x):
    rng.shuffle(x)
    return x, rng.random()


@_program("random", (A,), (B,))
def generator_without_seed(x):
    return np.random.default_rng().random() < 2, x


@_program("random", (3,), (4,))
def random_state_object(n):
    state = np.random.RandomState(n)
    return state.rand(2), state.randint(5)


@_program("random", (A,), (B,))
def branch_on_draw(x):
    return x if np.random.rand() > 0.5 else -x


@_program("random", (A,), (B,))
def python_random(x):
    random.seed(3)
    return x * random.random() + random.randint(1, 6)


@_program("random", (A,), (B,))
def shuffled_in_place(x):
    np.random.shuffle(x)
    return x


# ---- containers, errors, settings ------------------------------------------------------------------------------------


@_program("results", (A, B), (B, A))
def nested_results(x, y):
    return {"sum": x + y, "parts": [x.min(), (y.max(), None)], "shape": x.shape, "dtype": x.dtype}


@_program("results", (A,), (B,))
def same_array_twice(x):
    y = x + 1
    return [y, y, {"again": y}]


class Pair(NamedTuple):
    low: Any
    high: Any


@_program("results", (A,), (B,))
def named_results(x):
    return Pair(x.min(), x.max()), np.linalg.eigh(np.outer(x, x) + np.eye(4)).eigenvalues.round(6)


@_program("results", ([A, B],), ([B, A],))
def changed_list(arrays):
    arrays.append(arrays[0] + arrays[1])
    arrays[0] = arrays[0] * 2
    return len(arrays)


@_program("errors", (M,), (np.ones((2, 2)),), (np.array([[0.0, 0.0], [0.0, 0.0]]),))
def caught_error(x):
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return np.zeros(2)


@_program("errors", (np.eye(2),), (np.zeros((2, 2)),))
def error_not_caught(x):
    return np.linalg.inv(x)


@_program("errors", (np.eye(2) * 2,), (np.zeros((2, 2)),))
def error_in_try(x):
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return x


@_program("errors", (A, B), (A, LONG))
def shapes_that_do_not_fit(x, y):
    return x + y


@_program("errors", (A,), (np.zeros(4),))
def raised_by_setting(x):
    with np.errstate(divide="raise"):
        return 1 / x


@_program("errors", (A,), (np.zeros(4),))
def caught_floating_error(x):
    try:
        with np.errstate(divide="raise"):
            return 1 / x
    except FloatingPointError:
        return x


@_program("errors", (A,), (-A,))
def asserted(x):
    assert x.sum() > 0, "not positive"
    return x


@_program("escapes", (A,), (B,))
def python_function_per_element(x):
    return np.vectorize(lambda value: value + 1 if value > 0 else 0.0)(x)


@_program("escapes", (M,), (N,))
def function_along_axis(x):
    return np.apply_along_axis(lambda row: row.max() - row.min(), 1, x)


@_program("escapes", (A, B), (B, A))
def closure_over_array(x, y):
    return np.apply_along_axis(lambda row: row + y, 0, x)


@_program("escapes", (A,), (B,))
def iterator_of_numpy(x):
    return [float(value) for value in np.nditer(x)]


@_program("escapes", (M,), (N,))
def enumerated(x):
    return sum(value * index[0] for index, value in np.ndenumerate(x))


@_program("escapes", (A,), (B,))
def reduced_by_python(x):
    return functools.reduce(operator.add, x), list(map(abs, x)), any(x > 1), all(x > -9)


@_program("escapes", (A,), (B,))
def python_lists_to_arrays(x):
    rows = [[x[0], 1.0], [x[1], x[2]]]
    return np.array(rows) @ np.ones(2), np.sum([x[0], x[3]]), np.maximum([x[0], 0.0], 1.0)


@_program("escapes", (A,), (B,))
def joined_by_index(x):
    return np.r_[0, x, x[-1]], np.c_[x, x], np.float32(x[0]), np.int64(x[2])


@_program("escapes", (A,), (B,))
def masked(x):
    return np.ma.masked_less(x, 0).sum()


@_program("escapes", (A,), (B,))
def matrix_class(x):
    return np.asmatrix(x).T
