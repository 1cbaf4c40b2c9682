"""Is a call the same as an equation of a jaxpr? It is traced, and the jaxpr that comes out must be that one equation.

Compared are the primitive, its parameters (jaxprs among them equation by equation), the operands, constants with their
dtype and weak type, and the results. So a friendly spelling is exact on the installed JAX, or it is not used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy
from jax.extend import core

from clew.frameworks.jax.calls import as_jaxpr
from clew.frameworks.jax.kinds import kind_of_aval, spec_of_aval
from clew.frameworks.jax.primitives import Inner, Slot, Way, placed
from clew.frameworks.jax.staging import this_trace
from clew.ir.arguments import map_aggregate

ONE, SEVERAL = "one", "several"

EQUIVALENT = {"add_any": "add"}
"""Primitives that compute what another one does."""

_IGNORED = frozenset({"computation", "debug_info", "jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd", "out_trees"})
"""Parameters that are functions of Python; of rules of derivatives the place in the source is compared instead."""
_RULES = ("jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd")


def is_equation(way: Way, eqn: Any, literals: dict[int, Any], whole: bool = False) -> str:
    """Whether tracing a call gives exactly this equation; ``literals`` are the operands that are written out.

    With ``whole`` calls of jitted functions stay calls, as in a program that is not compiled as a whole.
    The answer is ONE or SEVERAL, as the call gives its result or a sequence of results; nothing if it is another.
    """
    places = [place for place, operand in enumerate(eqn.invars) if place not in literals]
    try:
        made, shape = jax.make_jaxpr(functools.partial(_run, way, literals, places, whole), return_shape=True)(
            *(spec_of_aval(eqn.invars[place].aval) for place in places)
        )
    except Exception:  # a call that cannot even be made is none that could stand here
        return ""
    if len(made.eqns) != 1 or made.consts:
        return ""
    found = made.eqns[0]
    if not _same_primitive(found.primitive, eqn.primitive) or list(made.jaxpr.outvars) != list(found.outvars):
        return ""
    given = dict(zip(places, made.jaxpr.invars, strict=True))
    if len(found.invars) != len(eqn.invars) or len(found.outvars) != len(eqn.outvars):
        return ""
    operands = all(_same_operand(one, other, given.get(place)) for place, (one, other) in enumerate(
        zip(found.invars, eqn.invars, strict=True)))  # fmt: skip
    results = all(_same_aval(one.aval, other.aval) for one, other in zip(found.outvars, eqn.outvars, strict=True))
    if not (operands and results and _same_params(found.params, eqn.params)):
        return ""
    return SEVERAL if isinstance(shape, (tuple, list)) else ONE


def _same_primitive(made: Any, wanted: Any) -> bool:
    return made is wanted or EQUIVALENT.get(wanted.name) == made.name


def _run(way: Way, literals: dict[int, Any], places: list[int], whole: bool, *given: Any) -> Any:
    if whole:
        this_trace()
    values = {**literals, **dict(zip(places, given, strict=True))}

    def fill(leaf: Any) -> Any:
        if isinstance(leaf, Slot):
            return values[leaf.place]
        return core.jaxpr_as_fun(as_jaxpr(leaf.jaxpr)) if isinstance(leaf, Inner) else leaf

    args, kwargs = _filled(way.args, fill), _filled(way.kwargs, fill)
    if any(isinstance(leaf, Inner) for leaf in way.args):
        args = tuple(_single(one) if callable(one) and place else one for place, one in enumerate(args))
    return way.target(*args, **kwargs)


def _filled(nest: Any, fill: Callable[[Any], Any]) -> Any:
    """A nest of arguments with the slots, which are tuples themselves, filled; its lists and dicts are plain ones."""
    if isinstance(nest, (Slot, Inner)):
        return fill(nest)
    if type(nest) is tuple:
        return tuple(_filled(item, fill) for item in nest)
    if type(nest) is list:
        return [_filled(item, fill) for item in nest]
    return {key: _filled(item, fill) for key, item in nest.items()} if type(nest) is dict else nest


def _single(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a jaxpr gives a list; a body with one result gives that itself."""

    def run(*operands: Any) -> Any:
        results = function(*jax.tree_util.tree_leaves(operands))
        return results[0] if len(results) == 1 else tuple(results)

    return run


def _same_operand(made: Any, wanted: Any, variable: Any) -> bool:
    if variable is not None:
        return made is variable
    if not isinstance(made, core.Literal) or not isinstance(wanted, core.Literal):
        return False
    return _same_aval(made.aval, wanted.aval) and _same_bits(_typed(made), _typed(wanted))


def _typed(literal: Any) -> numpy.ndarray[Any, Any]:
    return numpy.asarray(literal.val).astype(literal.aval.dtype)


def _same_bits(one: Any, other: Any) -> bool:
    left, right = numpy.asarray(one), numpy.asarray(other)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def _same_aval(one: Any, other: Any) -> bool:
    return kind_of_aval(one) == kind_of_aval(other)


def _same_params(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(_same_param(name, one[name], other[name]) for name in one)


def _same_param(name: str, one: Any, other: Any) -> bool:
    if name in _RULES:
        return _place(one) == _place(other)
    if name in _IGNORED:
        return True
    one, other = placed(one), placed(other)
    if isinstance(one, (core.Jaxpr, core.ClosedJaxpr)):
        return isinstance(other, type(one)) and same_jaxpr(as_jaxpr(one), as_jaxpr(other))
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(_same_param(name, *pair) for pair in zip(one, other, strict=True))
    if isinstance(one, numpy.ndarray) or isinstance(other, numpy.ndarray):
        return _same_bits(one, other)
    return one is other or bool(one == other)


def _place(rule: Any) -> Any:
    return getattr(getattr(rule, "debug_info", None), "func_src_info", rule)


def same_jaxpr(one: Any, other: Any) -> bool:
    """Whether two closed jaxprs are the same program: the same equations on the same variables and constants."""
    left, right = one.jaxpr, other.jaxpr
    names: dict[Any, Any] = {}
    pairs = [(left.constvars, right.constvars), (left.invars, right.invars)]
    for mine, theirs in pairs:
        if len(mine) != len(theirs) or not all(_same_aval(a.aval, b.aval) for a, b in zip(mine, theirs, strict=True)):
            return False
        names.update(zip(mine, theirs, strict=True))
    if len(left.eqns) != len(right.eqns) or not all(map(_same_bits_of, one.consts, other.consts)):
        return False
    for first, second in zip(left.eqns, right.eqns, strict=True):
        if first.primitive is not second.primitive or not _same_values(first.invars, second.invars, names):
            return False
        if len(first.outvars) != len(second.outvars) or not _same_params(first.params, second.params):
            return False
        names.update(zip(first.outvars, second.outvars, strict=True))
    return _same_values(left.outvars, right.outvars, names)


def _same_bits_of(one: Any, other: Any) -> bool:
    return one is other or (hasattr(one, "dtype") and _same_bits(one, other))


def _same_values(mine: Any, theirs: Any, names: dict[Any, Any]) -> bool:
    if len(mine) != len(theirs):
        return False
    for one, other in zip(mine, theirs, strict=True):
        if isinstance(one, core.Literal) or isinstance(other, core.Literal):
            if not _same_operand(one, other, None):
                return False
        elif names.get(one) is not other:
            return False
    return True


def map_slots(nest: Any, fill: Callable[[Any], Any]) -> Any:
    """The arguments of a way with what ``fill`` gives for its slots and bodies."""
    return map_aggregate(_filled(nest, fill), lambda leaf: leaf)
