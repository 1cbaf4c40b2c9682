"""Checks of inputs, called by graphs that hold only for some inputs.

A check takes values by the names of their inputs and what is expected of them; it returns nothing, and raises
``InputMismatch`` with the name, the value's type and the expected one. Types are written as text: ``f32[n, 4]``, where
a name stands for a size that is not fixed but is the same wherever the name is.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from clew.errors import InputMismatch
from clew.ir.types import ArrayType, type_of
from clew.ir.types import parse_type as parse_type_anew

Range = tuple[int | None, int | None]
parse_type = functools.lru_cache(maxsize=1024)(parse_type_anew)


def check_tensors(
    tensors: Mapping[str, Any], types: Mapping[str, str], ranges: Mapping[str, Range], numbers: Mapping[str, Any]
) -> None:
    """Each tensor has its dtype, kind of device and shape; each named size is the same everywhere and in its range.

    ``numbers`` gives the sizes that are inputs themselves.
    """
    sizes = dict(numbers)
    for symbol, size in numbers.items():
        _check_range(symbol, size, ranges, "the program")
    for name, text in types.items():
        expected, found = parse_type(text), type_of(tensors[name])
        if not isinstance(expected, ArrayType) or not isinstance(found, ArrayType) or not _fits(found, expected):
            raise _mismatch(f"the input {name} is {found}, and {text} is expected")
        for place, (size, wanted) in enumerate(zip(found.shape, expected.shape, strict=True)):
            if isinstance(wanted, str):
                if sizes.setdefault(wanted, size) != size:
                    raise _mismatch(
                        f"the input {name} is {found}, and {text} is expected, where {wanted} is {sizes[wanted]}"
                    )
                _check_range(wanted, size, ranges, f"size {place} of the input {name}")


def _fits(found: ArrayType, expected: ArrayType) -> bool:
    same_kind = found.dtype == expected.dtype and found.device.split(":")[0] == expected.device.split(":")[0]
    return same_kind and len(found.shape) == len(expected.shape) and all(map(_size_fits, found.shape, expected.shape))


def _size_fits(found: int | str, expected: int | str) -> bool:
    return isinstance(expected, str) or found == expected


def _check_range(symbol: str, size: Any, ranges: Mapping[str, Range], where: str) -> None:
    lowest, highest = ranges.get(symbol, (None, None))
    if lowest is not None and size < lowest:
        raise _mismatch(f"{where}: {symbol} is {size}, and at least {lowest} is expected")
    if highest is not None and size > highest:
        raise _mismatch(f"{where}: {symbol} is {size}, and at most {highest} is expected")


def check_constants(values: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
    """Each value is the constant that was built into the graph; NaN is NaN, and True is not 1."""
    for name, expected in constants.items():
        value = values[name]
        same = value is expected or (type(value) is type(expected) and (value == expected or value != value))
        if not same or (value != value) != (expected != expected):
            raise _mismatch(f"the input {name} is {value!r}, and {expected!r} is expected")


def _mismatch(what: str) -> InputMismatch:
    return InputMismatch(
        what,
        why="the graph was made for such inputs only, and might compute something else for others",
        fixes=["capture the program again with inputs like these, or with sizes that may vary"],
    )
