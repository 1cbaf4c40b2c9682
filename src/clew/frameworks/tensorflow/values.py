"""What a tensor of a TensorFlow graph is in the graph of Clew that is made of it.

A ``Node`` computes it; a ``Literal`` is a constant that is written where it is used; a ``Resource`` is a variable or
table, which is read and written in place. ``Root`` collects what the graph reaches as attributes of its root.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy
import tensorflow as tf

from clew.ir.node import Node

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
    if array.ndim:
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
