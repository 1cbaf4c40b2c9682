"""Programs whose answer depends on what they are given besides tensors: numbers, texts, kinds of tensors, dtypes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy
import tensorflow as tf

from tests.frameworks.tensorflow.hard.ledger import LONG, I, M, X, Y, program


class State(NamedTuple):
    count: object
    total: object


@program((I, 2), (I, 3), (I, 2), (I, -2))
def integer_by_number(i, n):
    return i // n, i % n, i / n


@program((X, 1), (X, 1.0), (X, 2), (X, True))
def number_beside_tensor(x, n):
    return x + n, n


@program((X, 3), (X, 4), (X, 0))
def loop_by_number(x, n):
    for step in range(n):
        x = x * step + 1
    return x


@program((X, "sum"), (X, "max"), (X, "sum"))
def chosen_by_text(x, how):
    return tf.reduce_sum(x) if how == "sum" else tf.reduce_max(x)


@program((X, None), (X, Y), (X, None))
def none_or_tensor(x, bias):
    return x if bias is None else x + bias


@program((X, tf.float64), (X, tf.int32), (X, tf.float64))
def dtype_as_argument(x, dtype):
    return tf.cast(x, dtype)


@program((X, slice(0, 2)), (X, slice(1, 3)), (X, slice(None)))
def slice_as_argument(x, part):
    return x[part]


@program((X, [1.0, 2.0, 3.0]), (X, [3.0, 2.0, 1.0]), (X, (1.0, 2.0, 3.0)))
def list_of_numbers(x, rates):
    return x * rates, sum(rates)


@program((X, numpy.arange(3.0, dtype="float32")), (X, numpy.ones(3, "float32")), (X, [0.0, 1.0, 2.0]))
def numpy_array_given(x, a):
    return x + a


@program((X, numpy.float32(2)), (X, numpy.float32(3)), (X, 2.0))
def numpy_scalar_given(x, a):
    return x * a


@program((X, State(I, Y)), (X, State(I, X)), (X, (I, Y)))
def named_tuple(x, state):
    return State(state[0] + 1, x + state[1])


@program(({"b": X, "a": Y},), ({"b": Y, "a": X},), ({"a": Y, "b": X},), ({"b": X},))
def order_of_keys(held):
    total = tf.zeros(3)
    for value in held.values():
        total = total * 2 + value
    return total, held


@program((X, Y), (X,), (X, Y, X))
def many_arguments(*tensors):
    return tf.stack(tensors) * len(tensors)


@program((X > 0, I), (X < 0, I), (X > 9, I))
def booleans(mask, i):
    return mask & ~mask, tf.where(mask, i, 0), tf.reduce_any(mask), tf.boolean_mask(i, mask)


@program((tf.complex(X, Y),), (tf.complex(Y, X),), (X,))
def complex_numbers(z):
    return tf.abs(z), tf.math.conj(z), tf.math.real(z)


@program((tf.zeros([0, 3]),), (tf.ones([0, 3]),), (M,))
def empty_tensors(x):
    return tf.reduce_sum(x, 0), tf.concat([x, x + 1], 0), tf.reshape(x, [-1])


@program((tf.constant(["a b", "c"]),), (tf.constant(["x", "y z w"]),), (tf.constant(["x"]),))
def strings(words):
    return tf.strings.length(words), tf.strings.upper(words), tf.strings.split(words), words + "!"


@program((tf.ragged.constant([[1, 2], [3]]),), (tf.ragged.constant([[5], [1, 3]]),), (tf.ragged.constant([[1]]),))
def ragged(rows):
    return tf.reduce_sum(rows, axis=1), rows * 2, rows.to_tensor(), rows.row_lengths()


@program((tf.sparse.from_dense([[0, 1.0], [2, 0]]),), (tf.sparse.from_dense([[3.0, 1.0], [2, 0]]),))
def sparse(matrix):
    return tf.sparse.to_dense(matrix), tf.sparse.reduce_sum(matrix), tf.sparse.sparse_dense_matmul(matrix, tf.eye(2))


@program((X,), (M,), (I,))
def asks_for_facts(x):
    if x.dtype.is_floating and x.shape.rank == 1:
        return x / x.shape[0]
    return tf.cast(x, tf.float32) * len(x)


@program((LONG, 2), (LONG, 3), (LONG, 5))
def split_by_number(x, n):
    return tf.split(x, [n, x.shape[0] - n])


@program((X, Y), (X, X), (Y, X))
def same_object(x, y):
    return x * 2 if x is y else x * 3


@program((X, math.inf), (X, -0.0), (X, math.nan))
def odd_numbers(x, n):
    return x + n, n


@program((tf.constant(250, tf.uint8), 10), (tf.constant(1, tf.uint8), 10), (tf.constant(250, tf.uint8), 3))
def wrapping_integers(a, n):
    return a + n, a * 2


@program((tf.constant(3), X), (tf.constant(1), X), (tf.constant(0), X))
def size_from_data(n, x):
    return tf.zeros(n), tf.repeat(x, n), tf.range(n)


@program((X,), (tf.constant([1, 2, 3]),), (tf.constant([1.0, 2.0], tf.float64),))
def rank_and_dtype_of_lists(x):
    return [x, [x + 1, {"deep": (x * 2,)}]], None, "text", 3
