"""TensorFlow's arithmetic on sizes: tensors of plain numbers are computed with as Python computes with numbers.

``tf.shape(x)`` is a tensor, and so is all that programs make of it before they hand it to ``tf.reshape``. A ``Plain``
holds the numbers themselves, so that a compiler of the target knows them. Always holds: what comes out is what
TensorFlow gives, or ``None`` where the numbers do not tell, and then arrays are computed with.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from clew.translate.refusals import Untranslatable
from clew.translate.values import Array, Number, Plain, Value
from clew.translate.writer import leaves_of


def is_plain(value: Any) -> bool:
    """Whether a value is no array, nor a nest of arrays."""
    return all(not isinstance(leaf, Value) or isinstance(leaf, (Plain, Number)) for leaf in leaves_of(value))


def items_of(value: Any) -> Any:
    """The numbers of a plain value, as nested lists."""
    if isinstance(value, Plain):
        return value.items
    if isinstance(value, (tuple, list)):
        return [items_of(one) for one in value]
    return (
        value.item()
        if isinstance(value, numpy.generic)
        else value.tolist()
        if isinstance(value, numpy.ndarray)
        else value
    )


def plain(xp: Any, items: Any, dtype: str = "") -> Plain:
    """Numbers as a tensor."""
    return Plain(xp.writer, items, dtype or (xp.wanted.dtype if xp.wanted is not None else "int32"))


def array(xp: Any, value: Any) -> Any:
    """A tensor of plain numbers as an array; numbers of Python's stay."""
    if isinstance(value, Plain):
        return value.array()
    if isinstance(value, (list, tuple)) and all(not isinstance(leaf, Array) for leaf in leaves_of(value)):
        dtype = xp.wanted.dtype if xp.wanted is not None else "int32"
        return Plain(xp.writer, items_of(value), dtype).array()
    return value


def operand(value: Any) -> Any:
    """What an operator of the target is given: a number where that is all there is."""
    if isinstance(value, Plain):
        return value.array() if isinstance(value.items, list) else value.items
    return value


def sizes(value: Any) -> tuple[Any, ...]:
    """A shape, as numbers."""
    found = items_of(value)
    if any(isinstance(leaf, Value) and not isinstance(leaf, Number) for leaf in leaves_of(found)):
        raise Untranslatable("a size that depends on the data")
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)


def number(value: Any) -> Any:
    """A number of the running program, or a fixed one."""
    found = items_of(value)
    if isinstance(found, (list, Array)):
        raise Untranslatable("a number that depends on the data")
    return found


def fixed(value: Any) -> Any:
    """Numbers that are known now: axes, orders."""
    found = items_of(value)
    if any(isinstance(leaf, Value) for leaf in leaves_of(found)):
        raise Untranslatable("an axis that is not fixed")
    return found


def elementwise(xp: Any, function: Callable[..., Any], *values: Any) -> Any:
    """An operator on plain tensors of up to one axis."""
    given = [items_of(value) for value in values]
    dtype = next((value.dtype for value in values if isinstance(value, Plain)), "int32")
    return plain(xp, _spread(xp, function, given, dtype))


def _spread(xp: Any, function: Callable[..., Any], given: Sequence[Any], dtype: str) -> Any:
    lists = [one for one in given if isinstance(one, list)]
    if not lists:
        return _one(xp, function, given, dtype)
    count = max(map(len, lists)) if all(map(len, lists)) else 0
    if any(len(one) not in (1, count) for one in lists):
        raise Untranslatable("sizes of different shapes are computed with")
    rows = [one * count if isinstance(one, list) and len(one) == 1 else one if isinstance(one, list) else [one] * count
            for one in given]  # fmt: skip
    return [_spread(xp, function, row, dtype) for row in zip(*rows, strict=True)]


def _one(xp: Any, function: Callable[..., Any], given: Sequence[Any], dtype: str) -> Any:
    if any(isinstance(one, Number) for one in given):
        if not dtype.startswith(("int", "bool")):
            raise Untranslatable("a size among floating point numbers")
        if function in (max, min):
            return xp.writer.plain(function, *given)
        return xp.writer.operate(function, *given)
    if dtype.startswith("int") or dtype == "bool":
        return function(*given)
    kind = getattr(numpy, dtype)
    with numpy.errstate(all="ignore"):
        return numpy.asarray(function(*(kind(one) for one in given))).item()


def can(values: Sequence[Any]) -> bool:
    """Whether these are computed with as numbers: plain tensors, of which one at least is no number of Python's."""
    plains = [value for value in values if isinstance(value, Plain)]
    if not plains or not all(is_plain(value) for value in values):
        return False
    return all(value.dtype in _EXACT or (value.dtype in _FLOATS and _is_fixed(value)) for value in plains)


_EXACT, _FLOATS = ("int32", "int64", "bool"), ("float32", "float64")


def _is_fixed(value: Plain) -> bool:
    return not any(isinstance(leaf, Number) for leaf in leaves_of(value.items))


def folded(xp: Any, function: Callable[..., Any], items: Sequence[Any]) -> Any:
    """A reduction of numbers."""
    found = items[0]
    for one in items[1:]:
        found = _one(xp, function, (found, one), "int32")
    return found


def reduced(xp: Any, name: str, items: Any) -> Any:
    """A reduction of a list of numbers; None where the numbers do not tell."""
    if not isinstance(items, list):
        return items
    if any(isinstance(one, list) for one in items):
        return None
    start = {"sum": 0, "prod": 1, "all": True, "any": False}
    if not items:
        return start.get(name)
    functions: dict[str, Callable[..., Any]] = {"sum": operator.add, "prod": operator.mul, "max": max, "min": min}
    functions |= {"all": operator.and_, "any": operator.or_}
    return folded(xp, functions[name], items) if name in functions else None


def whole(items: Any) -> bool:
    """Whether a nest of lists has no list in a list."""
    return isinstance(items, list) and not any(isinstance(one, list) for one in items)


def reshaped(items: Any, shape: Sequence[Any]) -> Any:
    """Numbers in another shape that is fixed; None where it is not."""
    flat = leaves_of(items) if isinstance(items, list) else [items]
    if any(isinstance(one, Value) for one in shape):
        return None
    known = math.prod(one for one in shape if one != -1)
    filled = [len(flat) // max(known, 1) if one == -1 else one for one in shape]
    if math.prod(filled) != len(flat):
        return None
    for size in reversed(filled[1:]):
        flat = [flat[place : place + size] for place in range(0, len(flat), size)]
    return flat if filled else flat[0]
