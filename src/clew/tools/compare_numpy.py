"""A captured program on NumPy arrays and its original, call by call, on copies of the same input.

Comes in: the two programs and example calls. Goes out: one case for each call: the example as it is, noise of the same
form, and other sizes of the first axis. Results, arguments afterwards, errors and the random state are compared, nan
equals nan; arguments and random numbers are put back after every run. Frameworks without a comparison of their own are
compared here too, by their arrays' ``__array__``.
"""

from __future__ import annotations

import copy
import functools
import random
from collections.abc import Callable
from typing import Any

import numpy

from clew import tree
from clew.errors import GuardError, a_or_an
from clew.ir.types import ArrayType
from clew.tools.cases import EQUAL, GUARDED, SEED, WRONG, Call, Case, calls_from, gone, named


def compare(captured: Any, fn: Any, inputs: Any, atol: float, rtol: float, gradients: bool) -> list[Case]:
    """The calls that were given, then noise of the same form and other sizes made from the first of them."""
    calls = calls_from(inputs, captured, _made)
    wanted = [*named(calls), ("noise", _changed(calls[0], _noise))]
    arrays = [leaf for leaf in tree.flatten(calls[0])[0] if type(leaf) is numpy.ndarray and leaf.ndim]
    for size in (1, 7) if arrays else ():
        change = functools.partial(_resized, batch=len(arrays[0]), size=size)
        wanted.append((f"first axis of {size}", _changed(calls[0], change)))
    return [_case(name, captured, fn, call, atol, rtol) for name, call in wanted]


def _made(kind: Any) -> Any:
    if not isinstance(kind, ArrayType) or not all(isinstance(size, int) for size in kind.shape):
        raise gone(kind)
    return _noise(numpy.ones(kind.shape, kind.dtype))  # type: ignore[arg-type]


def _changed(call: Call, change: Callable[[Any], Any]) -> Call:
    leaves, structure = tree.flatten(call)
    known: dict[int, Any] = {}
    for leaf in leaves:
        if type(leaf) is numpy.ndarray and leaf.ndim and id(leaf) not in known:
            known[id(leaf)] = change(leaf)
    args, kwargs = tree.unflatten([known.get(id(leaf), leaf) for leaf in leaves], structure)
    return args, kwargs


def _noise(array: Any) -> Any:
    generator = numpy.random.RandomState(SEED)
    if array.dtype.kind in "fc":
        return generator.standard_normal(array.shape).astype(array.dtype)
    if array.dtype.kind == "b":
        return generator.random_sample(array.shape) > 0.5
    if array.dtype.kind in "iu" and array.size:
        low, high = int(array.min()), int(array.max())
        return generator.randint(low, high + 1, array.shape).astype(array.dtype)
    return array.copy()


def _resized(array: Any, batch: int, size: int) -> Any:
    return array[numpy.arange(size) % batch] if batch and len(array) == batch else array


def _case(name: str, captured: Any, fn: Any, call: Call, atol: float, rtol: float) -> Case:
    got_call, wanted_call = copy.deepcopy(call), copy.deepcopy(call)
    got = _run(captured, got_call)
    if isinstance(got[1], GuardError):
        told = difference(call, got_call, "the arguments", 0.0, 0.0)
        return Case(name, GUARDED, str(got[1]).splitlines()[0]) if told is None else Case(name, WRONG, told)
    wanted = _run(fn, wanted_call)
    if wanted[1] is not None or got[1] is not None:
        same = type(wanted[1]) is type(got[1]) and str(wanted[1]) == str(got[1])
        detail = f"both raise {type(wanted[1]).__name__}" if same else f"{got[1]!r} instead of {wanted[1]!r}"
        return Case(name, EQUAL if same else WRONG, detail)
    told = difference(wanted[0], got[0], "the result", atol, rtol)
    told = told or difference(wanted_call, got_call, "the arguments", atol, rtol)
    told = told or difference(wanted[2], got[2], "the random state", 0.0, 0.0)
    return Case(name, EQUAL) if told is None else Case(name, WRONG, told)


def _run(program: Any, call: Call) -> tuple[Any, Exception | None, Any]:
    """Result or error, and where the random streams stand after it; they are put back."""
    before, python = numpy.random.get_state(), random.getstate()
    try:
        result, error = program(*call[0], **call[1]), None
    except Exception as raised:
        result, error = None, raised
    after = (str(numpy.random.get_state()), random.getstate())
    numpy.random.set_state(before)
    random.setstate(python)
    return result, error, after


def difference(wanted: Any, got: Any, path: str, atol: float, rtol: float) -> str | None:
    """Where two values differ first, in words; None if they do not."""
    if type(wanted) is not type(got):
        return f"{path} is {a_or_an(got)}, not {a_or_an(wanted)}"
    if hasattr(wanted, "__array__") or isinstance(wanted, numpy.generic):
        return _array_difference(numpy.asarray(wanted), numpy.asarray(got), path, atol, rtol)
    if isinstance(wanted, (list, tuple)):
        if len(wanted) != len(got):
            return f"{path} has {len(got)} items, not {len(wanted)}"
        pairs = enumerate(zip(wanted, got, strict=True))
        found = (difference(*pair, f"{path}[{place}]", atol, rtol) for place, pair in pairs)
        return next((one for one in found if one is not None), None)
    if isinstance(wanted, dict):
        if list(wanted) != list(got):
            return f"{path} has other keys"
        found = (difference(wanted[key], got[key], f"{path}[{key!r}]", atol, rtol) for key in wanted)
        return next((one for one in found if one is not None), None)
    if isinstance(wanted, (numpy.random.Generator, numpy.random.RandomState)):
        return None if repr(wanted.__getstate__()) == repr(got.__getstate__()) else f"{path} stands elsewhere"
    if hasattr(wanted, "__dict__") and not callable(wanted):
        return difference(vars(wanted), vars(got), path, atol, rtol)
    same = wanted is got or bool(wanted == got) or (wanted != wanted and got != got)
    return None if same else f"{path} is {got!r}, not {wanted!r}"


def _array_difference(wanted: Any, got: Any, path: str, atol: float, rtol: float) -> str | None:
    if wanted.dtype != got.dtype or wanted.shape != got.shape:
        return f"{path} is {got.dtype}{got.shape}, not {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind in "fc":
        same = numpy.isclose(got, wanted, rtol=rtol, atol=atol, equal_nan=True) if atol or rtol else None
        same = (got == wanted) | (numpy.isnan(got) & numpy.isnan(wanted)) if same is None else same
    else:
        same = got == wanted
    count = int(numpy.size(same) - numpy.count_nonzero(same))
    return f"{path} differs in {count} of {wanted.size} elements" if count else None
