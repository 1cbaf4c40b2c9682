"""NumPy's functions and methods against the array namespace, which has its names: most rows are one line.

What NumPy does with dtypes is done by casts: each row computes in the dtype that NumPy gives. Options that a row does
not list (``out``, ``where``, ``order``) are refused.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy

from clew.translate.refusals import Untranslatable
from clew.translate.rows.python import add_python
from clew.translate.rows.table import Table, axis_of
from clew.translate.values import Array, Items, Number, Opaque, Value
from clew.translate.writer import leaves_of

NUMPY = Table("numpy")


def plain(value: Any) -> Any:
    """A number of NumPy's as one of Python's, where the dtype of the result is known."""
    return value.item() if isinstance(value, numpy.generic) else value


def _known(value: Any) -> Any:
    if isinstance(value, Array):
        return numpy.dtype(value.dtype)
    return value.value if isinstance(value, Number) else value


def _check(values: Any) -> None:
    for one in values:
        if isinstance(one, Opaque):
            raise Untranslatable(one.reason or "nothing is known of a value that it is given")


def compared(xp: Any, *values: Any) -> tuple[Any, ...]:
    """Operands in the dtype in which NumPy compares them."""
    _check(values)
    dtype = numpy.result_type(*map(_known, values)).name
    return tuple(xp.together(*map(plain, values), dtype=xp.dtype(dtype)))


def computed(xp: Any, *values: Any) -> tuple[Any, ...]:
    """Operands in the dtype of the result."""
    values = tuple(map(plain, values))
    _check(values)
    if xp.wanted is None or not any(isinstance(one, Array) for one in values):
        return values
    return tuple(xp.together(*values, dtype=xp.wanted.dtype))


# ---- elementwise -----------------------------------------------------------------------------------------------------

_OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "left_shift": operator.lshift, "right_shift": operator.rshift,
}  # fmt: skip
_ALSO = {"subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv", "remainder": "mod",
         "power": "pow", "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor", "left_shift": "lshift",
         "right_shift": "rshift"}  # fmt: skip
_LOGICAL = {"add": "logical_or", "multiply": "logical_and"}


def _operator_row(name: str, function: Callable[..., Any]) -> None:
    def row(xp: Any, x: Any, y: Any) -> Any:
        if isinstance(x, (list, tuple)) and not isinstance(y, Array):
            return function(x, y)
        if xp.wanted is not None and xp.wanted.dtype == "bool" and name in _LOGICAL:
            return getattr(xp, _LOGICAL[name])(x, y)
        if name in ("floor_divide", "remainder") and xp.wanted is not None and "int" in xp.wanted.dtype:
            _refuse_zero(y)
        x, y = computed(xp, x, y)
        return function(x, y)

    NUMPY.row(name, f"operator.{_ALSO.get(name, name)}", *(("true_divide",) if name == "divide" else ()))(row)


def _refuse_zero(divisor: Any) -> None:
    if not (isinstance(divisor, (int, numpy.integer)) and divisor != 0):
        raise Untranslatable("a division of integers by what may be zero: numpy gives zero then, and others do not")


for _name, _function in _OPERATORS.items():
    _operator_row(_name, _function)

for _name in "maximum minimum fmax fmin arctan2 hypot logaddexp copysign fmod nextafter".split():

    def _two(xp: Any, x: Any, y: Any, _name: str = _name) -> Any:
        return getattr(xp, _name)(*computed(xp, x, y))

    NUMPY.add(_name, _two)


def _comparison(function: Callable[..., Any]) -> Callable[..., Any]:
    def row(xp: Any, x: Any, y: Any) -> Any:
        if not isinstance(x, Array) and not isinstance(y, Array):
            return function(plain(x), plain(y))
        return function(*compared(xp, x, y))

    return row


for _name, _short in {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
                      "not_equal": "ne"}.items():  # fmt: skip
    NUMPY.row(_name, f"operator.{_short}")(_comparison(getattr(operator, _short)))

for _name in ("logical_and", "logical_or", "logical_xor"):

    def _logical(xp: Any, x: Any, y: Any, _name: str = _name) -> Any:
        return getattr(xp, _name)(plain(x), plain(y))

    NUMPY.add(_name, _logical)

_FLOATING = ("exp expm1 exp2 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh "
             "arctanh deg2rad rad2deg sinc cbrt".split())  # fmt: skip
_ANY = "abs sign isnan isinf isfinite square conj angle real imag signbit logical_not".split()


def _unary(name: str, numpy_name: str, floats: bool) -> None:
    def row(xp: Any, x: Any) -> Any:
        if not isinstance(x, Array):
            if isinstance(x, Number):
                x = xp.as_array(x, xp.wanted.dtype)
            else:
                return getattr(numpy, numpy_name)(x).item()
        return getattr(xp, numpy_name)(xp.to_wanted(x) if floats else x)

    NUMPY.add(name, row)


for _name in _FLOATING:
    _unary(_name, _name, True)
for _name in _ANY:
    _unary(_name, _name, False)
for _name, _other in {"absolute": "abs", "operator.abs": "abs", "builtins.abs": "abs", "fabs": "abs",
                      "conjugate": "conj", "attribute.real": "real", "attribute.imag": "imag"}.items():  # fmt: skip
    _unary(_name, _other, _name == "fabs")


@NUMPY.row("negative", "operator.neg")
def negative(xp: Any, x: Any) -> Any:
    """The negative."""
    return -x


@NUMPY.row("positive", "operator.pos", "copy", "ascontiguousarray", "array", "asarray", "asanyarray", "astype", "view")
def array(xp: Any, x: Any, dtype: Any = None, copy: Any = None, order: Any = None, **given: Any) -> Any:
    """The same values, perhaps in another dtype."""
    if isinstance(x, Array):
        return xp.to_wanted(x)
    if xp.wanted is None:
        raise Untranslatable("the dtype that it gives is not known")
    if isinstance(x, Items):
        return xp.joined(x, 0, "stack")
    if any(isinstance(one, Array) for one in leaves_of(x)):
        return _stacked(xp, x)
    return xp.array(x if isinstance(x, Value) else _lists(x), dtype=xp.dtype_object(xp.wanted.dtype))


def _stacked(xp: Any, data: Any) -> Any:
    """A list of arrays and numbers as an array."""
    if isinstance(data, (list, tuple)):
        return xp.stack([_stacked(xp, item) for item in data], axis=0)
    return xp.as_array(plain(data), xp.wanted.dtype)


def _lists(data: Any) -> Any:
    return [_lists(item) for item in data] if isinstance(data, (list, tuple, range)) else plain(data)


@NUMPY.row("invert", "bitwise_not", "operator.invert")
def invert(xp: Any, x: Any) -> Any:
    """All bits the other way."""
    return ~x


for _name in ("floor", "ceil", "trunc", "rint", "round", "around"):

    def _whole(
        xp: Any, x: Any, decimals: int = 0, _name: str = "round" if _name in ("rint", "around") else _name
    ) -> Any:
        if decimals:
            raise Untranslatable("rounding to decimals differs in the last digit")
        return getattr(xp, _name)(x) if xp.is_floating(x) else x

    NUMPY.add(_name, _whole)


@NUMPY.row("reciprocal")
def reciprocal(xp: Any, x: Any) -> Any:
    """One over it."""
    if not xp.is_floating(x):
        raise Untranslatable("a reciprocal of integers")
    return 1.0 / x


@NUMPY.row("clip")
def clip(xp: Any, x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Between two bounds."""
    low, high = plain(a_min if a_min is not None else min), plain(a_max if a_max is not None else max)
    if low is not None:
        x = xp.maximum(*computed(xp, x, low))
    return x if high is None else xp.minimum(*computed(xp, x, high))


