"""NumPy as a target: its own functions; convolutions and pools are sliding windows, as people write them with it.

Nothing is compiled, so branches and loops stay Python's, and sizes and items are plain numbers. Dtypes and shapes of
results are found by calling NumPy on zeros. The error function is SciPy's, where that is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import operator
from collections.abc import Iterable
from typing import Any

import numpy

from clew.ir.graph import Graph
from clew.translate.refusals import Untranslatable
from clew.translate.result import Translated
from clew.translate.targets.namespace import Namespace
from clew.translate.values import Array, Number, Spec
from clew.translate.writer import mapped

_DTYPES = frozenset(
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
)
_AT = {"add": numpy.add.at, "multiply": numpy.multiply.at, "max": numpy.maximum.at, "min": numpy.minimum.at}

_SCIPY = importlib.import_module("scipy.special") if importlib.util.find_spec("scipy") else None


class NumpyNamespace(Namespace):
    """Writes graphs of NumPy's functions."""

    framework = "numpy"
    library = numpy
    key_name = "rng"
    differentiates = False

    def dtype(self, name: str) -> str:
        if name not in _DTYPES:
            raise Untranslatable(f"it computes in {name}, and numpy has no such dtype")
        return name

    def dtype_object(self, name: str) -> Any:
        return numpy.bool_ if name == "bool" else getattr(numpy, self.dtype(name))

    def infer(self, function: Any, args: Any, kwargs: Any) -> Any:
        with numpy.errstate(all="ignore"):
            try:
                given, named = mapped((args, kwargs), _zeros)
                return mapped(function(*given, **named), _spec)
            except numpy.linalg.LinAlgError:  # zeros are singular
                given, named = mapped((args, kwargs), _unit)
                return mapped(function(*given, **named), _spec)

    def convert(self, value: Any) -> Any:
        array = numpy.asarray(value)
        self.dtype(array.dtype.name)
        return array.copy()

    def common(self, *values: Any) -> str | None:
        return str(numpy.result_type(*(_known(one) for one in values if one is not None)).name)

    def astype(self, x: Array, dtype: str) -> Array:
        made: Array = self.writer.method("astype", x, self.dtype_object(dtype))
        return made

    def at_set(self, x: Array, index: Any, value: Any, how: str = "set") -> Array:
        made: Array = self.writer.method("copy", x)
        self.inferred(_set_items if how == "set" else _AT[how], (x, index, value), {})
        function = operator.setitem if how == "set" else _AT[how]
        self.writer.node("call_function", function, (made, index, value))
        return made

    def put_masked(self, x: Array, mask: Array, values: Array) -> Array:
        made: Array = self.writer.method("copy", x)
        self.writer.node("call_function", operator.setitem, (made, mask, values))
        return made

    def matmul(self, x: Array, y: Array) -> Array:
        made: Array = self.writer.call(operator.matmul, x, y)
        return made

    # ---- our own functions -------------------------------------------------------------------------------------------

    def complex_of(self, real: Array, imag: Array) -> Array:
        pairs = self.stack([real, imag], axis=-1)
        dtype = "complex64" if real.dtype == "float32" else "complex128"
        return self.writer.method("view", pairs, self.dtype_object(dtype))[..., 0]  # type: ignore[no-any-return]

    def erf(self, x: Array) -> Array:
        return self.special("erf", x)

    def softplus(self, x: Array) -> Array:
        made: Array = self.logaddexp(x, 0)
        return made

    def one_hot(self, x: Array, classes: Any, dtype: str) -> Array:
        return self.cast(self.expand_dims(x, -1) == self.arange(classes), dtype)

    def conv(self, x: Array, weight: Array, **given: Any) -> Array:
        count, spread = x.ndim - 2, given.get("spread", (1,))
        if set(spread) != {1}:
            x = self._spread_out(x, tuple(spread))
        x = self._padded(x, given["padding"], 0)
        seen = self._windows(x, weight.spec.shape[2:], given["stride"], given["dilation"])
        groups, letters = given["groups"], "xyz"[:count]
        if groups == 1:
            axes = [[1, *range(2 + count, 2 + 2 * count)], [1, *range(2, 2 + count)]]
            found: Array = self.moveaxis(self.tensordot(seen, weight, axes=axes), -1, 1)
            return found
        batch, _, *rest = seen.shape
        outputs, inputs, *kernel = weight.spec.shape
        parts = self.reshape(seen, (batch, groups, inputs, *rest))
        filters = self.reshape(weight, (groups, outputs // groups, inputs, *kernel))
        inner = letters.upper()
        found = self.einsum(f"ngc{letters}{inner},goc{inner}->ngo{letters}", parts, filters, optimize=True)
        return self.reshape(found, (batch, outputs, *rest[:count]))

    def windows(self, x: Array, how: str, **given: Any) -> Array:
        lowest: Any = 0
        if how == "max":
            lowest = -float("inf") if self.is_floating(x) else int(numpy.iinfo(x.dtype).min)
        x = self._padded(x, given["padding"], lowest)
        seen = self._windows(x, given["window"], given["stride"], given["dilation"])
        found: Array = self.call(how, seen, axis=tuple(range(-len(given["window"]), 0)))
        return found

    def running(self, x: Array, how: str, axis: int) -> Array:
        function = numpy.maximum.accumulate if how == "max" else numpy.minimum.accumulate
        made: Array = self.writer.call(function, x, axis=axis)
        return made

    def _padded(self, x: Array, pairs: Any, value: Any) -> Array:
        if not any(isinstance(one, Number) or one for pair in pairs for one in pair):
            return x
        cut = [slice(-low if low < 0 else None, high if high < 0 else None) for low, high in pairs]
        x = x if all(one == slice(None) for one in cut) else x[(..., *cut)]
        widths = [(0, 0)] * (x.ndim - len(pairs)) + [(max(low, 0), max(high, 0)) for low, high in pairs]
        found: Array = self.pad(x, widths, constant_values=value) if value else self.pad(x, widths)
        return found

    def _windows(self, x: Array, window: Any, stride: Any, dilation: Any) -> Array:
        """Each window as further axes at the end."""
        count = len(window)
        reach = tuple(rate * (size - 1) + 1 for rate, size in zip(dilation, window, strict=True))
        axes = tuple(range(x.ndim - count, x.ndim))
        seen = self.writer.call(numpy.lib.stride_tricks.sliding_window_view, x, reach, axis=axes)
        if {*stride, *dilation} == {1}:
            return seen  # type: ignore[no-any-return]
        steps = [slice(None, None, one if one != 1 else None) for one in (*stride, *dilation)]
        found: Array = seen[(..., *steps)]
        return found

    def _spread_out(self, x: Array, steps: tuple[int, ...]) -> Array:
        """Zeros between the items."""
        *front, first = x.shape[:2]
        sizes = [(one - 1) * step + 1 for one, step in zip(x.shape[2:], steps, strict=True)]
        wide = self.zeros((*front, first, *sizes), dtype=self.dtype_object(x.dtype))
        places = (..., *(slice(None, None, step) for step in steps))
        return self.at_set(wide, places, x)

    def special(self, name: str, x: Array) -> Array:
        if _SCIPY is None:
            raise Untranslatable(f"numpy has no {name}; SciPy has one: pip install scipy")
        made: Array = self.writer.call(getattr(_SCIPY, name), x)
        return made

    def erfc(self, x: Array) -> Array:
        return self.special("erfc", x)

    # ---- random numbers ----------------------------------------------------------------------------------------------

    def draw(self, kind: str, shape: tuple[Any, ...], dtype: str, **given: Any) -> Array:
        rng = self.writer.next_key()
        if kind == "bernoulli":
            found = self._drawn(rng, "random", (shape,), "float64", shape)
            return found < given["p"]
        if kind == "randint":
            return self._drawn(rng, "integers", (given["low"], given["high"], shape), dtype, shape)
        narrow = dtype if dtype in ("float32", "float64") else "float32"
        found = self._drawn(rng, {"uniform": "random", "normal": "standard_normal"}[kind], (shape,), narrow, shape)
        return self.cast(found, dtype)

    def _drawn(self, rng: Any, name: str, args: Any, dtype: str, shape: Any) -> Any:
        options = {} if dtype == "float64" else {"dtype": self.dtype_object(dtype)}
        node = self.writer.node("call_method", name, (rng, *args), options)
        return self.writer.wrap(node, Spec(tuple(mapped(shape, _example)), dtype), False)

    def split_key(self, key: Any, number: int) -> Any:
        return key


def _example(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, Number) else leaf


def _zeros(leaf: Any) -> Any:
    return numpy.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, Spec) else leaf


def _unit(leaf: Any) -> Any:
    """Unit matrices, where functions refuse zeros."""
    if not isinstance(leaf, Spec) or len(leaf.shape) < 2:
        return _zeros(leaf)
    zeros = _zeros(leaf)
    return zeros + numpy.eye(*zeros.shape[-2:], dtype=zeros.dtype)


def _spec(found: Any) -> Any:
    if not isinstance(found, (numpy.ndarray, numpy.generic)):
        return found
    return Spec(tuple(found.shape), found.dtype.name)


def _known(value: Any) -> Any:
    if isinstance(value, Array):
        return numpy.dtype(value.dtype)
    return value.value if isinstance(value, Number) else value


def _set_items(x: Any, index: Any, value: Any) -> Any:
    x[index] = value


class NumpyTranslated(Translated):
    """A translated program of NumPy."""

    framework = "numpy"
    key_example = "rng=numpy.random.default_rng(0)"


def make(graph: Graph, params: dict[str, Any], state: dict[str, Any], name: str, kinds: Iterable[type]) -> Any:
    """The program of a translated graph."""
    return NumpyTranslated.of(graph, params, state, name)


NAMESPACE = NumpyNamespace
