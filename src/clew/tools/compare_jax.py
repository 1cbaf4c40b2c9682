"""A captured JAX program and its original, call by call, on the same input.

Comes in: the two programs and example calls. Goes out: one case for each call: the example, noise of the same form, and
other sizes of the first axis: equal, guarded or WRONG. Compared are structure, classes, dtypes, weak types and values,
nan equal to nan, of results, of arguments afterwards and of the state around the program, and for the first call
derivatives. Python's state is put back after every run.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy

from clew.capture.guards.notes import Variable
from clew.capture.state.containers import contents
from clew.capture.state.memory import Memory
from clew.capture.state.reachable import behind
from clew.capture.state.surroundings import Surroundings, functions_of
from clew.errors import GuardError
from clew.frameworks.jax.layers import Layers
from clew.frameworks.jax.types import kind_of
from clew.ir.types import ArrayType
from clew.tools.cases import EQUAL, GUARDED, SEED, WRONG, Call, Case, calls_from, gone, named


def compare(captured: Any, fn: Any, inputs: Any, atol: float, rtol: float, gradients: bool) -> list[Case]:
    """The calls that were given, or the example of the capture, then noise and other sizes made from the first."""
    calls = calls_from(inputs, captured, _made)
    wanted = [*named(calls), ("noise", _changed(calls[0], _noise))]
    rows = next((len(leaf) for leaf in jax.tree_util.tree_leaves(calls[0]) if _is_array(leaf) and leaf.ndim), 0)
    for size in (1, rows + 1) if rows else ():
        wanted.append((f"first axis of {size}", _changed(calls[0], functools.partial(_resized, rows=rows, size=size))))
    around = _Around(fn)
    cases = [_case(name, captured, fn, call, around, atol, rtol) for name, call in wanted]
    if gradients and cases[0].status == EQUAL and not cases[0].detail:
        told = _slopes_differ(captured, fn, calls[0], around, atol, rtol)
        cases[0] = cases[0] if told is None else Case(cases[0].name, WRONG, told)
    return cases


class _Around:
    """The state of Python around a program, as it was."""

    def __init__(self, fn: Any) -> None:
        programs = behind(fn)
        functions = list(dict.fromkeys(function for part in programs for function in functions_of(part)))
        surroundings = Surroundings(functions)
        cells = [Variable(holder, name) for holder, name in surroundings.cells()]
        self._layers = Layers([*programs, *(value for _, value in surroundings.values())], _is_array)
        cells += [slot.variable for slot in self._layers.slots()]
        self._variables = [(variable, variable.get()) for variable in cells]
        self._memory = Memory(_is_array)
        for value in (*programs, *(value for _, value in self._variables)):
            self._memory.remember(value, depth=4)

    def snapshot(self) -> Any:
        """What the state holds now; what a container holds is a list, so that later changes do not count."""
        held = [list(contents(value).items()) for value in self._memory.everything()]
        return [variable.get() for variable, _ in self._variables], held

    def put_back(self) -> None:
        """Let all be as it was."""
        for variable, before in self._variables:
            if variable.get() is not before:
                variable.put(before)
        self._memory.put_back()


def _made(kind: Any) -> Any:
    if not isinstance(kind, ArrayType) or not all(isinstance(size, int) for size in kind.shape):
        raise gone(kind)
    if kind.dtype.startswith("key<"):
        keys = jax.random.split(jax.random.key(SEED), math.prod(map(int, kind.shape)))
        return keys.reshape(tuple(map(int, kind.shape)))
    return _noise(jax.numpy.ones(kind.shape, kind.dtype))  # type: ignore[arg-type]


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array)


def _changed(call: Call, change: Callable[[Any], Any]) -> Call:
    args, kwargs = jax.tree_util.tree_map(lambda leaf: change(leaf) if _is_array(leaf) else leaf, call)
    return tuple(args), dict(kwargs)


def _noise(array: Any) -> Any:
    """Other values of the same kind; keys of random numbers and scalars of a weak type stay."""
    generator = numpy.random.RandomState(SEED)
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key) or array.weak_type:
        return array
    if array.dtype == bool:
        return jax.numpy.asarray(generator.random_sample(array.shape) > 0.5)
    if jax.numpy.issubdtype(array.dtype, jax.numpy.integer):
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        return jax.numpy.asarray(generator.randint(low, high + 1, array.shape, "int64"), array.dtype)
    return jax.numpy.asarray(generator.standard_normal(array.shape), array.dtype)


def _resized(array: Any, rows: int, size: int) -> Any:
    return array[numpy.arange(size) % rows] if array.ndim and len(array) == rows else array


def _case(name: str, captured: Any, fn: Any, call: Call, around: _Around, atol: float, rtol: float) -> Case:
    got, wanted = _own(call), _own(call)
    found, error, left = _run(captured, got, around)
    if isinstance(error, GuardError):
        return Case(name, GUARDED, error.what, None, error.where)
    right, failure, kept = _run(fn, wanted, around)
    if error is not None or failure is not None:
        same = type(error) is type(failure)
        told = f"both raise {type(error).__name__}" if same else f"{error!r} instead of {failure!r}"
        return Case(name, EQUAL if same else WRONG, told)
    difference = _difference((right, wanted, kept), (found, got, left), atol, rtol)
    return Case(name, EQUAL) if difference is None else Case(name, WRONG, difference)


def _slopes_differ(captured: Any, fn: Any, call: Call, around: _Around, atol: float, rtol: float) -> str | None:
    """What differs between the derivatives of the sum of all results for all arrays of floats."""
    leaves, structure = jax.tree_util.tree_flatten(call)
    places = [place for place, leaf in enumerate(leaves) if _is_array(leaf) and _is_float(leaf)]
    if not places:
        return None

    def slopes(program: Any) -> Any:
        def total(floats: list[Any]) -> Any:
            given = dict(zip(places, floats, strict=True))
            args, kwargs = jax.tree_util.tree_unflatten(
                structure, [given.get(place, leaf) for place, leaf in enumerate(leaves)]
            )
            found = jax.tree_util.tree_leaves(program(*args, **kwargs))
            return sum(leaf.sum() for leaf in found if _is_array(leaf) and _is_float(leaf))

        try:
            return jax.grad(total)([leaves[place] for place in places])
        except Exception as error:  # what cannot be differentiated cannot be in both
            return type(error).__name__
        finally:
            around.put_back()

    wanted, got = slopes(fn), slopes(captured)
    if isinstance(wanted, str):
        return None
    same = not isinstance(got, str) and all(_same_values(*pair, atol, rtol) for pair in zip(wanted, got, strict=True))
    return None if same else "the derivatives are others"


def _is_float(array: Any) -> bool:
    return bool(jax.numpy.issubdtype(array.dtype, jax.numpy.floating))


def _own(call: Call) -> Call:
    """The same leaves in containers of their own."""
    args, kwargs = jax.tree_util.tree_map(lambda leaf: leaf, call, is_leaf=lambda part: part is None)
    return tuple(args), dict(kwargs)


def _run(program: Any, call: Call, around: _Around) -> tuple[Any, Exception | None, Any]:
    try:
        return program(*call[0], **call[1]), None, around.snapshot()
    except Exception as error:
        return None, error, None
    finally:
        around.put_back()


def _difference(wanted: Any, got: Any, atol: float, rtol: float) -> str | None:
    left, structure = jax.tree_util.tree_flatten_with_path(wanted)
    right, other = jax.tree_util.tree_flatten_with_path(got)
    if str(structure) != str(other):
        return f"the result is built like {other}, not like {structure}"
    for (path, one), (_, two) in zip(left, right, strict=True):
        place = ("the result", "the arguments", "the state")[path[0].idx] + jax.tree_util.keystr(path[1:])
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
