"""JAX's functions that take functions: loops, branches, and transforms such as ``vmap`` and ``grad``.

In come calls whose arguments are bodies (``bound``, ``transformed``); out come branches and loops of Python's in the
target, and derivatives where the target takes them. A function that is merely called is written in its place. Always
holds: a rule of derivatives that the source gives itself is never left out where the target could take a derivative.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp

from clew.ir.arguments import Body as GraphBody
from clew.ir.control_flow import cond, while_loop
from clew.ir.node import Node
from clew.translate.control_flow import _merged
from clew.translate.functions import Function, Region, filled, function_of, in_place, kept, looped, present
from clew.translate.refusals import Untranslatable
from clew.translate.translator import Translator
from clew.translate.values import Array, Number, Opaque, Spec, Value
from clew.translate.writer import mapped

CALLS = "clew.frameworks.jax.calls"


# ---- calls -----------------------------------------------------------------------------------------------------------


def called(translator: Translator, function: Function, args: Sequence[Any]) -> Any:
    """What a function gives, written in the place of its call."""
    if isinstance(function.body, _Switched):
        return _switched(translator, function, args)
    if function.transform:
        return _TRANSFORMS[function.transform](translator, replace(function, transform=""), tuple(args))
    wanted = translator.xp.wanted
    try:
        if isinstance(function.body, GraphBody):
            return in_place(translator, function.body, (*function.given, *args))
        row = translator.source.table.find(translator.source.names_of(function.body))
        if row is None:
            raise Untranslatable(f"no row stands for {getattr(function.body, '__name__', 'a function')}")
        return translator._run(row, [*function.given, *args], {})
    finally:
        translator.xp.wanted = wanted


def as_array(xp: Any, value: Any) -> Any:
    """A leaf as an array, as JAX makes of a number."""
    if isinstance(value, Array) or value is None:
        return value
    if isinstance(value, Opaque):
        raise Untranslatable(value.reason or "nothing is known of a value that goes into a function")
    plain = value.value if isinstance(value, Number) else value
    return xp.as_array(value, xp.dtype(jnp.asarray(plain).dtype.name))


def arrays(xp: Any, nest: Any) -> Any:
    """A nest with arrays for leaves."""
    return mapped(nest, functools.partial(as_array, xp))


# ---- loops -----------------------------------------------------------------------------------------------------------


def scan(
    translator: Translator, f: Any, init: Any, xs: Any = None, length: Any = None, reverse: bool = False, **options: Any
) -> Any:
    """``jax.lax.scan``: a loop that carries values and stacks what each step gives."""
    xp, function = translator.xp, function_of(f)
    init, xs = arrays(xp, init), arrays(xp, xs)
    first = next(iter(present(xs)), None)
    count = length if length is not None else first.size(0) if first is not None else None
    if count is None:
        raise Untranslatable("a scan over nothing")

    def step(region: Region, number: Any, carry: Any, seen: Any) -> tuple[Any, Any]:
        (inside, items, total) = seen
        place = total - 1 - number if reverse else number
        inner = region.body.writer.namespace
        found = called(
            region.inner,
            inside,
            (carry, mapped(items, lambda leaf: None if leaf is None else inner.getitem(leaf, place))),
        )
        return found[0], found[1]

    carry, stacked, told = looped(translator, (count,), init, (function, xs, count), step)
    if reverse:
        stacked = [xp.flip(one, axis=0) for one in stacked]
    return carry, filled(told, stacked)


def map_(translator: Translator, f: Any, xs: Any, **options: Any) -> Any:
    """``jax.lax.map``: a loop that stacks."""
    function = function_of(f)
    xs = arrays(translator.xp, xs)

    def step(region: Region, number: Any, carry: Any, seen: Any) -> tuple[Any, Any]:
        inner = region.body.writer.namespace
        return (), called(region.inner, seen[0], (mapped(seen[1], lambda leaf: inner.getitem(leaf, number)),))

    _, stacked, told = looped(translator, (present(xs)[0].size(0),), (), (function, xs), step)
    return filled(told, stacked)


def fori_loop(translator: Translator, lower: Any, upper: Any, body_fun: Any, init_val: Any, **options: Any) -> Any:
    """``jax.lax.fori_loop``."""
    xp, function = translator.xp, function_of(body_fun)
    bounds = tuple(xp.item(one) if isinstance(one, Array) else one for one in (lower, upper))

    def step(region: Region, number: Any, carry: Any, seen: Any) -> tuple[Any, Any]:
        place = as_array(region.body.writer.namespace, number)
        return called(region.inner, seen[0], (place, carry)), ()

    return looped(translator, bounds, arrays(xp, init_val), (function,), step)[0]


def while_(translator: Translator, cond_fun: Any, body_fun: Any, init_val: Any) -> Any:
    """``jax.lax.while_loop``: a loop of Python's."""
    writer, carried = translator.writer, arrays(translator.xp, init_val)
    before, functions = present(carried), (function_of(cond_fun), function_of(body_fun))
    graphs, taken = [], []
    for place in range(2):
        region = Region(translator)
        inside = filled(carried, [region.input(leaf, f"carried_{at}") for at, leaf in enumerate(before)])
        both = [region.function(one) for one in functions]
        found = called(region.inner, both[place], (inside,))
        inner = region.body.writer.namespace
        ends = found if place == 0 else tuple(kept(one, as_array(inner, other))
                                              for one, other in zip(before, present(found), strict=True))  # fmt: skip
        graphs.append(region.body.close(ends))
        taken = region.taken
    if translator.xp.jits:
        writer.note("a while loop on data stays Python's: the program runs, but cannot be compiled")
    made = writer.node("call_function", while_loop, (*graphs, tuple(before), tuple(taken), 0, False))
    items = [writer.node("call_function", operator.getitem, (made, place)) for place in range(len(before))]
    rest = [writer.wrap(item, Spec(one.spec.shape, one.dtype), True) for item, one in zip(items, before, strict=True)]
    return filled(carried, rest)


