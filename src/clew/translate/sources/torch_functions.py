"""torch's functions that take functions: ``torch.vmap``.

In comes a call with its body (``transform_with``); out comes the target's own ``vmap`` where it has one, and a loop
whose results are stacked elsewhere.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from clew.ir.node import Node
from clew.translate.functions import Region, in_place, looped
from clew.translate.refusals import Untranslatable
from clew.translate.translator import Translator
from clew.translate.values import Array, Spec
from clew.translate.writer import leaves_of, mapped


def transform_with(translator: Translator, node: Node, args: Any, kwargs: Any) -> Any:
    """A transform of a body, called with arrays."""
    transform, options, body, given, *rest = args
    if transform.__name__ != "vmap" or kwargs or options.get("chunk_size") is not None:
        raise Untranslatable(f"the transform {transform.__name__} has no equal")
    axes, out = options.get("in_dims", 0), options.get("out_dims", 0)
    axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,) * len(rest)
    for one, axis in zip(rest, axes, strict=True):
        is_mapped = axis is not None
        if is_mapped and not (isinstance(one, Array) and isinstance(axis, int)):
            raise Untranslatable("vmap over parts of an argument that is no array")
    if not isinstance(out, int):
        raise Untranslatable("vmap with another axis for each result")
    axes = tuple(axis if axis is None else axis % one.ndim for one, axis in zip(rest, axes, strict=True))
    wanted = translator.xp.wanted
    try:
        return (_own if translator.xp.vmap else _loop)(translator, body, given, rest, axes, out)
    finally:
        translator.xp.wanted = wanted


def _own(translator: Translator, body: Any, given: Any, rest: list[Any], axes: tuple[Any, ...], out: int) -> Any:
    """The target's own ``vmap``."""
    writer, region = translator.writer, Region(translator)
    seen = mapped(tuple(given), region.operand)
    inside = [region.input(_without(one, axis), f"mapped_{place}")
              for place, (one, axis) in enumerate(zip(rest, axes, strict=True))]  # fmt: skip
    result = in_place(region.inner, body, (*seen, *inside))
    if not all(isinstance(leaf, Array) for leaf in leaves_of(result)):
        raise Untranslatable("vmap of a function that gives something else than arrays")
    function: Any = region.body.close(result)
    if region.taken:
        function = writer.node("call_function", functools.partial, (function, *region.taken))
    made = writer.node("call_function", translator.xp.vmap, (function,), {"in_axes": axes, "out_axes": out})
    count = next(one.spec.shape[axis] for one, axis in zip(rest, axes, strict=True) if axis is not None)
    specs = mapped(result, functools.partial(_widened, out, count))
    return writer.wrap(writer.node("call_function", operator.call, (made, *rest)), specs, True)


def _without(value: Any, axis: Any) -> Any:
    """An array as the body sees it: without the axis that is gone through."""
    if axis is None:
        return value
    shape = value.spec.shape
    return Array(value.writer, value.node, Spec((*shape[:axis], *shape[axis + 1 :]), value.dtype), value.differentiable)


def _widened(out: int, count: int, leaf: Array) -> Spec:
    shape, place = leaf.spec.shape, out % (leaf.ndim + 1)
    return Spec((*shape[:place], count, *shape[place:]), leaf.dtype)


def _loop(translator: Translator, body: Any, given: Any, rest: list[Any], axes: tuple[Any, ...], out: int) -> Any:
    """A loop over the axis, whose results are stacked."""
    xp = translator.xp
    moved = [xp.moveaxis(one, axis, 0) if axis else one for one, axis in zip(rest, axes, strict=True)]
    count = next(one.size(0) for one, axis in zip(moved, axes, strict=True) if axis is not None)

    def step(region: Region, number: Any, carry: Any, seen: Any) -> tuple[Any, Any]:
        inner = region.body.writer.namespace
        items = [one if axis is None else inner.getitem(one, number) for one, axis in zip(seen[1], axes, strict=True)]
        return (), in_place(region.inner, body, (*seen[0], *items))

    _, stacked, told = looped(translator, (count,), (), (tuple(given), moved), step)
    left: Sequence[Any] = [xp.moveaxis(one, 0, out) if out else one for one in stacked]
    found = iter(left)
    return mapped(told, lambda leaf: next(found))


SPECIAL: dict[str, Callable[..., Any]] = {
    "clew.frameworks.torch.transforms.bodies.transform_with": transform_with,
}
"""The calls that are given functions, by their names."""
