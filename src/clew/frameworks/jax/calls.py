"""The functions that graphs of JAX call where JAX itself has no plain call for what a jaxpr says.

Each takes the bodies of the graph as functions, then the operands. A body is the same function at each call of the
generated code as far as JAX's caches can tell (``kept``), so that a graph that is called again compiles nothing anew.
"""

from __future__ import annotations

import contextvars
import copy
import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax.extend import core
from jax.extend.core import Primitive

from clew.errors import GraphError
from clew.frameworks.jax import private
from clew.frameworks.jax.types import dtype_of, key_dtype, spec_of
from clew.ir.effects import pure

Body = Callable[..., Any]
_KEPT = "__clew_kept__"
_jit = jax.jit


def _cache(body: Body) -> dict[Any, Any]:
    """What is remembered for a body: with the code that made it, unless it sees more than its arguments."""
    if not isinstance(body, FunctionType) or body.__closure__:
        return {}
    found: dict[Any, Any] = body.__globals__.setdefault(_KEPT, {}).setdefault(body.__code__, {})
    return found


def kept(body: Body) -> Body:
    """The first function that was made of the same code, which JAX's caches know already."""
    found: Body = _cache(body).setdefault("body", body)
    return found


@pure
def bound(body: Body, *values: Any) -> Body:
    """A body of control flow with its first arguments given."""
    return functools.partial(kept(body), *values) if values else kept(body)


@pure
def jit(body: Body, *operands: Any, name: str = "", **options: Any) -> Any:
    """The body compiled as a whole, as the program asked for."""
    cache, key = _cache(body), ("jit", name, tuple(sorted(options.items(), key=lambda item: item[0])))
    compiled = cache.get(key)
    if compiled is None:
        compiled = cache[key] = jax.jit(_named(kept(body), name), **options)
    return compiled(*operands)


@pure
def transformed(transform: Callable[..., Any], body: Body, values: tuple[Any, ...], options: dict[str, Any]) -> Body:
    """``transform(body, **options)``, where the body also gets ``values`` of the program around it, first."""
    if transform is not _jit:
        return transform(bound(body, *values), **options)  # type: ignore[no-any-return]
    arrays = [value for value in values if isinstance(value, jax.Array)]
    key = ("jit", repr(sorted(options.items(), key=lambda item: item[0])), tuple(map(_mark, values)))
    cache = _cache(body)

    def fixed_values() -> tuple[Any, ...]:  # copies: JAX may trace the body again when somebody has written to an array
        return tuple(None if isinstance(value, jax.Array) else (_copied(value),) for value in values)

    if key not in cache:
        cache[key] = _jit(_taking(kept(body), fixed_values()), **_behind_arrays(options))
    if not any(name.startswith("static_") for name in options):
        return functools.partial(cache[key], arrays)

    def call(*args: Any, **kwargs: Any) -> Any:
        told = tuple(repr(value) for value in (*args, *kwargs.values()) if type(value) is float and value == 0)
        if told and (key, told) not in cache:  # JAX takes -0.0 for 0.0
            cache[key, told] = _jit(_taking(kept(body), fixed_values()), **_behind_arrays(options))
        return cache[(key, told) if told else key](arrays, *args, **kwargs)

    return call


def _mark(value: Any) -> Any:
    """What tells values apart that a compiled body holds; -0.0 is equal to 0.0, and arrays of NumPy have no hash."""
    if isinstance(value, jax.Array):
        return None
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return type(value), value.dtype, value.shape, value.tobytes()
    if type(value) in (tuple, list):
        return type(value), tuple(map(_mark, value))
    if type(value) is dict:
        return dict, tuple((key, _mark(item)) for key, item in value.items())
    return type(value), repr(value) if isinstance(value, (float, complex)) else value


def _copied(value: Any) -> Any:
    """A value that nobody writes to."""
    return copy.deepcopy(value) if isinstance(value, (numpy.ndarray, list, dict, tuple)) else value


