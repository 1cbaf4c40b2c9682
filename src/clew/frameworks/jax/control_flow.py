"""Equations with bodies: control flow, jitted parts and functions with derivatives of their own.

Each handler writes the nodes of one primitive's equation: ``jax.lax.cond``, ``switch``, ``while_loop`` and ``scan`` as
these, with the bodies as nested graphs; jitted functions of JAX itself by their public names where that is the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy
from jax import lax
from jax.extend import core

from clew.errors import CaptureError
from clew.frameworks.jax import calls
from clew.frameworks.jax.calls import as_jaxpr
from clew.frameworks.jax.importer import HANDLERS, Importer, fitting
from clew.frameworks.jax.primitives import ways_of_call
from clew.frameworks.jax.staging import this_trace
from clew.frameworks.jax.types import kind_of_aval, spec_of_aval
from clew.ir.graph import Graph
from clew.ir.node import Node

_MOST_RULES = 12
"""Rules of derivatives inside rules; a function that its own rule calls on other shapes each time has no end."""


def _jit(importer: Importer, eqn: Any) -> Sequence[Any] | None:
    params = eqn.params
    found = None if eqn.effects else _public(importer, eqn, params["name"])
    if found is not None:
        return importer.write(found, eqn)
    closed = params["jaxpr"]
    options = _options(params)
    if len(closed.jaxpr.eqns) <= 1 and not options and not closed.consts:
        return _inlined(importer, eqn, closed)  # there is nothing that compiling it as a whole could change
    body, free = importer.body(closed)
    if "donate_argnums" in options:
        options["donate_argnums"] = tuple(place + len(free) for place in options["donate_argnums"])
    name = params["name"] if str(params["name"]).isidentifier() else ""
    operands = [importer.read(variable) for variable in eqn.invars]
    named = {"name": name} if name else {}
    node = importer.graph.call_function(calls.jit, (body, *free, *operands), {**named, **options})
    return importer.results(node, eqn, len(eqn.outvars) != 1)


def _public(importer: Importer, eqn: Any, name: str) -> Any:
    """The public function of JAX that a call is, if there is one."""
    ways = ways_of_call(eqn, str(name))
    return next((choice for way in ways if (choice := fitting(way, eqn, importer.whole)) is not None), None)


def _inlined(importer: Importer, eqn: Any, closed: Any) -> Sequence[Any]:
    inner = Importer(importer.graph, importer._constant, importer.outer, importer.whole)
    inner.open_rules = importer.open_rules
    return inner.run(closed, [importer.read(variable) for variable in eqn.invars])


def _options(params: dict[str, Any]) -> dict[str, Any]:
    """What was asked of ``jax.jit`` besides compiling."""
    options: dict[str, Any] = {}
    for kind in ("in_shardings", "out_shardings"):
        if any(type(one).__name__ != "UnspecifiedValue" for one in params[kind]):
            options[kind] = tuple(params[kind])
    if any(params["donated_invars"]):
        options["donate_argnums"] = tuple(place for place, given in enumerate(params["donated_invars"]) if given)
    if params["keep_unused"]:
        options["keep_unused"] = True
    if params["compiler_options_kvs"]:
        options["compiler_options"] = dict(params["compiler_options_kvs"])
    return options


def _call(importer: Importer, eqn: Any) -> Sequence[Any] | None:
    """A call that only groups equations: they are written where it stands."""
    return _inlined(importer, eqn, as_jaxpr(eqn.params["call_jaxpr"]))


def _remat(importer: Importer, eqn: Any) -> Sequence[Any] | None:
    if eqn.params.get("differentiated"):
        return None
    body, free = importer.body(eqn.params["jaxpr"])
    options = {"prevent_cse": eqn.params["prevent_cse"], "policy": eqn.params["policy"]}
    told = {name: value for name, value in options.items() if value is not {"prevent_cse": True, "policy": None}[name]}
    operands = [importer.read(variable) for variable in eqn.invars]
    node = importer.graph.call_function(calls.remat, (body, *free, *operands), told)
    return importer.results(node, eqn, len(eqn.outvars) != 1)


# ---- control flow ------------------------------------------------------------------------------------------------


def _cond(importer: Importer, eqn: Any) -> Sequence[Any] | None:
    branches = [importer.body(branch) for branch in eqn.params["branches"]]
    if any(free for _, free in branches):
        return None
    index, *operands = eqn.invars
    bodies = [importer.graph.call_function(calls.bound, (body,)) for body, _ in branches]
    given = [importer.read(variable) for variable in operands]
    if len(branches) == 2:
        args = (_predicate(importer, index), bodies[1], bodies[0], *given)
        node = importer.graph.call_function(lax.cond, args)
    else:
        args = (_unclamped(importer, index, len(branches)), bodies, *given)
        node = importer.graph.call_function(lax.switch, args)
    return importer.results(node, eqn, len(eqn.outvars) != 1)


def _predicate(importer: Importer, index: Any) -> Any:
    """The truth that an index of two branches was made of, or a question for the index itself."""
    maker = None if isinstance(index, core.Literal) else importer.makers.get(index)
    if maker is not None and maker.primitive.name == "convert_element_type":
        source = maker.invars[0]
        if source.aval.dtype == bool:
            return importer.read(source)
    return importer.graph.call_function(operator.ne, (importer.read(index), 0))


def _unclamped(importer: Importer, index: Any, count: int) -> Any:
    """``switch`` keeps its index in bounds by itself, so the equation that does so is left out."""
    maker = None if isinstance(index, core.Literal) else importer.makers.get(index)
    if maker is not None and maker.primitive.name == "clamp":
        low, source, high = maker.invars
        bounds = [int(one.val) if isinstance(one, core.Literal) and not numpy.shape(one.val) else None
                  for one in (low, high)]  # fmt: skip
        if bounds == [0, count - 1]:
            return importer.read(source)
    return importer.read(index)


def _nest(values: Sequence[Any]) -> Any:
    """Loop-carried values as a loop takes them: one by itself, several as a tuple."""
    return values[0] if len(values) == 1 else tuple(values)


def _arrangement(importer: Importer, groups: Sequence[tuple[str, int]]) -> Callable[[Graph, list[Any]], list[Any]]:
    """Makes the parameters of a body: those without a name one by one, those of a named group as one nest."""

    def arrange(graph: Graph, variables: list[Any]) -> list[Any]:
        made: list[Any] = []
        for name, count in groups:
            part = variables[len(made) : len(made) + count]
            if not name:
                made += [importer._parameter(graph, one) for one in part]
            elif count == 1:
                made.append(importer._parameter(graph, part[0], name))
            else:
                nest = graph.placeholder(name)
                getting = [graph.call_function(operator.getitem, (nest, place)) for place in range(count)]
                made += [importer.typed(node, one.aval) for node, one in zip(getting, part, strict=True)]
        return made

    return arrange


def _while(importer: Importer, eqn: Any) -> Sequence[Any] | None:
    params, values = eqn.params, [importer.read(variable) for variable in eqn.invars]
    tested, worked = params["cond_nconsts"], params["body_nconsts"]
    carried = values[tested + worked :]
    bodies = []
    for closed, consts in (
        (params["cond_jaxpr"], values[:tested]),
        (params["body_jaxpr"], values[tested : tested + worked]),
    ):
        arrange = _arrangement(importer, (("", len(consts)), ("carry", len(carried))))
        body, free = importer.body(closed, arrange, _nest)
        bodies.append(importer.graph.call_function(calls.bound, (body, *free, *consts)))
    node = importer.graph.call_function(lax.while_loop, (*bodies, _nest(carried)))
    return importer.results(node, eqn, len(carried) != 1)


def _scan_counts(params: dict[str, Any]) -> tuple[int, int]:
    """How many operands of a scan are constants, and how many are carried; JAX 0.11 tells it by a tree."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts), len(carry)


