"""NumPy's functions whose results depend on the data, write into arrays, or draw random numbers.

How many items come out is known only when the program runs: frameworks that compile nothing can do that, JAX cannot.
Random numbers are drawn from what the translated program is given, or from the framework's own generator.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from clew.translate.refusals import Untranslatable
from clew.translate.rows import numpy as plain_rows
from clew.translate.rows import python
from clew.translate.rows.numpy import NUMPY, checked_index, computed, depends_on_data, plain
from clew.translate.rows.table import axis_of, refuse_given
from clew.translate.values import Array, Number, Opaque
from clew.translate.writer import Writer

row = NUMPY.row


# ---- as many items as the data tell ----------------------------------------------------------------------------------


def _needs_data(xp: Any) -> None:
    if xp.jits:
        depends_on_data(xp)


@row("flatnonzero")
def flatnonzero(xp: Any, x: Any) -> Any:
    """The places of what is not zero, counted through."""
    _needs_data(xp)
    (found,) = xp.nonzero_places(xp.reshape(x, (-1,)), xp.wanted.shape[0])
    return xp.to_wanted(found)


@row("nonzero")
def nonzero(xp: Any, x: Any) -> Any:
    """The places of what is not zero, an array for each axis."""
    _needs_data(xp)
    return tuple(xp.nonzero_places(x, 2))


@row("unique")
def unique(xp: Any, x: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: Any = None, **given: Any) -> Any:  # fmt: skip
    """The numbers that are there, in order, perhaps how often."""
    _needs_data(xp)
    refuse_given("unique", return_index=return_index, return_inverse=return_inverse, axis=axis)
    if xp.is_floating(x):
        raise Untranslatable("which numbers are there, where nan may be among them")
    values, counts = xp.unique_counts(xp.reshape(x, (-1,)))
    return (values, counts) if return_counts else values


@row("bincount")
def bincount(xp: Any, x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """How often each number is there."""
    _needs_data(xp)
    minlength = xp.item(minlength) if isinstance(minlength, Array) else minlength
    return xp.to_wanted(xp.counts_of(x, weights, minlength, xp.wanted))


def _masked(xp: Any, x: Array, index: Any) -> Any:
    """Items where a mask holds; None if there is no mask alone."""
    if not isinstance(index, Array) or index.dtype != "bool":
        return None
    if xp.jits or xp.wanted is None:
        raise Untranslatable("how many items a mask takes depends on the data")
    return xp.writer.wrap(xp.masked(x, index), xp.wanted, x.differentiable)


@row("operator.getitem")
def getitem(xp: Any, x: Any, index: Any) -> Any:
    """Items of an array, or of a nest."""
    if isinstance(x, Array):
        found = _masked(xp, x, index)
        return x[_whole_numbers(xp, checked_index(xp, x, index))] if found is None else found
    return plain_rows.getitem(xp, x, index)


def _whole_numbers(xp: Any, index: Any) -> Any:
    """Indices of narrow integers as those that all frameworks take for indices."""
    parts = index if isinstance(index, tuple) else (index,)
    narrow = ("uint8", "int8", "int16", "uint16", "uint32", "uint64")
    parts = tuple(xp.cast(one, xp.dtype("int64")) if isinstance(one, Array) and one.dtype in narrow else one
                  for one in parts)  # fmt: skip
    return parts if isinstance(index, tuple) else parts[0]


# ---- writes ----------------------------------------------------------------------------------------------------------

for _name, _how in {"add": "add", "multiply": "multiply", "maximum": "max", "minimum": "min"}.items():

    def _at(xp: Any, x: Any, index: Any, value: Any, _how: str = _how) -> Any:
        return xp.at_set(x, _whole_numbers(xp, checked_index(xp, x, index)), xp.cast(plain(value), x.dtype), _how)

    NUMPY.add(f"{_name}.at", _at)


@row("fill_diagonal")
def fill_diagonal(xp: Any, x: Any, value: Any, wrap: bool = False) -> Any:
    """Another diagonal."""
    if x.ndim != 2 or isinstance(value, Array):
        raise Untranslatable("a diagonal of several axes, or several numbers on it")
    ones = xp.eye(x.size(0), x.size(1), dtype=xp.dtype_object("bool"))
    return xp.where(ones, plain(value), x)


@row("clew.frameworks.numpy.facts.is_array")
def is_array(xp: Any, x: Any) -> Any:
    """Whether a value is an array."""
    return isinstance(x, Array)


@row("builtins.type")
def kind(xp: Any, x: Any) -> Any:
    """The class of an array that has axes, or of a nest."""
    if isinstance(x, Array) and x.ndim:
        return numpy.ndarray
    return python.kind(xp, x)


# ---- order statistics ------------------------------------------------------------------------------------------------


def _between(xp: Any, ordered: Array, share: float) -> Any:
    """The number at a share of the way through an order, along the last axis."""
    last = ordered.size(-1) - 1
    place = last * share
    low = xp.writer.plain(math.floor, place) if isinstance(place, Number) else math.floor(place)
    high = xp.writer.plain(math.ceil, place) if isinstance(place, Number) else math.ceil(place)
    first, second = ordered[..., low], ordered[..., high]
    return first + (second - first) * (place - low)


def _quantiles(xp: Any, x: Any, shares: Any, axis: Any, keepdims: bool) -> Any:
    x = xp.cast(x, xp.wanted.dtype)
    if axis is None:
        x = xp.reshape(x, (-1,))
    elif axis_of(axis, x.ndim) != x.ndim - 1:
        x = xp.moveaxis(x, axis, -1)
    ordered = xp.sort(x, axis=-1)
    lost = xp.any(xp.isnan(x), axis=-1)
    found = [xp.where(lost, math.nan, _between(xp, ordered, share))
             for share in (shares if isinstance(shares, list) else [shares])]  # fmt: skip
    if keepdims:
        raise Untranslatable("a quantile that keeps its axes")
    return xp.stack(found, axis=0) if isinstance(shares, list) else found[0]


def _quantile(name: str, scale: float) -> None:
    def run(
        xp: Any, a: Any, q: Any, axis: Any = None, keepdims: bool = False, method: str = "linear", **given: Any
    ) -> Any:
        refuse_given(name, **given)
        shares = [one / scale for one in q] if isinstance(q, (list, tuple)) else q / scale
        if method != "linear" or isinstance(q, (Array, Number)) or isinstance(axis, (tuple, list)):
            raise Untranslatable("a quantile that is not fixed, by another method, or over several axes")
        return _quantiles(xp, a, shares, axis, keepdims)

    NUMPY.add(name, run)


_quantile("quantile", 1.0)
_quantile("percentile", 100.0)


@row("median")
def median(
    xp: Any, a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """The number in the middle; of an even count the mean of two."""
    if isinstance(axis, (tuple, list)):
        raise Untranslatable("a median over several axes")
    return _quantiles(xp, a, 0.5, axis, keepdims)


@row("lexsort")
def lexsort(xp: Any, keys: Any, axis: int = -1) -> Any:
    """The order by several keys, the last one first."""
    keys = list(keys) if not isinstance(keys, Array) else [keys[place] for place in range(_fixed(xp, keys))]
    if any(one.ndim != 1 for one in keys):
        raise Untranslatable("an order by keys of several axes")
    order = xp.argsort(keys[0], axis=-1, stable=True)
    for key in keys[1:]:
        order = xp.take(order, xp.argsort(xp.take(key, order, axis=0), axis=-1, stable=True), axis=0)
    return xp.to_wanted(order)


def _fixed(xp: Any, x: Array) -> Any:
    return xp.writer.fixed(x.size(0), "how many items an array has is fixed")


# ---- series and polynomials ------------------------------------------------------------------------------------------


@row("trapezoid")
def trapezoid(xp: Any, y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The area under a line."""
    if x is not None or axis_of(axis, y.ndim) != y.ndim - 1:
        raise Untranslatable("an area over given places, or along another axis")
    return xp.call("sum", (y[..., 1:] + y[..., :-1]) * dx / 2.0, axis=-1)


