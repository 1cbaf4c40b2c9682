"""What of a program depends on the rank and dtype of its arrays: then these are guarded, and not before.

A graph of NumPy's functions computes with whatever comes in. What the recording takes from the example is the class of
each value: an array, a number of NumPy's, a number of Python's. Most calls give a value of the same class for all
arrays that have an axis and hold numbers; of others the ranks of the arguments decide it. All else relies on dtypes,
too: what asks for one, or turns a number of NumPy's into a plain one.
"""

from __future__ import annotations

import enum
import operator
from types import CodeType
from typing import Any

import numpy

from clew.capture.example.bytecode import instructions_of
from clew.frameworks.numpy.traced import Traced, TracedArray, TracedInt, TracedPython
from clew.ir.arguments import leaves
from clew.ir.effects import pure

_ELEMENTWISE = (
    "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor lt le gt ge eq ne neg abs pos invert "
    "iadd isub imul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor setitem"
)
_OPERATORS = frozenset({*(getattr(operator, name) for name in _ELEMENTWISE.split()), len, int, float, complex, bool})
_REDUCING = frozenset("sum mean max min prod std var all any argmax argmin amax amin nansum nanmean nanmax".split())
_KEEPING = frozenset(
    "copy astype clip round conj conjugate ravel flatten cumsum cumprod argsort fill zeros_like ones_like empty_like "
    "full_like where nan_to_num expand_dims flip concatenate stack isclose allclose array_equal".split()
)
"""Functions and methods of these names give arrays of an axis or more where they are given such, or a Python bool."""
_BY_RANK = frozenset(
    "reshape transpose swapaxes moveaxis dot inner outer vdot matmul einsum tensordot vstack hstack tile repeat take "
    "sort median norm inv det solve diff trace diagonal diag roll pad broadcast_to atleast_1d atleast_2d".split()
)
"""Of these, ranks decide what they give."""
_ASKING = frozenset(
    "isinstance issubclass type __class__ hasattr getattr callable dir vars singledispatch dispatch".split()
)
"""Names by which a function may find out the class of a number."""
_STRETCHES = (slice, type(None), type(...))
_KINDS = "biufc"


class Reliance(enum.IntEnum):
    """What the class of a value, or whatever else a program has seen, depends on."""

    NOTHING = 0
    RANK = 1
    DTYPE = 2
    """And on the rank."""


@pure
def holds_numbers(value: Any) -> bool:
    """Whether an array holds numbers or truths, and no objects, texts or dates."""
    return value.dtype.kind in _KINDS


@pure
def has_an_axis(value: Any) -> bool:
    """Whether an array is more than a single number."""
    return bool(value.ndim > 0)


def may_be_another(array: Any) -> bool:
    """Whether arrays of other dtypes and ranks could stand for this one."""
    return type(array) is numpy.ndarray and holds_numbers(array) and has_an_axis(array)


def reliance_of(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Reliance:
    """What the class of the result of a call depends on, besides the classes of its arguments."""
    if kwargs.get("out") is not None:
        return Reliance.DTYPE
    if not any(_is_of_arrays(leaf) for leaf in leaves((args, kwargs))):
        return Reliance.NOTHING
    if target is operator.getitem:
        return _reliance_of_key(args[1])
    if isinstance(target, numpy.ufunc):
        return Reliance.NOTHING if target.signature is None else Reliance.RANK
    is_method, name = isinstance(target, str), target if isinstance(target, str) else getattr(target, "__name__", "")
    if not is_method and target in _OPERATORS:
        return Reliance.NOTHING
    if target is operator.matmul:
        return Reliance.RANK
    if not is_method and target is not getattr(numpy, name, None) and target is not getattr(numpy.linalg, name, None):
        return Reliance.DTYPE
    if name == "where" and len(args) != 3:  # it gives an array for each axis
        return Reliance.DTYPE
    if name in _REDUCING:
        is_simple = len(args) == 1 and set(kwargs) <= {"keepdims", "axis"}
        keeps = kwargs.get("keepdims") is True or kwargs.get("axis") is None
        return Reliance.NOTHING if is_simple and keeps else Reliance.RANK
    return Reliance.NOTHING if name in _KEEPING else Reliance.RANK if name in _BY_RANK else Reliance.DTYPE


def _is_of_arrays(value: Any) -> bool:
    return issubclass(type(value), Traced) and not issubclass(type(value), TracedPython)


def _reliance_of_key(key: Any) -> Reliance:
    """Items at a stretch are an array in any case, and those that another array names; single ones are by rank."""
    if type(key) is TracedArray:
        return Reliance.NOTHING if may_be_another(key.plain) else Reliance.DTYPE
    parts = key if type(key) is tuple else (key,)
    if all(type(part) in _STRETCHES for part in parts):
        return Reliance.NOTHING
    is_plain = all(type(part) in _STRETCHES or type(part) is int or type(part) is TracedInt for part in parts)
    return Reliance.RANK if is_plain else Reliance.DTYPE


def may_see_classes(code: CodeType) -> bool:
    """Whether a function, or one inside of it, may ask for the class of a number."""
    matches = any(one.opname.startswith("MATCH_") for one in instructions_of(code))
    return matches or not _ASKING.isdisjoint(code.co_names) or any(map(may_see_classes, _inside(code)))


def may_catch(code: CodeType) -> bool:
    """Whether a function, or one inside of it, may go another way where a call fails."""
    return bool(code.co_exceptiontable) or any(map(may_catch, _inside(code)))


def _inside(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]
