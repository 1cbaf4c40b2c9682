"""JAX's functions against the array namespace: ``jax.numpy`` has NumPy's rows, but for what it does in another way.

What JAX does with dtypes is known of each call, as it is for NumPy: rows compute in the dtype that JAX gives. Arrays
out of range: JAX takes the last item, other frameworks raise an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from clew.translate.refusals import Untranslatable
from clew.translate.rows import numpy as of_numpy
from clew.translate.rows import numpy_data
from clew.translate.rows.numpy import NUMPY, computed
from clew.translate.rows.table import Table, axes_of, refuse_given, taking
from clew.translate.values import Array, Number, Opaque, Spec

JAX = Table("jax")
JAX.rows = dict(NUMPY.rows)


# ---- elementwise -----------------------------------------------------------------------------------------------------


def _known(value: Any) -> Any:
    if isinstance(value, Array):
        return jnp.dtype(value.dtype)
    return value.value if isinstance(value, Number) else value


def compared(xp: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """Operands in the dtype in which JAX compares them."""
    for one in (x, y):
        if isinstance(one, Opaque):
            raise Untranslatable(one.reason or "nothing is known of a value that it is given")
    kinds = {one.dtype for one in (x, y) if isinstance(one, Array) and xp.is_floating(one)}
    if len(kinds) > 1:
        raise Untranslatable("it compares floating point numbers of different dtypes")
    return tuple(xp.together(x, y, dtype=xp.dtype(jnp.result_type(_known(x), _known(y)).name)))


def _comparison(function: Callable[..., Any]) -> Callable[..., Any]:
    def row(xp: Any, x: Any, y: Any) -> Any:
        if not isinstance(x, Array) and not isinstance(y, Array):
            return function(x, y)
        return function(*compared(xp, x, y))

    return row


for _name, _short in {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
                      "not_equal": "ne"}.items():  # fmt: skip
    JAX.row(_name, f"operator.{_short}", f"lax.{_short}")(_comparison(getattr(operator, _short)))

_SAME = (
    "add sub mul pow max:maximum min:minimum exp expm1 log log1p sqrt sin cos tan sinh cosh tanh asin:arcsin "
    "acos:arccos atan:arctan asinh:arcsinh acosh:arccosh atanh:arctanh atan2:arctan2 floor ceil sign abs "
    "neg:negative square cbrt real imag conj is_finite:isfinite nextafter exp2 cumsum cumprod"
).split()
for _pair in _SAME:
    _name, _, _other = _pair.partition(":")
    JAX.add(f"lax.{_name}", NUMPY.rows.get(_other or _name) or NUMPY.rows[f"operator.{_name}"])


@JAX.row("lax.div")
def lax_div(xp: Any, x: Any, y: Any) -> Any:
    """A quotient of floating point numbers."""
    if xp.wanted is None or "int" in xp.wanted.dtype:
        raise Untranslatable("a division of integers that rounds towards zero")
    x, y = computed(xp, x, y)
    return x / y


@JAX.row("lax.integer_pow")
def integer_pow(xp: Any, x: Any, y: int) -> Any:
    """A whole power."""
    return x**y


@JAX.row("lax.reciprocal", "reciprocal")
def reciprocal(xp: Any, x: Any) -> Any:
    """One over it."""
    return 1.0 / xp.to_wanted(x)


def _where(xp: Any, condition: Any, x: Any, y: Any, **given: Any) -> Any:
    refuse_given("where", **given)
    return of_numpy.where(xp, condition, x, y)


JAX.add("lax.select", _where)
JAX.add("numpy.where", _where)
JAX.add("lax.clamp", lambda xp, low, x, high: of_numpy.clip(xp, x, low, high))


@JAX.row("clip")
def clip(xp: Any, x: Any, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Between two bounds."""
    return of_numpy.clip(xp, x, min if low is None else low, max if high is None else high)


@JAX.row("lax.convert_element_type")
def convert(xp: Any, x: Any, dtype: Any) -> Any:
    """The same values in another dtype."""
    return of_numpy.array(xp, x)


