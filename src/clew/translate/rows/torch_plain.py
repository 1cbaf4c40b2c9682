"""Arrays without axes that hold plain numbers: sizes that went through ``torch.tensor``, ``torch.div`` or a buffer.

Comes in: a call of torch's by name, and its arguments, in which such arrays know their number (``Array.plain``). Goes
out: the number that the result holds, as an expression of plain numbers, so that it can be a size again and compilers
know it; None where that is not known. What torch computes in float32 is exact as long as the numbers are sizes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from clew.translate.values import Array, Number
from clew.translate.writer import Writer

_EXACT = 2**24
_SAME = ("detach", "clone", "contiguous", "cpu", "squeeze", "attribute.data", "alias", "lift_fresh")
_CONVERTED = ("to", "long", "int", "type_as", "tensor", "as_tensor", "_to_copy")
_OF_PYTHON: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floor_divide": operator.floordiv,
    "remainder": operator.mod, "neg": operator.neg, "gt": operator.gt, "ge": operator.ge, "lt": operator.lt,
    "le": operator.le, "eq": operator.eq, "ne": operator.ne, "maximum": max, "minimum": min, "ceil": math.ceil,
    "floor": math.floor, "div": operator.truediv, "truediv": operator.truediv, "true_divide": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod,
}  # fmt: skip


def plain_of(writer: Writer, name: str, args: Any, kwargs: Any, dtype: str) -> Any:
    """The number that a call gives, if it follows from plain ones."""
    numbers = [one.plain if isinstance(one, Array) else one for one in args]
    last = name.removeprefix("operator.")
    if last in _SAME and len(numbers) == 1:
        return numbers[0]
    if last in _CONVERTED and numbers and not isinstance(numbers[0], (str, type(None))):
        is_whole = dtype.startswith(("int", "uint"))
        return _whole(writer, numbers[0]) if is_whole else numbers[0] if _is_whole(numbers[0]) else None
    function = _OF_PYTHON.get(last)
    if function is None or kwargs or not all(map(_is_number, numbers)):
        return None
    if function is operator.truediv:
        if not all(map(_is_whole, numbers)):
            return None
        for one in numbers:
            writer.require(writer.operate(operator.lt, one, _EXACT), True, "torch divides in float32")
    return writer.operate(function, *numbers)


def _whole(writer: Writer, number: Any) -> Any:
    return number if _is_whole(number) else writer.operate(int, number)


def _value(number: Any) -> Any:
    return number.value if isinstance(number, Number) else number


def _is_number(number: Any) -> bool:
    return type(_value(number)) in (int, float, bool)


def _is_whole(number: Any) -> bool:
    return type(_value(number)) is int
