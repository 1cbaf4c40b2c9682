"""torch's strides: where items lie in memory, for programs that look at one array as windows which overlap.

In comes an array whose axes lie in memory in some order, without gaps, as they do for the example; strides are products
of sizes then, and ``as_strided`` takes items of the row that the memory is. Arrays with gaps are refused.
"""

from __future__ import annotations

import math
from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.rows.torch_shapes import sizes
from clew.translate.values import Array


@TORCH.row("stride")
def stride(xp: Any, x: Array, dim: Any = None) -> Any:
    """How far neighbours along each axis lie apart; along one axis if that is named."""
    told = xp.writer.observed(xp.writer.origin)
    if dim is not None or not isinstance(told, (tuple, list)) or len(told) != x.ndim:
        raise Untranslatable("how an array lies in memory is not known for the example")
    order = _order(x.spec.shape, tuple(told))
    if order is None:
        raise Untranslatable("an array that lies in memory with gaps, or more than once")
    xp.writer.note("the axes of an array are taken to lie in memory in the order that they have for the example")
    found: list[Any] = [1] * x.ndim
    apart: Any = 1
    for axis in reversed(order):
        found[axis] = apart
        apart = apart * x.size(axis)
    x.layout = order
    return tuple(found)


def _order(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes from the outermost to the innermost; None if the items are no row without gaps."""
    order = tuple(sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis)))
    apart = 1
    for axis in reversed(order):
        if strides[axis] != apart:
            return None
        apart *= shape[axis]
    return order


@TORCH.row("as_strided")
def as_strided(xp: Any, x: Array, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """Items of the memory that an array lies in, at these distances."""
    if x.layout is None or storage_offset not in (None, 0):
        raise Untranslatable("how an array lies in memory is not known")
    size, stride = sizes((size,)), sizes((stride,))
    row = xp.reshape(x if x.layout == tuple(range(x.ndim)) else xp.transpose(x, x.layout), (-1,))
    last: Any = sum((one - 1) * apart for one, apart in zip(size, stride, strict=True))
    count: Any = math.prod(x.shape)
    xp.writer.require(last < count, True, "the items lie in the memory of the array")
    index: Any = 0
    for axis, (one, apart) in enumerate(zip(size, stride, strict=True)):
        line = xp.reshape(xp.arange(one) * apart, (*(1,) * axis, -1, *(1,) * (len(size) - axis - 1)))
        index = line if isinstance(index, int) else index + line
    return xp.take(row, index, axis=0)