@row("gradient")
def gradient(xp: Any, f: Any, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Differences in the middle, one-sided ones at the ends."""
    if f.ndim != 1 or spacing or axis not in (None, 0, -1) or edge_order != 1:
        raise Untranslatable("slopes of several axes, or over given distances")
    f = xp.to_wanted(f)
    middle = (f[2:] - f[:-2]) / 2.0
    return xp.concatenate([f[1:2] - f[:1], middle, f[-1:] - f[-2:-1]], axis=0)


@row("interp")
def interp(xp: Any, x: Any, xp_: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Values on the lines between points."""
    refuse_given("interp", left=left, right=right, period=period)
    at = xp.as_array(plain(x), xp.wanted.dtype)
    places, values = xp.cast(xp_, xp.wanted.dtype), xp.cast(fp, xp.wanted.dtype)
    flat = xp.reshape(at, (-1,))
    high = xp.cast(xp.searchsorted(places, flat, side="right"), xp.dtype("int64"))
    last = xp.as_array(places.size(0) - 1, high.dtype)
    high = xp.minimum(xp.maximum(high, 1), last)
    x0, x1 = xp.take(places, high - 1, axis=0), xp.take(places, high, axis=0)
    y0, y1 = xp.take(values, high - 1, axis=0), xp.take(values, high, axis=0)
    found = y0 + (y1 - y0) * ((flat - x0) / (x1 - x0))
    found = xp.where(flat <= places[0], values[0], xp.where(flat >= places[-1], values[-1], found))
    found = xp.where(xp.isnan(flat), math.nan, found)
    return xp.reshape(found, at.shape)


@row("polyder")
def polyder(xp: Any, p: Any, m: int = 1) -> Any:
    """The slope of a polynomial."""
    if m != 1:
        raise Untranslatable("a further derivative of a polynomial")
    degree = xp.writer.fixed(p.size(0), "the degree of a polynomial is fixed") - 1
    powers = xp.array(list(range(degree, 0, -1)), dtype=xp.dtype_object(xp.wanted.dtype))
    return xp.to_wanted(p)[:-1] * powers


@row("append")
def append(xp: Any, arr: Any, values: Any, axis: Any = None) -> Any:
    """More items at the end."""
    if axis is not None:
        return xp.concatenate(list(computed(xp, arr, values)), axis=axis)
    parts = [xp.reshape(xp.as_array(plain(one), xp.wanted.dtype), (-1,)) for one in (arr, values)]
    return xp.concatenate(parts, axis=0)


@row("insert")
def insert(xp: Any, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """An item in between."""
    if not isinstance(obj, int) or obj < 0 or (axis is None and arr.ndim != 1) or axis not in (None, 0):
        raise Untranslatable("items at places that are not fixed")
    xp.writer.require(arr.size(0) >= obj, True, "the place is inside of the array")
    middle = xp.reshape(xp.as_array(plain(values), arr.dtype), (1, *arr.shape[1:]))
    return xp.concatenate([arr[:obj], middle, arr[obj:]], axis=0)


@row("ix_")
def open_mesh(xp: Any, *arrays: Any) -> Any:
    """Indices that take rows and columns."""
    if any(one.dtype == "bool" for one in arrays):
        raise Untranslatable("how many items a mask takes depends on the data")
    count = len(arrays)
    return tuple(xp.reshape(one, (*(1,) * place, -1, *(1,) * (count - 1 - place))) for place, one in enumerate(arrays))


@row("unravel_index")
def unravel_index(xp: Any, indices: Any, shape: Any, order: str = "C") -> Any:
    """A place for each axis."""
    found, rest = [], indices
    for size in reversed(tuple(shape)[1:]):
        found.append(rest % size)
        rest = rest // size
    return (rest, *reversed(found))


@row("linalg.lstsq")
def lstsq(xp: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    """The solution of a system with more equations than numbers."""
    raise Untranslatable("least squares, whose rank each library finds in its own way")


@row("tensordot")
def tensordot(xp: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    """A product over axes."""
    return xp.tensordot(*computed(xp, a, b), axes=axes)


@row("kron")
def kron(xp: Any, a: Any, b: Any) -> Any:
    """Each item times all others."""
    return xp.kron(*computed(xp, a, b))


@row("average")
def average(xp: Any, a: Any, axis: Any = None, weights: Any = None, **given: Any) -> Any:
    """A mean, perhaps a weighted one."""
    refuse_given("average", **given)
    options = {} if axis is None else {"axis": axis}
    if weights is None:
        return xp.call("mean", xp.to_wanted(a), **options)
    if weights.ndim != a.ndim:
        raise Untranslatable("weights of another rank")
    a, weights = computed(xp, a, weights)
    return xp.call("sum", a * weights, **options) / xp.call("sum", weights, **options)


@row("ptp")
def ptp(xp: Any, a: Any, axis: Any = None, **given: Any) -> Any:
    """From the smallest item to the largest."""
    refuse_given("ptp", **given)
    options = {} if axis is None else {"axis": axis}
    return xp.call("max", a, **options) - xp.call("min", a, **options)


# ---- random numbers --------------------------------------------------------------------------------------------------

_STREAM = "random numbers are of the same distribution, and of another stream: the seed of the source is not used"


class Seed(Opaque):
    """A generator of the source; the translation draws from its own."""

    __slots__ = ()

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer, None)  # type: ignore[arg-type]


@row("random.default_rng", "random.RandomState", "random._generator.default_rng")
def default_rng(xp: Any, seed: Any = None) -> Any:
    """A generator."""
    return Seed(xp.writer)


def _shape(size: Any) -> tuple[Any, ...]:
    return () if size is None else tuple(size) if isinstance(size, (tuple, list)) else (size,)


def _drawn(xp: Any, kind: str, size: Any, **given: Any) -> Any:
    if xp.wanted is None and size is not None:
        raise Untranslatable("the dtype that it gives is not known")
    if xp.wanted is None:
        raise Untranslatable("a single random number, which is plain")
    xp.writer.note(_STREAM)
    return xp.draw(kind, _shape(size), xp.wanted.dtype, **given)


def _random(name: str) -> Any:
    """Let a row stand for a function of ``numpy.random`` and for the method of a generator."""

    def register(function: Any) -> Any:
        def method(xp: Any, generator: Any, *args: Any, **given: Any) -> Any:
            if not isinstance(generator, Seed):
                raise Untranslatable("a generator of random numbers that comes from outside")
            return function(xp, *args, **given)

        NUMPY.add(f"random.{name}", function)
        NUMPY.add(name, method)
        return function

    return register


@_random("random")
def random(xp: Any, size: Any = None, dtype: Any = None) -> Any:
    """Between zero and one."""
    return _drawn(xp, "uniform", size)


NUMPY.add("random.random_sample", random)
NUMPY.add("random.rand", lambda xp, *size: _drawn(xp, "uniform", size))
NUMPY.add("random.randn", lambda xp, *size: _drawn(xp, "normal", size))


@_random("standard_normal")
def standard_normal(xp: Any, size: Any = None, dtype: Any = None) -> Any:
    """A normal distribution around zero."""
    return _drawn(xp, "normal", size)


@_random("normal")
def normal(xp: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """A normal distribution."""
    found = _drawn(xp, "normal", size)
    found = found if scale == 1.0 and not isinstance(scale, (Array, Number)) else found * scale
    return found if not isinstance(loc, (Array, Number)) and loc == 0.0 else found + loc


@_random("uniform")
def uniform(xp: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """Between two numbers."""
    return _drawn(xp, "uniform", size) * (high - low) + low


def _integers(xp: Any, low: Any, high: Any = None, size: Any = None, dtype: Any = None, endpoint: bool = False) -> Any:
    """Whole numbers between two."""
    low, high = (0, low) if high is None else (low, high)
    if isinstance(low, Array) or isinstance(high, Array):
        raise Untranslatable("random integers between numbers of an array")
    return _drawn(xp, "randint", size, low=low, high=high + 1 if endpoint else high)


_random("integers")(_integers)
NUMPY.add("random.randint", _integers)
for _name in "shuffle permutation choice seed exponential poisson binomial gamma beta".split():

    def _no_draw(xp: Any, *args: Any, **given: Any) -> Any:
        raise Untranslatable("random numbers of a kind that other frameworks have no row for")

    NUMPY.add(f"random.{_name}", _no_draw)
