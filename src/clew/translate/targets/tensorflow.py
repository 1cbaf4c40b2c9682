"""TensorFlow as a target: ``tf`` and ``tf.math`` under NumPy's names, ``tf.experimental.numpy`` for the rest.

TensorFlow never promotes: operands are cast first wherever their dtypes differ. Convolutions and pools have channels
last there, so that axes are moved around them. The result holds ``tf.Variable``s; branches and loops stay Python's.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from clew import tree
from clew.ir.graph import Graph
from clew.translate.refusals import Untranslatable
from clew.translate.result import Holder, Translated, put
from clew.translate.targets.namespace import Namespace
from clew.translate.values import Array, Items, Number, Spec
from clew.translate.writer import mapped

tnp = tf.experimental.numpy
_REDUCTIONS = {"sum": tf.reduce_sum, "prod": tf.reduce_prod, "mean": tf.reduce_mean, "max": tf.reduce_max,
               "min": tf.reduce_min, "all": tf.reduce_all, "any": tf.reduce_any}  # fmt: skip
_NAMES: dict[str, Any] = {
    "exp": tf.exp, "log": tf.math.log, "log1p": tf.math.log1p, "expm1": tf.math.expm1, "sqrt": tf.sqrt, "abs": tf.abs,
    "sin": tf.sin, "cos": tf.cos, "tan": tf.tan, "tanh": tf.tanh, "sinh": tf.sinh, "cosh": tf.cosh, "square": tf.square,
    "floor": tf.floor, "ceil": tf.math.ceil, "round": tf.round, "sign": tf.sign, "isnan": tf.math.is_nan,
    "isinf": tf.math.is_inf, "isfinite": tf.math.is_finite, "maximum": tf.maximum, "minimum": tf.minimum,
    "logical_and": tf.logical_and, "logical_or": tf.logical_or, "logical_not": tf.logical_not,
    "logical_xor": tf.math.logical_xor, "arctan2": tf.atan2, "arcsin": tf.asin, "arccos": tf.acos, "arctan": tf.atan,
    "arcsinh": tf.asinh, "arccosh": tf.acosh, "arctanh": tf.atanh, "zeros_like": tf.zeros_like, "stack": tf.stack,
    "ones_like": tf.ones_like, "reshape": tf.reshape, "expand_dims": tf.expand_dims, "squeeze": tf.squeeze,
    "broadcast_to": tf.broadcast_to, "concatenate": tf.concat, "eye": tf.eye, "einsum": tf.einsum, "tile": tf.tile,
    "real": tf.math.real, "imag": tf.math.imag, "conj": tf.math.conj, "angle": tf.math.angle, "nextafter":
    tf.math.nextafter, "linalg.inv": tf.linalg.inv, "linalg.det": tf.linalg.det, "linalg.cholesky": tf.linalg.cholesky,
    "linalg.eigvalsh": tf.linalg.eigvalsh,
    "array": tf.constant, "remainder": tf.math.floormod, "outer": tnp.outer, "hypot": tnp.hypot,
}  # fmt: skip
_NUMPY = frozenset(
    "swapaxes moveaxis tril triu diagonal diag rot90 kron cross tensordot vstack hstack dstack log2 log10 exp2 "
    "signbit deg2rad rad2deg sinc cbrt isposinf isneginf isreal nansum count_nonzero full_like meshgrid logaddexp "
    "array_split vander ravel dot broadcast_arrays".split()
)
"""Functions of ``tf.experimental.numpy``, which takes its names and meanings from NumPy."""
_TWO = frozenset("maximum minimum arctan2 hypot logaddexp logical_and logical_or logical_xor nextafter".split())


class TensorflowNamespace(Namespace):
    """Writes graphs of TensorFlow's functions."""

    framework = "tensorflow"
    key_name = "generator"

    def function(self, name: str) -> Any:
        return _NAMES.get(name) or _REDUCTIONS.get(name) or (getattr(tnp, name, None) if name in _NUMPY else None)

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        own = getattr(type(self), f"as_{name}", None)
        if own is not None:
            return own(self, *args, **kwargs)
        if name == "linalg.solve":
            return self.call_linalg_solve(*args)
        if name.startswith("fft."):
            kind = name.removeprefix("fft.")
            return (self.call_fft_all if kind[-1] in "2n" else self.call_fft)(kind, *args, **kwargs)
        function = self.function(name)
        if function is None:
            raise Untranslatable(f"tensorflow has no row for {name}")
        if name in _TWO:
            dtype = next(one.dtype for one in args if isinstance(one, Array))
            args = tuple(one if isinstance(one, Array) else self.as_array(one, dtype) for one in args)
        return self.writer.call(function, *args, **kwargs)

    def dtype_object(self, name: str) -> Any:
        return getattr(tf, name)

    def dtype_text(self, name: str) -> str:
        return str(self.dtype_object(name))

    def infer(self, function: Any, args: Any, kwargs: Any) -> Any:
        given, named = mapped((args, kwargs), _zeros)
        try:
            return mapped(function(*given, **named), _spec)
        except tf.errors.InvalidArgumentError:  # zeros may be singular
            given, named = mapped((args, kwargs), _unit)
            return mapped(function(*given, **named), _spec)

    def convert(self, value: Any) -> Any:
        return tf.constant(value)

    def common(self, *values: Any) -> str | None:
        dtypes = {one.dtype for one in values if isinstance(one, Array)}
        return dtypes.pop() if len(dtypes) == 1 else None

    def astype(self, x: Array, dtype: str) -> Array:
        made: Array = self.writer.call(tf.cast, x, self.dtype_object(dtype))
        return made

    def stop_gradient(self, x: Array) -> Array:
        made: Array = self.writer.call(tf.stop_gradient, x)
        made.differentiable = False
        return made

    def concrete(self, x: Array) -> Any:
        return self.writer.node("call_method", "numpy", (x,))

    def argwhere(self, x: Array) -> Array:
        return self.sized_by_data(tf.where, x if x.dtype == "bool" else x != 0)  # type: ignore[no-any-return]

    def masked(self, x: Array, mask: Array) -> Array:
        return self.sized_by_data(tf.boolean_mask, x, mask)  # type: ignore[no-any-return]

    def masked_items(self, x: Array, index: tuple[Any, ...]) -> Array:
        axis = next(place for place, one in enumerate(index) if isinstance(one, Array))
        if any(one != slice(None) for place, one in enumerate(index) if place != axis):
            raise Untranslatable("a mask beside other places than whole axes")
        return self.sized_by_data(tf.boolean_mask, x, index[axis], axis=axis)  # type: ignore[no-any-return]

    def put_masked(self, x: Array, mask: Array, values: Array) -> Array:
        places = self.writer.node("call_function", tf.where, (mask,))
        node = self.writer.node("call_function", tf.tensor_scatter_nd_update, (x, places, values))
        made: Array = self.writer.wrap(node, x.spec, True)
        return made

    def repeated(self, x: Array, counts: Any, axis: Any) -> Array:
        return self.sized_by_data(tf.repeat, x, counts, axis=axis)  # type: ignore[no-any-return]

    def parted(self, x: Array, sizes: Number, axis: int) -> Items:
        return self.items(self.writer.node("call_function", tf.split, (x, sizes), {"axis": axis}), x, sizes, axis)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        dtype = next((one.dtype for one in (x, y) if isinstance(one, Array)), None)
        given = (one if isinstance(one, Array) or dtype is None else self.as_array(one, dtype) for one in (x, y))
        return self.writer.call(tf.where, condition, *given)

    def as_array(self, value: Any, dtype: Any = None) -> Any:
        if isinstance(value, Array):
            return value if dtype is None else self.cast(value, _name(dtype))
        return self.writer.call(
            tf.constant, value, **({} if dtype is None else {"dtype": self.dtype_object(_name(dtype))})
        )

    as_asarray = as_array

    def matmul(self, x: Array, y: Array) -> Array:
        if x.ndim == 1 or y.ndim == 1:
            return self._made(tnp.matmul, x, y)
        return super().matmul(x, y)

    def matrix_transpose(self, x: Array) -> Array:
        return self._made(tf.linalg.matrix_transpose, x)

    def _made(self, function: Any, x: Any, *args: Any, **kwargs: Any) -> Array:
        made: Array = self.writer.call(function, x, *args, **kwargs)
        return made

    # ---- items -------------------------------------------------------------------------------------------------------

    def getitem(self, x: Array, index: Any) -> Any:
        parts = list(index) if isinstance(index, tuple) else [index]
        places = [place for place, part in enumerate(parts) if isinstance(part, Array)]
        if not places:
            return super().getitem(x, index)
        if Ellipsis in [part for part in parts if part is Ellipsis] or None in [part for part in parts if part is None]:
            raise Untranslatable("items by an array of indices beside new axes")
        whole = slice(None)
        if len(places) == 1:
            axis = places[0]
            if any(not isinstance(part, slice) for place, part in enumerate(parts) if place != axis):
                raise Untranslatable("items by an array of indices and by numbers")
            others = [whole if place == axis else part for place, part in enumerate(parts)]
            x = (
                x
                if all(isinstance(one, slice) and one == whole for one in others)
                else super().getitem(x, tuple(others))
            )
            return self.as_take(x, parts[axis], axis)
        if places != list(range(len(parts))):
            raise Untranslatable("items by several arrays of indices and by slices")
        rows = [self._counted(part, x.size(axis)) for axis, part in enumerate(parts)]
        rows = list(self.writer.call(tnp.broadcast_arrays, *rows))
        return self.writer.call(tf.gather_nd, x, self._made(tf.stack, rows, axis=-1))

    def _counted(self, index: Array, size: Any) -> Array:
        """Indices counted from the front."""
        if not index.dtype.startswith("int"):
            return index
        index = self.cast(index, "int64")
        return self.where(index < 0, index + size, index)

    def as_take(self, x: Array, index: Any, axis: Any = None) -> Any:
        if axis is None:
            x, axis = self.reshape(x, (-1,)), 0
        index = index if isinstance(index, Array) else self.as_array(index, "int64")
        return self.writer.call(tf.gather, x, self._counted(index, x.size(axis)), axis=axis)

    def as_take_along_axis(self, x: Array, index: Array, axis: Any) -> Any:
        return self.writer.call(tnp.take_along_axis, x, index, axis)

    def at_set(self, x: Array, index: Any, value: Any, how: str = "set") -> Array:
        functions = {"set": tf.tensor_scatter_nd_update, "add": tf.tensor_scatter_nd_add,
                     "max": tf.tensor_scatter_nd_max, "min": tf.tensor_scatter_nd_min}  # fmt: skip
        if how not in functions:
            raise Untranslatable(f"tensorflow has no {how} at items")
        total: Any = 1
        for one in x.shape:
            total = one * total
        numbers = self.reshape(self._made(tf.range, total, dtype=tf.int64), x.shape)
        places = self.getitem(numbers, index)
        value = self.broadcast_to(self.as_array(value, x.dtype), places.shape)
        flat = self._made(
            functions[how], self.reshape(x, (-1,)), self.reshape(places, (-1, 1)), self.reshape(value, (-1,))
        )
        return self.reshape(flat, x.shape)  # type: ignore[no-any-return]

    # ---- NumPy's functions in TensorFlow's words ---------------------------------------------------------------------

    def as_transpose(self, x: Array, axes: Any = None) -> Any:
        return self.writer.call(tf.transpose, x, *(() if axes is None else (tuple(axes),)))

    def as_flip(self, x: Array, axis: Any = None) -> Any:
        axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
        return self.writer.call(tf.reverse, x, [one % x.ndim for one in axes])

    def as_roll(self, x: Array, shift: Any, axis: Any = None) -> Any:
        if axis is None:
            return self.reshape(self.writer.call(tf.roll, self.reshape(x, (-1,)), shift, 0), x.shape)
        return self.writer.call(tf.roll, x, shift, axis)

    def as_arange(self, *bounds: Any, dtype: Any = None) -> Any:
        return self.writer.call(tf.range, *bounds, **({} if dtype is None else {"dtype": dtype}))

    def as_linspace(self, start: Any, stop: Any, num: Any, dtype: Any = None) -> Any:
        return self.writer.call(tnp.linspace, start, stop, num, dtype=dtype)

    def as_zeros(self, shape: Any, dtype: Any) -> Any:
        return self.writer.call(tf.zeros, shape, dtype)

    def as_ones(self, shape: Any, dtype: Any) -> Any:
        return self.writer.call(tf.ones, shape, dtype)

    def as_full(self, shape: Any, value: Any, dtype: Any) -> Any:
        return self.writer.call(tf.fill, shape, self.as_array(value, _name(dtype)))

    def as_eye(self, n: Any, m: Any = None, dtype: Any = None) -> Any:
        return self.writer.call(tf.eye, n, *(() if m is None else (m,)), dtype=dtype)

    def as_zeros_like(self, x: Array, dtype: Any = None) -> Any:
        return self.writer.call(tf.zeros_like, x, **({} if dtype is None else {"dtype": dtype}))

    def as_split(self, x: Array, parts: Any, axis: int = 0) -> Any:
        if isinstance(parts, int):
            return list(self.writer.call(tf.split, x, parts, axis=axis))
        ends = [0, *parts, x.size(axis)]
        cut = (slice(None),) * (axis % x.ndim)
        return [x[(*cut, slice(low, high))] for low, high in itertools.pairwise(ends)]

    def as_pad(self, x: Array, widths: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
        if mode in ("edge", "wrap"):
            return self._padded(x, widths, mode)
        if mode not in ("constant", "reflect"):
            raise Untranslatable(f"tensorflow has no padding by {mode}")
        value = {"constant_values": constant_values} if mode == "constant" and constant_values else {}
        return self.writer.call(tf.pad, x, self._pairs(x, widths), mode=mode.upper(), **value)

    def as_repeat(self, x: Array, count: Any, axis: Any = None, **given: Any) -> Any:
        return self.writer.call(tf.repeat, x, count, axis=axis)

    def as_clip(self, x: Array, low: Any, high: Any) -> Any:
        return self.writer.call(tf.clip_by_value, x, low, high)

    def as_var(self, x: Array, axis: Any = None, keepdims: bool = False, ddof: int = 0) -> Any:
        options = {**({} if axis is None else {"axis": axis}), "keepdims": keepdims}
        found = self.writer.call(tf.math.reduce_variance, x, **options)
        if not ddof:
            return found
        count: Any = 1
        for one in range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,):
            count = x.size(one) * count
        return found * (count / (count - ddof))

    def as_std(self, x: Array, axis: Any = None, keepdims: bool = False, ddof: int = 0) -> Any:
        return self.sqrt(self.as_var(x, axis, keepdims, ddof))

    def as_cumsum(self, x: Array, axis: int = 0) -> Any:
        return self.writer.call(tf.cumsum, x, axis=axis)

    def as_cumprod(self, x: Array, axis: int = 0) -> Any:
        return self.writer.call(tf.math.cumprod, x, axis=axis)

    def as_trunc(self, x: Array) -> Any:
        return self.where(x < 0, self.call("ceil", x), self.floor(x))

    def as_argmax(self, x: Array, axis: Any = None, keepdims: bool = False, largest: bool = True) -> Any:
        """The first of the largest items; nan counts as the largest."""
        whole = axis is None
        flat = self.reshape(x, (-1,)) if whole else x
        axis = 0 if whole else axis
        best = self.call("max" if largest else "min", flat, axis=axis, keepdims=True)
        hit = self.astype(flat == best, "int32")
        if self.is_floating(x):
            hit = self.where(self.isnan(flat), 2, hit)
        found = self.writer.call(tf.argmax, hit, axis=axis)
        return self.expand_dims(found, axis) if keepdims and not whole else found

    def as_argmin(self, x: Array, axis: Any = None, keepdims: bool = False) -> Any:
        return self.as_argmax(x, axis, keepdims, False)

    def as_argsort(self, x: Array, axis: int = -1, stable: Any = None) -> Any:
        """Equal items stay in order, and nan comes last."""
        x = self.astype(x, "int32") if x.dtype == "bool" else x
        if not self.is_floating(x):
            return self._made(tf.argsort, x, axis=axis, stable=True)
        lost = self.isnan(x)
        first = self._made(tf.argsort, self.where(lost, 0.0, x), axis=axis, stable=True)
        late = self.as_take_along_axis(self.astype(lost, "int32"), first, axis)
        return self.as_take_along_axis(first, self._made(tf.argsort, late, axis=axis, stable=True), axis)

    # ---- our own functions -------------------------------------------------------------------------------------------

    def softmax(self, x: Array, axis: int) -> Array:
        return self._made(tf.nn.softmax, x, axis=axis)

    def log_softmax(self, x: Array, axis: int) -> Array:
        return self._made(tf.nn.log_softmax, x, axis=axis)

    def sigmoid(self, x: Array) -> Array:
        return self._made(tf.sigmoid, x)

    def relu(self, x: Array) -> Array:
        return self._made(tf.nn.relu, x)

    def silu(self, x: Array) -> Array:
        return self._made(tf.nn.silu, x)

    def erf(self, x: Array) -> Array:
        return self._made(tf.math.erf, x)

    def rsqrt(self, x: Array) -> Array:
        return self._made(tf.math.rsqrt, x)

    def gelu(self, x: Array, approximate: bool) -> Array:
        return self._made(tf.nn.gelu, x, approximate=approximate)

    def softplus(self, x: Array) -> Array:
        return self._made(tf.nn.softplus, x)

    def logsumexp(self, x: Array, axis: Any, keepdims: bool) -> Array:
        return self._made(tf.reduce_logsumexp, x, axis=axis, keepdims=keepdims)

    def one_hot(self, x: Array, classes: Any, dtype: str) -> Array:
        return self._made(tf.one_hot, x, classes, dtype=self.dtype_object(dtype))

    def conv(self, x: Array, weight: Array, **given: Any) -> Array:
        count, spread = x.ndim - 2, tuple(given.get("spread", (1,)))
        x = self._last(x)
        if set(spread) != {1}:
            x = self._spread_out(x, spread)
        x = self._edges(x, given["padding"], 0)
        kernel = self.as_transpose(weight, (*range(2, 2 + count), 1, 0))
        parts = [(x, kernel)]
        if given["groups"] != 1:
            parts = list(zip(self.as_split(x, given["groups"], -1), self.as_split(kernel, given["groups"], -1),
                             strict=True))  # fmt: skip
        options = {"strides": list(given["stride"]), "padding": "VALID"}
        options |= {"dilations": list(given["dilation"])} if set(given["dilation"]) != {1} else {}
        found = [self._made(tf.nn.convolution, one, filters, **options) for one, filters in parts]
        return self._first(found[0] if len(found) == 1 else self.concatenate(found, axis=-1))

    def windows(self, x: Array, how: str, **given: Any) -> Array:
        lowest = 0 if how == "sum" else x.dtype and -float("inf")
        if not self.is_floating(x):
            raise Untranslatable("a pool of integers")
        count = len(given["window"])
        front = x.ndim - count
        if front not in (1, 2):
            raise Untranslatable("a pool over these axes")
        x = self.expand_dims(x, 0) if front == 1 else x
        seen = self._edges(self._last(x), given["padding"], lowest)
        options = {"dilations": list(given["dilation"])} if set(given["dilation"]) != {1} else {}
        found = self._made(tf.nn.pool, seen, list(given["window"]), "MAX" if how == "max" else "AVG",
                           strides=list(given["stride"]), padding="VALID", **options)  # fmt: skip
        found = found * float(math.prod(given["window"])) if how == "sum" else found
        found = self._first(found)
        return self.squeeze(found, axis=0) if front == 1 else found  # type: ignore[no-any-return]

    def _last(self, x: Array) -> Array:
        return self.as_transpose(x, (0, *range(2, x.ndim), 1))  # type: ignore[no-any-return]

    def _first(self, x: Array) -> Array:
        return self.as_transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))  # type: ignore[no-any-return]

    def _edges(self, x: Array, pairs: Any, value: Any) -> Array:
        """More items around the axes between the first and the last; negative numbers cut."""
        cut = [slice(-low if low < 0 else None, high if high < 0 else None) for low, high in pairs]
        x = x if all(one == slice(None) for one in cut) else x[(slice(None), *cut)]
        widths = [(0, 0), *((max(low, 0), max(high, 0)) for low, high in pairs), (0, 0)]
        return self.as_pad(x, widths, constant_values=value) if any(map(any, widths)) else x  # type: ignore[no-any-return]

    def _spread_out(self, x: Array, steps: tuple[int, ...]) -> Array:
        """Zeros between the items of the axes between the first and the last."""
        for axis, step in enumerate(steps, 1):
            if step != 1:
                sizes = x.shape
                wide = self.expand_dims(x, axis + 1)
                widths = [(0, step - 1) if one == axis + 1 else (0, 0) for one in range(wide.ndim)]
                wide = self.reshape(self.as_pad(wide, widths), (*sizes[:axis], sizes[axis] * step, *sizes[axis + 1 :]))
                x = wide[(*(slice(None),) * axis, slice(None, (sizes[axis] - 1) * step + 1))]
        return x

    def draw(self, kind: str, shape: tuple[Any, ...], dtype: str, **given: Any) -> Array:
        generator = self.writer.next_key()
        floats = dtype if dtype.startswith(("float", "bfloat")) else "float32"
        if kind == "bernoulli":
            found = self._drawn(generator, "uniform", shape, "float32")
            return found < given["p"]  # type: ignore[no-any-return]
        if kind == "randint":
            return self._drawn(generator, "uniform", shape, dtype, minval=given["low"], maxval=given["high"])
        return self._drawn(generator, kind, shape, floats)

    # ---- NumPy's functions in TensorFlow's words, further ones -------------------------------------------------------

    def complex_of(self, real: Array, imag: Array) -> Array:
        made: Array = self.writer.call(tf.complex, real, imag)
        return made

    def fourier(self, name: str, x: Array, **options: Any) -> Array:
        axis = options.pop("axis", options.pop("axes", None))
        axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
        if not isinstance(axis, int) or options.pop("norm", None) not in (None, "backward"):
            raise Untranslatable(f"tensorflow has no {name} over several axes, or of another scale")
        function = getattr(tf.signal, name, None)
        length = options.pop("n", None)
        if function is None or (length is not None and name not in ("rfft", "irfft")):
            raise Untranslatable(f"tensorflow has no such {name}")
        given = {} if length is None else {"fft_length": [length]}
        if name in ("fft", "ifft") and not x.dtype.startswith("complex"):
            x = self.astype(x, "complex128" if x.dtype == "float64" else "complex64")
        last = axis % x.ndim == x.ndim - 1
        found = self.writer.call(function, x if last else self.moveaxis(x, axis, -1), **given)
        return found if last else self.moveaxis(found, -1, axis)  # type: ignore[no-any-return]

    def special(self, name: str, x: Array) -> Array:
        function = getattr(tf.math, {"gammaln": "lgamma"}.get(name, name), None)
        if function is None:
            raise Untranslatable(f"tensorflow has no {name}")
        made: Array = self.writer.call(function, x)
        return made

    def nonzero_places(self, x: Array, count: int) -> tuple[Array, ...]:
        node = self.writer.node("call_function", tf.where, (x,))
        found = self.writer.wrap(node, Spec((count, x.ndim), "int64"), False)
        return tuple(found[:, axis] for axis in range(x.ndim))

    def unique_counts(self, x: Array) -> tuple[Array, Array]:
        node = self.writer.node("call_function", tf.unique_with_counts, (self.as_sort(x), tf.int64))
        values, _, counts = self.writer.wrap(node, (Spec((2,), x.dtype), *(Spec((2,), "int64"),) * 2), False)
        return values, counts

    def counts_of(self, x: Array, weights: Any, least: Any, wanted: Any) -> Array:
        given = {"dtype": tf.int32} if weights is None else {"weights": weights}
        node = self.writer.node(
            "call_function", tf.math.bincount, (self.cast(x, "int32"),), {**given, "minlength": least}
        )
        made: Array = self.writer.wrap(node, Spec(wanted.shape, "int32" if weights is None else weights.dtype), False)
        return made

    def tape(self) -> Any:
        return self.writer.node("call_function", tf.GradientTape, ())

    def as_signbit(self, x: Array) -> Any:
        if not self.is_floating(x):
            return x < 0
        whole = {"float32": tf.int32, "float64": tf.int64, "float16": tf.int16, "bfloat16": tf.int16}[x.dtype]
        return self.writer.call(tf.bitcast, x, whole) < 0

    def as_diff(self, x: Array, n: int = 1, axis: int = -1) -> Any:
        front = (slice(None),) * (axis % x.ndim)
        for _ in range(n):
            x = x[(*front, slice(1, None))] - x[(*front, slice(None, -1))]
        return x

    def operate(self, function: Any, *args: Any) -> Any:
        if function is operator.floordiv and isinstance(args[0], Array) and self.is_floating(args[0]):
            found = super().operate(function, *args)
            return self.where(self.isinf(args[0]), math.nan, found)
        bits = {operator.lshift: tf.bitwise.left_shift, operator.rshift: tf.bitwise.right_shift}
        if function not in bits:
            return super().operate(function, *args)
        dtype = next(one.dtype for one in args if isinstance(one, Array))
        return self.writer.call(bits[function], *(self.as_array(one, dtype) for one in args))

    def _pairs(self, x: Array, widths: Any) -> list[list[Any]]:
        """How many items are added before and after, for each axis."""
        if not isinstance(widths, (tuple, list)):
            return [[widths, widths]] * x.ndim
        if len(widths) == 2 and not isinstance(widths[0], (tuple, list)):
            return [list(widths)] * x.ndim
        pairs = [list(pair) if isinstance(pair, (tuple, list)) else [pair, pair] for pair in widths]
        return pairs * x.ndim if len(pairs) == 1 else pairs

    def _padded(self, x: Array, widths: Any, mode: str) -> Array:
        """Items of the array itself at the ends."""
        for axis, (low, high) in enumerate(self._pairs(x, widths)):
            if low == 0 and high == 0:
                continue
            size = x.size(axis)
            places = self._made(tf.range, -low, size + high)
            places = places % size if mode == "wrap" else self._made(tf.clip_by_value, places, 0, size - 1)
            x = self._made(tf.gather, x, places, axis=axis)
        return x

    def as_concatenate(self, arrays: Any, axis: Any = 0) -> Any:
        return self.writer.call(tf.concat, arrays, axis=axis)

    def as_tril(self, x: Array, k: Any = 0) -> Any:
        return self._triangle(tnp.tril, x, k)

    def as_triu(self, x: Array, k: Any = 0) -> Any:
        return self._triangle(tnp.triu, x, k)

    def _triangle(self, function: Any, x: Array, k: Any) -> Any:
        if x.dtype != "bool":
            return self.writer.call(function, x, k)
        return self.astype(self._made(function, self.astype(x, "int32"), k), "bool")

    def as_sort(self, x: Array, axis: int = -1, stable: Any = None) -> Any:
        return self.as_take_along_axis(x, self.as_argsort(x, axis), axis)

    def as_searchsorted(self, x: Array, values: Any, side: str = "left") -> Any:
        values = values if isinstance(values, Array) else self.as_array(values, x.dtype)
        if values.dtype != x.dtype:
            raise Untranslatable("places in an order of another dtype")
        flat = self.reshape(values, (-1,))
        return self.reshape(self.writer.call(tf.searchsorted, x, flat, side=side), values.shape)

    def call_linalg_solve(self, a: Array, b: Array) -> Any:
        """The solution of a linear system; a vector is a matrix of one column."""
        if b.ndim != 1:
            return self.writer.call(tf.linalg.solve, a, b)
        found = self.writer.call(tf.linalg.solve, a, self.expand_dims(b, -1))
        return self.squeeze(found, axis=-1)

    def call_fft(self, kind: str, x: Array, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        """A Fourier transform along the last axis."""
        if norm not in (None, "backward") or axis not in (-1, x.ndim - 1):
            raise Untranslatable("a Fourier transform of another norm, or along another axis")
        if kind in ("rfft", "irfft"):
            length = {} if n is None else {"fft_length": [n]}
            return self.writer.call(getattr(tf.signal, kind), x, **length)
        if n is not None:
            raise Untranslatable("a Fourier transform of another length")
        wide = "complex128" if x.dtype in ("float64", "complex128") else "complex64"
        return self.writer.call(getattr(tf.signal, kind), self.cast(x, wide))

    def call_fft_all(self, kind: str, x: Array, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        """A Fourier transform along the last two axes."""
        if s is not None or norm is not None or axes not in (None, (-2, -1)) or (kind.endswith("n") and x.ndim != 2):
            raise Untranslatable("a Fourier transform of another size, or along other axes")
        kind = kind.replace("n", "2d").replace("fft2", "fft2d").replace("2dd", "2d")
        if kind.startswith(("rfft", "irfft")):
            return self.writer.call(getattr(tf.signal, kind), x)
        wide = "complex128" if x.dtype in ("float64", "complex128") else "complex64"
        return self.writer.call(getattr(tf.signal, kind), self.cast(x, wide))

    def _drawn(self, generator: Any, name: str, shape: Any, dtype: str, **given: Any) -> Any:
        node = self.writer.node("call_method", name, (generator, shape), {**given, "dtype": self.dtype_object(dtype)})
        return self.writer.wrap(node, Spec(tuple(mapped(shape, _example)), dtype), False)


def _example(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, Number) else leaf


def _name(dtype: Any) -> str:
    return dtype if isinstance(dtype, str) else str(tf.as_dtype(dtype).name)


def _zeros(leaf: Any) -> Any:
    return tf.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, Spec) else leaf


def _unit(leaf: Any) -> Any:
    """Unit matrices, where functions refuse zeros."""
    if not isinstance(leaf, Spec) or len(leaf.shape) < 2 or leaf.dtype == "bool":
        return _zeros(leaf)
    return tf.eye(*leaf.shape[-2:], batch_shape=leaf.shape[:-2], dtype=leaf.dtype)


def _spec(found: Any) -> Any:
    if isinstance(found, (tf.Tensor, tf.Variable)):
        return Spec(tuple(found.shape), found.dtype.name)
    return found


class VariableHolder(Holder, tf.Module):
    """Attributes by name; what is set where a variable stands is assigned to it."""

    def __setattr__(self, name: str, value: Any) -> None:
        held = vars(self).get(name)
        if isinstance(held, tf.Variable) and not isinstance(value, tf.Variable):
            held.assign(value)
        else:
            super().__setattr__(name, value)


class TensorflowTranslated(Translated):
    """A translated program of TensorFlow, whose weights are variables."""

    framework = "tensorflow"
    key_example = "generator=tf.random.Generator.from_seed(0)"

    def slopes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The gradients of the sum of all float results for the weights, by their names."""
        with tf.GradientTape() as tape:
            leaves = [leaf for leaf in tree.flatten(self(*args, **kwargs))[0] if isinstance(leaf, tf.Tensor)]
            floats = [leaf for leaf in leaves if leaf.dtype.is_floating]
            total = tf.add_n([tf.reduce_sum(tf.cast(leaf, tf.float32)) for leaf in floats])
        slopes = tape.gradient(total, list(self.params.values()))
        dense = (tf.convert_to_tensor(one) if one is not None else None for one in slopes)
        return {path: one for path, one in zip(self.params, dense, strict=True) if one is not None}

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The weights, for an optimizer or a ``tf.GradientTape``."""
        return tuple(self.params.values())

    @property
    def variables(self) -> tuple[Any, ...]:
        """All variables."""
        return (*self.params.values(), *(one for one in self.state.values() if isinstance(one, tf.Variable)))


def make(graph: Graph, params: dict[str, Any], state: dict[str, Any], name: str, kinds: Iterable[type]) -> Any:
    """The program of a translated graph."""
    made = TensorflowTranslated(VariableHolder(), graph, name)
    made._params, made._state = tuple(params), tuple(state)
    for path, value in (params | state).items():
        is_array = isinstance(value, tf.Tensor)
        put(made.root, path, tf.Variable(value, trainable=path in params, name=None) if is_array else value)
    return made


NAMESPACE = TensorflowNamespace
