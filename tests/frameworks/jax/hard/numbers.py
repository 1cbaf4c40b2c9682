"""Programs whose answer depends on types of numbers: dtypes, weak types, Python's numbers, NumPy's, strings, None."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy

from tests.frameworks.jax.hard.ledger import I, M, X, Y, program

HALF = X.astype(jnp.bfloat16)


@program((I, 2), (I, 3), (I, 2.0), (I, True), (I, -2))
def integer_by_number(i, n):
    return i // n, i % n, i**2 / n


@program((X, 1), (X, 1.0), (X, True), (I, 1), (HALF, 1.5))
def promoted_by_number(x, n):
    return x + n


@program((jnp.asarray(2.0), X), (jnp.float32(2.0), X), (jnp.asarray(2), X), (2.0, X))
def weak_scalar(a, x):
    return a * x.astype(jnp.float16)


@program((X, numpy.float64(2.0)), (X, numpy.float64(3.0)), (X, numpy.float32(2.0)), (X, 2.0))
def numpy_scalar(x, a):
    return x * a


@program((X, numpy.int8(3)), (X, numpy.int8(5)), (I, numpy.int8(5)))
def numpy_integer(x, a):
    return x * a, x + jnp.asarray(a)


@program((X, 0.1), (X, 0.2), (X, 1), (X, -0.0), (X, math.nan), (X, math.inf))
def number_given_back(x, rate):
    return rate, rate * 2, x * rate


@program((X, 2), (X, 3), (X, 0), (X, -1))
def number_decides(x, n):
    return x * n if n > 1 else x - n


@program((X, 3), (X, 4), (X, 0))
def loop_by_number(x, n):
    for step in range(n):
        x = x * step + 1
    return x


@program((X, 2), (X, 3), (X, 2.0))
def power_by_number(x, n):
    return x**n, n**x


@program((X, "sum"), (X, "max"), (X, "sum"))
def chosen_by_text(x, how):
    return getattr(x, how)()


@program((X, None), (X, Y), (X, None))
def none_or_array(x, bias):
    return x if bias is None else x + bias


@program((X, jnp.float32), (X, jnp.int32), (X, "float16"))
def dtype_as_argument(x, dtype):
    return x.astype(dtype)


@program((X, 0), (X, -1), (M, 0), (M, 1))
def axis_as_argument(x, axis):
    return jnp.sum(x, axis=axis), jnp.flip(x, axis)


@program((X, 1), (X, 2), (X, -1), (X, 7))
def index_as_argument(x, place):
    return x[place], x[place:], x[:place]


@program((X, slice(0, 2)), (X, slice(1, 3)), (X, slice(None)))
def slice_as_argument(x, part):
    return x[part]


@program((X, (2, 3)), (X, (3, 2)), (X, [2, 3]))
def shape_as_argument(x, shape):
    return jnp.broadcast_to(x[0], shape)


@program((X > 0, I), (X < 0, I), (X > 9, I))
def booleans(mask, i):
    return mask & ~mask, mask + mask, mask * i, jnp.where(mask, i, 1.5), mask.sum(), mask.mean()


@program((jnp.array([1 + 2j, 3 - 1j]),), (jnp.array([0j, 1j]),), (X,))
def complex_numbers(z):
    return jnp.abs(z), jnp.conj(z), z.real, jnp.imag(z), jnp.angle(z)


@program((jnp.zeros((0, 3)),), (jnp.zeros((0, 3)) + 1,), (M,))
def empty_arrays(x):
    return x.sum(0), x.mean(), jnp.concatenate([x, x + 1]), x.reshape(-1)


@program((jnp.uint8(250), 10), (jnp.uint8(250), 3), (jnp.uint8(1), -1), (jnp.uint8(1), 300))
def wrapping_integers(a, n):
    return a + n, a * 2


@program((X, 10**10), (X, 3), (X, 2**31 - 1), refused="JAX itself refuses the number")
def large_number(x, n):
    return x * n


@program((X, 1e-300), (X, 0.3))
def tiny_number(x, rate):
    return x * (rate * 1e300)


@program((X, [1.0, 2.0]), (X, [3.0, 2.0]), (X, [1.0]), (X, (1.0, 2.0)))
def list_of_numbers(x, rates):
    return sum(rates) * x, jnp.asarray(rates)


@program((X, {"a": 1, "b": 2.0}), (X, {"a": 2, "b": 1.0}), (X, {"b": 2.0, "a": 1}), (X, {"a": 1}))
def dict_of_numbers(x, rates):
    for rate in rates.values():
        x = x * rate + 1
    return x


@program((X, 0.5), (X, 2.5), (X, -0.5))
def rounded_number(x, rate):
    return x * round(rate) + int(rate) + math.floor(rate)


@program((X, 2.0), (X, 4.0), (X, 9.0))
def math_of_number(x, rate):
    return x * math.sqrt(rate)


@program((X, 2), (X, 3))
def formatted_number(x, n):
    return {f"part {n}": x * n}


@program((X, 2, 3), (X, 3, 2), (X, 2, 2))
def equal_numbers(x, a, b):
    return x if a == b else x * (a - b), a is b


@program((M, 1), (M, 2), (M, 3))
def divided_shapes(x, n):
    return x.shape[0] // n, x.reshape(-1)[: x.size // n]


@program((numpy.arange(3.0), X), (numpy.arange(3.0) + 1, X), (numpy.arange(3), X), (X, X))
def numpy_array_given(a, x):
    return jnp.asarray(a) + x, a


@program((X.astype(jnp.float16), 70000.0), (X.astype(jnp.float16), 3.0))
def narrow_overflow(x, n):
    return x * n, x + n


@program(
    (jax.ShapeDtypeStruct((3,), jnp.float32), X),
    (jax.ShapeDtypeStruct((3,), jnp.float16), X),
    refused="a spec is no array and no plain value",
)
def spec_as_argument(spec, x):
    return x.astype(spec.dtype)
