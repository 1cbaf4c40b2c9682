"""Types, names, spellings and constants of TensorFlow's values, and what its tensors are in a graph of Clew.

Comes in: a tensor, a spec, a variable or a dtype. Goes out: an IR type, a literal, or the node that computes it.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import tensorflow as tf

from clew.ir.node import Node
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
    "debugging", "quantization", "audio", "io", "lookup", "dtypes", "raw_ops", "experimental.numpy",
)  # fmt: skip
"""The modules of TensorFlow whose functions and classes users name; the first that has one wins."""


@functools.cache
def _names() -> dict[int, tuple[str, Any]]:
    found: dict[int, tuple[str, Any]] = {}
    for home in _HOMES:
        place = operator.attrgetter(home)(tf) if home else tf
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


# ---- values of a graph that is being imported ------------------------------------------------------------------------
#
# What a tensor of a TensorFlow graph is in the graph of Clew that is made of it. A ``Node`` computes it; a ``Literal``
# is a constant that is written where it is used; a ``Resource`` is a variable or table, which is read and written in
# place. ``Root`` collects what the graph reaches as attributes of its root.


_LONGEST = 32
"""Constants with more elements than that are attributes of the root, not text."""
_PLAIN = {"int32": int, "float32": float, "bool": bool, "string": bytes}
"""The dtypes that TensorFlow itself gives to Python's numbers and texts."""
_NUMBERS = frozenset({"float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"})


@dataclass(frozen=True)
class Literal:
    """A constant of the graph."""

    array: Any
    dtype: Any

    @property
    def is_small(self) -> bool:
        """Whether it may be written out."""
        return bool(self.array.size <= _LONGEST) and self.dtype.name in {*_NUMBERS, "bool", "string"}

    @property
    def has_default_dtype(self) -> bool:
        """Whether TensorFlow makes the same tensor of the plain value without being told its dtype."""
        return self.dtype.name in _PLAIN and self.array.size > 0 and self.is_small

    def plain(self) -> Any:
        """The value as Python's numbers in lists."""
        return _plain(self.array, self.dtype)


@dataclass(frozen=True)
class Resource:
    """A variable, a table or another resource: an attribute of the root, or a node that gives it."""

    place: str | Node
    value: Any

    @property
    def is_variable(self) -> bool:
        """True for a variable; the value of any other resource is its handle."""
        return isinstance(self.value, tf.Variable)


@dataclass(frozen=True)
class Number:
    """A plain number of Python."""

    value: Any


Value = Node | Literal | Resource | Number


def _plain(array: Any, dtype: Any) -> Any:
    if getattr(array, "ndim", 0):  # a text out of an array of objects has none
        return [_plain(item, dtype) for item in array]
    if dtype.name == "string":
        item = array.item() if hasattr(array, "item") else array
        return item if isinstance(item, bytes) else str(item).encode()
    if dtype.name in ("float16", "bfloat16", "float32"):
        return _shortest(array[()])
    return array.item()


def _shortest(number: Any) -> float:
    """The shortest decimal number that becomes this one in its dtype: 0.1 and not 0.10000000149011612."""
    exact = float(number)
    short = float(str(number))
    return short if type(number)(short) == number or exact != exact else exact


class Root:
    """The attributes that a graph needs, each under a name of its own."""

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}
        self._paths: dict[int, str] = {}

    def path_of(self, value: Any, name: str) -> str:
        """The name of the attribute that holds ``value``: the same for the same object."""
        path = self._paths.get(id(value))
        if path is None:
            path = self._free(name)
            self._paths[id(value)] = path
            self.attributes[path] = value
        return path

    def _free(self, name: str) -> str:
        base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "value"
        base = f"_{base}" if base[0].isdigit() else base
        path, count = base, 0
        while path in self.attributes:
            count += 1
            path = f"{base}_{count}"
        return path


def variable_name(variable: Any) -> str:
    """A readable name for a variable, from the one that it has: ``dense/kernel:0`` becomes ``dense_kernel``."""
    return str(variable.name).partition(":")[0] or "variable"


def literal_of(operation: Any) -> Literal:
    """The constant that an operation of the type Const holds."""
    proto = operation.get_attr("value")
    return Literal(numpy.asarray(tf.make_ndarray(proto)), tf.as_dtype(proto.dtype))