def _scan(importer: Importer, eqn: Any) -> Sequence[Any] | None:
    params, values = eqn.params, [importer.read(variable) for variable in eqn.invars]
    consts, carry = _scan_counts(params)
    given, rows = values[consts : consts + carry], values[consts + carry :]
    groups = (("", consts), ("carry", carry), ("item", len(rows)))
    body, free = importer.body(
        params["jaxpr"], _arrangement(importer, groups), lambda made: (_nest(made[:carry]), _nest(made[carry:]))
    )
    function = importer.graph.call_function(calls.bound, (body, *free, *values[:consts]))
    told = {"length": params["length"]} if not rows else {}
    told |= {"reverse": True} if params["reverse"] else {}
    told |= {"unroll": params["unroll"]} if params["unroll"] != 1 else {}
    told |= {"_split_transpose": True} if params.get("_split_transpose") else {}
    node = importer.graph.call_function(lax.scan, (function, _nest(given), _nest(rows)), told)
    return _taken_apart(importer, node, (carry, len(eqn.outvars) - carry), eqn.outvars)


def _taken_apart(importer: Importer, node: Node, counts: Sequence[int], variables: Sequence[Any]) -> list[Any]:
    """The results of a scan: a pair of the carried values and of what was collected, each one value or a tuple."""
    made: list[Any] = []
    for place, count in enumerate(counts):
        part = importer.graph.call_function(operator.getitem, (node, place))
        if count == 1:
            made.append(part)
        else:
            made += [importer.graph.call_function(operator.getitem, (part, one)) for one in range(count)]
    return [importer.typed(one, variable.aval) for one, variable in zip(made, variables, strict=True)]


