"""torch's functions whose results have as many items as the data tell: places, different items, counts.

They run in plain calls of the target; compilers, which know no data, refuse them, and the translation says so.
"""

from __future__ import annotations

import operator
from typing import Any

from clew.ir.types import ArrayType
from clew.translate.refusals import Untranslatable
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.rows.torch_elementwise import where as where_row
from clew.translate.values import Array, Spec


def _wanted(xp: Any) -> list[Spec]:
    """What the source gives for the example, of a call that gives several arrays."""
    origin = xp.writer.origin
    kinds = getattr(origin.value_type, "items", None) if origin is not None else None
    if not kinds and origin is not None:  # the type of a tuple is told by those who take it apart
        taken = {user.args[1]: user.value_type for user in origin.users if user.target is operator.getitem}
        kinds = [taken.get(place) for place in range(max(taken, default=-1) + 1)]
    if not kinds or not all(isinstance(one, ArrayType) for one in kinds):
        raise Untranslatable("how many items it gives depends on the data, and is not known for the example")
    return [Spec(tuple(n if isinstance(n, int) else 2 for n in one.shape), xp.dtype(one.dtype)) for one in kinds]


@TORCH.row("nonzero", "argwhere")
def nonzero(xp: Any, x: Array, *, as_tuple: bool = False) -> Any:
    """The places of the items that are not zero."""
    if as_tuple:
        return _places(xp, x)
    return xp.cast(xp.argwhere(x), xp.dtype("int64"))


def _places(xp: Any, x: Array) -> Any:
    try:
        count = _wanted(xp)[0].shape[0]
    except Untranslatable:
        count, xp.writer.guessed = 2, True
    return tuple(xp.cast(one, xp.dtype("int64")) for one in xp.nonzero_places(x, count))


@TORCH.row("where")
def where(xp: Any, condition: Any, x: Any = None, y: Any = None, **named: Any) -> Any:
    """Items of one array or of another; the places where there is only a condition."""
    x, y = named.get("input", named.get("self", x)), named.get("other", y)
    return _places(xp, condition) if x is None else where_row(xp, condition, x, y)


@TORCH.row("masked_select")
def masked_select(xp: Any, x: Array, mask: Array) -> Any:
    """The items where a mask is true."""
    x, mask = xp.broadcast_arrays(x, mask)
    return xp.masked(x, mask)


@TORCH.row("unique_consecutive")
def unique_consecutive(
    xp: Any, x: Array, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The items of a row that are not the ones before them."""
    if return_inverse or return_counts or x.ndim != 1:
        raise Untranslatable("unique_consecutive of several axes, or with places and counts")
    first = xp.ones((1,), dtype=xp.dtype_object("bool"))
    return xp.masked(x, xp.concatenate([first, x[1:] != x[:-1]], axis=0)[: x.size(0)])


@TORCH.row("unique", "_unique2")
def unique(
    xp: Any, x: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The different items in order, where each item is among them, and how often each is there."""
    if xp.is_floating(x):
        raise Untranslatable("unique of floats: torch counts each nan by itself")
    if not sorted:
        raise Untranslatable("unique in no order")
    asked = {"return_inverse": return_inverse, "return_counts": return_counts}
    asked = {name: True for name, wanted in asked.items() if wanted}
    function, options = xp.function("unique"), {} if dim is None else {"axis": dim}
    if function is None or (asked and xp.framework == "tensorflow"):
        raise Untranslatable(f"{xp.framework} has no such unique")
    if not asked:
        return xp.cast(xp.sized_by_data(function, x, **options), x.dtype)
    parts = xp.several_by_data(function, _wanted(xp), x, **asked, **options)
    found = [parts[0], *(xp.cast(one, xp.dtype("int64")) for one in parts[1:])]
    if return_inverse and dim is None:
        found[1] = xp.reshape(found[1], x.shape)
    return tuple(found)


@TORCH.row("bincount")
def bincount(xp: Any, x: Array, weights: Any = None, minlength: Any = 0) -> Any:
    """How often each number from zero on is there."""
    function = xp.function("bincount")
    if function is None:
        return xp.to_wanted(xp.counts_of(x, weights, minlength, xp.wanted))
    given = {"weights": weights} if weights is not None else {}
    options = {"minlength": minlength} if not isinstance(minlength, int) or minlength else {}
    wanted = xp.wanted
    made = xp.sized_by_data(function, x, **given, **options)
    return xp.astype(made, wanted.dtype)
