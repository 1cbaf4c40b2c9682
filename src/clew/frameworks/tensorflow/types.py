"""Types, names, spellings and constants of TensorFlow's values, in the words of the other rooms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy
import tensorflow as tf

from clew.ir.types import ArrayType, ObjectType, Type

UNKNOWN = "_"
"""The name of a size that is not known before a call."""
VARIABLE = ObjectType("tensorflow.Variable")


def array_type(dtype: Any, shape: Any) -> ArrayType | None:
    """The type of a tensor; None if not even its rank is known."""
    if shape.rank is None:
        return None
    return ArrayType(dtype.name, tuple(UNKNOWN if size is None else int(size) for size in shape))


def type_of(value: Any) -> Type | None:
    """The type of a tensor, a spec or a variable."""
    if isinstance(value, tf.Variable):
        return VARIABLE
    if isinstance(value, (tf.Tensor, tf.TensorSpec)):
        return array_type(value.dtype, value.shape)
    return None


def same_value(left: Any, right: Any) -> bool | None:
    """Whether two tensors are the same constant; None if they are not both tensors."""
    if isinstance(left, tf.Variable) or isinstance(right, tf.Variable):
        return left is right
    if not (tf.is_tensor(left) and tf.is_tensor(right)) or not hasattr(left, "numpy") or not hasattr(right, "numpy"):
        return left is right if tf.is_tensor(left) or tf.is_tensor(right) else None
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    one, other = left.numpy(), right.numpy()
    return bool(one.tobytes() == other.tobytes()) if hasattr(one, "tobytes") else bool(numpy.array_equal(one, other))


_HOMES = (
    "", "nn", "math", "linalg", "signal", "random", "image", "strings", "bitwise", "sparse", "ragged", "sets", "nest",
    "debugging", "quantization", "audio", "io", "lookup", "dtypes", "raw_ops",
)  # fmt: skip
"""The modules of TensorFlow whose functions and classes users name; the first that has one wins."""


@functools.cache
def _names() -> dict[int, tuple[str, Any]]:
    found: dict[int, tuple[str, Any]] = {}
    for home in _HOMES:
        place = getattr(tf, home) if home else tf
        for name in dir(place):
            thing = getattr(place, name, None)
            if callable(thing) and not name.startswith("_"):
                found.setdefault(id(thing), (".".join(filter(None, ("tensorflow", home, name))), thing))
    return found


def qualified_name(thing: Any) -> str | None:
    """The public name of a function or class: ``tensorflow.matmul``, ``tensorflow.raw_ops.Relu6``."""
    known = _names().get(id(thing))
    return known[0] if known is not None and known[1] is thing else None


def spell(value: Any, name_of: Callable[[Any], str]) -> str | None:
    """The expression of a dtype or a shape; None for tensors and variables."""
    if isinstance(value, tf.DType):
        name = str(value.name)
        return f"{name_of(tf)}.{name}" if getattr(tf, name, None) is value else None
    if isinstance(value, tf.TensorShape):
        sizes = "None" if value.rank is None else repr(value.as_list())
        return f"{name_of(tf.TensorShape)}({sizes})"
    return None