# ---- derivatives of their own ------------------------------------------------------------------------------------


def _function(eqn: Any) -> Callable[..., Any]:
    """A function that does what an equation does, its rules of derivatives included."""
    params = eqn.primitive.get_bind_params(eqn.params)
    return lambda *operands: eqn.primitive.bind(*operands, **params)


def _rule_name(importer: Importer, eqn: Any, rule: Any) -> tuple[str, bool]:
    """A name for a function with a rule, and whether its rule is being written right now, so that it calls itself."""
    place = getattr(getattr(rule, "debug_info", None), "func_src_info", "")
    key = (place, str(eqn.params["call_jaxpr"]), tuple(kind_of_aval(one.aval) for one in eqn.invars))
    closed = as_jaxpr(eqn.params["call_jaxpr"])
    name = str(getattr(closed.jaxpr.debug_info, "func_name", "") or "function").rpartition(".")[2]
    name = name if name.isidentifier() else "function"
    known = [one for one, _ in importer.open_rules]
    if key in known:
        return importer.open_rules[known.index(key)][1], True
    if len(known) >= _MOST_RULES:
        raise CaptureError(
            f"the rule of derivatives of {name} calls functions with rules without end",
            fixes=("let the rule call a function without a rule of its own",),
        )
    taken = {one for _, one in importer.open_rules}
    fresh = next(text for n in range(len(taken) + 1) if (text := f"{name}_{n}" if n else name) not in taken)
    importer.open_rules = (*importer.open_rules, (key, fresh))
    return fresh, False


def _custom_jvp(importer: Importer, eqn: Any) -> Sequence[Any] | None:
    if eqn.params["symbolic_zeros"]:
        return None
    closed = as_jaxpr(eqn.params["call_jaxpr"])
    name = str(getattr(closed.jaxpr.debug_info, "func_name", "")).rpartition(".")[2]
    found = _public(importer, eqn, name)
    if found is not None:
        return importer.write(found, eqn)
    operands = [importer.read(variable) for variable in eqn.invars]
    before = importer.open_rules
    label, is_open = _rule_name(importer, eqn, eqn.params["jvp_jaxpr_fun"])
    try:
        if is_open:
            node = importer.graph.call_function(calls.again, (label, *operands))
            return importer.results(node, eqn, len(eqn.outvars) != 1)
        body, free = importer.body(closed, whole=importer.whole)
        rule, more = importer.body(_jvp_jaxpr(eqn, importer.whole), pack=tuple, whole=importer.whole)
    finally:
        importer.open_rules = before
    if free or more:
        return None
    node = importer.graph.call_function(calls.custom_jvp, (body, rule, *operands), {"name": label})
    return importer.results(node, eqn, len(eqn.outvars) != 1)


def _moves(aval: Any) -> bool:
    return bool(jax.numpy.issubdtype(aval.dtype, jax.numpy.inexact))


def _keep_whole(whole: bool) -> None:
    """Rules of a program that is not compiled as a whole call jitted functions as it does."""
    if whole:
        this_trace()


