"""TensorFlow's functions against the array namespace: arithmetic, reductions, shapes, items.

Tensors of plain numbers stay numbers as long as nothing needs an array (``tensorflow_sizes``). TensorFlow never
promotes, so each row computes in the dtype that it is given, and gives that which TensorFlow gives.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy

from clew.ir.control_flow import choose
from clew.translate.refusals import Untranslatable
from clew.translate.rows import numpy as of_numpy
from clew.translate.rows.numpy import computed, depends_on_data
from clew.translate.rows.python import add_python
from clew.translate.rows.table import Table, refuse_given
from clew.translate.rows.tensorflow_sizes import (
    array,
    can,
    elementwise,
    fixed,
    is_plain,
    items_of,
    number,
    operand,
    plain,
    reduced,
    reshaped,
    sizes,
    whole,
)
from clew.translate.values import Array, Number, Plain, Value

TENSORFLOW = Table("tensorflow")
row = TENSORFLOW.row


# ---- elementwise -----------------------------------------------------------------------------------------------------


def binary(xp: Any, function: Callable[..., Any], x: Any, y: Any) -> Any:
    """An operator on two tensors."""
    if can((x, y)):
        return elementwise(xp, function, x, y)
    x, y = operand(x), operand(y)
    if not isinstance(x, Array) and not isinstance(y, Array):
        return function(x, y)
    return function(*computed(xp, x, y))


_BINARY = {
    "add": "add AddV2 Add", "sub": "subtract Sub", "mul": "multiply Mul", "truediv": "divide RealDiv",
    "pow": "pow Pow", "floordiv": "floordiv FloorDiv", "mod": "math.floormod FloorMod",
}  # fmt: skip


def _operator_row(name: str, others: str) -> None:
    function = getattr(operator, name)

    def run(xp: Any, x: Any = None, y: Any = None, name: Any = None, *, _short: str = name) -> Any:
        if _short in ("floordiv", "mod") and not can((x, y)) and xp.wanted is not None and "int" in xp.wanted.dtype:
            of_numpy._refuse_zero(operand(y))
        if _short == "truediv" and can((x, y)):
            x = array(xp, x) if isinstance(x, Plain) else x
            y = y if isinstance(x, Array) else array(xp, y)
        return binary(xp, function, x, y)

    row(f"operator.{name}", *(one if "." in one or one.islower() else f"raw_ops.{one}" for one in others.split()))(run)
    TENSORFLOW.add(f"math.{others.split()[0]}", run)


for _name, _others in _BINARY.items():
    _operator_row(_name, _others)


def _comparison(name: str, others: str) -> None:
    function = getattr(operator, name)

    def run(xp: Any, x: Any = None, y: Any = None, name: Any = None, **given: Any) -> Any:
        if can((x, y)):
            return elementwise(xp, function, x, y)
        return function(operand(x), operand(y))

    row(f"operator.{name}", *others.split())(run)


for _name, _others in {"lt": "less math.less raw_ops.Less", "le": "less_equal math.less_equal raw_ops.LessEqual",
                       "gt": "greater math.greater raw_ops.Greater", "eq": "equal math.equal raw_ops.Equal",
                       "ge": "greater_equal math.greater_equal raw_ops.GreaterEqual",
                       "ne": "not_equal math.not_equal raw_ops.NotEqual"}.items():  # fmt: skip
    _comparison(_name, _others)


def _both(xp: Any, name: str, x: Any, y: Any) -> Any:
    x, y = operand(x), operand(y)
    return getattr(xp, name)(*computed(xp, x, y))


def _two(name: str, numbers: Callable[..., Any] | None, others: str) -> None:
    def run(xp: Any, x: Any = None, y: Any = None, _name: str = name, **given: Any) -> Any:
        if numbers is not None and can((x, y)):
            return elementwise(xp, numbers, x, y)
        if is_plain((x, y)):
            x = array(xp, x) if isinstance(x, Plain) else xp.as_array(x, xp.wanted.dtype)
        return _both(xp, _name, x, y)

    row(*others.split())(run)


_two("maximum", max, "maximum math.maximum raw_ops.Maximum")
_two("minimum", min, "minimum math.minimum raw_ops.Minimum")
_two("logical_and", operator.and_, "logical_and math.logical_and raw_ops.LogicalAnd operator.and_")
_two("logical_or", operator.or_, "logical_or math.logical_or raw_ops.LogicalOr operator.or_")
_two("logical_xor", operator.xor, "math.logical_xor")
_two("arctan2", None, "atan2 math.atan2")


@row("logical_not", "math.logical_not", "raw_ops.LogicalNot", "operator.invert", "operator.not_")
def logical_not(xp: Any, x: Any, **given: Any) -> Any:
    """The opposite of truth values."""
    if isinstance(x, Plain):
        return plain(
            xp, xp.writer.plain(operator.not_, x.items) if isinstance(x.items, Number) else not x.items, "bool"
        )
    if isinstance(x, Array):
        return xp.logical_not(x)
    return xp.writer.plain(operator.not_, x) if isinstance(x, Value) else not x


_UNARY = {
    "exp": "exp math.exp", "log": "math.log", "log1p": "math.log1p", "expm1": "math.expm1", "sqrt": "sqrt math.sqrt",
    "sin": "sin math.sin", "cos": "cos math.cos", "tan": "tan math.tan", "sinh": "sinh math.sinh",
    "cosh": "cosh math.cosh", "tanh": "tanh math.tanh", "arcsin": "asin math.asin", "arccos": "acos math.acos",
    "arctan": "atan math.atan", "floor": "floor math.floor", "ceil": "math.ceil", "round": "round math.round math.rint",
    "sign": "sign math.sign", "abs": "abs math.abs raw_ops.ComplexAbs operator.abs", "square": "square math.square",
    "isnan": "math.is_nan", "isinf": "math.is_inf", "isfinite": "math.is_finite", "real": "math.real",
    "imag": "math.imag", "conj": "math.conj", "angle": "math.angle", "rsqrt": "math.rsqrt", "erf": "math.erf",
    "erfc": "math.erfc", "arcsinh": "asinh math.asinh", "arccosh": "acosh math.acosh", "arctanh": "atanh math.atanh",
}  # fmt: skip


def _unary(name: str, others: str) -> None:
    def run(xp: Any, x: Any, *, _name: str = name, **given: Any) -> Any:
        found = array(xp, x)
        found = found if isinstance(found, Array) else xp.as_array(found, "float32")
        return found if _name in _WHOLE and not xp.is_floating(found) else getattr(xp, _name)(found)

    row(*others.split())(run)


_WHOLE = ("floor", "ceil", "round")
for _name, _others in _UNARY.items():
    _unary(_name, _others)


@row("operator.neg", "negative", "math.negative", "raw_ops.Neg")
def negative(xp: Any, x: Any, **given: Any) -> Any:
    """The negative."""
    return elementwise(xp, operator.neg, x) if can((x,)) else -x


@row("math.squared_difference")
def squared_difference(xp: Any, x: Any, y: Any, **given: Any) -> Any:
    """The square of a difference."""
    return xp.square(binary(xp, operator.sub, x, y))


@row("math.divide_no_nan")
def divide_no_nan(xp: Any, x: Any, y: Any, **given: Any) -> Any:
    """A quotient, or zero where the divisor is zero."""
    x, y = array(xp, x), array(xp, y)
    return xp.where(y == 0, 0.0, x / xp.where(y == 0, 1.0, y))


@row("math.reciprocal")
def reciprocal(xp: Any, x: Any, **given: Any) -> Any:
    """One over it."""
    return 1.0 / x


@row("clip_by_value")
def clip_by_value(xp: Any, t: Any, low: Any, high: Any, **given: Any) -> Any:
    """Between two bounds."""
    return _both(xp, "maximum", _both(xp, "minimum", array(xp, t), high), low)


@row("cast", "raw_ops.Cast")
def cast(xp: Any, x: Any, dtype: Any = None, **given: Any) -> Any:
    """The same values in another dtype."""
    if isinstance(x, Plain) and xp.wanted.dtype.startswith("int") and not x.dtype.startswith("float"):
        return plain(xp, _whole(xp, x.items))
    x = array(xp, x)
    if not isinstance(x, Array):
        return plain(xp, x) if xp.wanted.dtype.startswith("int") and isinstance(x, (int, Number)) else xp.as_array(
            x, xp.wanted.dtype)  # fmt: skip
    return xp.to_wanted(xp.real(x) if x.dtype.startswith("complex") and "complex" not in xp.wanted.dtype else x)


def _whole(xp: Any, items: Any) -> Any:
    if isinstance(items, list):
        return [_whole(xp, one) for one in items]
    return xp.writer.plain(int, items) if isinstance(items, Number) and isinstance(items.value, bool) else (
        int(items) if isinstance(items, bool) else items)  # fmt: skip


@row("identity", "stop_gradient", "convert_to_tensor", "ensure_shape", "raw_ops.EnsureShape", "raw_ops.Identity",
     "raw_ops.PreventGradient", "raw_ops.StopGradient", "grad_pass_through")  # fmt: skip
def identity(xp: Any, x: Any = None, *args: Any, **given: Any) -> Any:
    """The same values."""
    value = x if x is not None else given.get("input")
    return value if isinstance(value, (Array, Plain)) else constant(xp, value)


TENSORFLOW.add("stop_gradient", lambda xp, x, **given: xp.stop_gradient(array(xp, x)))


@row("constant")
def constant(xp: Any, value: Any, dtype: Any = None, shape: Any = None, **given: Any) -> Any:
    """Numbers as a tensor."""
    if xp.wanted is None or xp.wanted.dtype in ("string", "variant", "resource"):
        raise Untranslatable("a text, or something else that is no number")
    items = items_of(value)
    if isinstance(items, (Number, bool, int, float)) and not shape:
        return plain(xp, items)
    if shape is None or tuple(shape) == (0,):
        if (
            isinstance(items, list)
            and len(leaves := _flat(items)) <= 16
            and xp.wanted.dtype in ("int32", "int64", "bool")
        ):
            return plain(xp, items if leaves or shape is None else [])
        return Plain(xp.writer, items, xp.wanted.dtype).array()
    flat = _flat(items) if isinstance(items, list) else [items]
    if len(flat) == 1:
        return xp.full(tuple(shape), flat[0], dtype=xp.dtype_object(xp.wanted.dtype))
    return Plain(xp.writer, reshaped(flat, list(shape)), xp.wanted.dtype).array()


def _flat(items: Any) -> list[Any]:
    return [leaf for one in items for leaf in _flat(one)] if isinstance(items, list) else [items]


@row("complex", "raw_ops.Complex")
def complex_(xp: Any, real: Any, imag: Any, **given: Any) -> Any:
    """A complex number of its parts."""
    return xp.to_wanted(xp.cast(array(xp, real), xp.wanted.dtype) + xp.cast(array(xp, imag), xp.wanted.dtype) * 1j)


@row("where", "where_v2", "raw_ops.SelectV2", "raw_ops.Select")
def where(xp: Any, condition: Any, x: Any = None, y: Any = None, name: Any = None, **given: Any) -> Any:
    """Items of the one or the other."""
    x, y = given.get("t", x), given.get("e", y)
    if x is None:
        raise Untranslatable("how many items tf.where gives depends on the data")
    if isinstance(condition, Plain) and not isinstance(condition.items, list) and is_plain((x, y)):
        chosen = condition.items
        if isinstance(chosen, bool):
            return x if chosen else y
        if not isinstance(items_of(x), list) and not isinstance(items_of(y), list):
            return plain(xp, xp.writer.plain(choose, chosen, items_of(x), items_of(y)))
    x, y = computed(xp, operand(x), operand(y))
    if not isinstance(x, Array) and not isinstance(y, Array):
        x = xp.as_array(x, xp.wanted.dtype)
    return xp.where(array(xp, condition), x, y)


TENSORFLOW.add("raw_ops.Where", depends_on_data)
TENSORFLOW.add("unique", depends_on_data)
TENSORFLOW.add("unique_with_counts", depends_on_data)
TENSORFLOW.add("raw_ops.UniqueWithCounts", depends_on_data)
TENSORFLOW.add("boolean_mask", depends_on_data)


# ---- reductions ------------------------------------------------------------------------------------------------------


def _reduction(name: str, others: str) -> None:
    def run(xp: Any, x: Any = None, axis: Any = None, keepdims: Any = False, *, _name: str = name, **given: Any) -> Any:
        x = given.get("input_tensor", given.get("input", x))
        axes = fixed(axis)
        if (
            isinstance(x, Plain)
            and not keepdims
            and (axes in (None, 0, -1, [0], [-1]) or not isinstance(x.items, list))
        ):
            found = reduced(xp, _name, x.items)
            if found is not None:
                return plain(xp, found)
        x = array(xp, x)
        if axes == []:
            return x
        if _name == "mean" and not xp.is_floating(x) and "complex" not in x.dtype:
            raise Untranslatable("a mean of integers is rounded down")
        axes = list(range(x.ndim)) if axes is None and keepdims else axes
        options = {} if axes is None else {"axis": tuple(axes) if isinstance(axes, list) else axes}
        return xp.to_wanted(xp.call(_name, x, **options, **({"keepdims": True} if keepdims else {})))

    row(*others.split())(run)


for _name, _others in {"sum": "reduce_sum math.reduce_sum", "prod": "reduce_prod math.reduce_prod",
                       "max": "reduce_max math.reduce_max", "min": "reduce_min math.reduce_min",
                       "mean": "reduce_mean math.reduce_mean", "all": "reduce_all math.reduce_all",
                       "any": "reduce_any math.reduce_any", "var": "math.reduce_variance",
                       "std": "math.reduce_std"}.items():  # fmt: skip
    _reduction(_name, _others)


@row("reduce_logsumexp", "math.reduce_logsumexp")
def reduce_logsumexp(xp: Any, x: Any, axis: Any = None, keepdims: bool = False, **given: Any) -> Any:
    """The logarithm of the sum of exponentials."""
    axes = fixed(axis)
    axes = tuple(range(x.ndim)) if axes is None else tuple(axes) if isinstance(axes, list) else (axes,)
    return xp.logsumexp(x, axes, bool(keepdims))


def _place(name: str) -> None:
    def run(xp: Any, x: Any, axis: Any = 0, output_type: Any = None, **given: Any) -> Any:
        x, axis = array(xp, x), 0 if axis is None else number(axis)
        if xp.is_floating(x):  # TensorFlow passes over nan
            x = xp.where(xp.isnan(x), -float("inf") if name == "argmax" else float("inf"), x)
        return xp.to_wanted(xp.call(name, x, axis=axis))

    row(name, f"math.{name}")(run)


_place("argmax")
_place("argmin")


@row("raw_ops.TopKV2", "math.top_k")
def top_k(xp: Any, input: Any = None, k: Any = 1, sorted: bool = True, **given: Any) -> Any:
    """The largest items, the first of equal ones first, and where they are."""
    x = array(xp, input)
    count = number(k)
    places = xp.flip(xp.argsort(xp.flip(x, axis=-1), axis=-1, stable=True), axis=-1)
    if xp.is_floating(x):
        xp.writer.note("where nan stands among sorted items is TensorFlow's secret, and first here")
    whole_row = isinstance(count, Number) and isinstance(x.size(-1), Number) and count.node is x.size(-1).node
    places = x.size(-1) - 1 - places
    places = places if whole_row else places[..., :count]
    return [xp.take_along_axis(x, places, axis=-1), xp.cast(places, xp.dtype("int32"))]


@row("cumsum", "math.cumsum", "raw_ops.Cumsum")
def cumsum(xp: Any, x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, **given: Any) -> Any:
    """Sums up to each item."""
    x, axis = array(xp, x), number(axis)
    x = xp.flip(x, axis=axis) if reverse else x
    found = xp.to_wanted(xp.cumsum(x, axis=axis))
    found = found - x if exclusive else found
    return xp.flip(found, axis=axis) if reverse else found


# ---- shapes ----------------------------------------------------------------------------------------------------------


@row("shape", "raw_ops.Shape")
def shape(xp: Any, x: Any = None, *args: Any, **given: Any) -> Any:
    """The sizes."""
    x = given.get("input", x)
    if isinstance(x, Plain):
        return plain(xp, _sizes_of(x.items))
    return plain(xp, list(x.shape))


def _sizes_of(items: Any) -> list[int]:
    return [len(items), *(_sizes_of(items[0]) if items else [])] if isinstance(items, list) else []


@row("size", "raw_ops.Size")
def size(xp: Any, x: Any = None, *args: Any, **given: Any) -> Any:
    """How many items there are."""
    x = given.get("input", x)
    if isinstance(x, Plain):
        return plain(xp, len(_flat(x.items)))
    return plain(xp, reduced(xp, "prod", list(x.shape)))


@row("rank", "raw_ops.Rank")
def rank(xp: Any, x: Any = None, *args: Any, **given: Any) -> Any:
    """How many axes there are."""
    return plain(xp, x.ndim if isinstance(x, Array) else len(_sizes_of(items_of(x))))


TENSORFLOW.add("clew.frameworks.tensorflow.scalars.size_of", lambda xp, x, axis: x.size(axis))


@row("reshape", "raw_ops.Reshape")
def reshape(xp: Any, x: Any = None, shape: Any = None, **given: Any) -> Any:
    """The same items in another shape."""
    x, target = given.get("tensor", x), sizes(shape)
    if isinstance(x, Plain):
        found = reshaped(x.items, list(target))
        if found is not None:
            return plain(xp, found)
    return xp.reshape(array(xp, x), target)


@row("transpose", "raw_ops.Transpose")
def transpose(xp: Any, x: Any, perm: Any = None, conjugate: bool = False, **given: Any) -> Any:
    """Axes in another order."""
    refuse_given("transpose", conjugate=conjugate)
    return of_numpy.transpose(xp, array(xp, x), tuple(fixed(perm))) if perm is not None else of_numpy.attribute_t(xp, x)


@row("expand_dims")
def expand_dims(xp: Any, x: Any, axis: Any, **given: Any) -> Any:
    """One axis more."""
    axis = number(axis)
    if isinstance(x, Plain) and (axis == 0 or not isinstance(x.items, list)):
        return plain(xp, [x.items])
    return xp.expand_dims(array(xp, x), axis)


@row("squeeze", "raw_ops.Squeeze")
def squeeze(xp: Any, x: Any, axis: Any = None, **given: Any) -> Any:
    """Without axes of size one."""
    axes = fixed(axis)
    if isinstance(x, Plain) and isinstance(x.items, list) and len(x.items) == 1 and whole(x.items):
        return plain(xp, x.items[0])
    x = array(xp, x)
    if axes in (None, []):
        axes = [place for place, one in enumerate(x.spec.shape) if one == 1]
        for place in range(x.ndim):
            xp.writer.require(x.size(place) == 1, place in axes, "which axes have the size one is fixed")
    axes = axes if isinstance(axes, list) else [axes]
    if not axes:
        return x
    return xp.squeeze(x, axis=axes[0] if len(axes) == 1 else tuple(axes))


@row("concat", "raw_ops.ConcatV2")
def concat(xp: Any, values: Any = None, axis: Any = 0, **given: Any) -> Any:
    """Arrays one behind the other."""
    if is_plain(values) and all(isinstance(items_of(one), list) for one in values) and number(axis) in (0, -1):
        found = [item for one in values for item in items_of(one)]
        if whole(found):
            return plain(xp, found)
    return xp.concatenate([_array(xp, one) for one in values], axis=number(axis))


def _array(xp: Any, value: Any) -> Any:
    """An array, also of a number, in the dtype that the call gives."""
    found = array(xp, value)
    return found if isinstance(found, Array) else xp.as_array(found, xp.wanted.dtype)


@row("stack", "raw_ops.Pack")
def stack(xp: Any, values: Any, axis: Any = 0, **given: Any) -> Any:
    """Arrays side by side, along an axis of their own."""
    axis = number(axis)
    if is_plain(values) and xp.wanted is not None and xp.wanted.dtype in ("int32", "int64", "bool"):
        items = [items_of(one) for one in values]
        if axis in (0, None) or not any(isinstance(one, list) for one in items):
            return plain(xp, items)
        if axis == 1 and all(map(whole, items)):
            return plain(xp, [list(pair) for pair in zip(*items, strict=True)])
    return xp.stack([_array(xp, one) for one in values], axis=axis)


@row("unstack")
def unstack(xp: Any, value: Any, num: Any = None, axis: Any = 0, **given: Any) -> Any:
    """The parts along an axis."""
    if isinstance(value, Plain) and isinstance(value.items, list):
        return [plain(xp, one, value.dtype) for one in value.items]
    axis = number(axis)
    count = value.spec.shape[axis] if num is None else num
    xp.writer.require(value.size(axis) == count, True, "how many parts there are is fixed")
    front = (slice(None),) * (axis % value.ndim)
    return [value[(*front, place)] for place in range(count)]


@row("split")
def split(xp: Any, value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, **given: Any) -> Any:
    """Parts along an axis, by their number or by their sizes."""
    parts, axis = items_of(num_or_size_splits), number(axis)
    if isinstance(value, Plain):
        return _plain_parts(xp, value, parts if isinstance(parts, list) else [len(value.items) // parts] * parts)
    if not isinstance(parts, list):
        return list(xp.split(value, number(parts), axis=axis))
    found: list[Any] = []
    first: Any = 0
    front = (slice(None),) * (axis % value.ndim)
    for place, one in enumerate(parts):
        end = None if place == len(parts) - 1 else first + one
        if one == -1 and end is not None:
            raise Untranslatable("a part whose size is left open")
        found.append(value[(*front, slice(first, end))])
        first = end
    return found


def _plain_parts(xp: Any, value: Plain, parts: list[Any]) -> list[Any]:
    found, first = [], 0
    for one in fixed(parts):
        found.append(plain(xp, value.items[first : first + one], value.dtype))
        first += one
    return found


@row("raw_ops.SplitV")
def split_v(xp: Any, value: Any, size_splits: Any, axis: Any, num_split: Any = None, **given: Any) -> Any:
    """Parts by their sizes."""
    return split(xp, value, size_splits, axis)


@row("tile", "raw_ops.Tile")
def tile(xp: Any, x: Any, multiples: Any, **given: Any) -> Any:
    """The array several times along each axis."""
    return xp.tile(_array(xp, x), sizes(multiples))


@row("fill", "raw_ops.Fill")
def fill(xp: Any, dims: Any, value: Any, **given: Any) -> Any:
    """One number everywhere."""
    target, one = sizes(dims), operand(value)
    if isinstance(one, Array):
        return xp.broadcast_to(one, target)
    if all(isinstance(part, int) for part in target) and len(target) == 1 and target[0] <= 8 and isinstance(one, int):
        return plain(xp, [one] * target[0])
    return xp.full(target, one, dtype=xp.dtype_object(xp.wanted.dtype))


@row("zeros")
def zeros(xp: Any, shape: Any, dtype: Any = None, **given: Any) -> Any:
    """Zeros."""
    return xp.zeros(sizes(shape), dtype=xp.dtype_object(xp.wanted.dtype))


@row("ones")
def ones(xp: Any, shape: Any, dtype: Any = None, **given: Any) -> Any:
    """Ones."""
    return xp.ones(sizes(shape), dtype=xp.dtype_object(xp.wanted.dtype))


TENSORFLOW.add("zeros_like", lambda xp, x, dtype=None, **given: zeros(xp, list(_array(xp, x).shape)))
TENSORFLOW.add("ones_like", lambda xp, x, dtype=None, **given: ones(xp, list(_array(xp, x).shape)))


@row("eye", "linalg.eye")
def eye(xp: Any, num_rows: Any, num_columns: Any = None, batch_shape: Any = None, **given: Any) -> Any:
    """The unit matrix."""
    refuse_given("eye", batch_shape=batch_shape)
    more = () if num_columns is None else (number(num_columns),)
    return xp.eye(number(num_rows), *more, dtype=xp.dtype_object(xp.wanted.dtype))


@row("range", "raw_ops.Range")
def range_(xp: Any, *bounds: Any, **given: Any) -> Any:
    """Counting."""
    names = ("start", "limit", "delta")
    found = [number(one) for one in (*bounds, *(given[name] for name in names if name in given))]
    if all(type(one) is int for one in found) and len(range(*found)) <= 8:
        return plain(xp, list(range(*found)))
    return xp.arange(*found, dtype=xp.dtype_object(xp.wanted.dtype))


@row("broadcast_to")
def broadcast_to(xp: Any, x: Any, shape: Any, **given: Any) -> Any:
    """Axes of size one repeated."""
    return xp.broadcast_to(_array(xp, x), sizes(shape))


@row("raw_ops.BroadcastGradientArgs")
def broadcast_gradient_args(xp: Any, s0: Any, s1: Any, **given: Any) -> Any:
    """Over which axes the slopes of two operands are summed."""
    left, right = list(sizes(s0)), list(sizes(s1))
    count = max(len(left), len(right))
    left, right = [1] * (count - len(left)) + left, [1] * (count - len(right)) + right
    axes: tuple[list[int], list[int]] = ([], [])
    for place, pair in enumerate(zip(left, right, strict=True)):
        shown = [one.value if isinstance(one, Number) else one for one in pair]
        for side, (mine, shows) in enumerate(zip(pair, shown, strict=True)):
            if isinstance(mine, Number):
                xp.writer.require(mine == 1, shows == 1, "which sizes are one is fixed")
            if shows == 1:
                axes[side].append(place)
    return [plain(xp, one, "int32") for one in axes]


@row("pad", "raw_ops.PadV2", "raw_ops.Pad", "raw_ops.MirrorPad")
def pad(xp: Any, x: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, **given: Any) -> Any:
    """More items at the ends."""
    mode = mode.lower()
    if mode not in ("constant", "reflect"):
        raise Untranslatable(f"padding by {mode}")
    pairs = [tuple(pair) for pair in sizes(paddings)]
    value = operand(constant_values)
    return xp.pad(array(xp, x), pairs, **({"constant_values": value} if mode == "constant" else {"mode": mode}))


@row("reverse")
def reverse(xp: Any, x: Any, axis: Any, **given: Any) -> Any:
    """The items the other way round along axes."""
    axes = fixed(axis)
    return xp.flip(x, axis=tuple(axes) if isinstance(axes, list) else axes)


@row("roll", "raw_ops.Roll")
def roll(xp: Any, input: Any, shift: Any, axis: Any, **given: Any) -> Any:
    """Items moved around."""
    shift, axis = items_of(shift), fixed(axis)
    if isinstance(axis, list):
        for one, place in zip(shift, axis, strict=True):
            input = xp.roll(input, one, axis=place)
        return input
    return xp.roll(input, number(shift), axis=axis)


# ---- items -----------------------------------------------------------------------------------------------------------


def _index(part: Any) -> Any:
    if isinstance(part, slice):
        return slice(*(None if one is None else number(one) for one in (part.start, part.stop, part.step)))
    return operand(part) if isinstance(part, Plain) else part


@row("operator.getitem")
def getitem(xp: Any, x: Any, index: Any) -> Any:
    """Items of a tensor, or of a nest."""
    parts = tuple(map(_index, index)) if isinstance(index, tuple) else _index(index)
    if isinstance(x, Plain):
        return _plain_items(xp, x, parts)
    if not isinstance(x, Array):
        return of_numpy.getitem(xp, x, parts)
    return x[of_numpy.checked_index(xp, x, parts)]


def _plain_items(xp: Any, x: Plain, parts: Any) -> Any:
    parts = parts if isinstance(parts, tuple) else (parts,)
    known = not any(isinstance(leaf, Value) for part in parts for leaf in _bounds(part))
    if known and len(parts) == 1 and isinstance(x.items, list) and isinstance(parts[0], (int, slice)):
        return plain(xp, x.items[parts[0]], x.dtype)
    return x.array()[parts]


def _bounds(part: Any) -> tuple[Any, ...]:
    return (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)


@row("raw_ops.StridedSlice", "strided_slice")
def strided_slice(xp: Any, input: Any, begin: Any, end: Any, strides: Any, begin_mask: int = 0, end_mask: int = 0,
                  **masks: int) -> Any:  # fmt: skip
    """Items from some places to others."""
    first, last, steps = list(sizes(begin)), list(sizes(end)), list(sizes(strides))
    parts: list[Any] = []
    for place, (low, high, step) in enumerate(zip(first, last, steps, strict=True)):
        if masks.get("ellipsis_mask", 0) >> place & 1:
            parts.append(Ellipsis)
        elif masks.get("new_axis_mask", 0) >> place & 1:
            parts.append(None)
        elif masks.get("shrink_axis_mask", 0) >> place & 1:
            parts.append(low)
        else:
            parts.append(slice(None if begin_mask >> place & 1 else low, None if end_mask >> place & 1 else high,
                               None if step == 1 else step))  # fmt: skip
    return getitem(xp, input, tuple(parts))


@row("slice")
def slice_(xp: Any, x: Any, begin: Any, size: Any, **given: Any) -> Any:
    """So many items from places on."""
    pairs = zip(sizes(begin), sizes(size), strict=True)
    return getitem(xp, x, tuple(slice(low, None if count == -1 else low + count) for low, count in pairs))


@row("gather", "raw_ops.GatherV2", "raw_ops.ResourceGather", "nn.embedding_lookup", "sparse_read")
def gather(xp: Any, params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: Any = 0,
           name: Any = None) -> Any:  # fmt: skip
    """Items by their numbers."""
    axis = 0 if axis is None else number(axis)
    if isinstance(params, Plain) and whole(params.items) and is_plain(indices):
        places = items_of(indices)
        if not any(isinstance(one, Value) for one in _flat(places)) and not any(
            isinstance(one, list) for one in _items(places)
        ):
            return plain(
                xp, [params.items[one] for one in places] if isinstance(places, list) else params.items[places]
            )
    params = array(xp, params)
    indices = _places(xp, indices)
    if batch_dims:
        if batch_dims != indices.ndim - 1 or params.ndim != indices.ndim or axis not in (-1, batch_dims):
            raise Untranslatable("items by their numbers for each of several axes")
        return xp.take_along_axis(params, indices, axis=axis)
    return xp.take(params, indices, axis=axis)


def _items(places: Any) -> list[Any]:
    return places if isinstance(places, list) else [places]


def _places(xp: Any, indices: Any) -> Any:
    """Indices as an array of integers that all frameworks take for indices."""
    if isinstance(indices, Array):
        return xp.cast(indices, xp.dtype("int64"))
    return xp.as_array(items_of(indices), "int64")


@row("gather_nd", "raw_ops.GatherNd")
def gather_nd(xp: Any, params: Any, indices: Any, batch_dims: int = 0, **given: Any) -> Any:
    """Items by lists of places."""
    refuse_given("gather_nd", batch_dims=batch_dims)
    return params[_columns(xp, indices)]


def _columns(xp: Any, indices: Any) -> tuple[Any, ...]:
    """An array whose last axis are places along the axes, as an index."""
    indices = _places(xp, indices)
    count = xp.writer.fixed(indices.size(-1), "how many axes an index is for is fixed")
    return tuple(indices[..., place] for place in range(count))


def _scattering(name: str, how: str) -> None:
    def run(xp: Any, tensor: Any, indices: Any, updates: Any, **given: Any) -> Any:
        return xp.at_set(array(xp, tensor), _columns(xp, indices), array(xp, updates), how)

    row(f"tensor_scatter_nd_{name}", f"raw_ops.TensorScatter{name.title()}")(run)


for _name, _how in {"update": "set", "add": "add", "max": "max", "min": "min"}.items():
    _scattering(_name, _how)


@row("scatter_nd", "raw_ops.ScatterNd")
def scatter_nd(xp: Any, indices: Any, updates: Any, shape: Any, **given: Any) -> Any:
    """Zeros with items added at lists of places."""
    return xp.at_set(zeros(xp, shape), _columns(xp, indices), array(xp, updates), "add")


def _segments(name: str, how: str) -> None:
    def run(xp: Any, data: Any, segment_ids: Any, num_segments: Any, **given: Any) -> Any:
        count, ids = number(num_segments), _places(xp, segment_ids)
        data = xp.reshape(data, (-1, *data.shape[ids.ndim :]))
        ids = xp.reshape(ids, (-1,))
        start = 0 if how == "add" else _least(xp, data.dtype, how)
        wide = xp.full((count + 1, *data.shape[1:]), start, dtype=xp.dtype_object(data.dtype))
        ids = xp.where(ids < 0, xp.as_array(count, ids.dtype), ids)  # those of negative numbers are left out
        return xp.at_set(wide, ids, data, how)[:count]

    row(f"math.unsorted_segment_{name}", f"raw_ops.UnsortedSegment{name.title()}")(run)


def _least(xp: Any, dtype: str, how: str) -> Any:
    """What is no more, or no less, than any number."""
    kinds: Any = numpy.finfo(dtype) if dtype.startswith("float") else numpy.iinfo(dtype)
    found = kinds.min if how == "max" else kinds.max
    return float(found) if dtype.startswith("float") else int(found)


@row("raw_ops.DenseBincount", "raw_ops.Bincount")
def bincount(xp: Any, input: Any, size: Any, weights: Any = None, binary_output: bool = False, **given: Any) -> Any:
    """How often each number is there; those out of range are left out."""
    if binary_output or input.ndim != 1:
        raise Untranslatable("which numbers are there, or numbers of each row")
    ids, count = _places(xp, input), number(size)
    ids = xp.where(ids >= count, xp.as_array(count, ids.dtype), ids)
    start = xp.zeros((count + 1,), dtype=xp.dtype_object(xp.wanted.dtype))
    is_empty = weights is None or weights == [] or (isinstance(weights, Plain) and weights.items == []) or (
        isinstance(weights, Array) and weights.spec.shape == (0,))  # fmt: skip
    return xp.at_set(start, ids, 1 if is_empty else array(xp, weights), "add")[:count]


_segments("sum", "add")
_segments("max", "max")
_segments("min", "min")
TENSORFLOW.add("raw_ops.SegmentMean", depends_on_data)
TENSORFLOW.add("math.segment_mean", depends_on_data)


@row("raw_ops.Assert", "debugging.Assert", "raw_ops.NoOp", "group", "no_op")
def check(xp: Any, condition: Any = True, data: Any = None, **given: Any) -> Any:
    """A question that raises an error: here it is a guard."""
    truth = items_of(condition)
    if isinstance(truth, Array):
        truth = xp.item(truth)
    xp.writer.require(truth, True, "the program checks this, and would raise an error")


@row("clew.frameworks.tensorflow.entry_guards.fits")
def fits(xp: Any, value: Any, wanted: str) -> Any:
    """What a tensor is; the sizes that the program relies on are guarded."""
    if not isinstance(value, Array):
        raise Untranslatable("it asks what a value is that is no tensor")
    inner = wanted.partition("[")[2].rstrip("]")
    for axis, part in enumerate(inner.split(", ") if inner else ()):
        if part != "_":
            xp.writer.require(value.size(axis) == int(part), True, "the capture is for this size")
    return wanted


TENSORFLOW.add("attribute.shape", lambda xp, x: x.shape)
add_python(TENSORFLOW)