@JAX.row("nan_to_num")
def nan_to_num(xp: Any, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Numbers in the place of nan and infinities."""
    return of_numpy.nan_to_num(xp, x, copy, nan, posinf, neginf)


@JAX.row("clew.frameworks.jax.types.kind_of")
def kind_of(xp: Any, x: Any) -> str:
    """The dtype and sizes of an array in words; the sizes are fixed from there on."""
    if not isinstance(x, Array):
        raise Untranslatable("it asks for the class of a value")
    sizes = [xp.writer.fixed(size, "the program asks for this size") for size in x.shape]
    return f"{x.dtype}[{','.join(map(str, sizes))}]"


# ---- jax.nn ----------------------------------------------------------------------------------------------------------


def _activation(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def row(xp: Any, x: Any, *args: Any, **given: Any) -> Any:
            return function(xp, xp.to_wanted(x), *args, **given)

        for name in names:
            JAX.add(name, row)
        return row

    return register


_activation("nn.relu")(lambda xp, x: xp.relu(x))
_activation("nn.sigmoid", "lax.logistic", "scipy.special.expit")(lambda xp, x: xp.sigmoid(x))
_activation("nn.silu", "nn.swish")(lambda xp, x: xp.silu(x))
_activation("nn.softplus")(lambda xp, x: xp.softplus(x))
_activation("nn.gelu")(lambda xp, x, approximate=True: xp.gelu(x, approximate))
_activation("nn.elu")(lambda xp, x, alpha=1.0: xp.where(x > 0, x, alpha * xp.expm1(xp.where(x > 0, 0.0, x))))
_activation("nn.leaky_relu")(lambda xp, x, negative_slope=0.01: xp.where(x >= 0, x, negative_slope * x))
_activation("nn.relu6")(lambda xp, x: xp.minimum(xp.relu(x), 6.0))
_activation("nn.log_sigmoid")(lambda xp, x: -xp.softplus(-x))
_activation("nn.soft_sign")(lambda xp, x: x / (1.0 + xp.abs(x)))
_activation("nn.hard_tanh")(lambda xp, x: xp.maximum(xp.minimum(x, 1.0), -1.0))
_activation("lax.rsqrt")(lambda xp, x: xp.rsqrt(x))
_activation("lax.erf", "scipy.special.erf")(lambda xp, x: xp.erf(x))
_activation("nn.mish")(lambda xp, x: x * xp.tanh(xp.softplus(x)))
_activation("nn.glu")(lambda xp, x, axis=-1: _glu(xp, x, axis))


def _glu(xp: Any, x: Any, axis: int) -> Any:
    half, gate = xp.split(x, 2, axis=axis)
    return half * xp.sigmoid(gate)


def _soft(name: str) -> None:
    def row(xp: Any, x: Any, axis: Any = -1, where: Any = None, **given: Any) -> Any:
        if where is not None or not isinstance(axis, int):
            raise Untranslatable("a softmax of some items, or over several axes")
        return getattr(xp, name)(xp.to_wanted(x), axis)

    JAX.add(f"nn.{name}", row)


_soft("softmax")
_soft("log_softmax")


@JAX.row("nn.logsumexp", "scipy.special.logsumexp")
def logsumexp(xp: Any, a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, **given: Any) -> Any:
    """The logarithm of the sum of exponentials."""
    refuse_given("logsumexp", b=b, **given)
    return xp.logsumexp(xp.to_wanted(a), axes_of(axis, a.ndim), keepdims)


@JAX.row("nn.one_hot")
def one_hot(xp: Any, x: Any, num_classes: Any, *, dtype: Any = None, axis: Any = -1) -> Any:
    """Ones at the positions that integers tell, zeros for those out of range."""
    if axis not in (-1, x.ndim):
        raise Untranslatable("one_hot along another axis")
    return xp.cast(xp.expand_dims(x, -1) == xp.arange(num_classes, dtype=xp.dtype_object(x.dtype)), xp.wanted.dtype)


@JAX.row("nn.standardize")
def standardize(xp: Any, x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5,
                where: Any = None) -> Any:  # fmt: skip
    """Mean zero and variance one."""
    refuse_given("standardize", mean=mean, variance=variance, where=where)
    return xp.normalized(xp.to_wanted(x), axes_of(axis, x.ndim), epsilon)


# ---- reductions ------------------------------------------------------------------------------------------------------


def _reduced(name: str) -> None:
    def row(xp: Any, x: Any, axes: Any) -> Any:
        return xp.to_wanted(xp.call(name, x, axis=tuple(axes)))

    JAX.add(f"lax.reduce_{name}", row)


for _name in ("sum", "max", "min", "prod"):
    _reduced(_name)


_WIDE = ("sum", "mean", "var", "std")


def _without_options(name: str) -> None:
    plain = NUMPY.rows[name]

    def row(xp: Any, x: Any, axis: Any = None, *args: Any, where: Any = None, initial: Any = None, **given: Any) -> Any:
        refuse_given(name, where=where, initial=initial)
        given.pop("promote_integers", None)
        given.pop("out", None)
        if isinstance(x, Array) and x.dtype in ("float16", "bfloat16") and name in _WIDE:
            x = xp.cast(x, "float32")  # JAX adds up in more bits
            wanted, xp.wanted = xp.wanted, Spec(xp.wanted.shape, "float32")
            found, xp.wanted = plain(xp, x, axis, *args, **given), wanted
            return xp.cast(found, wanted.dtype)
        return plain(xp, x, axis, *args, **given)

    JAX.add(name, row)


for _name in "sum prod mean max min amax amin all any argmax argmin median count_nonzero var std nansum".split():
    _without_options(_name)


@JAX.row("sort", "lax.sort")
def sort(xp: Any, x: Any, axis: Any = -1, *, descending: bool = False, stable: bool = True, **given: Any) -> Any:
    """The items in order."""
    if not isinstance(x, Array) or descending:
        raise Untranslatable("a sort of several arrays, or the other way round")
    return of_numpy.sort(xp, x, given.get("dimension", axis))


@JAX.row("argsort")
def argsort(xp: Any, x: Any, axis: Any = -1, *, descending: bool = False, stable: bool = True, **given: Any) -> Any:
    """The places of the items in order."""
    if descending or not stable:
        raise Untranslatable("an order the other way round, or of any of equal items")
    return of_numpy.argsort(xp, x, axis)


@JAX.row("lax.top_k")
def top_k(xp: Any, operand: Any, k: Any, *, axis: int = -1) -> Any:
    """The largest items, the first of equal ones first, and where they are."""
    if axis not in (-1, operand.ndim - 1):
        raise Untranslatable("the largest items along another axis")
    places = xp.flip(xp.argsort(xp.flip(operand, axis=-1), axis=-1, stable=True), axis=-1)
    places = (operand.size(-1) - 1 - places)[..., :k]
    return [xp.take_along_axis(operand, places, axis=-1), xp.cast(places, xp.dtype("int32"))]


@JAX.row("lax.argmax", "lax.argmin")
def lax_arg(xp: Any, operand: Any, axis: int, index_dtype: Any) -> Any:
    """Where the largest item is."""
    raise Untranslatable("no row stands for it")


# ---- shapes ----------------------------------------------------------------------------------------------------------

JAX.add("lax.reshape", lambda xp, x, new_sizes, dimensions=None: of_numpy.reshape(xp, x, tuple(new_sizes)))
JAX.add("lax.transpose", lambda xp, x, permutation: of_numpy.transpose(xp, x, tuple(permutation)))
JAX.add("lax.expand_dims", lambda xp, x, dimensions: xp.expand_dims(x, tuple(dimensions)))
JAX.add("lax.rev", lambda xp, x, dimensions: xp.flip(x, axis=tuple(dimensions)))
JAX.add("lax.stop_gradient", lambda xp, x: xp.stop_gradient(x) if isinstance(x, Array) else x)
JAX.add("lax.concatenate", lambda xp, arrays, dimension: NUMPY.rows["concatenate"](xp, arrays, axis=dimension))
JAX.add("lax.broadcast", lambda xp, x, sizes: xp.broadcast_to(x, (*sizes, *x.shape)))


@JAX.row("lax.squeeze")
def lax_squeeze(xp: Any, x: Any, dimensions: Any) -> Any:
    """Without these axes of size one."""
    return xp.squeeze(x, axis=tuple(dimensions) if len(dimensions) != 1 else dimensions[0])


@JAX.row("lax.iota")
def iota(xp: Any, dtype: Any, size: Any) -> Any:
    """Counting from zero."""
    return xp.arange(size, dtype=xp.dtype_object(xp.wanted.dtype))


@JAX.row("lax.broadcast_in_dim")
def broadcast_in_dim(xp: Any, x: Any, shape: Any, broadcast_dimensions: Any) -> Any:
    """Axes put in their places, and repeated."""
    where = {axis: x.size(place) for place, axis in enumerate(broadcast_dimensions)}
    return xp.broadcast_to(xp.reshape(x, tuple(where.get(axis, 1) for axis in range(len(shape)))), tuple(shape))


@JAX.row("squeeze")
def squeeze(xp: Any, x: Any, axis: Any = None) -> Any:
    """Without axes of size one; which these are, is fixed."""
    if axis is None:
        axis = tuple(place for place, size in enumerate(x.spec.shape) if size == 1)
        for place in range(x.ndim):
            xp.writer.require(x.size(place) == 1, place in axis, "which axes have the size one is fixed")
    return xp.squeeze(x, axis=axis)


def _start(xp: Any, start: Any, length: Any, size: Any) -> Any:
    """A place at which ``length`` items begin, moved until they are inside."""
    if isinstance(start, Array):
        return xp.minimum(xp.maximum(xp.cast(start, xp.dtype("int32")), 0), length_of(xp, size - length))
    return start


def length_of(xp: Any, value: Any) -> Any:
    """A size as an array."""
    return xp.as_array(value, xp.dtype("int32"))


@JAX.row("lax.dynamic_slice")
def dynamic_slice(xp: Any, operand: Any, start_indices: Any, slice_sizes: Any) -> Any:
    """Items from a place on."""
    starts = start_indices if isinstance(start_indices, (tuple, list)) else [start_indices[axis] for axis in
                                                                             range(operand.ndim)]  # fmt: skip
    for axis, (start, length) in enumerate(zip(starts, slice_sizes, strict=True)):
        operand = _taken(xp, operand, start, length, axis)
    return operand


def _taken(xp: Any, operand: Any, start: Any, length: Any, axis: int) -> Any:
    size = operand.size(axis)
    if not isinstance(start, Array):
        if not isinstance(start, int) or start < 0 or not isinstance(length, int):
            raise Untranslatable("a slice from a place that is no array and not fixed")
        xp.writer.require(size >= start + length, True, "the slice is inside of the array")
        return operand[(*(slice(None),) * axis, slice(start, start + length))]
    places = _start(xp, start, length, size) + xp.arange(length, dtype=xp.dtype_object("int32"))
    return xp.take(operand, places, axis=axis)


@JAX.row("lax.dynamic_slice_in_dim")
def dynamic_slice_in_dim(xp: Any, operand: Any, start_index: Any, slice_size: Any, axis: int = 0) -> Any:
    """Items from a place on, along one axis."""
    return _taken(xp, operand, start_index, slice_size, axis % operand.ndim)


@JAX.row("lax.dynamic_index_in_dim")
def dynamic_index_in_dim(xp: Any, operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """One item along an axis."""
    found = _taken(xp, operand, index, 1, axis % operand.ndim)
    return found if keepdims else xp.squeeze(found, axis=axis % operand.ndim)


@JAX.row("lax.dynamic_update_slice")
def dynamic_update_slice(xp: Any, operand: Any, update: Any, start_indices: Any) -> Any:
    """Other items from a place on."""
    if operand.ndim != 1 and not all(isinstance(one, int) for one in start_indices):
        raise Untranslatable("other items at places along several axes")
    starts = start_indices if isinstance(start_indices, (tuple, list)) else (start_indices[0],)
    if operand.ndim == 1 and isinstance(starts[0], Array):
        first = _start(xp, starts[0], update.size(0), operand.size(0))
        return xp.at_set(operand, first + xp.arange(update.size(0), dtype=xp.dtype_object("int32")), update)
    index = tuple(slice(start, start + update.size(axis)) for axis, start in enumerate(starts))
    for axis, start in enumerate(starts):
        xp.writer.require(operand.size(axis) >= update.size(axis) + start, True, "the slice is inside of the array")
    return xp.at_set(operand, index, xp.cast(update, operand.dtype))


# ---- items -----------------------------------------------------------------------------------------------------------


def _index(xp: Any, x: Array, index: Any) -> Any:
    """An index whose integers are those that all frameworks take for integers."""
    parts = list(index) if isinstance(index, tuple) else [index]
    parts = [xp.cast(one, xp.dtype("int64")) if isinstance(one, Array) and one.dtype not in ("bool", "int64") else one
             for one in parts]  # fmt: skip
    return of_numpy.checked_index(xp, x, tuple(parts) if isinstance(index, tuple) else parts[0])


@JAX.row("operator.getitem")
def getitem(xp: Any, x: Any, index: Any) -> Any:
    """Items of an array, or of a nest."""
    if isinstance(x, Array) and not (isinstance(index, Array) and index.dtype == "bool"):
        return x[_index(xp, x, index)]
    return numpy_data.getitem(xp, x, index)


@JAX.row("take")
def take(xp: Any, x: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = None, **given: Any) -> Any:
    """Items by their numbers."""
    refuse_given("take", **given)
    if mode not in (None, "fill", "clip", "wrap"):
        raise Untranslatable(f"take with mode={mode!r}")
    if axis is None:
        x, axis = xp.reshape(x, (-1,)), 0
    if mode in ("clip", "wrap"):
        if not isinstance(indices, Array):
            raise Untranslatable(f"take with mode={mode!r} of plain numbers")
        size = xp.as_array(x.size(axis), indices.dtype)
        indices = xp.maximum(xp.minimum(indices, size - 1), 0) if mode == "clip" else indices % size
    return xp.take(x, xp.cast(indices, xp.dtype("int64")), axis=axis)


_WRITES = {"set": "set", "add": "add", "multiply": "multiply", "mul": "multiply", "min": "min", "max": "max"}


@JAX.row("clew.frameworks.jax.recorder.at_update")
def at_update(xp: Any, x: Any, index: Any, how: str, *values: Any, **options: Any) -> Any:
    """``x.at[index].set(value)`` and its kin."""
    given = {name: one for name, one in options.items() if name not in ("indices_are_sorted", "unique_indices")}
    if how == "get" and not given:
        return getitem(xp, x, index)
    if given or how not in _WRITES:
        raise Untranslatable(f"x.at[...].{how} with these options")
    (value,) = values
    value = xp.cast(value, x.dtype)
    if isinstance(index, Array) and index.dtype == "bool" and how == "set":
        return of_numpy.setitem(xp, x, index, value)
    return xp.at_set(x, _index(xp, x, index), value, _WRITES[how])


@JAX.row("ops.segment_sum")
def segment_sum(xp: Any, data: Any, segment_ids: Any, num_segments: Any = None, **given: Any) -> Any:
    """Sums of the items that have the same number."""
    given = {name: one for name, one in given.items() if name not in ("indices_are_sorted", "unique_indices")}
    if num_segments is None or given:
        raise Untranslatable("how many sums it gives depends on the data")
    start = xp.zeros((num_segments, *data.shape[1:]), dtype=xp.dtype_object(xp.wanted.dtype))
    return xp.at_set(start, xp.cast(segment_ids, xp.dtype("int64")), data, "add")


# ---- windows and algebra ---------------------------------------------------------------------------------------------


def _padding(padding: Any, sizes: Any, reach: Any, stride: Any) -> Any:
    if padding == "VALID":
        return [(0, 0)] * len(reach)
    if not isinstance(padding, str):
        return [tuple(pair) for pair in padding]
    if padding != "SAME":
        raise Untranslatable(f"the padding {padding!r}")
    found = []
    for size, wide, step in zip(sizes, reach, stride, strict=True):
        if step == 1:
            total = wide - 1
        elif isinstance(size, int):
            total = max((-(-size // step) - 1) * step + wide - size, 0)
        else:
            raise Untranslatable("padding that depends on a size, with a stride")
        found.append((total // 2, total - total // 2))
    return found


@JAX.row("lax.conv_general_dilated", "lax.conv")
@taking(
    "lhs", "rhs", "window_strides", "padding", lhs_dilation=None, rhs_dilation=None, dimension_numbers=None,
    feature_group_count=1, batch_group_count=1, precision=None, preferred_element_type=None, out_sharding=None,
)  # fmt: skip
def conv(xp: Any, given: Any) -> Any:
    """A convolution, with channels where ``dimension_numbers`` says."""
    refuse_given("conv", preferred_element_type=given.preferred_element_type, out_sharding=given.out_sharding)
    count = given.lhs.ndim - 2
    if given.batch_group_count != 1:
        raise Untranslatable("a convolution in groups of the batch")
    names = given.dimension_numbers or ("NCHWD"[: count + 2], "OIHWD"[: count + 2], "NCHWD"[: count + 2])
    if not (isinstance(names, tuple) and all(isinstance(one, str) for one in names)):
        raise Untranslatable("a convolution whose axes are not named by letters")
    space = "".join(letter for letter in names[1] if letter not in "OI")
    x, weight = _ordered(xp, given.lhs, names[0], f"NC{space}"), _ordered(xp, given.rhs, names[1], f"OI{space}")
    dilation, spread = tuple(given.rhs_dilation or (1,) * count), tuple(given.lhs_dilation or (1,) * count)
    reach = [(size - 1) * rate + 1 for size, rate in zip(weight.spec.shape[2:], dilation, strict=True)]
    if isinstance(given.padding, str) and set(spread) != {1}:
        raise Untranslatable("a convolution that spreads its input")
    for axis in range(2, weight.ndim):
        xp.writer.require(weight.size(axis) == weight.spec.shape[axis], True, "the size of a kernel is fixed")
    stride = tuple(given.window_strides)
    edges = _padding(given.padding, x.shape[2:], reach, stride)
    options = {"dilation": dilation, "groups": given.feature_group_count, "spread": spread}
    return _ordered(xp, xp.conv(x, weight, stride=stride, padding=edges, **options), f"NC{space}", names[2])


def _ordered(xp: Any, x: Any, have: str, want: str) -> Any:
    return x if have == want else xp.transpose(x, tuple(have.index(letter) for letter in want))


@JAX.row("lax.reduce_window")
def reduce_window(xp: Any, operand: Any, init_value: Any, computation: Any, window_dimensions: Any,
                  window_strides: Any = None, padding: Any = "VALID", **given: Any) -> Any:  # fmt: skip
    """The sum or maximum of each window."""
    refuse_given("reduce_window", **given)
    name = getattr(computation, "__name__", "")
    lowest = {"max": -float("inf"), "add": 0.0}.get(name)
    if lowest is None or init_value != lowest or not xp.is_floating(operand):
        raise Untranslatable("a reduction of windows other than the largest and the sum of floating point numbers")
    window, stride = tuple(window_dimensions), tuple(window_strides or (1,) * operand.ndim)
    pairs = _padding(padding, operand.shape, window, stride)
    front = next((place for place, one in enumerate(zip(window, stride, pairs, strict=True))
                  if one != (1, 1, (0, 0))), 0)  # fmt: skip
    if front not in (1, 2):
        raise Untranslatable("windows over these axes")
    return xp.windows(operand, "max" if name == "max" else "sum", window=window[front:], stride=stride[front:],
                      padding=pairs[front:], dilation=(1,) * (operand.ndim - front))  # fmt: skip


@JAX.row("linalg.eigh", "linalg.eig", "linalg.svd", "linalg.qr")
def factors(xp: Any, *args: Any, **named: Any) -> Any:
    """Factors that are unique but for signs."""
    raise Untranslatable("its factors are unique but for signs, which each library chooses as it likes")


@JAX.row("scipy.linalg.cho_factor")
def cho_factor(xp: Any, a: Any, lower: bool = False, **given: Any) -> Any:
    """A triangular factor; which half is meant goes with it."""
    factor = xp.call("linalg.cholesky", a)
    return (factor if lower else xp.matrix_transpose(factor)), lower


@JAX.row("scipy.linalg.cho_solve")
def cho_solve(xp: Any, c_and_lower: Any, b: Any, **given: Any) -> Any:
    """The solution of a linear system whose matrix has this factor."""
    factor, lower = c_and_lower
    lower = lower.value if isinstance(lower, Number) else lower
    other = xp.matrix_transpose(factor)
    first, second = (factor, other) if lower else (other, factor)
    return xp.call("linalg.solve", second, xp.call("linalg.solve", first, b))


@JAX.row("lax.dot_general", "lax.dot")
def dot_general(xp: Any, lhs: Any, rhs: Any, dimension_numbers: Any = None, **given: Any) -> Any:
    """A product over some axes, for each of others."""
    if dimension_numbers is None:
        return of_numpy.dot(xp, lhs, rhs)
    (left, right), (batch, other) = dimension_numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    one = [next(letters) for _ in range(lhs.ndim)]
    two = [next(letters) for _ in range(rhs.ndim)]
    for axes, others in ((left, right), (batch, other)):
        for axis, against in zip(axes, others, strict=True):
            two[against] = one[axis]
    out = [one[axis] for axis in batch]
    out += [one[axis] for axis in range(lhs.ndim) if axis not in (*left, *batch)]
    out += [two[axis] for axis in range(rhs.ndim) if axis not in (*right, *other)]
    return xp.einsum(f"{''.join(one)},{''.join(two)}->{''.join(out)}", *computed(xp, lhs, rhs))
