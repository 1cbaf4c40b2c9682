"""torch's functions that read and write items by indices: gather, scatter, embedding, assignment to items.

An index out of range is an error in torch. Targets that cannot raise give nan, or leave items out, instead; the page on
translation says so.
"""

from __future__ import annotations

from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.table import axis_of, refuse_given
from clew.translate.rows.torch_elementwise import TORCH, fitting
from clew.translate.rows.torch_shapes import checked_index
from clew.translate.values import Array


@TORCH.row("gather", "take_along_dim")
def gather(
    xp: Any, x: Array, dim: Any = None, index: Any = None, *, sparse_grad: bool = False, indices: Any = None
) -> Any:
    """Items along an axis, by an index for each."""
    if isinstance(dim, Array):  # take_along_dim has them the other way round
        dim, index = index, dim
    index = index if indices is None else indices
    if dim is None:
        return xp.take_along_axis(xp.reshape(x, (-1,)), xp.reshape(index, (-1,)), axis=0)
    if not x.ndim:
        return xp.broadcast_to(x, index.shape)
    axis = axis_of(dim, x.ndim)
    x = _cut_to(xp, x, index, axis)
    return xp.take_along_axis(x, index, axis=axis)


def _cut_to(xp: Any, x: Array, index: Array, axis: int) -> Array:
    """The part of ``x`` that gather looks at: its other axes may be longer than those of the index."""
    cut = []
    for one in range(x.ndim):
        same = one == axis or x.spec.shape[one] == index.spec.shape[one]
        if one != axis and not same:
            cut.append(slice(None, index.size(one)))
        else:
            cut.append(slice(None))
    return x if all(one == slice(None) for one in cut) else x[tuple(cut)]


@TORCH.row("_dynamo._trace_wrapped_higher_order_op.ModIndex.apply")
def mod_index(xp: Any, x: Array, indices: Any) -> Any:
    """Items by an array for each of the first axes, as the masks of attention ask for them."""
    return x[checked_index(xp, tuple(indices))]


@TORCH.row("index_select")
def index_select(xp: Any, x: Array, dim: int, index: Array) -> Any:
    """Items along an axis, by their numbers."""
    return xp.take(x, index, axis=dim)


@TORCH.row("take")
def take(xp: Any, x: Array, index: Array) -> Any:
    """Items of all, counted one by one."""
    return xp.take(xp.reshape(x, (-1,)), index, axis=0)


