"""Equality of what NumPy programs give: class, dtype, shape and every element; nan equals nan."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from clew.errors import GuardError

EQUAL, GUARDED = "equal", "guarded"
SEED = 11


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal in all that can be seen of them."""
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (np.ndarray, np.generic)):
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return bool(np.array_equal(left, right, equal_nan=left.dtype.kind in "fc"))
    if isinstance(left, (np.random.Generator, np.random.RandomState)):
        return repr(left.__getstate__()) == repr(right.__getstate__())
    if hasattr(left, "__dict__") and not callable(left):
        return same(vars(left), vars(right))
    return left is right or bool(left == right) or (left != left and right != right)


def outcome(captured: Callable[..., Any], original: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """``equal``, ``guarded``, or what is wrong: results, arguments afterwards and random numbers are compared."""
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    wanted, wanted_after = run(original, theirs)
    try:
        got, got_after = run(captured, ours)
    except GuardError:
        return GUARDED if same(ours, copy.deepcopy(arguments)) else "a guard failed and left a mark"
    if not same(wanted, got):
        return f"{got!r} instead of {wanted!r}"
    if not same(theirs, ours):
        return f"arguments {ours!r} instead of {theirs!r}"
    return EQUAL if wanted_after == got_after else "other random numbers"


def run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, float]:
    """The result, or the type of the error, and the next random number."""
    np.random.seed(SEED)
    try:
        result = function(*arguments)
    except GuardError:
        raise
    except Exception as error:
        result = (type(error).__name__, str(error))
    return result, float(np.random.rand())
