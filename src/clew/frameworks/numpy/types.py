"""The IR types of NumPy's values, when two of its constants are the same, and how its plain values are written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from clew.ir.types import ArrayType, ObjectType, Type

_STREAMS = (numpy.random.Generator, numpy.random.RandomState)
NameOf = Callable[[Any], str]


def type_of(value: Any) -> Type | None:
    """The type of a value of NumPy's; None for what the IR names by its class."""
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return array_type(value)
    if isinstance(value, _STREAMS):
        return ObjectType(f"numpy.random.{type(value).__name__}")
    return ObjectType("numpy.dtype") if isinstance(value, numpy.dtype) else None


def array_type(array: Any) -> ArrayType:
    """Dtype and shape of an array or of a number of NumPy's."""
    return ArrayType(array.dtype.name, tuple(map(int, array.shape)))


def same_value(left: Any, right: Any) -> bool | None:
    """Whether two values of NumPy's are the same constant, in which nan equals nan; None when they are not NumPy's."""
    if isinstance(left, numpy.dtype) and isinstance(right, numpy.dtype):
        return bool(left == right)
    kinds = (numpy.ndarray, numpy.generic)
    if not isinstance(left, kinds) and not isinstance(right, kinds):
        return None
    if type(left) is not type(right) or left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left is right:
        return True
    return not left.dtype.hasobject and bool(left.tobytes() == right.tobytes())


def spell(value: Any, name_of: NameOf) -> str | None:
    """The expression of a dtype or of a number of NumPy's; None for arrays, which travel as objects."""
    if isinstance(value, numpy.dtype):
        return _dtype(value, name_of)
    if isinstance(value, (numpy.bool_, numpy.integer)) and not isinstance(value, numpy.timedelta64):
        return f"{name_of(type(value))}({value.item()!r})"
    if isinstance(value, (numpy.float64, numpy.float32, numpy.float16)):
        return f"{name_of(type(value))}({_float(value.item())})"
    return None


def _float(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"float({repr(value)!r})"


def _dtype(value: Any, name_of: NameOf) -> str | None:
    if value.names is not None or value.subdtype is not None or value.metadata or value.hasobject:
        return None
    name = value.name if value.isnative and value.kind in "biufc" else value.str
    return f"{name_of(numpy.dtype)}({name!r})" if numpy.dtype(name) == value else None
