"""Whether two results of JAX programs are the same: structure, classes, dtypes, weak types, and every bit."""

from __future__ import annotations

from typing import Any

import jax
import numpy

from clew.frameworks.jax.types import kind_of


def assert_same(wanted: Any, got: Any) -> None:
    """Raise unless two nests hold the same values."""
    left, structure = jax.tree_util.tree_flatten(wanted)
    right, other = jax.tree_util.tree_flatten(got)
    assert structure == other, (structure, other)
    for one, two in zip(left, right, strict=True):
        assert type(one) is type(two), (type(one), type(two))
        assert kind_of(one) == kind_of(two), (kind_of(one), kind_of(two))
        assert bits(one) == bits(two), (one, two)


def bits(value: Any) -> bytes:
    """The bytes of a value; all nans are the same."""
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    array = numpy.asarray(value)
    if array.dtype.kind in "fc":
        array = numpy.where(numpy.isnan(array), numpy.array(numpy.nan, array.dtype), array)
    return array.tobytes()