def _jvp_jaxpr(eqn: Any, whole: bool) -> Any:
    """The rule for forward derivatives, traced: operands and tangents in, results and tangents out."""
    function, avals = _function(eqn), [one.aval for one in eqn.invars]
    specs = [spec_of_aval(aval) for aval in avals]

    def rule(*given: Any) -> Any:
        _keep_whole(whole)
        primals, rest = given[: len(avals)], iter(given[len(avals) :])
        tangents = [next(rest) if _moves(aval) else numpy.zeros(aval.shape, jax.dtypes.float0) for aval in avals]
        results, changes = jax.jvp(function, tuple(primals), tuple(tangents))
        results, changes = list(results), list(changes)
        return [*results, *(one for value, one in zip(results, changes, strict=True) if _moves(value))]

    return jax.make_jaxpr(rule)(*specs, *(_strong(one) for one, aval in zip(specs, avals, strict=True) if _moves(aval)))


def _strong(spec: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(spec.shape, spec.dtype)


def _custom_vjp(importer: Importer, eqn: Any) -> Sequence[Any] | None:
    if eqn.params["symbolic_zeros"]:
        return None
    operands = [importer.read(variable) for variable in eqn.invars]
    before = importer.open_rules
    label, is_open = _rule_name(importer, eqn, eqn.params["fwd_jaxpr_thunk"])
    try:
        if is_open:
            node = importer.graph.call_function(calls.again, (label, *operands[eqn.params["num_consts"] :]))
            return importer.results(node, eqn, len(eqn.outvars) != 1)
        whole = importer.whole
        body, free = importer.body(eqn.params["call_jaxpr"], whole=whole)
        ahead, back = _vjp_jaxprs(eqn, whole)
        count = len(eqn.outvars)
        forward, more = importer.body(ahead, pack=lambda made: (tuple(made[:count]), tuple(made[count:])), whole=whole)
        backward, most = importer.body(back, pack=tuple, whole=whole)
    finally:
        importer.open_rules = before
    if free or more or most:
        return None
    told = {"name": label} | ({"consts": eqn.params["num_consts"]} if eqn.params["num_consts"] else {})
    node = importer.graph.call_function(calls.custom_vjp, (body, forward, backward, *operands), told)
    return importer.results(node, eqn, len(eqn.outvars) != 1)


def _vjp_jaxprs(eqn: Any, whole: bool) -> tuple[Any, Any]:
    """The two rules for gradients, traced: results and residuals of the way there, gradients of the way back."""
    function, avals, consts = _function(eqn), [one.aval for one in eqn.invars], eqn.params["num_consts"]
    specs = [spec_of_aval(aval) for aval in avals]
    shapes: list[Any] = []

    def forward(*given: Any) -> Any:
        _keep_whole(whole)
        results, pull = jax.vjp(lambda *primals: function(*given[:consts], *primals), *given[consts:])
        leaves, structure = jax.tree_util.tree_flatten(pull)
        shapes[:] = [structure]
        return [*results, *leaves]

    ahead = jax.make_jaxpr(forward)(*specs)
    count = len(eqn.outvars)
    kept = [spec_of_aval(one.aval) for one in ahead.jaxpr.outvars[count:]]
    moving = [_moves(aval) for aval in avals[consts:]]

    def backward(*given: Any) -> Any:
        _keep_whole(whole)
        pull = jax.tree_util.tree_unflatten(shapes[0], given[: len(kept)])
        rest = iter(given[len(kept) :])
        arriving = [next(rest) if _moves(one.aval) else numpy.zeros(one.aval.shape, jax.dtypes.float0)
                    for one in eqn.outvars]  # fmt: skip
        return [found for found, moves in zip(pull(arriving), moving, strict=True) if moves]

    gradients = [_strong(spec_of_aval(one.aval)) for one in eqn.outvars if _moves(one.aval)]
    return ahead, jax.make_jaxpr(backward)(*kept, *gradients)


HANDLERS.update(
    {
        "jit": _jit,
        "pjit": _jit,
        "closed_call": _call,
        "core_call": _call,
        "call": _call,
        "remat2": _remat,
        "checkpoint": _remat,
        "cond": _cond,
        "while": _while,
        "scan": _scan,
        "custom_jvp_call": _custom_jvp,
        "custom_vjp_call": _custom_vjp,
    }
)