def _taking(body: Body, fixed: tuple[Any, ...]) -> Body:
    """The body with a list of arrays first; what else it gets from around it is fixed."""

    def run(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        rest = iter(arrays)
        return body(*(next(rest) if one is None else one[0] for one in fixed), *args, **kwargs)

    run.__name__ = run.__qualname__ = body.__name__
    return run


def _behind_arrays(options: dict[str, Any]) -> dict[str, Any]:
    """Options of ``jax.jit`` for a function that gets one argument more, first."""
    moved = dict(options)
    for name in ("static_argnums", "donate_argnums"):
        if name in moved:
            places = moved[name] if isinstance(moved[name], (tuple, list)) else (moved[name],)
            moved[name] = tuple(place + 1 if place >= 0 else place for place in places)
    return moved


def _named(body: Body, name: str) -> Body:
    """The body under the name that it has in the original, which profiles and jaxprs show."""
    if not name:
        return body

    def named(*operands: Any) -> Any:
        return body(*operands)

    named.__name__ = named.__qualname__ = name
    return named


@pure
def remat(body: Body, *operands: Any, **options: Any) -> Any:
    """The body, computed again when its gradient is taken instead of being kept."""
    return jax.checkpoint(kept(body), **options)(*operands)


_rules: contextvars.ContextVar[dict[str, Any] | None] = contextvars.ContextVar("clew_rules", default=None)
"""The functions with derivatives of their own whose rules are running."""


def _inside(name: str, function: Any, rule: Body) -> Body:
    """A rule that can call the function that it belongs to."""

    def run(*operands: Any) -> Any:
        token = _rules.set({**(_rules.get() or {}), name: function})
        try:
            return rule(*operands)
        finally:
            _rules.reset(token)

    return run


@pure
def again(name: str, *operands: Any) -> Any:
    """The function whose derivative is being computed, with that same derivative."""
    found = (_rules.get() or {}).get(name)
    if found is None:
        raise GraphError(f"{name!r} is called outside of its rule of derivatives")
    return found(*operands)


def _is_inexact(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


@pure
def custom_jvp(body: Body, rule: Body, *operands: Any, name: str) -> Any:
    """The body with a rule of its own for forward derivatives.

    ``rule`` takes the operands and the tangents of those that have any; it returns the results and their tangents.
    """
    function = jax.custom_jvp(_named(kept(body), name))
    inner = _inside(name, function, rule)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        moving = [tangent for value, tangent in zip(primals, tangents, strict=True) if _is_inexact(jnp.asarray(value))]
        answer = list(_as_tuple(inner(*primals, *moving)))
        count = next(n for n in range(1, len(answer) + 1) if n + sum(map(_is_inexact, answer[:n])) == len(answer))
        results, rest = answer[:count], iter(answer[count:])
        changes = [next(rest) if _is_inexact(value) else _no_change(value) for value in results]
        is_one = count == 1 and not isinstance(jax.eval_shape(function, *primals), (tuple, list))
        return (results[0], changes[0]) if is_one else (tuple(results), tuple(changes))

    function.defjvp(jvp)
    return function(*operands)


@pure
def ruled_jvp(body: Body, rule: Body, *args: Any, name: str, nondiff: tuple[int, ...] = ()) -> Any:
    """A function with a rule of its own for forward derivatives, as ``jax.custom_jvp`` takes it."""
    function = jax.custom_jvp(_named(body, name), nondiff_argnums=nondiff)
    function.defjvp(_inside(name, function, rule))
    return function(*args)


@pure
def ruled_vjp(body: Body, forward: Body, backward: Body, *args: Any, name: str, nondiff: tuple[int, ...] = ()) -> Any:
    """A function with a rule of its own for gradients, as ``jax.custom_vjp`` takes it."""
    function = jax.custom_vjp(_named(body, name), nondiff_argnums=nondiff)
    function.defvjp(_inside(name, function, forward), _inside(name, function, backward))
    return function(*args)


def _no_change(value: Any) -> Any:
    return numpy.zeros(value.shape, jax.dtypes.float0)


@pure
def custom_vjp(body: Body, forward: Body, backward: Body, *operands: Any, name: str, consts: int = 0) -> Any:
    """The body with a rule of its own for gradients.

    ``forward`` returns a pair of tuples: the results and what ``backward`` needs; that takes these and the gradients of
    the results, and returns the gradients of the operands that have any. The first ``consts`` operands have none.
    """
    fixed, given = operands[:consts], operands[consts:]
    moving = [_is_inexact(jnp.asarray(value)) for value in given]
    function = jax.custom_vjp(_named(functools.partial(kept(body), *fixed) if fixed else kept(body), name))
    ahead, back = _inside(name, function, forward), _inside(name, function, backward)

    def fwd(*primals: Any) -> Any:
        results, residuals = ahead(*fixed, *primals)
        return (results[0] if _is_single(body, operands) else tuple(results)), tuple(residuals)

    def bwd(residuals: Any, gradients: Any) -> Any:
        arriving = [one for one in _as_tuple(gradients) if one.dtype != jax.dtypes.float0]
        found = iter(_as_tuple(back(*residuals, *arriving)))
        return tuple(next(found) if moves else None for moves in moving)

    function.defvjp(fwd, bwd)
    return function(*given)


def _is_single(body: Body, operands: tuple[Any, ...]) -> bool:
    """Whether a body returns one value and no tuple."""
    return not isinstance(jax.eval_shape(body, *operands), (tuple, list))


@pure
def closed_jaxpr(body: Body, kinds: tuple[str, ...], opened: bool = False) -> Any:
    """The jaxpr of a body on arrays of these kinds, for a primitive that takes one."""
    cache = _cache(body)
    made = cache.get(kinds)
    if made is None:
        made = cache[kinds] = jax.make_jaxpr(lambda *operands: _as_tuple(body(*operands)))(*map(spec_of, kinds))
    return made.jaxpr if opened else made


@pure
def bind(primitive: Primitive, *operands: Any, **params: Any) -> Any:
    """Any primitive on operands, with its parameters."""
    given = {name: _plain_dtype(value) for name, value in params.items()}
    return primitive.bind(*operands, **primitive.get_bind_params(given))


def perform(primitive: Primitive, *operands: Any, **params: Any) -> Any:
    """A primitive that does something besides computing its result."""
    return bind(primitive, *operands, **params)


def _plain_dtype(value: Any) -> Any:
    return numpy.dtype(value) if type(value) is type(jnp.float32) else value


@pure
def weak(value: Any, kind: str) -> Any:
    """A number as an array of a weak type, as JAX makes of Python's numbers."""
    return private.converted(value, dtype_of(kind))


@pure
def prng(name: str) -> Any:
    """The implementation of random keys with this name."""
    return key_dtype(name)._impl


def as_jaxpr(jaxpr: Any) -> core.ClosedJaxpr:
    """A closed jaxpr, whichever of the two kinds came in."""
    return jaxpr if isinstance(jaxpr, core.ClosedJaxpr) else core.ClosedJaxpr(jaxpr, ())