@TORCH.row("nn.functional.embedding", "embedding")
def embedding(
    xp: Any,
    input: Array,
    weight: Array,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: Any = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of a table; no gradient flows into that of padding."""
    refuse_given("embedding", max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq)
    if input.ndim and not isinstance(input, Array):
        raise Untranslatable("an embedding by plain numbers")
    found = xp.take(weight, input, axis=0)
    if padding_idx is None or not weight.differentiable:
        return found
    if padding_idx < 0:
        padding_idx += weight.spec.shape[0]
    is_padding = xp.expand_dims(input == padding_idx, -1)
    return xp.where(is_padding, xp.stop_gradient(found), found)


@TORCH.row("nn.functional.one_hot", "one_hot")
def one_hot(xp: Any, x: Array, num_classes: int = -1) -> Any:
    """Ones at these positions."""
    if isinstance(num_classes, int) and num_classes < 0:
        raise Untranslatable("how many classes one_hot has depends on the data")
    return xp.one_hot(x, num_classes, xp.dtype("int64"))


_REDUCTIONS = {
    None: "set",
    "add": "add",
    "sum": "add",
    "multiply": "multiply",
    "prod": "multiply",
    "amax": "max",
    "amin": "min",
}


@TORCH.row("scatter")
def scatter(
    xp: Any, x: Array, dim: int, index: Array, src: Any = None, value: Any = None, *, reduce: Any = None
) -> Any:
    """Items set by an index for each."""
    written = src if src is not None else value
    return _scattered(xp, x, dim, index, written, reduce)


@TORCH.row("scatter_add")
def scatter_add(xp: Any, x: Array, dim: int, index: Array, src: Any) -> Any:
    """Items added to by an index for each."""
    return _scattered(xp, x, dim, index, src, "add")


@TORCH.row("scatter_reduce")
def scatter_reduce(
    xp: Any, x: Array, dim: int, index: Array, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Items combined with others by an index for each."""
    if reduce == "mean":
        ones = xp.ones_like(src)
        before = xp.ones_like(x) if include_self else xp.zeros_like(x)
        count = _scattered(xp, before, dim, index, ones, "add")
        total = _scattered(xp, x if include_self else _cleared(xp, x, dim, index, 0.0), dim, index, src, "add")
        if not xp.is_floating(x):
            raise Untranslatable("scatter_reduce of means of whole numbers")
        return total / xp.maximum(count, 1)
    if not include_self:
        x = _cleared(xp, x, dim, index, _neutral(x, reduce))
    return _scattered(xp, x, dim, index, src, reduce)


def _neutral(x: Array, reduce: str) -> Any:
    """What a reduction of nothing begins with."""
    if reduce in ("sum", "prod"):
        return 0 if reduce == "sum" else 1
    if not x.dtype.startswith("float"):
        raise Untranslatable("an extreme of whole numbers that leaves out what was there")
    return -float("inf") if reduce == "amax" else float("inf")


def _cleared(xp: Any, x: Array, dim: int, index: Array, value: Any) -> Any:
    """An array in which a number stands wherever something is scattered to."""
    return _scattered(xp, x, dim, index, value, None)


def _scattered(xp: Any, x: Array, dim: int, index: Array, written: Any, reduce: Any) -> Any:
    if not x.ndim or x.ndim != index.ndim:
        raise Untranslatable("scatter into a single number")
    axis = axis_of(dim, x.ndim)
    places = []
    for one in range(x.ndim):
        if one == axis:
            places.append(index)
            continue
        line = xp.arange(index.size(one))
        places.append(xp.reshape(line, (*(1,) * one, -1, *(1,) * (x.ndim - one - 1))) if x.ndim > 1 else line)
    if isinstance(written, Array) and written.ndim:
        cut = tuple(
            slice(None) if have == want else slice(None, index.size(one))
            for one, (have, want) in enumerate(zip(written.spec.shape, index.spec.shape, strict=True))
        )
        written = written if all(one == slice(None) for one in cut) else written[cut]
    return xp.at_set(x, tuple(places), written, _REDUCTIONS[reduce])


@TORCH.row("index_add")
def index_add(xp: Any, x: Array, dim: int, index: Array, source: Array, *, alpha: Any = 1) -> Any:
    """Added to items along an axis."""
    source = source if alpha == 1 else source * alpha
    return xp.at_set(x, (*(slice(None),) * axis_of(dim, x.ndim), index), source, "add")


@TORCH.row("index_copy")
def index_copy(xp: Any, x: Array, dim: int, index: Array, source: Array) -> Any:
    """Put in the place of items along an axis."""
    return xp.at_set(x, (*(slice(None),) * axis_of(dim, x.ndim), index), source)


@TORCH.row("index_fill")
def index_fill(xp: Any, x: Array, dim: int, index: Array, value: Any) -> Any:
    """A number in the place of items along an axis."""
    return xp.at_set(x, (*(slice(None),) * axis_of(dim, x.ndim), index), value)


@TORCH.row("index_put", "_unsafe_index_put")
def index_put(xp: Any, x: Array, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Items set, or added to."""
    places: tuple[Any, ...] = tuple(slice(None) if one is None else one for one in indices)
    if len(places) == 1 and places[0].dtype == "bool" and not accumulate:
        return _masked_put(xp, x, places[0], values)
    return xp.at_set(x, checked_index(xp, places), xp.cast(values, x.dtype), "add" if accumulate else "set")


def _masked_put(xp: Any, x: Array, mask: Array, value: Any) -> Any:
    """A single value, or one for the axes that the mask does not have, where a mask is true."""
    if isinstance(value, Array) and value.ndim > x.ndim - mask.ndim:
        return xp.put_masked(x, mask, xp.cast(value, x.dtype))
    mask = xp.reshape(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim))) if mask.ndim < x.ndim else mask
    return xp.where(mask, fitting(xp, value, x.dtype), x)


def set_items(xp: Any, x: Array, index: Any, value: Any) -> Any:
    """The array after ``x[index] = value``."""
    if isinstance(index, Array) and index.dtype == "bool":
        return _masked_put(xp, x, index, value)
    value = xp.cast(value, x.dtype)
    return xp.at_set(x, checked_index(xp, index), value)


TORCH.add("operator.setitem", set_items)
TORCH.add("with_item", set_items)
TORCH.add("__setitem__", set_items)


@TORCH.row("select_scatter")
def select_scatter(xp: Any, x: Array, src: Any, dim: int, index: Any) -> Any:
    """One item of an axis exchanged."""
    return xp.at_set(x, (*(slice(None),) * axis_of(dim, x.ndim), index), xp.cast(src, x.dtype))


@TORCH.row("slice_scatter")
def slice_scatter(xp: Any, x: Array, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """A piece of an axis exchanged."""
    end = None if isinstance(end, int) and end >= 2**62 else end
    part = slice(start, end, step if step != 1 else None)
    return xp.at_set(x, (*(slice(None),) * axis_of(dim, x.ndim), part), xp.cast(src, x.dtype))


@TORCH.row("masked_scatter")
def masked_scatter(xp: Any, x: Array, mask: Array, source: Array) -> Any:
    """Items of another array, one by one, where the mask is true."""
    mask = xp.broadcast_to(mask, x.shape)
    counted = xp.cumsum(xp.astype(xp.reshape(mask, (-1,)), "int32"), axis=0) - 1
    taken = xp.take(xp.reshape(source, (-1,)), xp.maximum(counted, 0), axis=0)
    return xp.where(mask, xp.reshape(taken, x.shape), x)
