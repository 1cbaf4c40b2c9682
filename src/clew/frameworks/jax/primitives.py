"""One table: how each primitive is written as a call that people read.

A row gives the ways to write an equation, the nicest first. A way is only taken if tracing it gives back the very same
equation (see ``matching``), so a row can be unfit for some cases, but never wrong. A primitive without a row is written
as the function of ``jax.lax`` of its name, with the parameters that the function has; failing that, with ``bind``.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax import lax


class Slot(NamedTuple):
    """Stands in a way of writing for an operand of the equation."""

    place: int


class Inner(NamedTuple):
    """Stands for a body: a jaxpr among the parameters of the equation."""

    jaxpr: Any


class Way(NamedTuple):
    """A call that may stand for an equation."""

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


Row = Callable[[tuple[Slot, ...], dict[str, Any], Any], Way]


def placed(value: Any) -> Any:
    """A sharding over no devices in particular says nothing, as None does."""
    is_nowhere = isinstance(value, jax.sharding.NamedSharding) and value.mesh.empty
    return None if is_nowhere else value


def plain(value: Any) -> Any:
    """A parameter as a value that text can hold: NumPy's numbers as Python's, dtypes by JAX's names for them."""
    value = placed(value)
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, numpy.dtype):
        return getattr(jnp, value.name, value)
    if isinstance(value, tuple):
        parts = [plain(item) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return [plain(item) for item in value] if isinstance(value, list) else value


def _call(target: Callable[..., Any], *names: str, **renamed: str) -> Row:
    """All operands, then the parameters ``names`` by position, then others under the names that the function has."""

    def write(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
        args = (*slots, *(plain(params[name]) for name in names))
        return Way(target, args, {there: plain(params[here]) for there, here in renamed.items()})

    return write


def _axes(target: Callable[..., Any]) -> Row:
    """A reduction: one axis is written as a number."""

    def write(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
        axes = plain(params["axes"])
        return Way(target, slots, {"axis": axes[0] if len(axes) == 1 else axes})

    return write


def _place_of(target: Callable[..., Any]) -> Row:
    """Where the largest or smallest is, along one axis."""

    def write(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
        return Way(target, (*slots, plain(params["axes"])[0], plain(params["index_dtype"])), {})

    return write


def _iota(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
    dtype, shape = plain(params["dtype"]), plain(params["shape"])
    if len(shape) == 1:
        return Way(lax.iota, (dtype, shape[0]), {})
    return Way(lax.broadcasted_iota, (dtype, shape, plain(params["dimension"])), {})


def _sorted(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
    given = {"dimension": params["dimension"], "is_stable": params["is_stable"], "num_keys": params["num_keys"]}
    return Way(lax.sort, (slots[0] if len(slots) == 1 else slots,), plain_dict(given))


def _reduce(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
    half = len(slots) // 2
    one = half == 1
    operands, starts = (slots[0], slots[1]) if one else (slots[:half], slots[half:])
    return Way(lax.reduce, (operands, starts, Inner(params["jaxpr"]), plain(params["dimensions"])), {})


def _key(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
    return Way(jax.random.key, slots, {"impl": params["impl"].name})


def _wrapped_key(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
    return Way(jax.random.wrap_key_data, slots, {"impl": params["impl"].name})


def _bits(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
    dtype = getattr(jnp, f"uint{params['bit_width']}", None)
    return Way(jax.random.bits, (*slots, plain(params["shape"]), dtype), {})


def _split(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
    shape = plain(params["shape"])
    return Way(jax.random.split, (*slots, shape[0] if len(shape) == 1 else shape), {})


def _item(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
    """A slice in Python's notation."""
    starts, ends = plain(params["start_indices"]), plain(params["limit_indices"])
    steps = plain(params["strides"]) or (1,) * len(starts)
    sizes = eqn.invars[0].aval.shape
    parts = [_part(*one) for one in zip(starts, ends, steps, sizes, strict=True)]
    while parts and parts[-1] == slice(None, None, None):
        parts.pop()
    return Way(operator.getitem, (slots[0], parts[0] if len(parts) == 1 else tuple(parts)), {})


def _part(start: int, end: int, step: int, size: int) -> slice:
    return slice(start or None, None if end == size else end, None if step == 1 else step)


def _listed(target: Callable[..., Any], *names: str) -> Row:
    """A function that takes its operands as one list."""

    def write(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
        return Way(target, (list(slots), *(plain(params[name]) for name in names)), {})

    return write


def _dynamic_slice(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
    return Way(lax.dynamic_slice, (slots[0], list(slots[1:]), plain(params["slice_sizes"])), {})


def _dynamic_update(slots: tuple[Slot, ...], params: dict[str, Any], eqn: Any) -> Way:
    return Way(lax.dynamic_update_slice, (slots[0], slots[1], list(slots[2:])), {})


def plain_dict(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as values that text can hold."""
    return {name: plain(value) for name, value in params.items()}


def _signs(*functions: Callable[..., Any]) -> tuple[Row, ...]:
    return tuple(_call(function) for function in functions)


ROWS: dict[str, tuple[Row, ...]] = {
    "add_any": _signs(operator.add),
    "add": _signs(operator.add),
    "sub": _signs(operator.sub),
    "mul": _signs(operator.mul),
    "div": _signs(operator.truediv),
    "neg": _signs(operator.neg),
    "eq": _signs(operator.eq),
    "ne": _signs(operator.ne),
    "lt": _signs(operator.lt),
    "le": _signs(operator.le),
    "gt": _signs(operator.gt),
    "ge": _signs(operator.ge),
    "and": _signs(operator.and_, lax.bitwise_and),
    "or": _signs(operator.or_, lax.bitwise_or),
    "xor": _signs(operator.xor, lax.bitwise_xor),
    "not": _signs(operator.invert, lax.bitwise_not),
    "integer_pow": (_call(operator.pow, "y"), _call(lax.integer_pow, "y")),
    "stop_gradient": _signs(lax.stop_gradient),
    "copy": _signs(jnp.copy),
    "copy_p": _signs(jnp.copy),
    "convert_element_type": (_call(lax.convert_element_type, "new_dtype"),),
    "bitcast_convert_type": (_call(lax.bitcast_convert_type, "new_dtype"),),
    "reduce_sum": (_axes(jnp.sum), _axes(lax.reduce_sum)),
    "reduce_prod": (_axes(jnp.prod),),
    "reduce_max": (_axes(jnp.max),),
    "reduce_min": (_axes(jnp.min),),
    "reduce_and": (_axes(jnp.all),),
    "reduce_or": (_axes(jnp.any),),
    "reduce": (_reduce,),
    "iota": (_iota,),
    "slice": (_item, _call(lax.slice, "start_indices", "limit_indices", "strides")),
    "transpose": (_call(lax.transpose, "permutation"),),
    "reshape": (_call(lax.reshape, "new_sizes"), _call(lax.reshape, "new_sizes", "dimensions")),
    "squeeze": (_call(lax.squeeze, "dimensions"),),
    "broadcast_in_dim": (_call(lax.broadcast_in_dim, "shape", "broadcast_dimensions"),),
    "concatenate": (_listed(lax.concatenate, "dimension"),),
    "stack": (_listed(jnp.stack, "axis"), _listed(jnp.stack)),
    "dynamic_slice": (_dynamic_slice,),
    "dynamic_update_slice": (_dynamic_update,),
    "sort": (_sorted,),
    "split": (_call(lax.split, "sizes", axis="axis"),),
    "random_seed": (_call(jax.random.key), _key),
    "random_wrap": (_wrapped_key,),
    "random_unwrap": _signs(jax.random.key_data),
    "random_split": (_split,),
    "random_fold_in": _signs(jax.random.fold_in),
    "random_bits": (_bits,),
    "argmax": (_place_of(lax.argmax),),
    "argmin": (_place_of(lax.argmin),),
    "optimization_barrier": (_listed(lax.optimization_barrier),),
}
"""The primitives that are not written as the function of ``jax.lax`` of their name."""

_MODULES = (jnp, jax.nn, jnp.linalg, jnp.fft, jax.random, jax.scipy.special, jax.scipy.linalg, jax.image, lax)
_RANDOM = jax.random


def ways_of(eqn: Any) -> Iterator[Way]:
    """The ways to write an equation of a primitive, the nicest first."""
    slots = tuple(Slot(place) for place in range(len(eqn.invars)))
    for row in ROWS.get(eqn.primitive.name, ()):
        try:
            yield row(slots, eqn.params, eqn)
        except (KeyError, IndexError, AttributeError):  # a parameter that another version of JAX does not have
            continue
    usual = eqn.primitive.name.replace("-", "_")
    for name in (usual, usual.replace("reduce_", "")):
        function = getattr(lax, name, None) or getattr(lax.linalg, name, None)
        if callable(function) and not isinstance(function, type):
            yield from _by_signature(function, slots, eqn)


def _by_signature(function: Callable[..., Any], slots: tuple[Slot, ...], eqn: Any) -> Iterator[Way]:
    """A function with the parameters that it shares with the primitive; those that are its defaults are left out."""
    parameters = list(inspect.signature(function).parameters.values())
    shared = {one.name: plain(eqn.params[one.name]) for one in parameters if one.name in eqn.params}
    told = {one.name: shared[one.name] for one in parameters if one.name in shared and not _is_default(one, shared)}
    yield Way(function, slots, told)
    if len(told) != len(shared):
        yield Way(function, slots, shared)


def _is_default(parameter: inspect.Parameter, values: dict[str, Any]) -> bool:
    default, value = parameter.default, values[parameter.name]
    return type(default) is type(value) and isinstance(value, (int, str, bool, type(None))) and default == value


def functions_named(name: str) -> Iterator[Callable[..., Any]]:
    """The public functions that a jitted or custom function of this name may be."""
    for module in _MODULES:
        for candidate in dict.fromkeys((name, name.strip("_"))):
            function = getattr(module, candidate, None)
            if callable(function) and not isinstance(function, type) and not candidate.startswith("_"):
                yield function


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "_reduce_sum": jnp.sum,
    "_reduce_prod": jnp.prod,
    "_reduce_max": jnp.max,
    "_reduce_min": jnp.min,
    "_reduce_all": jnp.all,
    "_reduce_any": jnp.any,
    "_mean": jnp.mean,
    "_var": jnp.var,
    "_std": jnp.std,
}
"""What JAX calls the inside of its reductions, and the functions that users call."""


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "true_divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "matmul": operator.matmul,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
}
"""Functions of ``jax.numpy`` that are written as signs."""


def _reductions(eqn: Any, name: str, slots: tuple[Slot, ...]) -> Iterator[Way]:
    """A reduction over one axis, over those whose size has become 1, or over all."""
    function = _REDUCTIONS.get(name)
    if function is None or len(eqn.outvars) != 1:
        return
    before, after = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    start = {"initial": slots[1]} if len(slots) == 2 else {}
    if len(before) == len(after):
        shrunk = tuple(place for place, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)
        choices = [shrunk, *((place,) for place in range(len(before)))]
    else:
        choices = [(place,) for place in range(len(before))] if len(after) == len(before) - 1 else []
    keeps = {"keepdims": True} if len(before) == len(after) else {}
    for more in (start, {}) if start else ({},):
        for axes in choices:
            yield Way(function, slots[:1], {"axis": axes[0] if len(axes) == 1 else axes, **keeps, **more})
        yield Way(function, slots[:1], {**keeps, **more})


def ways_of_call(eqn: Any, name: str) -> Iterator[Way]:
    """The ways to write a call of a function of this name that JAX itself has jitted or given a derivative."""
    slots = tuple(Slot(place) for place in range(len(eqn.invars)))
    yield from _reductions(eqn, name, slots)
    if name in _OPERATORS:
        yield Way(_OPERATORS[name], slots, {})
    for function in functions_named(name):
        yield Way(function, slots, {})
        if getattr(_RANDOM, getattr(function, "__name__", ""), None) is function:
            aval = eqn.outvars[0].aval
            shape, dtype = tuple(aval.shape), getattr(jnp, aval.dtype.name, None)
            yield Way(function, (slots[0], shape), {})
            yield Way(function, (slots[0], shape, dtype, *slots[1:]), {})
            yield Way(function, (slots[0], shape, *slots[1:]), {})
            yield Way(function, (*slots, shape, dtype), {})
            yield Way(function, (*slots, shape), {})
