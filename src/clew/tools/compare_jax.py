"""A captured JAX program and its original, call by call, on the same input.

Comes in: the two programs and example calls. Goes out: one case for each call: equal, guarded or WRONG. Arrays of JAX
cannot be changed, so nothing has to be put back but Python's containers, of which each run gets its own. Compared are
structure, classes, dtypes, weak types and values, nan equal to nan.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy

from clew.errors import ClewError, GuardError
from clew.frameworks.jax.kinds import kind_of
from clew.tools.cases import EQUAL, GUARDED, WRONG, Case

Call = tuple[tuple[Any, ...], dict[str, Any]]


def compare(captured: Any, fn: Any, inputs: Any, atol: float, rtol: float, gradients: bool) -> list[Case]:
    """The calls that were given, or the example of the capture."""
    calls = _calls(captured, inputs)
    names = ["example" if len(calls) == 1 else f"example {place + 1}" for place in range(len(calls))]
    return [_case(name, captured, fn, call, atol, rtol) for name, call in zip(names, calls, strict=True)]


def _calls(captured: Any, inputs: Any) -> list[Call]:
    if inputs is None:
        example = getattr(captured, "_example", None)
        if example is None:
            raise ClewError("there is nothing to run the program on", fixes=("clew.verify(graph, fn, ((x,), {}))",))
        return [example.call(_gone)]
    is_one = isinstance(inputs, tuple) and len(inputs) == 2 and isinstance(inputs[1], dict)
    return [(tuple(args), dict(kwargs)) for args, kwargs in ([inputs] if is_one else inputs)]


def _gone(kind: Any) -> Any:
    raise ClewError(f"the example held a {kind}, which is gone", fixes=("clew.verify(graph, fn, ((x,), {}))",))


def _case(name: str, captured: Any, fn: Any, call: Call, atol: float, rtol: float) -> Case:
    got, wanted = _own(call), _own(call)
    found, error = _run(captured, got)
    if isinstance(error, GuardError):
        return Case(name, GUARDED, error.what, None, error.where)
    right, failure = _run(fn, wanted)
    if error is not None or failure is not None:
        same = type(error) is type(failure)
        told = f"both raise {type(error).__name__}" if same else f"{error!r} instead of {failure!r}"
        return Case(name, EQUAL if same else WRONG, told)
    difference = _difference((right, wanted), (found, got), atol, rtol)
    return Case(name, EQUAL) if difference is None else Case(name, WRONG, difference)


def _own(call: Call) -> Call:
    """The same leaves in containers of their own."""
    args, kwargs = jax.tree_util.tree_map(lambda leaf: leaf, call, is_leaf=lambda part: part is None)
    return tuple(args), dict(kwargs)


def _run(program: Any, call: Call) -> tuple[Any, Exception | None]:
    try:
        return program(*call[0], **call[1]), None
    except Exception as error:
        return None, error


def _difference(wanted: Any, got: Any, atol: float, rtol: float) -> str | None:
    left, structure = jax.tree_util.tree_flatten_with_path(wanted)
    right, other = jax.tree_util.tree_flatten_with_path(got)
    if str(structure) != str(other):
        return f"the result is built like {other}, not like {structure}"
    for (path, one), (_, two) in zip(left, right, strict=True):
        place = ("the result" if path[0].idx == 0 else "the arguments") + jax.tree_util.keystr(path[1:])
        if kind_of(one) != kind_of(two):
            return f"{place} is {kind_of(two)}, not {kind_of(one)}"
        if not _same_values(one, two, atol, rtol):
            return f"{place} has other values"
    return None


def _same_values(one: Any, two: Any, atol: float, rtol: float) -> bool:
    if one is two:
        return True
    if not isinstance(one, (jax.Array, numpy.ndarray, numpy.generic, int, float, complex)):
        return bool(one == two)
    if isinstance(one, jax.Array) and jax.dtypes.issubdtype(one.dtype, jax.dtypes.prng_key):
        one, two = jax.random.key_data(one), jax.random.key_data(two)
    left, right = numpy.asarray(one), numpy.asarray(two)
    if left.dtype.kind in "fc" and (atol or rtol):
        return bool(numpy.allclose(right, left, rtol=rtol, atol=atol, equal_nan=True))
    same = left == right
    return bool(numpy.all(same | ((left != left) & (right != right))))