def associative_scan(translator: Translator, fn: Any, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """``jax.lax.associative_scan``, one item after the other: rounding errors are others."""
    if axis != 0 or reverse:
        raise Untranslatable("an associative scan along another axis, or backwards")
    xp, function = translator.xp, function_of(fn)
    elems = arrays(xp, elems)
    first = mapped(elems, lambda leaf: xp.getitem(leaf, slice(0, 1)))

    def step(region: Region, number: Any, carry: Any, seen: Any) -> tuple[Any, Any]:
        inner = region.body.writer.namespace
        item = mapped(seen[1], lambda leaf: inner.getitem(leaf, slice(number, number + 1)))
        region.inner.sizes_differ = True
        found = called(region.inner, seen[0], (carry, item))
        return found, mapped(found, lambda leaf: inner.getitem(leaf, 0))

    _, stacked, told = looped(translator, (1, present(elems)[0].size(0)), first, (function, elems), step)
    rest = filled(told, stacked)
    joined = [xp.concatenate([one, other], axis=0) for one, other in zip(present(first), present(rest), strict=True)]
    return filled(elems, joined)


# ---- branches --------------------------------------------------------------------------------------------------------


def cond_(translator: Translator, pred: Any, true_fun: Any, false_fun: Any, *operands: Any, operand: Any = None) -> Any:
    """``jax.lax.cond``: Python's ``if``."""
    operands = (operand,) if operand is not None else operands
    sides = (function_of(true_fun), function_of(false_fun))
    if not isinstance(pred, Value):
        return called(translator, sides[0 if pred else 1], operands)
    writer, results, graphs, taken = translator.writer, [], [], []
    for place in range(2):
        region = Region(translator)
        both = [region.function(one) for one in sides]
        seen = mapped(operands, region.operand)
        found = arrays(region.body.writer.namespace, called(region.inner, both[place], seen))
        results.append(found)
        graphs.append(region.body.close(found))
        taken = region.taken
    pred = pred if not isinstance(pred, Array) or pred.dtype == "bool" else pred != 0
    made = writer.node("call_function", cond, (pred, *graphs, tuple(taken)))
    return _merged(translator, made, *results)


def switch(translator: Translator, index: Any, branches: Any, *operands: Any, operand: Any = None) -> Any:
    """``jax.lax.switch``: branches one behind the other; an index out of range is the next one that there is."""
    operands = (operand,) if operand is not None else operands
    functions = [function_of(one) for one in branches]
    if not isinstance(index, Value):
        return called(translator, functions[max(0, min(int(index), len(functions) - 1))], operands)
    if len(functions) == 1:
        return called(translator, functions[0], operands)
    rest = Function(_Switched(1), (index, tuple(functions[1:])))
    at_first: Any = translator.writer.operate(operator.le, index, 0)
    return cond_(translator, at_first, functions[0], rest, *operands)


@dataclass(frozen=True)
class _Switched:
    """The branches of a switch from this one on."""

    first: int


def _switched(translator: Translator, function: Function, args: Sequence[Any]) -> Any:
    index, functions = function.given
    if len(functions) == 1:
        return called(translator, functions[0], args)
    first = function.body.first
    rest = Function(_Switched(first + 1), (index, functions[1:]))
    return cond_(translator, index <= first, functions[0], rest, *args)


# ---- transforms ------------------------------------------------------------------------------------------------------


def _in_front(xp: Any, nest: Any, axis: int | None) -> Any:
    return mapped(nest, lambda leaf: xp.moveaxis(leaf, axis, 0)) if axis else nest


def _item(xp: Any, number: Any, leaf: Any) -> Any:
    return None if leaf is None else xp.getitem(leaf, number)


def vmap(translator: Translator, function: Function, args: tuple[Any, ...]) -> Any:
    """``jax.vmap``: a loop over the axis, whose results are stacked."""
    xp, options = translator.xp, function.options
    axes, out = options.get("in_axes", 0), options.get("out_axes", 0)
    if options.get("axis_size") is not None or options.get("axis_name") is not None:
        raise Untranslatable("vmap with a name or size of its axis")
    axes = axes if isinstance(axes, (tuple, list)) else (axes,) * len(args)
    args = tuple(one if axis is None else arrays(xp, one) for one, axis in zip(args, axes, strict=True))
    if not all(axis is None or isinstance(axis, int) for axis in axes) or not isinstance(out, int):
        raise Untranslatable("vmap with another axis for each part of an argument")
    moved = tuple(_in_front(xp, one, axis) for one, axis in zip(args, axes, strict=True))
    count = next(
        leaf.size(0) for one, axis in zip(moved, axes, strict=True) if axis is not None for leaf in present(one)
    )

    def step(region: Region, number: Any, carry: Any, seen: Any) -> tuple[Any, Any]:
        inner = region.body.writer.namespace
        given = [one if axis is None else mapped(one, functools.partial(_item, inner, number))
                 for one, axis in zip(seen[1], axes, strict=True)]  # fmt: skip
        return (), called(region.inner, seen[0], given)

    plain = replace(function, options={})
    plain = function.body if isinstance(function.body, Function) else plain
    _, stacked, told = looped(translator, (count,), (), (plain, moved), step)
    return filled(told, [xp.moveaxis(one, 0, out) if out else one for one in stacked])


def _region_of(translator: Translator, function: Function, args: tuple[Any, ...], aux: bool) -> tuple[Any, Any, Any]:
    """A function as a body of the target with flat arguments; what one call of it gives."""
    region = Region(translator)
    inside = region.function(replace(function, options={}))
    count = len(region.taken)
    leaves = [region.input(leaf, f"argument_{place}") for place, leaf in enumerate(present(args))]
    result = called(region.inner, inside, filled(args, leaves))
    told = arrays(region.body.writer.namespace, result)
    flat = (told[0], tuple(present(told[1]))) if aux else told if isinstance(told, Array) else tuple(present(told))
    graph: Any = region.body.close(flat)
    if count:
        graph = translator.writer.node("call_function", functools.partial, (graph, *region.taken))
    return graph, told, flat


def _differentiated(xp: Any, function: Function, args: tuple[Any, ...]) -> tuple[Any, tuple[int, ...], Any]:
    """The arguments as arrays, the places of the leaves with respect to which, and the nest that these make."""
    wanted = function.options.get("argnums", 0)
    numbers = (wanted,) if isinstance(wanted, int) else tuple(wanted)
    args = tuple(arrays(xp, one) for one in args)
    numbers = tuple(one % len(args) for one in numbers)
    places, first = [], 0
    for number, one in enumerate(args):
        count = len(present(one))
        places += list(range(first, first + count)) if number in numbers else []
        first += count
    nest = args[numbers[0]] if isinstance(wanted, int) else tuple(args[number] for number in numbers)
    if list(numbers) != sorted(numbers):
        raise Untranslatable("derivatives with respect to arguments in another order")
    return args, tuple(places), nest


def value_and_grad(translator: Translator, function: Function, args: tuple[Any, ...]) -> Any:
    """``jax.value_and_grad``: the value, and the slopes in the nest of the arguments."""
    return _slopes(translator, function, args)


def grad(translator: Translator, function: Function, args: tuple[Any, ...]) -> Any:
    """``jax.grad``."""
    value, slopes = _slopes(translator, function, args)
    return (slopes, value[1]) if function.options.get("has_aux") else slopes


def _slopes(translator: Translator, function: Function, args: tuple[Any, ...]) -> tuple[Any, Any]:
    xp, writer, aux = translator.xp, translator.writer, bool(function.options.get("has_aux"))
    inner = function.body if isinstance(function.body, Function) else function
    args, places, nest = _differentiated(xp, function, args)
    tape = xp.tape()
    if tape is not None:
        told, slopes = _taped(translator, replace(inner, options={}), args, nest, "gradient", tape)
        return told, slopes
    graph, told, _ = _region_of(translator, inner, args, aux)
    derivative = xp.derivative("grad_and_value")
    made = writer.node("call_function", derivative, (graph, places), {"has_aux": True} if aux else {})
    found = writer.node("call_function", operator.call, (made, *present(args)))
    slopes, value = (writer.node("call_function", operator.getitem, (found, place)) for place in range(2))
    parts = [writer.node("call_function", operator.getitem, (slopes, place)) for place in range(len(places))]
    leaves = [writer.wrap(part, Spec(one.spec.shape, one.dtype), True)
              for part, one in zip(parts, present(nest), strict=True)]  # fmt: skip
    if not aux:
        return _of(writer, value, told), filled(nest, leaves)
    first, rest = (writer.node("call_function", operator.getitem, (value, place)) for place in range(2))
    others = [_of(writer, writer.node("call_function", operator.getitem, (rest, place)), one)
              for place, one in enumerate(present(told[1]))]  # fmt: skip
    return (_of(writer, first, told[0]), filled(told[1], others)), filled(nest, leaves)


def _taped(
    translator: Translator, function: Function, args: tuple[Any, ...], nest: Any, how: str, tape: Node
) -> tuple[Any, Any]:
    """What a function gives, written in its place while a tape records it; the slopes that the tape tells."""
    writer, leaves = translator.writer, present(nest)
    writer.node("call_method", "__enter__", (tape,))
    writer.node("call_method", "watch", (tape, leaves))
    told = arrays(translator.xp, called(translator, function, args))
    value = told[0] if isinstance(told, tuple) else told
    writer.node("call_method", "__exit__", (tape, None, None, None))
    found = writer.node("call_method", how, (tape, value, leaves), {"unconnected_gradients": "zero"})
    parts = [writer.node("call_function", operator.getitem, (found, place)) for place in range(len(leaves))]
    front = value.spec.shape if how == "jacobian" else ()
    slopes = [writer.wrap(part, Spec(front + one.spec.shape, one.dtype), True)
              for part, one in zip(parts, leaves, strict=True)]  # fmt: skip
    return told, filled(nest, slopes)


def _of(writer: Any, node: Node, inside: Array) -> Any:
    """The value of a node that is like one of a body."""
    return writer.wrap(node, Spec(inside.spec.shape, inside.dtype), True)


def _jacobian(name: str, times: int) -> Callable[..., Any]:
    def transform(translator: Translator, function: Function, args: tuple[Any, ...]) -> Any:
        writer = translator.writer
        inner = function.body if isinstance(function.body, Function) else function
        args, places, nest = _differentiated(translator.xp, function, args)
        if function.options.get("has_aux") or not isinstance(nest, Array):
            raise Untranslatable(f"jax.{name} of something else than one array")
        tape = translator.xp.tape()
        if tape is not None:
            options = {"argnums": function.options.get("argnums", 0)}
            inner = replace(inner, options={}) if times == 1 else Function(inner, (), "grad", options)
            return _taped(translator, inner, args, nest, "jacobian", tape)[1]
        graph, told, _ = _region_of(translator, inner, args, False)
        if not isinstance(told, Array):
            raise Untranslatable(f"jax.{name} of a function that gives several values")
        made = writer.node("call_function", translator.xp.derivative(name), (graph, places[0]))
        found = writer.node("call_function", operator.call, (made, *present(args)))
        return writer.wrap(found, Spec(told.spec.shape + nest.spec.shape * times, told.dtype), True)

    return transform


def jvp(translator: Translator, fun: Any, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """``jax.jvp``: the value, and how it changes in a direction."""
    xp, writer = translator.xp, translator.writer
    primals, tangents = arrays(xp, tuple(primals)), arrays(xp, tuple(tangents))
    derivative = xp.derivative("jvp")
    if has_aux:
        raise Untranslatable("jvp with further results")
    graph, told, flat = _region_of(translator, function_of(fun), primals, False)
    made = writer.node("call_function", derivative, (graph, tuple(present(primals)), tuple(present(tangents))))
    halves = []
    for half in range(2):
        node = writer.node("call_function", operator.getitem, (made, half))
        if isinstance(flat, Array):
            halves.append(_of(writer, node, told))
            continue
        parts = [writer.node("call_function", operator.getitem, (node, place)) for place in range(len(flat))]
        halves.append(filled(told, [_of(writer, part, one) for part, one in zip(parts, flat, strict=True)]))
    return tuple(halves)


def _called(translator: Translator, function: Function, args: tuple[Any, ...]) -> Any:
    """A transform that changes nothing of what is computed: ``jit``, ``checkpoint``."""
    inner = function.body if isinstance(function.body, Function) else replace(function, options={})
    return called(translator, inner, args)


_TRANSFORMS: dict[str, Callable[..., Any]] = {
    "jit": _called, "checkpoint": _called, "remat": _called, "named_call": _called, "vmap": vmap, "grad": grad,
    "value_and_grad": value_and_grad, "jacfwd": _jacobian("jacfwd", 1), "jacrev": _jacobian("jacrev", 1),
    "hessian": _jacobian("hessian", 2),
}  # fmt: skip


# ---- which calls -----------------------------------------------------------------------------------------------------


def bound(translator: Translator, body: Any, *values: Any) -> Any:
    """A body with what it sees of the program around it."""
    return Function(body, values)


def transformed(translator: Translator, transform: Any, body: Any, values: Any, options: Any) -> Any:
    """A function that a transform made of a body."""
    name = getattr(transform, "__name__", str(transform))
    if name not in _TRANSFORMS:
        raise Untranslatable(f"the transform {name} has no equal")
    return Function(body, tuple(values), name, dict(options))


def call(translator: Translator, function: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of a function that the program made."""
    if kwargs:
        raise Untranslatable("a function that the program made is called with names")
    return called(translator, function_of(function), args)


def jitted(translator: Translator, body: Any, *operands: Any, **options: Any) -> Any:
    """``jit`` and ``remat``: the body itself."""
    return called(translator, function_of(body), operands)


def ruled(translator: Translator, body: Any, *rest: Any, rules: int, **named: Any) -> Any:
    """A function with derivatives of its own: the function, where the target takes none."""
    if translator.xp.differentiates:
        raise Untranslatable("a derivative of its own, which is not that of what it computes")
    return called(translator, function_of(body), rest[rules:])


CALLED: dict[str, Callable[..., Any]] = {
    f"{CALLS}.bound": bound, f"{CALLS}.transformed": transformed, "operator.call": call, f"{CALLS}.jit": jitted,
    f"{CALLS}.remat": jitted, f"{CALLS}.ruled_jvp": functools.partial(ruled, rules=1),
    f"{CALLS}.custom_jvp": functools.partial(ruled, rules=1), f"{CALLS}.ruled_vjp": functools.partial(ruled, rules=2),
    f"{CALLS}.custom_vjp": functools.partial(ruled, rules=2), "lax.scan": scan, "lax.map": map_,
    "lax.while_loop": while_, "lax.fori_loop": fori_loop, "lax.cond": cond_, "lax.switch": switch,
    "lax.associative_scan": associative_scan, "jvp": jvp,
}  # fmt: skip
"""The calls that are given functions, by their names."""
