"""A captured TensorFlow program and its original, call by call, on the same input, variables and random numbers.

Comes in: the two programs and example calls. Goes out: one case for each call: the example, noise of the same form, and
other sizes of the first axis. Compared are results, kinds of tensors, variables and arguments afterwards, errors, and
gradients for tensors and variables. Variables and random numbers are put back after every run.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy
import tensorflow as tf
from tensorflow.python.eager import context

from clew import tree
from clew.capture.state.memory import Memory
from clew.capture.state.surroundings import Surroundings
from clew.errors import GuardError
from clew.frameworks.tensorflow.programs import behind, functions_behind, is_part, parts_of
from clew.ir.types import ArrayType
from clew.tools.cases import EQUAL, GUARDED, SEED, WRONG, Call, Case, calls_from, gone, named
from clew.tools.compare_numpy import difference as difference_of_arrays


class _Seen(NamedTuple):
    """What one run has given and left."""

    result: Any
    error: Exception | None
    variables: list[Any]
    arguments: Any
    random: Any
    gradients: Any


def compare(captured: Any, fn: Any, inputs: Any, atol: float, rtol: float, gradients: bool) -> list[Case]:
    """The calls that were given, then noise of the same form and other sizes made from the first of them."""
    calls = [_changed(call, lambda leaf: leaf) for call in calls_from(inputs, captured, _made)]
    wanted = [*named(calls), ("noise", _changed(calls[0], _noise))]
    rows = next((len(leaf) for leaf in _leaves(calls[0]) if _is_dense(leaf) and leaf.shape.rank), 0)
    for size in (1, rows + 1) if rows else ():
        wanted.append((f"first axis of {size}", _changed(calls[0], functools.partial(_resized, rows=rows, size=size))))
    variables = _variables(captured, fn, calls)
    return [_case(name, captured, fn, call, variables, (atol, rtol), gradients) for name, call in wanted]


def _made(kind: Any) -> Any:
    """A tensor of a type, in the place of one that is gone or was never there."""
    if not isinstance(kind, ArrayType):
        raise gone(kind)
    shape = [size if isinstance(size, int) else 3 for size in kind.shape]
    return _noise(tf.ones(shape, kind.dtype))


def _leaves(nest: Any) -> list[Any]:
    return tree.flatten(nest)[0]


def _is_dense(leaf: Any) -> bool:
    return isinstance(leaf, tf.Tensor) and not isinstance(leaf, tf.Variable)


def _changed(call: Call, change: Callable[[Any], Any]) -> Call:
    """The call with every tensor changed; a spec in it becomes a tensor."""
    leaves, structure = tree.flatten(call)
    leaves = [_of_spec(leaf) if isinstance(leaf, tf.TensorSpec) else leaf for leaf in leaves]
    args, kwargs = tree.unflatten([change(leaf) if _is_dense(leaf) else leaf for leaf in leaves], structure)
    return args, kwargs


def _of_spec(spec: Any) -> Any:
    shape = [3 if size is None else size for size in spec.shape] if spec.shape.rank is not None else [3]
    return _noise(tf.ones(shape, spec.dtype))


def _noise(tensor: Any) -> Any:
    generator = numpy.random.RandomState(SEED)
    kind = tensor.dtype
    if kind.is_floating or kind.is_complex:
        return tf.cast(tf.constant(generator.standard_normal(tensor.shape)), kind)
    if kind.is_bool:
        return tf.constant(generator.random_sample(tensor.shape) > 0.5)
    if kind.is_integer and tensor.shape.num_elements():
        low, high = int(tf.reduce_min(tensor)), int(tf.reduce_max(tensor))
        return tf.cast(tf.constant(generator.randint(low, high + 1, tensor.shape)), kind)
    return tensor


def _resized(tensor: Any, rows: int, size: int) -> Any:
    is_batch = tensor.shape.rank and len(tensor) == rows
    return tf.gather(tensor, [place % rows for place in range(size)]) if is_batch else tensor


def _variables(captured: Any, fn: Any, calls: list[Call]) -> list[Any]:
    """All variables that the two programs can reach, and that are among the arguments."""
    programs = behind(fn)
    around = [value for _, value in Surroundings(functions_behind([*programs, *parts_of(programs)])).values()]
    kinds = (tf.Variable, tf.random.Generator)
    memory = Memory(lambda value: isinstance(value, (*kinds, tf.Tensor)) or is_part(value))
    for value in (calls, programs, around, getattr(captured, "root", None)):
        memory.remember(list(value) if isinstance(value, list) else value)
    ends = list(memory.ends.values())
    ends += [value for value in vars(getattr(captured, "root", object)).values() if isinstance(value, tf.Variable)]
    found = [end for end in ends if isinstance(end, tf.Variable)]
    found += [end.state for end in ends if isinstance(end, tf.random.Generator)]
    for part in parts_of(ends):
        found += [getattr(one, "value", one) if not isinstance(one, tf.Variable) else one for one in part.variables]
    return list({id(one): one for one in found if isinstance(one, tf.Variable)}.values())


def _case(
    name: str, captured: Any, fn: Any, call: Call, variables: list[Any], near: tuple[float, float], gradients: bool
) -> Case:
    with _put_back(variables):
        got = _run(captured, call, variables, gradients)
    if isinstance(got.error, GuardError):
        return Case(name, GUARDED, got.error.what, None, got.error.where)
    with _put_back(variables):
        wanted = _run(fn, call, variables, gradients)
    if wanted.error is not None or got.error is not None:
        same = type(wanted.error) is type(got.error)
        told = f"both raise {type(wanted.error).__name__}" if same else f"{got.error!r} instead of {wanted.error!r}"
        return Case(name, EQUAL if same else WRONG, told)
    for part, words in _WORDS.items():
        told_part = _difference(getattr(wanted, part), getattr(got, part), words, *near)
        if told_part is not None:
            return Case(name, WRONG, told_part)
    return Case(name, EQUAL)


_WORDS = {
    "result": "the result",
    "variables": "the variables",
    "arguments": "the arguments",
    "random": "the random state",
    "gradients": "the gradients",
}


def _run(program: Any, call: Call, variables: list[Any], gradients: bool) -> _Seen:
    """One run on containers of its own."""
    args, kwargs = own = tree.unflatten(*tree.flatten(call))
    watched = [leaf for leaf in _leaves(own) if _is_dense(leaf) and leaf.dtype.is_floating] if gradients else []
    with tf.GradientTape(persistent=False) as tape:
        tape.watch(watched)
        try:
            result = program(*args, **kwargs)
        except Exception as error:
            return _Seen(None, error, [], None, None, None)
    after = [tf.convert_to_tensor(variable) for variable in variables]
    where = (context.context()._rng.getstate(), repr(numpy.random.get_state()), random.getstate())
    sources = [*watched, *(one for one in variables if one.trainable and one.dtype.is_floating)] if gradients else []
    return _Seen(result, None, after, own, where, _gradients(tape, result, sources))


def _gradients(tape: Any, result: Any, sources: list[Any]) -> Any:
    targets = [leaf for leaf in tf.nest.flatten(_leaves(result)) if _is_dense(leaf) and leaf.dtype.is_floating]
    if not targets or not sources:
        return None
    try:
        found = tape.gradient(targets, sources)
    except Exception as error:  # an operation without a gradient has none in both
        return type(error).__name__
    return [None if one is None else tf.convert_to_tensor(one) for one in found]


@contextmanager
def _put_back(variables: list[Any]) -> Iterator[None]:
    """Random numbers start at one place; afterwards they, and all variables, are as they were."""
    here = context.context()
    kept = {name: vars(here)[name] for name in ("_seed", "_rng") if name in vars(here)}
    values = [tf.identity(variable) for variable in variables]
    tf.random.set_seed(SEED)
    try:
        yield
    finally:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        vars(here).pop("_rng")
        vars(here).update(kept)


def _difference(wanted: Any, got: Any, path: str, atol: float, rtol: float) -> str | None:
    """Where two values differ first, in words; ragged and sparse tensors by their parts."""
    if isinstance(wanted, (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)) and type(wanted) is type(got):
        wanted, got = (tf.nest.flatten(value, expand_composites=True) for value in (wanted, got))
    if isinstance(wanted, tf.Variable) and wanted is got:
        return None
    if isinstance(wanted, (list, tuple)) and type(wanted) is type(got) and len(wanted) == len(got):
        pairs = enumerate(zip(wanted, got, strict=True))
        found = (_difference(*pair, f"{path}[{place}]", atol, rtol) for place, pair in pairs)
        return next((one for one in found if one is not None), None)
    if isinstance(wanted, dict) and type(wanted) is type(got) and list(wanted) == list(got):
        found = (_difference(wanted[key], got[key], f"{path}[{key!r}]", atol, rtol) for key in wanted)
        return next((one for one in found if one is not None), None)
    return difference_of_arrays(wanted, got, path, atol, rtol)
