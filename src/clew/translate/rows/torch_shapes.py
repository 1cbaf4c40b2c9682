"""torch's functions that move, cut and join: views, permutations, concatenations, items, and what asks for sizes."""

from __future__ import annotations

import math
import operator
from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.table import axes_of, axis_of, spread
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.values import Array, Items, Number, Opaque, Value


def sizes(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes that were given one by one, or as one list; those that arrays of one item tell as plain numbers."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = tuple(given[0])
    return tuple(whole(one) for one in given)


def result_sizes(xp: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sizes of what a call gives, which are known for the example."""
    given = tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    known = xp.wanted.shape if xp.wanted is not None and len(xp.wanted.shape) == len(given) else (None,) * len(given)
    return tuple(whole(one, example) for one, example in zip(given, known, strict=True))


def whole(size: Any, example: int | None = None) -> Any:
    """A size as a plain number, as torch takes an array of one item for one; ``example`` is what it is there."""
    is_number = isinstance(size, Array) and not size.ndim and size.dtype.startswith(("int", "uint"))
    return size.writer.namespace.item(size, int, example) if is_number else size


@TORCH.row("view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias")
def reshape(xp: Any, x: Array, *shape: Any, **named: Any) -> Any:
    """The same items in another shape."""
    if len(shape) == 1 and isinstance(shape[0], str):
        raise Untranslatable("a view of the same bits as another dtype")
    return xp.reshape(x, result_sizes(xp, shape or (named["shape" if "shape" in named else "size"],)))


@TORCH.row("view_as", "reshape_as")
def reshape_as(xp: Any, x: Array, other: Array) -> Any:
    """In the shape of another array."""
    return xp.reshape(x, other.shape)


@TORCH.row("flatten")
def flatten(xp: Any, x: Array, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Neighbouring axes as one."""
    if x.ndim == 0:
        return xp.reshape(x, (1,))
    first, last = axis_of(start_dim, x.ndim), axis_of(end_dim, x.ndim)
    if first == last:
        return x
    before = tuple(x.size(axis) for axis in range(first))
    after = tuple(x.size(axis) for axis in range(last + 1, x.ndim))
    if 0 in x.spec.shape:
        middle: Any = math.prod(x.size(axis) for axis in range(first, last + 1))
        return xp.reshape(x, (*before, middle, *after))
    return xp.reshape(x, (*before, -1, *after))


@TORCH.row("unflatten")
def unflatten(xp: Any, x: Array, dim: int, shape: Any) -> Any:
    """One axis as several."""
    axis = axis_of(dim, x.ndim)
    before = tuple(x.size(one) for one in range(axis))
    after = tuple(x.size(one) for one in range(axis + 1, x.ndim))
    return xp.reshape(x, (*before, *sizes((shape,)), *after))


@TORCH.row("ravel")
def ravel(xp: Any, x: Array) -> Any:
    """All items in one row."""
    return xp.reshape(x, (-1,))


@TORCH.row("permute")
def permute(xp: Any, x: Array, *dims: Any, **named: Any) -> Any:
    """Axes in another order."""
    order = sizes(dims) or tuple(named["dims"])
    return xp.transpose(x, axes_of(order, x.ndim)) if order else x


@TORCH.row("transpose", "swapaxes", "swapdims")
def transpose(xp: Any, x: Array, dim0: int, dim1: int) -> Any:
    """Two axes exchanged."""
    return xp.swapaxes(x, dim0, dim1) if x.ndim else x


@TORCH.row("t")
def t(xp: Any, x: Array) -> Any:
    """A matrix transposed; all else as it is."""
    return xp.matrix_transpose(x) if x.ndim == 2 else x


@TORCH.row("attribute.T", "attribute.mT", "adjoint", "attribute.mH", "attribute.H")
def attribute_transposed(xp: Any, x: Array) -> Any:
    """The axes the other way round, of matrices."""
    if x.ndim != 2 and x.ndim < 2:
        return x
    if x.dtype.startswith("complex"):
        raise Untranslatable("a conjugate transpose")
    return xp.matrix_transpose(x)


@TORCH.row("movedim", "moveaxis")
def movedim(xp: Any, x: Array, source: Any, destination: Any) -> Any:
    """Axes at other places."""
    return xp.moveaxis(x, source, destination)


@TORCH.row("unsqueeze")
def unsqueeze(xp: Any, x: Array, dim: int) -> Any:
    """A new axis of size one."""
    return xp.expand_dims(x, dim)


@TORCH.row("squeeze")
def squeeze(xp: Any, x: Array, dim: Any = None) -> Any:
    """Without axes of size one; which these are must not change."""
    axes = axes_of(dim, x.ndim)
    gone = []
    for axis in axes:
        size = x.size(axis)
        if isinstance(size, Number):
            is_one = size.value == 1
            xp.writer.require(size == 1, is_one, "squeeze takes axes of size one away")
        else:
            is_one = size == 1
        if is_one:
            gone.append(axis)
    return xp.squeeze(x, axis=tuple(gone)) if gone else x


@TORCH.row("expand", "broadcast_to")
def expand(xp: Any, x: Array, *shape: Any, **named: Any) -> Any:
    """Axes of size one repeated; -1 keeps a size."""
    wanted = result_sizes(xp, shape or (named.get("size", ()),))
    new = len(wanted) - x.ndim
    full = tuple(
        x.size(place - new) if isinstance(size, int) and size == -1 else size for place, size in enumerate(wanted)
    )
    return xp.broadcast_to(x, full)


@TORCH.row("expand_as")
def expand_as(xp: Any, x: Array, other: Array) -> Any:
    """In the shape of another array."""
    return xp.broadcast_to(x, other.shape)


@TORCH.row("broadcast_tensors")
def broadcast_tensors(xp: Any, *arrays: Any) -> Any:
    """All in their common shape."""
    return xp.broadcast_arrays(*_listed(arrays))


@TORCH.row("repeat", "tile")
def repeat(xp: Any, x: Array, *counts: Any, **named: Any) -> Any:
    """The array several times, side by side."""
    return xp.tile(x, sizes(counts) or sizes((named.get("repeats", named.get("dims", ())),)))


@TORCH.row("repeat_interleave")
def repeat_interleave(xp: Any, x: Array, repeats: Any, dim: Any = None, *, output_size: Any = None) -> Any:
    """Each item several times."""
    if isinstance(repeats, (Array, Number)) and output_size is None:
        if isinstance(repeats, Number) and not isinstance(repeats.value, list):
            return xp.repeat(x, repeats, axis=dim)
        return xp.repeated(x, repeats, dim)
    if isinstance(repeats, Array):
        return xp.repeat(x, repeats, axis=dim, total_repeat_length=output_size)
    return xp.repeat(x, repeats, axis=dim)


@TORCH.row("cat", "concat", "concatenate")
def cat(xp: Any, arrays: Any, dim: int = 0, *, axis: Any = None) -> Any:
    """Arrays one behind the other; empty ones of one axis count for nothing."""
    dim = dim if axis is None else axis
    if isinstance(arrays, Items):
        return xp.joined(arrays, dim)
    rank = max(one.ndim for one in arrays)
    kept = [one for one in arrays if one.ndim == rank and not (rank == 1 and one.spec.shape[0] == 0 and one.fixed)]
    if not kept:
        kept = list(arrays)
    kept = list(xp.together(*kept, dtype=xp.wanted.dtype)) if xp.wanted is not None else kept
    return kept[0] if len(kept) == 1 else xp.concatenate(kept, axis=dim)


@TORCH.row("stack")
def stack(xp: Any, arrays: Any, dim: int = 0) -> Any:
    """Arrays along a new axis."""
    if isinstance(arrays, Items):
        return xp.joined(arrays, dim, "stack")
    kept = list(xp.together(*arrays, dtype=xp.wanted.dtype)) if xp.wanted is not None else list(arrays)
    return xp.stack(kept, axis=dim)


@TORCH.row("hstack")
def hstack(xp: Any, arrays: Any) -> Any:
    """One beside the other."""
    return xp.hstack(list(arrays))


@TORCH.row("vstack", "row_stack")
def vstack(xp: Any, arrays: Any) -> Any:
    """One under the other."""
    return xp.vstack(list(arrays))


@TORCH.row("dstack")
def dstack(xp: Any, arrays: Any) -> Any:
    """One behind the other along the third axis."""
    return xp.dstack(list(arrays))


@TORCH.row("split", "functional.split", "split_with_sizes")
def split(xp: Any, x: Array, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> Any:
    """Parts of these sizes, or all of one size."""
    wanted = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(wanted, Number) and isinstance(wanted.value, list):
        return xp.parted(x, wanted, dim)
    if isinstance(wanted, (tuple, list)):
        ends, total = [], 0
        for size in map(whole, wanted[:-1]):
            total = total + size
            ends.append(total)
        return tuple(xp.split(x, ends, axis=dim))
    total = xp.writer.fixed(x.size(dim), "the number of parts depends on this size")
    wanted = xp.writer.fixed(wanted, "the number of parts depends on this size")
    return tuple(xp.split(x, list(range(wanted, total, wanted)), axis=dim))


@TORCH.row("chunk")
def chunk(xp: Any, x: Array, chunks: int, dim: int = 0) -> Any:
    """At most so many parts, all but the last of one size."""
    size = x.size(dim)
    if isinstance(size, Number) and size.value % chunks == 0:
        xp.writer.require(size % chunks == 0, True, "all parts have the same size")
        return tuple(xp.split(x, chunks, axis=dim))
    total = xp.writer.fixed(size, "the sizes of the parts depend on this size")
    return split(xp, x, max(-(-total // chunks), 1), dim)


@TORCH.row("tensor_split")
def tensor_split(xp: Any, x: Array, indices_or_sections: Any, dim: int = 0) -> Any:
    """Parts, by their number or by where they end."""
    return tuple(xp.array_split(x, indices_or_sections, axis=dim))


@TORCH.row("unbind")
def unbind(xp: Any, x: Array, dim: int = 0) -> Any:
    """The items along an axis."""
    axis = axis_of(dim, x.ndim)
    count = xp.writer.fixed(x.size(axis), "the number of items depends on this size")
    front = (slice(None),) * axis
    return tuple(x[(*front, place)] if front else x[place] for place in range(count))


@TORCH.row("narrow")
def narrow(xp: Any, x: Array, dim: int, start: Any, length: Any) -> Any:
    """A piece of an axis."""
    start, length = whole(start), whole(length)
    front = (slice(None),) * axis_of(dim, x.ndim)
    return x[(*front, slice(start, start + length))]


@TORCH.row("select")
def select(xp: Any, x: Array, dim: int, index: Any) -> Any:
    """One item of an axis."""
    return x[(*(slice(None),) * axis_of(dim, x.ndim), index)]


@TORCH.row("slice")
def slice_row(xp: Any, x: Array, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """A piece of an axis, in ATen's words."""
    end = None if isinstance(end, int) and end >= 2**62 else end
    return x[(*(slice(None),) * axis_of(dim, x.ndim), slice(start, end, step if step != 1 else None))]


@TORCH.row("flip")
def flip(xp: Any, x: Array, *dims: Any, **named: Any) -> Any:
    """The other way round along axes."""
    return xp.flip(x, axis=sizes(dims) or tuple(named["dims"]))


@TORCH.row("fliplr")
def fliplr(xp: Any, x: Array) -> Any:
    """Left and right exchanged."""
    return xp.flip(x, axis=1)


@TORCH.row("flipud")
def flipud(xp: Any, x: Array) -> Any:
    """Up and down exchanged."""
    return xp.flip(x, axis=0)


@TORCH.row("rot90")
def rot90(xp: Any, x: Array, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Turned."""
    return xp.rot90(x, k, tuple(dims))


@TORCH.row("roll")
def roll(xp: Any, x: Array, shifts: Any, dims: Any = None) -> Any:
    """Moved along axes, what falls off comes in again."""
    return xp.roll(x, shifts, axis=tuple(dims) if isinstance(dims, list) else dims)


@TORCH.row("tril")
def tril(xp: Any, x: Array, diagonal: Any = 0) -> Any:
    """The lower triangle."""
    return xp.tril(x, diagonal) if not isinstance(diagonal, int) or diagonal else xp.tril(x)


@TORCH.row("triu")
def triu(xp: Any, x: Array, diagonal: Any = 0) -> Any:
    """The upper triangle."""
    return xp.triu(x, diagonal) if not isinstance(diagonal, int) or diagonal else xp.triu(x)


@TORCH.row("diagonal", "linalg.diagonal")
def diagonal(xp: Any, x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1, *, dim: Any = None) -> Any:
    """A diagonal."""
    return xp.diagonal(x, offset=offset, axis1=dim1, axis2=dim2)


@TORCH.row("diag")
def diag(xp: Any, x: Array, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    return xp.diag(x, diagonal)


@TORCH.row("meshgrid", "functional.meshgrid")
def meshgrid(xp: Any, *arrays: Any, indexing: str = "ij") -> Any:
    """The coordinates of a grid."""
    return tuple(xp.meshgrid(*_listed(arrays), indexing=indexing))


def _listed(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arrays that were given one by one, or as one list."""
    return tuple(arrays[0]) if len(arrays) == 1 and isinstance(arrays[0], (tuple, list)) else arrays


@TORCH.row("unfold")
def unfold(xp: Any, x: Array, dimension: int, size: Any, step: Any) -> Any:
    """Windows along an axis, as a new last axis."""
    axis = axis_of(dimension, x.ndim)
    count = (x.size(axis) - size) // step + 1
    index = xp.arange(count)[:, None] * step + xp.arange(size)[None, :]
    found = xp.take(x, index, axis=axis)
    return xp.moveaxis(found, axis + 1, -1)


# ---- items -----------------------------------------------------------------------------------------------------------


@TORCH.row("operator.getitem", "__getitem__")
def getitem(xp: Any, x: Any, index: Any) -> Any:
    """Items of an array, or of a nest."""
    if isinstance(x, Array):
        return _items(xp, x, index)
    if isinstance(x, Opaque):
        return xp.writer.part(x, operator.getitem, index)
    if isinstance(x, Number):
        return xp.writer.plain(operator.getitem, x, index)
    if isinstance(index, Value):
        raise Untranslatable("which item of a list it takes is not fixed")
    return x[index]


def checked_index(xp: Any, index: Any) -> Any:
    """An index as NumPy takes it; masks give as many items as the data tell."""
    parts = index if isinstance(index, tuple) else (index,)
    found: list[Any] = []
    for part in parts:
        if isinstance(part, Array) and part.dtype in ("bool", "uint8"):
            raise Untranslatable("how many items a mask takes depends on the data")
        if isinstance(part, (list, range)) and not any(isinstance(one, Value) for one in part):
            part = xp.asarray(list(part))
        elif isinstance(part, (tuple, list)):
            raise Untranslatable("an index that is a list of numbers of the program")
        found.append(part)
    return tuple(found) if isinstance(index, tuple) else found[0]


def _items(xp: Any, x: Array, index: Any) -> Any:
    if isinstance(index, Array) and index.dtype == "bool" and index.ndim:
        return xp.masked(x, index)
    parts = [_bounds(one) for one in (index if isinstance(index, tuple) else (index,))]
    index = tuple(parts) if isinstance(index, tuple) else parts[0]
    masks = [one for one in parts if isinstance(one, Array) and one.dtype == "bool"]
    others = [one for one in parts if isinstance(one, (Array, list, int, Number)) and one not in masks]
    if len(masks) == 1 and masks[0].ndim == 1 and not others:
        return xp.masked_items(x, index)
    return x[checked_index(xp, index)]


def _bounds(part: Any) -> Any:
    """A part of an index in which a slice has plain bounds."""
    return slice(*map(whole, (part.start, part.stop, part.step))) if isinstance(part, slice) else part


# ---- facts -----------------------------------------------------------------------------------------------------------


@TORCH.row("attribute.shape")
def shape(xp: Any, x: Array) -> Any:
    """The sizes."""
    return x.shape


@TORCH.row("size")
def size(xp: Any, x: Array, dim: Any = None) -> Any:
    """One size, or all."""
    return x.shape if dim is None else x.size(dim)


@TORCH.row("dim", "ndimension", "attribute.ndim")
def dim(xp: Any, x: Array) -> Any:
    """The rank."""
    return x.ndim


@TORCH.row("numel", "nelement")
def numel(xp: Any, x: Array) -> Any:
    """The number of items."""
    found: Any = 1
    for one in x.shape:
        found = one * found
    return found


@TORCH.row("attribute.dtype")
def dtype(xp: Any, x: Array) -> Any:
    """The dtype, which is fixed."""
    return x.dtype


@TORCH.row("is_floating_point")
def is_floating_point(xp: Any, x: Any) -> Any:
    """Whether it holds floating point numbers."""
    return xp.is_floating(x)


@TORCH.row("is_complex")
def is_complex(xp: Any, x: Any) -> Any:
    """Whether it holds complex numbers."""
    return str(x.dtype).startswith("complex")


@TORCH.row("is_contiguous", "is_conj_false")
def is_contiguous(xp: Any, x: Any, **kwargs: Any) -> Any:
    """Arrays of other frameworks show no layout: as if each were laid out anew."""
    return True


# ---- padding ---------------------------------------------------------------------------------------------------------

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@TORCH.row("constant_pad_nd")
def constant_pad(xp: Any, x: Array, pad: Any, value: Any = 0) -> Any:
    """More items of one value at both ends."""
    return pad_row(xp, x, pad, "constant", value)


@TORCH.row("nn.functional.pad", "pad")
def pad_row(xp: Any, x: Array, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """More items at both ends, or with negative numbers fewer."""
    pad = [whole(one, _width(xp, x, pad, place)) for place, one in enumerate(pad)]
    pairs = [(pad[2 * place], pad[2 * place + 1]) for place in range(len(pad) // 2)]
    widths: list[tuple[Any, Any]] = [*((0, 0),) * (x.ndim - len(pairs)), *reversed(pairs)]
    if any(isinstance(one, Number) for pair in widths for one in pair):
        for one in (one for pair in widths for one in pair if isinstance(one, Number)):
            cuts = one.value < 0
            xp.writer.require(one < 0, cuts, "it cuts and does not pad" if cuts else "it pads and does not cut")
    cut = tuple(slice(-low if _is_cut(low) else None, high if _is_cut(high) else None) for low, high in widths)
    if any(one.start is not None or one.stop is not None for one in cut):
        x = x[cut]
        widths = [(_kept(low), _kept(high)) for low, high in widths]
    if all(isinstance(one, int) and one == 0 for pair in widths for one in pair):
        return x
    if mode != "constant":
        return xp.pad(x, widths, mode=MODES[mode])
    fill = 0 if value is None else value
    return xp.pad(x, widths, constant_values=fill) if fill != 0 else xp.pad(x, widths)


def _width(xp: Any, x: Array, pad: Any, place: int) -> int | None:
    """What a width is for the example, by the sizes before and after, where the other one of its axis is known."""
    axis, other = x.ndim - 1 - place // 2, pad[place ^ 1]
    other = other.value if isinstance(other, Number) else other
    if xp.wanted is None or not isinstance(other, int) or xp.writer.guessed:
        return None
    return int(xp.wanted.shape[axis] - x.spec.shape[axis] - other)


def _is_cut(number: Any) -> bool:
    return bool((number.value if isinstance(number, Number) else number) < 0)


def _kept(number: Any) -> Any:
    return 0 if _is_cut(number) else number


@TORCH.row("nn.functional.pixel_shuffle", "pixel_shuffle")
def pixel_shuffle(xp: Any, x: Array, upscale_factor: int) -> Any:
    """Channels as pixels."""
    r = upscale_factor
    *front, channels, height, width = x.shape
    inner = xp.reshape(x, (*front, channels // (r * r), r, r, height, width))
    k = len(front)
    moved = xp.transpose(inner, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return xp.reshape(moved, (*front, channels // (r * r), height * r, width * r))


@TORCH.row("nn.functional.pixel_unshuffle", "pixel_unshuffle")
def pixel_unshuffle(xp: Any, x: Array, downscale_factor: int) -> Any:
    """Pixels as channels."""
    r = downscale_factor
    *front, channels, height, width = x.shape
    inner = xp.reshape(x, (*front, channels, height // r, r, width // r, r))
    k = len(front)
    moved = xp.transpose(inner, (*range(k), k, k + 2, k + 4, k + 1, k + 3))
    return xp.reshape(moved, (*front, channels * (r * r), height // r, width // r))


@TORCH.row("nn.functional.unfold", "im2col")
def image_to_columns(xp: Any, x: Array, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Patches of images as columns."""
    if x.ndim != 4:
        raise Untranslatable("unfold of a single image")
    (kh, kw), (dh, dw) = spread(kernel_size, 2), spread(dilation, 2)
    (ph, pw), (sh, sw) = spread(padding, 2), spread(stride, 2)
    x = xp.pad(x, [(0, 0), (0, 0), (ph, ph), (pw, pw)]) if ph or pw else x
    batch, channels, height, width = x.shape
    rows = xp.arange((height - dh * (kh - 1) - 1) // sh + 1)[None, :] * sh + xp.arange(kh)[:, None] * dh
    columns = xp.arange((width - dw * (kw - 1) - 1) // sw + 1)[None, :] * sw + xp.arange(kw)[:, None] * dw
    found = x[:, :, rows[:, None, :, None], columns[None, :, None, :]]
    return xp.reshape(found, (batch, channels * (kh * kw), -1))
