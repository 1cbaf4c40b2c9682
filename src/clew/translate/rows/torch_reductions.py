"""torch's reductions, scans and sorts: sums, means, maxima, norms, orders."""

from __future__ import annotations

import math
import operator
from typing import Any

from clew.translate.equal_items import warn_of_equal_items
from clew.translate.refusals import Untranslatable
from clew.translate.rows.table import axis_of, refuse_given
from clew.translate.rows.torch_elementwise import TORCH, computed
from clew.translate.values import Array


def _axis(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, list) else dim


def _reduced(xp: Any, name: str, x: Array, dim: Any, keepdim: bool, **given: Any) -> Any:
    """A reduction over some axes, or over all."""
    axis = _axis(dim)
    axis = None if axis == () else axis
    if x.ndim == 0:
        axis = None
    options = {} if axis is None else {"axis": axis}
    return xp.call(name, x, **options, **({"keepdims": True} if keepdim else {}), **given)


@TORCH.row("sum")
def sum_row(xp: Any, x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None) -> Any:
    """A sum in the dtype that torch has for it."""
    return xp.to_wanted(_reduced(xp, "sum", xp.to_wanted(x), dim if axis is None else axis, keepdim))


@TORCH.row("nansum")
def nansum(xp: Any, x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """A sum without nan."""
    return xp.to_wanted(_reduced(xp, "nansum", xp.to_wanted(x), dim, keepdim))


@TORCH.row("mean")
def mean(xp: Any, x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None) -> Any:
    """A mean."""
    return _reduced(xp, "mean", xp.to_wanted(x), dim if axis is None else axis, keepdim)


@TORCH.row("prod")
def prod(xp: Any, x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """A product."""
    return xp.to_wanted(_reduced(xp, "prod", xp.to_wanted(x), dim, keepdim))


@TORCH.row("all", "_is_all_true")
def all_row(xp: Any, x: Array, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether all items are true."""
    return _as_wanted(xp, _reduced(xp, "all", x, dim, keepdim))


@TORCH.row("any", "_is_any_true")
def any_row(xp: Any, x: Array, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether an item is true."""
    return _as_wanted(xp, _reduced(xp, "any", x, dim, keepdim))


def _as_wanted(xp: Any, x: Array) -> Any:
    return xp.to_wanted(x) if xp.wanted is not None and xp.wanted.dtype == "uint8" else x


@TORCH.row("amax")
def amax(xp: Any, x: Array, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest item; nan if there is one."""
    return _reduced(xp, "max", x, dim, keepdim)


@TORCH.row("amin")
def amin(xp: Any, x: Array, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest item; nan if there is one."""
    return _reduced(xp, "min", x, dim, keepdim)


@TORCH.row("aminmax")
def aminmax(xp: Any, x: Array, *, dim: Any = None, keepdim: bool = False) -> Any:
    """Both."""
    return (_reduced(xp, "min", x, dim, keepdim), _reduced(xp, "max", x, dim, keepdim))


def _extreme(name: str) -> None:
    def row(xp: Any, x: Array, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        if isinstance(dim, Array) or other is not None:
            both = computed(xp, x, dim if other is None else other)
            return getattr(xp, f"{name}imum")(*both)
        if dim is None:
            return _reduced(xp, name, x, None, False)
        places = _places(xp, f"arg{name}", x, dim, keepdim)
        return (_reduced(xp, name, x, dim, keepdim), places)

    TORCH.add(name, row)


def _places(xp: Any, name: str, x: Array, dim: Any, keepdim: bool) -> Any:
    if x.dtype == "bool":
        x = xp.astype(x, "int32")
    options = {} if dim is None or x.ndim == 0 else {"axis": dim}
    found = xp.call(name, x, **options, **({"keepdims": True} if keepdim else {}))
    return xp.cast(found, xp.dtype("int64"))


_extreme("max")
_extreme("min")


@TORCH.row("argmax")
def argmax(xp: Any, x: Array, dim: Any = None, keepdim: bool = False) -> Any:
    """Where the largest item is: the first of several."""
    return _places(xp, "argmax", x, dim, keepdim)


@TORCH.row("argmin")
def argmin(xp: Any, x: Array, dim: Any = None, keepdim: bool = False) -> Any:
    """Where the smallest item is: the first of several."""
    return _places(xp, "argmin", x, dim, keepdim)


def _spread_row(name: str) -> None:
    def row(
        xp: Any, x: Array, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        less = correction if correction is not None else 1 if unbiased is None else int(unbiased)
        return _reduced(xp, name, x, dim, keepdim, **({"ddof": less} if less else {}))

    TORCH.add(name, row)

    def with_mean(xp: Any, x: Array, dim: Any = None, unbiased: Any = None, keepdim: bool = False, **given: Any) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        found = row(xp, x, dim, unbiased, keepdim, **given)
        return (found, _reduced(xp, "mean", x, dim, keepdim))

    TORCH.add(f"{name}_mean", with_mean)


_spread_row("var")
_spread_row("std")


@TORCH.row("logsumexp", "special.logsumexp")
def logsumexp(xp: Any, x: Array, dim: Any, keepdim: bool = False) -> Any:
    """The logarithm of the sum of exponentials."""
    return xp.logsumexp(xp.to_wanted(x), _axis(dim), keepdim)


@TORCH.row("count_nonzero")
def count_nonzero(xp: Any, x: Array, dim: Any = None) -> Any:
    """How many items are not zero."""
    return xp.cast(_reduced(xp, "count_nonzero", x, dim, False), xp.dtype("int64"))


# ---- scans -----------------------------------------------------------------------------------------------------------


@TORCH.row("cumsum")
def cumsum(xp: Any, x: Array, dim: Any = None, *, dtype: Any = None, axis: Any = None) -> Any:
    """Running sums."""
    dim = dim if axis is None else axis
    x = xp.to_wanted(x)
    return xp.to_wanted(xp.cumsum(x, axis=dim)) if x.ndim else x


@TORCH.row("cumprod")
def cumprod(xp: Any, x: Array, dim: Any, *, dtype: Any = None) -> Any:
    """Running products."""
    x = xp.to_wanted(x)
    return xp.to_wanted(xp.cumprod(x, axis=dim)) if x.ndim else x


def _running_extreme(name: str) -> None:
    def row(xp: Any, x: Array, dim: int) -> Any:
        """The extreme so far, and where it is: the last of equal ones."""
        if not x.ndim:
            return (x, xp.zeros_like(x, dtype=xp.dtype_object("int64")))
        axis = axis_of(dim, x.ndim)
        found = xp.running(x, name, axis)
        line = xp.reshape(xp.arange(x.size(axis)), (-1, *(1,) * (x.ndim - axis - 1)))
        hit = (x == found) | xp.isnan(x) if xp.is_floating(x) else x == found
        places = xp.running(xp.where(hit, line, 0), "max", axis)
        return (found, xp.cast(places, xp.dtype("int64")))

    TORCH.add(f"cum{name}", row)


_running_extreme("max")
_running_extreme("min")


@TORCH.row("diff")
def diff(xp: Any, x: Array, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours."""
    if x.dtype == "bool":
        raise Untranslatable("differences of truth values")
    ends = {name: one for name, one in (("prepend", prepend), ("append", append)) if one is not None}
    return xp.diff(x, n=n, axis=dim, **ends)


# ---- norms -----------------------------------------------------------------------------------------------------------


@TORCH.row("norm", "functional.norm", "linalg.vector_norm")
def norm(
    xp: Any,
    x: Array,
    p: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    ord: Any = None,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """The norm of all items along axes as one vector."""
    refuse_given("norm", out=out)
    kind = ord if ord is not None else p
    kind = 2 if kind is None or kind == "fro" else kind
    if not isinstance(kind, (int, float)):
        raise Untranslatable(f"the norm {kind!r}")
    x = xp.to_wanted(x)
    if kind == 2:
        return xp.sqrt(_reduced(xp, "sum", xp.square(xp.abs(x)), dim, keepdim))
    if kind == 1:
        return _reduced(xp, "sum", xp.abs(x), dim, keepdim)
    if kind in (math.inf, -math.inf):
        return _reduced(xp, "max" if kind > 0 else "min", xp.abs(x), dim, keepdim)
    if kind == 0:
        return xp.to_wanted(_reduced(xp, "sum", xp.to_wanted(x != 0), dim, keepdim))
    return _reduced(xp, "sum", xp.abs(x) ** kind, dim, keepdim) ** (1.0 / kind)


@TORCH.row("linalg.norm")
def linalg_norm(
    xp: Any, x: Array, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """A norm of vectors; those of matrices only where they are sums of squares."""
    if ord is not None and ord != "fro" and (isinstance(dim, (tuple, list)) or (dim is None and x.ndim != 1)):
        raise Untranslatable("a norm of matrices")
    return norm(xp, x, ord, dim, keepdim)


@TORCH.row("nn.functional.normalize")
def normalize(xp: Any, x: Array, p: Any = 2.0, dim: Any = 1, eps: Any = 1e-12, out: Any = None) -> Any:
    """Divided by its norm."""
    return x / xp.maximum(norm(xp, x, p, dim, True), eps)


@TORCH.row("nn.functional.cosine_similarity", "cosine_similarity")
def cosine_similarity(xp: Any, x: Array, y: Array, dim: int = 1, eps: Any = 1e-8) -> Any:
    """The cosine of the angle."""
    length = xp.maximum(norm(xp, x, 2, dim, True), eps)
    other = xp.maximum(norm(xp, y, 2, dim, True), eps)
    return xp.sum((x / length) * (y / other), axis=dim)


@TORCH.row("cdist")
def cdist(xp: Any, x: Array, y: Array, p: Any = 2.0, compute_mode: Any = None) -> Any:
    """The distances of all pairs."""
    return norm(xp, x[..., :, None, :] - y[..., None, :, :], p, -1)


# ---- orders ----------------------------------------------------------------------------------------------------------


@TORCH.row("sort")
def sort(xp: Any, x: Array, dim: Any = -1, descending: bool = False, stable: bool = False) -> Any:
    """In order, with the places; equal items stay in order."""
    if not x.ndim:
        raise Untranslatable("the order of a single number")
    if isinstance(stable, int) and not isinstance(stable, bool):
        dim, descending = stable, bool(dim)
    _note_equal(xp, "sort", stable)
    places = _sorted_places(xp, x, dim, descending)
    return (xp.take_along_axis(x, places, axis=dim), places)


@TORCH.row("argsort")
def argsort(xp: Any, x: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The places of the items in order; equal items stay in order, and nan counts as the largest."""
    _note_equal(xp, "argsort", stable)
    return _sorted_places(xp, x, dim, descending)


def _note_equal(xp: Any, name: str, stable: Any) -> None:
    """Tell of orders in which torch may have equal items in any order, where their places are used."""
    if not stable and _uses_places(xp.writer.origin):
        xp.writer.note(f"of equal items {name} keeps the order; torch may not")


def _sorted_places(xp: Any, x: Array, dim: int, descending: bool) -> Any:
    if not x.ndim:
        return xp.zeros_like(x, dtype=xp.dtype_object("int64"))
    if not descending:
        return xp.cast(xp.argsort(x, axis=dim, stable=True), xp.dtype("int64"))
    backwards = xp.argsort(xp.flip(x, axis=dim), axis=dim, stable=True)
    return xp.cast(x.shape[dim] - 1 - xp.flip(backwards, axis=dim), xp.dtype("int64"))


@TORCH.row("topk")
def topk(xp: Any, x: Array, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The largest items, or the smallest, in order."""
    if not x.ndim:
        if k != 1:
            raise Untranslatable("the largest of a single number")
        return (x, xp.zeros_like(x, dtype=xp.dtype_object("int64")))
    axis = axis_of(dim, x.ndim)
    x = x if axis == x.ndim - 1 else xp.moveaxis(x, axis, -1)
    if largest:
        values, places = xp.top_k(x, k)
        places = xp.cast(places, xp.dtype("int64"))
    else:
        places = _sorted_places(xp, x, -1, False)[..., :k]
        values = xp.take_along_axis(x, places, axis=-1)
    if _uses_places(xp.writer.origin):
        source = None if xp.writer.origin is None else xp.writer.origin.source
        xp.writer.note("of equal items topk takes the first ones; torch may take others, of which plain calls warn")
        where = "" if source is None else source.describe()
        xp.writer.node("call_function", warn_of_equal_items, (x, values, where))
    if axis != x.ndim - 1:
        values, places = xp.moveaxis(values, -1, axis), xp.moveaxis(places, -1, axis)
    return (values, places)


def _uses_places(topk: Any) -> bool:
    """Whether anybody asks where the items of a topk stand; their values alone are the same whichever are taken."""
    return topk is None or any(user.target is not operator.getitem or user.args[1] != 0 for user in topk.users)


@TORCH.row("searchsorted")
def searchsorted(
    xp: Any,
    sequence: Array,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Any:
    """Where values would stand in an order."""
    if sequence.ndim != 1 or sorter is not None:
        raise Untranslatable("searchsorted in several rows")
    found = xp.searchsorted(sequence, values, side=side or ("right" if right else "left"))
    return xp.cast(found, "int32" if out_int32 else xp.dtype("int64"))


@TORCH.row("bucketize")
def bucketize(xp: Any, values: Any, boundaries: Array, *, out_int32: bool = False, right: bool = False) -> Any:
    """Which bucket values are in."""
    return searchsorted(xp, boundaries, values, out_int32=out_int32, right=right)


@TORCH.row("trace")
def trace(xp: Any, x: Array) -> Any:
    """The sum of the diagonal."""
    return xp.sum(xp.to_wanted(xp.diagonal(x)))


@TORCH.row("histc")
def histc(xp: Any, x: Array, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """How many items lie in each of equally wide bins; the last one has its upper bound too."""
    if min == max:
        raise Untranslatable("histc between bounds that depend on the data")
    x = xp.reshape(x, (-1,))
    inside = (x >= min) & (x <= max)
    places = xp.floor((x - min) * bins / (max - min))
    places = xp.astype(xp.clip(xp.where(inside, places, 0), 0, bins - 1), "int32")
    counts = xp.zeros((bins,), dtype=xp.dtype_object(x.dtype))
    return xp.at_set(counts, places, xp.astype(inside, x.dtype), "add")
