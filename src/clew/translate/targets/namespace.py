"""The array namespace that rows are written against: NumPy's functions, and a documented list of ours.

A row calls ``xp.matmul(x, y)``; a target makes a node of that with its own function. What NumPy's API does not have (a
convolution, a pool, attention, gather and scatter) is a method here, written with the rest of the namespace where that
is possible; a target overrides it with its own call where that is faster or reads better.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.values import Array, Number, Opaque
from clew.translate.writer import Writer, leaves_of, mapped

FLOATING = ("float16", "bfloat16", "float32", "float64")
LOWEST = {"float16": -65504.0, "bfloat16": -3.3895313892515355e38, "float32": -3.4028234663852886e38,
          "float64": -1.7976931348623157e308}  # fmt: skip


class Namespace:
    """One target framework, bound to the writer of a graph."""

    framework = ""
    library: Any = None
    """The package whose functions have the names of NumPy's API."""
    key_name = "key"
    """The argument by which a program is given what it draws random numbers from."""
    jits = False
    """Whether the framework compiles programs whose arrays have no values yet, so that Python cannot ask for them."""

    differentiates = True
    """Whether the framework can take derivatives of the program."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.wanted: Any = None
        """What the source gives for the call that is being translated: a ``Spec``, or None if that is not known."""

    # ---- told by the target ------------------------------------------------------------------------------------------

    def function(self, name: str) -> Any:
        """The target's own function for a name of NumPy's API; None if it has none."""
        found = self.library
        for part in name.split("."):
            found = getattr(found, part, None)
        return found

    def dtype(self, name: str) -> str:
        """The dtype that the target has for one of the source."""
        return name

    def dtype_object(self, name: str) -> Any:
        """A dtype as an argument of the target's functions."""
        raise NotImplementedError

    def dtype_text(self, name: str) -> str:
        """What ``str(x.dtype)`` is for an array of this dtype."""
        return name

    def infer(self, function: Any, args: Any, kwargs: Any) -> Any:
        """What a call gives, as a nest of ``Spec``s; arrays are ``Spec``s in the arguments."""
        raise NotImplementedError

    def convert(self, value: Any) -> Any:
        """A weight or constant of the source, by way of NumPy, as an array of the target; a copy."""
        raise NotImplementedError

    def astype(self, x: Array, dtype: str) -> Array:
        """The array in another dtype."""
        raise NotImplementedError

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Items of the one where the condition holds, of the other elsewhere."""
        return self.call("where", condition, x, y)

    def at_set(self, x: Array, index: Any, value: Any, how: str = "set") -> Array:
        """A copy of ``x`` in which items are set, added to, multiplied, or made a minimum or maximum."""
        raise Untranslatable(f"{self.framework} has no assignment to items that gives a new array")

    def stop_gradient(self, x: Array) -> Array:
        """The same array, through which no gradient flows."""
        return x

    def branch(self, predicate: Array, bodies: Sequence[Any], operands: Any, results: Any) -> Any:
        """A branch on an array as a call of the target's; None if Python's own has to do."""
        return None

    def is_compiling(self) -> Any:
        """Whether the framework's compiler traces the program while it runs."""
        return False

    def truth(self, x: Array) -> Any:
        """The truth of an array of one item, as a plain value; a compiler cannot know it."""
        return Number(self.writer, self.writer.node("call_function", bool, (x,)), True)

    def item(self, x: Array) -> Any:
        """The plain number that an array of one item holds."""
        raise Untranslatable(f"a compiler of {self.framework} knows no plain number out of an array")

    def draw(self, kind: str, shape: tuple[Any, ...], dtype: str, **given: Any) -> Array:
        """Random numbers of a distribution (uniform, normal, randint, bernoulli), from what the program is given."""
        raise Untranslatable(f"it draws random numbers, which {self.framework} has no row for")

    def split_key(self, key: Any, number: int) -> Any:
        """What the draw with this number draws from."""
        return key

    def matmul(self, x: Array, y: Array) -> Array:
        """``x @ y``."""
        made: Array = self.writer.call(operator.matmul, x, y)
        return made

    # ---- calls -------------------------------------------------------------------------------------------------------

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A call of the target's function of this name in NumPy's API."""
        function = self.function(name)
        if function is None:
            raise Untranslatable(f"{self.framework} has no {name}")
        return self.writer.call(function, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.call(name, *args, **kwargs)

        return call

    def operate(self, function: Any, *args: Any) -> Any:
        """One of Python's operators on arrays."""
        return self.writer.call(function, *args)

    def inferred(self, function: Any, args: Any, kwargs: Any) -> Any:
        """What a call gives, remembered."""
        for leaf in leaves_of((args, kwargs)):
            if isinstance(leaf, Opaque):
                raise Untranslatable(leaf.reason or "nothing is known of a value that it is given")
        shapes = mapped((args, kwargs), _known)
        key = (self.framework, function, _key(shapes))
        try:
            found = _memory.get(key)
        except TypeError:
            return self._infer(function, *shapes)
        if found is None:
            found = _memory[key] = self._infer(function, *shapes)
        return found

    def _infer(self, function: Any, args: Any, kwargs: Any) -> Any:
        try:
            return self.infer(function, args, kwargs)
        except Untranslatable:
            raise
        except Exception as error:
            name = getattr(function, "__name__", str(function))
            text = str(error).strip().partition("\n")[0]
            raise Untranslatable(f"{self.framework} refuses {name}: {text}") from error

    # ---- sizes, items, dtypes ----------------------------------------------------------------------------------------

    def size(self, x: Array, axis: int) -> Any:
        """The size of an axis; that of a weight is a plain number."""
        if x.fixed:
            return x.spec.shape[axis]
        found = x.sizes.get(axis)
        if found is None:
            sizes = self.writer.attribute(x, "shape", Opaque)
            node = self.writer.node("call_function", _getitem, (sizes, axis))
            found = x.sizes[axis] = Number(self.writer, node, x.spec.shape[axis])
        return found

    def getitem(self, x: Array, index: Any) -> Any:
        """Items of an array, as Python writes them."""
        return self.writer.call(_getitem, x, index)

    def cast(self, x: Any, dtype: str) -> Any:
        """A value in a dtype, unless it has it."""
        if not isinstance(x, Array):
            return x
        return x if x.dtype == dtype and not x.spec.weak else self.astype(x, dtype)

    def to_wanted(self, x: Any) -> Any:
        """A value in the dtype that the source gives."""
        return x if self.wanted is None else self.cast(x, self.wanted.dtype)

    def as_array(self, value: Any, dtype: str) -> Array:
        """A number as an array without axes; an array in this dtype."""
        if isinstance(value, Array):
            return self.cast(value, dtype)
        found: Array = self.call("asarray", value, dtype=self.dtype_object(dtype))
        return found

    def together(self, *values: Any, dtype: str) -> tuple[Any, ...]:
        """Operands such that the target computes with them in this dtype, as the source does."""
        found = self.common(*values)
        if found == dtype:
            return values
        return tuple(self.cast(one, dtype) for one in values)

    def common(self, *values: Any) -> str | None:
        """The dtype in which the target computes with these."""
        raise NotImplementedError

    def is_floating(self, x: Array) -> bool:
        """Whether an array holds floating point numbers."""
        return x.dtype in FLOATING

    # ---- our own functions -------------------------------------------------------------------------------------------

    def softmax(self, x: Array, axis: int) -> Array:
        """Exponentials that sum to one."""
        powers = self.exp(x - self.call("max", x, axis=axis, keepdims=True))
        return powers / self.call("sum", powers, axis=axis, keepdims=True)

    def log_softmax(self, x: Array, axis: int) -> Array:
        """The logarithm of the softmax."""
        moved = x - self.call("max", x, axis=axis, keepdims=True)
        return moved - self.log(self.call("sum", self.exp(moved), axis=axis, keepdims=True))

    def sigmoid(self, x: Array) -> Array:
        """The logistic function."""
        return 1.0 / (1.0 + self.exp(-x))

    def relu(self, x: Array) -> Array:
        """The positive part; nan stays nan."""
        return self.maximum(x, 0)

    def silu(self, x: Array) -> Array:
        """``x`` times its sigmoid."""
        return x * self.sigmoid(x)

    def erf(self, x: Array) -> Array:
        """The error function."""
        raise Untranslatable(f"{self.framework} has no error function")

    def rsqrt(self, x: Array) -> Array:
        """One over the square root."""
        return 1.0 / self.sqrt(x)

    def logsumexp(self, x: Array, axis: Any, keepdims: bool) -> Array:
        """The logarithm of the sum of exponentials."""
        top = self.call("max", x, axis=axis, keepdims=True)
        top = self.where(self.isfinite(top), top, 0.0)
        total = self.log(self.call("sum", self.exp(x - top), axis=axis, keepdims=True)) + top
        return total if keepdims else self.squeeze(total, axis=axis)

    def gelu(self, x: Array, approximate: bool) -> Array:
        """The Gaussian error linear unit."""
        if approximate:
            inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
            return 0.5 * x * (1.0 + self.tanh(inner))
        return 0.5 * x * (1.0 + self.erf(x * 0.7071067811865476))

    def linear(self, x: Array, weight: Array, bias: Any) -> Array:
        """``x @ weight.T + bias``."""
        found = self.matmul(x, self.matrix_transpose(weight) if weight.ndim == 2 else weight)
        return found if bias is None else found + bias

    def matrix_transpose(self, x: Array) -> Array:
        """The last two axes exchanged."""
        if x.ndim != 2:
            found: Array = self.swapaxes(x, -1, -2)
            return found
        made: Array = self.writer.attribute(x, "T", self.inferred(_transposed, (x,), {}))
        return made

    def softplus(self, x: Array) -> Array:
        """``log(1 + exp(x))`` for all sizes of ``x``."""
        made: Array = self.logaddexp(x, 0.0)
        return made

    def one_hot(self, x: Array, classes: Any, dtype: str) -> Array:
        """Ones at the positions that an array of integers tells."""
        found: Array = self.cast(self.expand_dims(x, -1) == self.arange(classes), dtype)
        return found

    def conv(self, x: Array, weight: Array, **given: Any) -> Array:
        """A convolution over channels first; ``padding`` has a pair for each axis."""
        raise Untranslatable(f"{self.framework} has no such convolution")

    def windows(self, x: Array, how: str, **given: Any) -> Array:
        """The sum or maximum of each window; ``padding`` has a pair for each axis, as have the other lists."""
        raise Untranslatable(f"{self.framework} has no such pool")

    def top_k(self, x: Array, count: Any) -> tuple[Array, Array]:
        """The largest items along the last axis, and where they are: the first of equal ones."""
        backwards = self.argsort(self.flip(x, axis=-1), axis=-1, stable=True)
        places = (x.size(-1) - 1 - self.flip(backwards, axis=-1))[..., :count]
        return self.take_along_axis(x, places, axis=-1), places

    def normalized(self, x: Array, axes: tuple[int, ...], eps: Any) -> Array:
        """Mean zero and variance one over these axes."""
        mean = self.mean(x, axis=axes, keepdims=True)
        variance = self.var(x, axis=axes, keepdims=True)
        return (x - mean) * self.rsqrt(variance + eps)

    def attention(self, q: Array, k: Array, v: Array, mask: Any, causal: bool, scale: Any) -> Array:
        """Scaled dot products; a row whose keys are all masked gives zeros, as torch has it."""
        scores = self.matmul(q * scale if scale is not None else q, self.matrix_transpose(k))
        lowest, empty = LOWEST[scores.dtype], None
        if causal:
            ones = self.ones((q.size(-2), k.size(-2)), dtype=self.dtype_object("bool"))
            scores = self.where(self.tril(ones), scores, lowest)
        if mask is not None and mask.dtype == "bool":
            scores = self.where(mask, scores, lowest)
            empty = ~self.any(mask, axis=-1, keepdims=True)
        elif mask is not None:
            scores = self.maximum(scores + mask, lowest)
            empty = self.all(mask == -builtins.float("inf"), axis=-1, keepdims=True)
        weights = self.softmax(scores, -1)
        if empty is not None:
            weights = self.where(empty, 0.0, weights)
        return self.matmul(weights, v)

    def nonzero_places(self, x: Array, count: int) -> tuple[Array, ...]:
        """Where an array is not zero, an array for each axis; ``count`` items in the example."""
        raise Untranslatable("how many items it gives depends on the data")

    def unique_counts(self, x: Array) -> tuple[Array, Array]:
        """The different integers of an array in order, and how often each is there."""
        raise Untranslatable("how many items it gives depends on the data")

    def counts_of(self, x: Array, weights: Any, least: Any, wanted: Any) -> Array:
        """How often each number from zero on is there."""
        raise Untranslatable("how many items it gives depends on the data")

    def masked(self, x: Array, mask: Array) -> Any:
        """The node of the items where a mask holds."""
        raise Untranslatable("how many items a mask takes depends on the data")

    def set_masked(self, x: Array, mask: Array, value: Array) -> Array:
        """An array with other items where a mask holds."""
        raise Untranslatable("how many items a mask takes depends on the data")

    def erfc(self, x: Array) -> Array:
        """One less the error function, also where that is close to one."""
        raise Untranslatable(f"{self.framework} has no complementary error function")

    def tape(self) -> Any:
        """The target's record of what it computes, from which it takes slopes; None if it has functions for that."""
        return None

    def derivative(self, name: str) -> Any:
        """The target's function that makes derivatives of functions: ``grad_and_value``, ``jacrev``, ``jvp``."""
        raise Untranslatable(f"{self.framework} takes no derivatives of functions")


_memory: dict[Any, Any] = {}


def _transposed(x: Any) -> Any:
    return x.T


_getitem = operator.getitem


def _known(leaf: Any) -> Any:
    if isinstance(leaf, Array):
        return leaf.spec
    return leaf.value if isinstance(leaf, Number) else leaf


def _key(nest: Any) -> Any:
    """A nest as a key: numbers with their classes, since ``1 == True``."""
    if isinstance(nest, slice):
        return ("slice", _key((nest.start, nest.stop, nest.step)))
    if isinstance(nest, (tuple, list)):
        return (type(nest).__name__, *map(_key, nest))
    if isinstance(nest, dict):
        return ("dict", *((name, _key(value)) for name, value in nest.items()))
    return (type(nest), repr(nest) if isinstance(nest, float) else nest)
