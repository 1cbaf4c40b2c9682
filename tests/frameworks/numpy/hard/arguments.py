"""Programs that depend on plain arguments, and on numbers that leave arrays."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np

from tests.frameworks.numpy.hard.ledger import LONG, PLACES, A, B, J, M, N, program


@program("arguments", (A, 2), (A, 3), (A, 2.5))
def number_argument(x, k):
    return x * k, k + 1


@program("arguments", (A, "sum"), (A, "mean"), (B, "sum"))
def text_argument(x, how):
    return getattr(x, how)()


@program("arguments", (A, np.sin), (A, np.cos))
def function_argument(x, function):
    return function(x)


@program("arguments", (A, np.mean), (A, np.sum))
def function_identity(x, reduce):
    return x.mean() if reduce is np.mean else x.sum()


@program("arguments", (4, np.zeros), (4, np.ones))
def constructor_identity(n, make):
    return make(n) if make is np.zeros else -make(n)


@program("arguments", (A, None), (A, B))
def optional_argument(x, y):
    return x if y is None else x + y


@program("arguments", ([A, B],), ([A, B, A],), ([B],))
def list_argument(arrays):
    return np.stack(arrays).sum(axis=0), len(arrays)


@program("arguments", ({"a": A, "b": 2},), ({"a": B, "b": 3},), ({"a": A, "c": 2},))
def dict_argument(values):
    return {key: value * 2 for key, value in values.items()}


@program("arguments", (A, A.copy()), (A, B))
def same_or_other_object(x, y):
    return x if x is y else x + y


@program("arguments", (np.float64(2.0), A), (np.float64(3.0), B), (np.float32(2.0), A))
def numpy_number_argument(scale, x):
    return scale * x if scale > 1 else x


@program("arguments", (np.dtype("float32"), A), (np.dtype("int64"), A))
def dtype_argument(dtype, x):
    return x.astype(dtype)


@dataclasses.dataclass
class Batch:
    data: np.ndarray
    weight: float


@program("arguments", (Batch(A, 1.0),), (Batch(B, 2.0),))
def dataclass_argument(batch):
    batch.data *= batch.weight
    batch.weight = batch.data.sum()
    return batch.data.max()


@program("numbers", (A,), (B,))
def item_and_float(x):
    return float(x[0]) + x[1].item(), int(x[2]), math.sqrt(abs(float(x[3])))


@program("numbers", (A,), (B,))
def to_list(x):
    return [value + 1 for value in x.tolist()]


@program("numbers", (A,), (B,))
def formatted(x):
    return f"{x[0]:.2f}", str(x.sum()), repr(x[1])


@program("numbers", (A,), (B,))
def text_of_array(x):
    return str(x)


@program("numbers", (PLACES,), (J,))
def element_as_index_of_list(x):
    return ["a", "b", "c", "d"][x[0]]


@program("numbers", (PLACES,), (J,))
def element_as_key(x):
    return {0: "zero", 1: "one", 3: "three"}.get(int(x[0]), "other")


@program("numbers", (PLACES,), (J,))
def repeated_list(x):
    return [0] * int(x[2]), range(int(x[3]))


@program("numbers", (A,), (B,))
def python_sum_and_sorted(x):
    return sum(x), sorted(x), max(x), min(x)


@program("numbers", (A,), (B,))
def unpacked(x):
    a, b, *rest = x
    return a * b, rest


@program("numbers", (M,), (N,))
def shape_arithmetic(x):
    rows, columns = x.shape
    return np.zeros((rows * 2, columns - 1)), rows / columns, x.reshape(columns, rows)


@program("numbers", (M,), (N,))
def shape_as_key(x):
    return {(3, 4): "wide", (2, 4): "small"}.get(x.shape, "none")


@program("numbers", (A,), (LONG,))
def loop_over_size(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * i
    return total


@program("numbers", (A,), (B,))
def bytes_of_array(x):
    return x.tobytes()


@program("numbers", (A,), (B,))
def memory_of_array(x):
    return memoryview(x)[0] + 1


@program("numbers", (A,), (B,))
def pickled(x):
    return pickle.loads(pickle.dumps(x)) + 1


@program("numbers", (A,), (B,))
def pointer(x):
    return x.ctypes.data != 0, x.__array_interface__["shape"]


@program("numbers", (A,), (B,))
def class_of_values(x):
    return type(x) is np.ndarray, type(x[0]) is np.float64, isinstance(x.sum(), float), x.__class__.__name__
