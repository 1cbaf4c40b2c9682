"""Whether two results of TensorFlow programs are the same: structure, kinds, dtypes, shapes and values."""

from __future__ import annotations

from typing import Any

import numpy
import tensorflow as tf


def difference(wanted: Any, found: Any, tolerance: float = 1e-5) -> str:
    """What differs, in words; empty if nothing does."""
    if type(wanted) is not type(found):
        return f"a {type(found).__name__} instead of a {type(wanted).__name__}"
    if isinstance(wanted, (list, tuple)):
        if len(wanted) != len(found):
            return f"{len(found)} items instead of {len(wanted)}"
        pairs = list(zip(wanted, found, strict=True))
        return next((words for pair in pairs if (words := difference(*pair, tolerance))), "")
    if isinstance(wanted, dict):
        if list(wanted) != list(found):
            return f"keys {list(found)} instead of {list(wanted)}"
        return next((words for key in wanted if (words := difference(wanted[key], found[key], tolerance))), "")
    if not tf.is_tensor(wanted):
        return "" if wanted == found or wanted is found else f"{found} instead of {wanted}"
    parts = [tf.nest.flatten(value, expand_composites=True) for value in (wanted, found)]
    return next((words for pair in zip(*parts, strict=True) if (words := _tensors(*pair, tolerance))), "")


def _tensors(wanted: Any, found: Any, tolerance: float) -> str:
    if wanted.dtype != found.dtype or wanted.shape != found.shape:
        return f"{found.dtype.name}{found.shape} instead of {wanted.dtype.name}{wanted.shape}"
    one, other = wanted.numpy(), found.numpy()
    if wanted.dtype == tf.string:
        return "" if numpy.array_equal(one, other) else f"{other} instead of {one}"
    same = numpy.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
    return "" if same else f"{other} instead of {one}"