@NUMPY.row("where")
def where(xp: Any, condition: Any, x: Any = None, y: Any = None) -> Any:
    """Items of the one or the other."""
    if x is None:
        raise Untranslatable("how many items numpy.where gives depends on the data")
    x, y = computed(xp, x, y)
    if not isinstance(x, Array) and not isinstance(y, Array):
        x = xp.as_array(x, xp.wanted.dtype)
    return xp.where(condition if condition.dtype == "bool" else condition != 0, x, y)


@NUMPY.row("nan_to_num")
def nan_to_num(xp: Any, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Numbers in the place of nan and infinities."""
    return xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


# ---- reductions ------------------------------------------------------------------------------------------------------


def _reduction(name: str, *names: str, widens: bool = False) -> None:
    def row(xp: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        options = {} if axis is None else {"axis": tuple(axis) if isinstance(axis, list) else axis}
        found = xp.call(name, xp.to_wanted(x) if widens else x, **options, **({"keepdims": True} if keepdims else {}))
        return xp.to_wanted(found)

    NUMPY.row(name, *names)(row)


for _name in ("sum", "prod", "mean", "nansum"):
    _reduction(_name, widens=True)


def _order_reduction(name: str, *names: str) -> None:
    def row(xp: Any, x: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        options = {} if axis is None else {"axis": axis}
        found = xp.call(name, x, **options, **({"keepdims": True} if keepdims else {}))
        return xp.to_wanted(found)

    NUMPY.row(name, *names)(row)


for _name, _more in {"max": ("amax",), "min": ("amin",), "all": (), "any": (), "argmax": (), "argmin": (),
                     "count_nonzero": ()}.items():  # fmt: skip
    _order_reduction(_name, *_more)


def _spread_row(name: str) -> None:
    def row(
        xp: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False
    ) -> Any:
        options = {} if axis is None else {"axis": axis}
        return xp.call(name, xp.to_wanted(x), **options, ddof=ddof, **({"keepdims": True} if keepdims else {}))

    NUMPY.add(name, row)


_spread_row("var")
_spread_row("std")


def _scan(name: str) -> None:
    def row(xp: Any, x: Any, axis: Any = None, dtype: Any = None) -> Any:
        x = xp.to_wanted(x if axis is not None else xp.reshape(x, (-1,)))
        return xp.call(name, x, axis=0 if axis is None else axis)

    NUMPY.add(name, row)


_scan("cumsum")
_scan("cumprod")


@NUMPY.row("diff")
def diff(xp: Any, x: Any, n: int = 1, axis: int = -1) -> Any:
    """Differences of neighbours."""
    if x.dtype == "bool":
        raise Untranslatable("differences of truth values")
    return xp.diff(x, n=n, axis=axis)


@NUMPY.row("trace")
def trace(xp: Any, x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The sum of a diagonal."""
    return xp.call("sum", xp.to_wanted(xp.diagonal(x, offset=offset, axis1=axis1, axis2=axis2)), axis=-1)


@NUMPY.row("argsort")
def argsort(xp: Any, x: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    """The places of the items in order; of equal ones the first comes first, where NumPy promises nothing."""
    x = xp.reshape(x, (-1,)) if axis is None else x
    return xp.to_wanted(xp.argsort(x, axis=-1 if axis is None else axis, stable=True))


@NUMPY.row("sort")
def sort(xp: Any, x: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    """The items in order."""
    x = xp.reshape(x, (-1,)) if axis is None else x
    return xp.sort(x, axis=-1 if axis is None else axis)


@NUMPY.row("searchsorted")
def searchsorted(xp: Any, x: Any, v: Any, side: str = "left") -> Any:
    """Where values would stand in an order."""
    return xp.to_wanted(xp.searchsorted(x, v, side=side))


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _sizes(given: tuple[Any, ...]) -> Any:
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


@NUMPY.row("reshape")
def reshape(xp: Any, x: Any, *shape: Any, **named: Any) -> Any:
    """The same items in another shape."""
    if named.pop("order", "C") != "C":
        raise Untranslatable("an order of items in memory")
    return xp.reshape(x, _sizes(shape) or _sizes((named.get("shape", named.get("newshape")),)))


@NUMPY.row("ravel", "flatten")
def ravel(xp: Any, x: Any, order: str = "C") -> Any:
    """All items in one row."""
    if order not in ("C", "K", "A"):
        raise Untranslatable("an order of items in memory")
    return xp.reshape(x, (-1,))


@NUMPY.row("transpose", "permute_dims")
def transpose(xp: Any, x: Any, *axes: Any, **named: Any) -> Any:
    """Axes in another order, or the other way round."""
    order = _sizes(axes) or named.get("axes")
    order = None if order == (None,) else order
    if order is None:
        return attribute_t(xp, x)
    return xp.transpose(x, tuple(axis_of(one, x.ndim) for one in order))


@NUMPY.row("attribute.T")
def attribute_t(xp: Any, x: Any) -> Any:
    """The axes the other way round."""
    if x.ndim < 2:
        return x
    return xp.matrix_transpose(x) if x.ndim == 2 else xp.transpose(x, tuple(reversed(range(x.ndim))))


@NUMPY.row("attribute.mT", "matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(xp: Any, x: Any) -> Any:
    """The last two axes exchanged."""
    return xp.matrix_transpose(x)


for _name in ("swapaxes", "moveaxis", "expand_dims", "flip", "roll", "tril", "triu", "diagonal", "rot90", "tile"):

    def _same(xp: Any, x: Any, *args: Any, _name: str = _name, **named: Any) -> Any:
        return xp.call(_name, x, *args, **named)

    NUMPY.add(_name, _same)
NUMPY.add("flipud", lambda xp, x: xp.flip(x, axis=0))
NUMPY.add("fliplr", lambda xp, x: xp.flip(x, axis=1))


@NUMPY.row("squeeze")
def squeeze(xp: Any, x: Any, axis: Any = None) -> Any:
    """Without axes of size one."""
    if axis is None:
        raise Untranslatable("squeeze without axis: which axes go depends on the sizes")
    return xp.squeeze(x, axis=axis)


@NUMPY.row("broadcast_to")
def broadcast_to(xp: Any, x: Any, shape: Any) -> Any:
    """Axes of size one repeated."""
    return xp.broadcast_to(x, tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))


@NUMPY.row("repeat")
def repeat(xp: Any, x: Any, repeats: Any, axis: Any = None) -> Any:
    """Each item several times."""
    if isinstance(repeats, Array):
        raise Untranslatable("how often items are repeated depends on the data")
    return xp.repeat(x, repeats, axis=axis)


def _joining(name: str) -> None:
    def row(xp: Any, arrays: Any, axis: Any = None, **named: Any) -> Any:
        if isinstance(arrays, Items) and name in ("concatenate", "stack"):
            return xp.joined(arrays, 0 if axis is None else axis, name)
        given = list(arrays) if not isinstance(arrays, Array) else _refused()
        if xp.wanted is None:
            raise Untranslatable("it joins something that is no array")
        given = [one if isinstance(one, Array) else xp.array(_lists(one), dtype=_created(xp)) for one in given]
        if name == "concatenate" and axis is None and "axis" in named:
            given = [xp.reshape(one, (-1,)) for one in given]
        options = {} if axis is None else {"axis": axis}
        return xp.call(name, list(xp.together(*given, dtype=xp.wanted.dtype)), **options)

    NUMPY.add(name, row)


def _refused() -> Any:
    raise Untranslatable("it joins the items of an array")


for _name in ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"):
    _joining(_name)


@NUMPY.row("split", "array_split")
def split(xp: Any, x: Any, parts: Any, axis: int = 0) -> Any:
    """Parts, by their number or by where they end."""
    return list(xp.split(x, parts, axis=axis))


@NUMPY.row("pad")
def pad(xp: Any, x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    """More items at the ends."""
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise Untranslatable(f"padding by {mode}")
    if isinstance(constant_values, (tuple, list)):
        raise Untranslatable("padding by several numbers")
    return xp.pad(x, pad_width, **({"constant_values": constant_values} if mode == "constant" else {"mode": mode}))


@NUMPY.row("meshgrid")
def meshgrid(xp: Any, *arrays: Any, indexing: str = "xy") -> Any:
    """The coordinates of a grid."""
    return list(xp.meshgrid(*arrays, indexing=indexing))


@NUMPY.row("diag")
def diag(xp: Any, x: Any, k: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    return xp.diag(x, k)


# ---- items -----------------------------------------------------------------------------------------------------------


@NUMPY.row("operator.getitem")
def getitem(xp: Any, x: Any, index: Any) -> Any:
    """Items of an array, or of a nest."""
    if isinstance(x, Array):
        return x[checked_index(xp, x, index)]
    if isinstance(x, Opaque):
        return xp.writer.part(x, operator.getitem, index)
    if isinstance(index, Value):
        raise Untranslatable("which item of a list it takes is not fixed")
    return x[index]


def checked_index(xp: Any, x: Array, index: Any) -> Any:
    """An index that other frameworks take; what raises in NumPy and cannot there is in the page on translation."""
    parts = list(index) if isinstance(index, tuple) else [index]
    for place, part in enumerate(parts):
        if isinstance(part, Array) and part.dtype == "bool" and isinstance(index, tuple):
            raise Untranslatable("how many items a mask takes depends on the data")
        if isinstance(part, (list, range)):
            if any(isinstance(one, Value) for one in part):
                raise Untranslatable("an index that is a list of numbers of the program")
            parts[place] = xp.array(list(part), dtype=xp.dtype_object("int64"))
        parts[place] = plain(parts[place])
    return tuple(parts) if isinstance(index, tuple) else parts[0]


@NUMPY.row("operator.setitem")
def setitem(xp: Any, x: Array, index: Any, value: Any) -> Any:
    """The array after ``x[index] = value``."""
    value = xp.cast(plain(value), x.dtype)
    if isinstance(index, Array) and index.dtype == "bool":
        if isinstance(value, Array) and value.ndim:
            return xp.put_masked(x, index, value)
        mask = xp.reshape(index, (*index.shape, *(1,) * (x.ndim - index.ndim))) if index.ndim < x.ndim else index
        return xp.where(mask, value, x)
    return xp.at_set(x, checked_index(xp, x, index), value)


@NUMPY.row("take")
def take(xp: Any, x: Any, indices: Any, axis: Any = None) -> Any:
    """Items by their numbers."""
    return xp.take(x, indices, axis=axis)


@NUMPY.row("take_along_axis")
def take_along_axis(xp: Any, x: Any, indices: Any, axis: Any = -1) -> Any:
    """Items along an axis, by an index for each."""
    return xp.take_along_axis(x, indices, axis=axis)


@NUMPY.row("item")
def item(xp: Any, x: Any) -> Any:
    """A plain number out of an array."""
    if isinstance(x, Array):
        return xp.item(x)
    raise Untranslatable("a number out of something that is no array")


def _conversion(kind: type) -> None:
    def row(xp: Any, x: Any) -> Any:
        found = xp.item(x, kind) if isinstance(x, Array) else x
        if not isinstance(found, Number):
            raise Untranslatable("a conversion of something that is no number")
        return found if type(found.value) is kind else xp.writer.plain(kind, found)

    NUMPY.add(f"builtins.{kind.__name__}", row)


for _kind in (float, int, bool):
    _conversion(_kind)


@NUMPY.row("nonzero", "flatnonzero", "unique", "argwhere", "bincount", "histogram", "compress", "extract")
def depends_on_data(xp: Any, *args: Any, **kwargs: Any) -> Any:
    """Functions whose results have as many items as the data tell."""
    raise Untranslatable("how many items it gives depends on the data")


# ---- facts -----------------------------------------------------------------------------------------------------------

NUMPY.add("attribute.shape", lambda xp, x: x.shape)
NUMPY.add("attribute.ndim", lambda xp, x: 1 if isinstance(x, list) else x.ndim)


@NUMPY.row("attribute.size", "size")
def size(xp: Any, x: Any, axis: Any = None) -> Any:
    """The number of items, or a size."""
    if axis is not None:
        return x.size(axis)
    found: Any = 1
    for one in x.shape:
        found = one * found
    return found


# ---- creation --------------------------------------------------------------------------------------------------------


def _shape(xp: Any, shape: Any) -> tuple[Any, ...]:
    """A shape; a size that is an array is asked for its number."""
    found = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    for place, one in enumerate(found):
        if isinstance(one, Array):
            number = xp.item(one)
            number.value = xp.wanted.shape[place]
            found[place] = number
    return tuple(found)


def _created(xp: Any) -> Any:
    if xp.wanted is None:
        raise Untranslatable("the dtype that it gives is not known")
    return xp.dtype_object(xp.wanted.dtype)


for _name in ("zeros", "ones", "empty"):

    def _filled(xp: Any, shape: Any, dtype: Any = None, _name: str = "ones" if _name == "ones" else "zeros") -> Any:
        return xp.call(_name, _shape(xp, shape), dtype=_created(xp))

    NUMPY.add(_name, _filled)
    NUMPY.add(f"{_name}_like", lambda xp, x, dtype=None, _row=_filled: _row(xp, x.shape))


@NUMPY.row("full")
def full(xp: Any, shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """One number everywhere."""
    value = plain(fill_value)
    if isinstance(value, Array):
        return xp.broadcast_to(xp.to_wanted(value), tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))
    return xp.full(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), value, dtype=_created(xp))


@NUMPY.row("full_like")
def full_like(xp: Any, x: Any, fill_value: Any, dtype: Any = None) -> Any:
    """One number in the shape of another array."""
    return full(xp, x.shape, fill_value)


@NUMPY.row("arange")
def arange(xp: Any, *bounds: Any, dtype: Any = None) -> Any:
    """Numbers in steps."""
    if any(isinstance(one, Array) for one in bounds):
        raise Untranslatable("how many numbers arange gives depends on the data")
    return xp.arange(*map(plain, bounds), dtype=_created(xp))


@NUMPY.row("linspace")
def linspace(xp: Any, start: Any, stop: Any, num: Any = 50, endpoint: bool = True) -> Any:
    """Numbers at equal distances."""
    if not endpoint or isinstance(start, Array) or isinstance(stop, Array):
        raise Untranslatable("linspace without its end, or between arrays")
    return xp.linspace(plain(start), plain(stop), num, dtype=_created(xp))


@NUMPY.row("eye", "identity")
def eye(xp: Any, n: Any, m: Any = None, k: int = 0, dtype: Any = None) -> Any:
    """The unit matrix."""
    if k:
        raise Untranslatable("ones beside the diagonal")
    return xp.eye(n, dtype=_created(xp)) if m is None else xp.eye(n, m, dtype=_created(xp))


# ---- algebra ---------------------------------------------------------------------------------------------------------


@NUMPY.row("matmul", "operator.matmul", "linalg.matmul")
def matmul(xp: Any, x: Any, y: Any) -> Any:
    """A product of matrices or vectors."""
    return xp.matmul(*computed(xp, x, y))


@NUMPY.row("dot")
def dot(xp: Any, x: Any, y: Any) -> Any:
    """A product; of a number with anything, each item."""
    if not isinstance(x, Array) or not isinstance(y, Array) or not x.ndim or not y.ndim:
        x, y = computed(xp, x, y)
        return x * y
    if y.ndim > 2:
        raise Untranslatable("dot of arrays of these ranks")
    return xp.matmul(*computed(xp, x, y))


@NUMPY.row("outer", "linalg.outer")
def outer(xp: Any, x: Any, y: Any) -> Any:
    """All products of two."""
    return xp.outer(*computed(xp, xp.reshape(x, (-1,)), xp.reshape(y, (-1,))))


@NUMPY.row("einsum")
def einsum(xp: Any, text: Any, *arrays: Any, optimize: Any = None) -> Any:
    """Sums of products, by letters."""
    if not isinstance(text, str):
        raise Untranslatable("einsum without letters")
    return xp.einsum(text.replace(" ", ""), *computed(xp, *arrays))


for _name in ("inv", "det", "cholesky", "eigvalsh", "pinv", "solve"):

    def _algebra(xp: Any, *arrays: Any, _name: str = _name) -> Any:
        if not all(isinstance(one, Array) and xp.is_floating(one) for one in arrays):
            raise Untranslatable("linear algebra of something that holds no floating point numbers")
        return xp.call(f"linalg.{_name}", *arrays)

    NUMPY.add(f"linalg.{_name}", _algebra)


for _name in ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn"):

    def _transform(xp: Any, x: Any, *args: Any, _name: str = _name, **named: Any) -> Any:
        return xp.to_wanted(xp.call(f"fft.{_name}", x, *args, **named))

    NUMPY.add(f"fft.{_name}", _transform)


@NUMPY.row("fft.rfftfreq", "fft.fftfreq")
def frequencies(xp: Any, n: Any, d: Any = 1.0) -> Any:
    """The frequencies of a Fourier transform of real numbers."""
    if xp.wanted is None or xp.wanted.shape == (n.value if isinstance(n, Number) else n,):
        raise Untranslatable("the frequencies of a transform of complex numbers")
    return xp.arange(n // 2 + 1, dtype=_created(xp)) / (n * d)


@NUMPY.row("tri")
def tri(xp: Any, n: Any, m: Any = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones in the lower triangle."""
    return xp.tril(xp.ones((n, n if m is None else m), dtype=_created(xp)), *((k,) if k else ()))


@NUMPY.row("polyval")
def polyval(xp: Any, p: Any, x: Any) -> Any:
    """The value of a polynomial, by Horner's rule."""
    if not isinstance(p, Array):
        raise Untranslatable("a polynomial that is no array")
    found = xp.zeros_like(xp.to_wanted(x)) if isinstance(x, Array) else 0.0
    for place in range(xp.writer.fixed(p.size(0), "the degree of a polynomial is fixed")):
        found = found * x + p[place]
    return found


@NUMPY.row("linalg.norm")
def norm(xp: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The root of the sum of squares; of vectors other norms too."""
    if ord not in (None, 2, 1, math.inf) or (ord is not None and not isinstance(axis, int) and x.ndim != 1):
        raise Untranslatable(f"the norm {ord!r}")
    options = {**({} if axis is None else {"axis": axis}), **({"keepdims": True} if keepdims else {})}
    x = xp.abs(xp.to_wanted(x))
    if ord in (None, 2):
        return xp.sqrt(xp.call("sum", xp.square(x), **options))
    return xp.call("sum" if ord == 1 else "max", x, **options)


@NUMPY.row("linalg.qr", "linalg.svd", "linalg.eigh", "linalg.eig")
def factors(xp: Any, *args: Any, **named: Any) -> Any:
    """Factors that are unique but for signs."""
    raise Untranslatable("its factors are unique but for signs, which each library chooses as it likes")


add_python(NUMPY)
