"""The IR types of JAX's values, and when two of its constants are the same."""

from __future__ import annotations

from typing import Any

import jax
import numpy

from clew.frameworks.jax.kinds import kind_of, type_of_aval
from clew.ir.types import ArrayType, Type


def type_of(value: Any) -> Type | None:
    """The type of an array of JAX; None for other objects, which the IR names by their class."""
    if not isinstance(value, jax.Array):
        return None
    found = type_of_aval(jax.typeof(value))
    platform = _platform(value)
    if isinstance(found, ArrayType) and platform != "cpu":
        return ArrayType(found.dtype, found.shape, platform)
    return found


def _platform(value: jax.Array) -> str:
    if isinstance(value, jax.core.Tracer):
        return "cpu"
    return next(iter(value.devices())).platform


def same_value(left: Any, right: Any) -> bool | None:
    """Whether two arrays are the same constant, bit by bit; None when they are not JAX's."""
    if not isinstance(left, jax.Array) and not isinstance(right, jax.Array):
        return None
    if left is right:
        return True
    if not isinstance(left, jax.Array) or not isinstance(right, jax.Array) or kind_of(left) != kind_of(right):
        return False
    if jax.dtypes.issubdtype(left.dtype, jax.dtypes.prng_key):
        left, right = jax.random.key_data(left), jax.random.key_data(right)
    return numpy.asarray(left).tobytes() == numpy.asarray(right).tobytes()
