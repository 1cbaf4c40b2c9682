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

import numpy

from clew.ir.control_flow import for_loop
from clew.ir.graph import Graph
from clew.translate.refusals import Untranslatable
from clew.translate.values import Array, Items, Number, Opaque, Spec
from clew.translate.writer import Writer, any_differentiable, leaves_of, mapped, nodes_of

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

    vmap: Any = None
    """The framework's own function that lets a function go through an axis; None if it has none."""

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

    def repeat_while(self, bodies: Sequence[Any], operands: Sequence[Any], state: tuple[Array, ...]) -> Any:
        """The target's own loop over a state of arrays: a test and a body, which take the operands and the state."""
        raise Untranslatable(f"{self.framework} has no loop of its own")

    def is_compiling(self) -> Any:
        """Whether the framework's compiler traces the program while it runs."""
        return False

    def truth(self, x: Array) -> Any:
        """The truth of an array of one item, as a plain value; a compiler cannot know it."""
        return Number(self.writer, self.writer.node("call_function", bool, (x,)), True)

    def item(self, x: Array, kind: Any = None, value: Any = None) -> Any:
        """The plain number that an array of one item holds, or the list of those of a longer one; ``value`` is that of
        the example."""
        if x.plain is not None:
            return x.plain if kind is None else self.writer.operate(kind, x.plain)
        for node in (self.writer.origin, x.origin):
            value = self.writer.observed(node) if value is None else value
        usual: Any = bool if x.dtype == "bool" else float if self.is_floating(x) else int
        if value is None or (kind is None and type(value) not in (usual, list)):
            if x.ndim or x.dtype.startswith("complex"):
                raise Untranslatable("plain numbers out of an array, which are not known for the example")
            value, self.writer.guessed = (kind or usual)(1), True
        self.of_data("a plain number out of an array")
        name = "tolist" if isinstance(value, list) else "item"
        found = Number(self.writer, self.writer.node("call_method", name, (self.concrete(x),)), value)
        return found if kind is None or kind is usual else self.writer.plain(kind, found)

    def concrete(self, x: Array) -> Any:
        """What has the methods ``item`` and ``tolist``."""
        return x

    def of_data(self, what: str) -> None:
        """Tell that the program does something which a compiler cannot, since it depends on data."""
        if self.jits:
            self.writer.note(f"{what} depends on data: the program runs, but cannot be compiled")

    def sized_by_data(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """A call whose result has as many items as the data tell: as the source's for the example."""
        if self.wanted is None:
            raise Untranslatable("how many items it gives depends on the data, and is not known for the example")
        self.of_data("how many items there are")
        made = self.writer.node("call_function", function, args, kwargs)
        return self.writer.wrap(made, self.wanted, any_differentiable((args, kwargs)))

    def several_by_data(self, function: Any, specs: Sequence[Spec], *args: Any, **kwargs: Any) -> tuple[Array, ...]:
        """The same of a call that gives several arrays."""
        self.of_data("how many items there are")
        made = self.writer.node("call_function", function, args, kwargs)
        found: tuple[Array, ...] = self.writer.wrap(made, tuple(specs), False)
        return found

    def argwhere(self, x: Array) -> Array:
        """The places of the items that are not zero."""
        found: Array = self.sized_by_data(self.function("argwhere"), x)
        return found

    def masked(self, x: Array, mask: Array) -> Array:
        """The items, along the first axes, where a mask is true."""
        found: Array = self.sized_by_data(_getitem, x, mask)
        return found

    def masked_items(self, x: Array, index: tuple[Any, ...]) -> Array:
        """The items along one axis where a mask is true, which stands among slices."""
        found: Array = self.sized_by_data(_getitem, x, index)
        return found

    def put_masked(self, x: Array, mask: Array, values: Array) -> Array:
        """A copy in which the items where a mask is true are other ones, as many as the data tell."""
        raise Untranslatable("how many items a mask takes depends on the data")

    def repeated(self, x: Array, counts: Any, axis: Any) -> Array:
        """Each item as often as an array or a list of counts tells."""
        found: Array = self.sized_by_data(self.function("repeat"), x, counts, axis=axis)
        return found

    def parted(self, x: Array, sizes: Number, axis: int) -> Items:
        """Parts of sizes that are plain numbers of the running program."""
        ends = self.writer.node("call_function", numpy.cumsum, (sizes,))
        ends = self.writer.node("call_function", _getitem, (ends, slice(None, -1)))
        node = self.writer.node("call_function", self.function("split"), (x, ends), {"axis": axis})
        return self.items(node, x, sizes, axis)

    def items(self, node: Any, x: Array, sizes: Number, axis: int) -> Items:
        """The parts of an array, by the sizes of the example."""
        shape, axis = x.spec.shape, axis % x.ndim
        specs = [Spec((*shape[:axis], one, *shape[axis + 1 :]), x.dtype) for one in sizes.value]
        return Items(self.writer, node, specs)

    def joined(self, items: Items, axis: int, name: str = "concatenate") -> Array:
        """A list of arrays, whose number is not fixed, as one array."""
        dtypes = {one.dtype for one in items.specs}
        if self.wanted is None or dtypes != {self.wanted.dtype}:
            raise Untranslatable("arrays of several dtypes, or of unknown shapes, are put together")
        if len(self.wanted.shape) != len(items.specs[0].shape) + (name == "stack"):
            raise Untranslatable(f"a list of arrays is put together by {name}, and the rank of the result is another")
        node = self.writer.node("call_function", self.function(name), (items,), {"axis": axis})
        found: Array = self.writer.wrap(node, self.wanted, True)
        return found

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

    def grouped_matmul(self, x: Array, y: Array, ends: Array) -> Array:
        """``x[i] @ y[g]`` for the group ``g`` that row ``i`` is in; groups end where ``ends`` says."""
        rows = self.arange(x.size(0))
        before = self.call("sum", self.astype(rows[:, None] >= ends[None, :], "int32"), axis=1)
        group = self.clip(before, 0, y.size(0) - 1)
        found = self.squeeze(self.matmul(x[:, None, :], self.take(y, group, axis=0)), axis=1)
        return self.where((before < y.size(0))[:, None], found, 0.0)  # type: ignore[no-any-return]

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

    def complex_of(self, real: Array, imag: Array) -> Array:
        """Complex numbers of their parts; infinities stay where they are."""
        raise Untranslatable(f"{self.framework} makes no complex numbers of two parts")

    def fourier(self, name: str, x: Array, **options: Any) -> Array:
        """A Fourier transform, by its name in NumPy."""
        found: Array = self.call(f"fft.{name}", x, **options)
        return found

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

    def solve_triangular(self, x: Array, y: Array, upper: bool, unit: bool) -> Array:
        """What a triangular matrix has to be multiplied by to give ``y``."""
        x = self.triu(x) if upper else self.tril(x)
        if unit:
            eye = self.eye(x.size(-1), dtype=self.dtype_object(x.dtype))
            x = x * (1.0 - eye) + eye
        found: Array = self.call("linalg.solve", x, y)
        return found

    def running(self, x: Array, how: str, axis: int) -> Array:
        """The largest or smallest item so far along an axis; nan stays."""
        raise Untranslatable(f"{self.framework} has no running extreme")

    def scan(self, step: Any, state: tuple[Any, ...], items: Array, operands: tuple[Any, ...]) -> tuple[Any, Array]:
        """``state, y = step(xp, state, item, *operands)`` for each item of the first axis; all ``y`` as one array."""
        inner, (parts, item, others) = self.scan_body(state, items, operands)
        new, found = step(inner, parts, item, *others)
        inner.writer.graph.output(nodes_of((*_alike(inner, new, state), found)))
        writer = self.writer
        args = (items, inner.writer.graph, state, operands, 1)
        node = writer.node("call_function", for_loop, args)
        results = [writer.node("call_function", _getitem, (node, place)) for place in range(len(state) + 1)]
        last = tuple(writer.wrap(made, one.spec, True) for made, one in zip(results, state, strict=False))
        stacked = writer.node("call_function", self.function("stack"), (results[-1],), {"axis": 0})
        return last, writer.wrap(stacked, Spec((items.spec.shape[0], *found.spec.shape), found.dtype), True)

    def scan_body(self, state: tuple[Any, ...], items: Array, operands: Any) -> tuple[Namespace, tuple[Any, Any, Any]]:
        """The namespace of the body of a scan, and its inputs: the state, an item, the operands."""
        writer = Writer(Graph(), type(self), self.writer._notes)
        writer.origin = self.writer.origin

        def input(name: str, spec: Spec) -> Any:
            return writer.wrap(writer.graph.placeholder(name), Spec(spec.shape, spec.dtype), True)

        parts = tuple(input(f"state_{place}", one.spec) for place, one in enumerate(state))
        item = input("item", Spec(items.spec.shape[1:], items.dtype))
        return writer.namespace, (parts, item, tuple(input(f"given_{k}", one.spec) for k, one in enumerate(operands)))

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
        self.of_data("how many items there are")
        node = self.writer.node("call_function", self.function("nonzero"), (x,))
        found: tuple[Array, ...] = self.writer.wrap(node, (Spec((count,), self.dtype("int64")),) * x.ndim, False)
        return found

    def unique_counts(self, x: Array) -> tuple[Array, Array]:
        """The different integers of an array in order, and how often each is there."""
        raise Untranslatable("how many items it gives depends on the data")

    def counts_of(self, x: Array, weights: Any, least: Any, wanted: Any) -> Array:
        """How often each number from zero on is there."""
        raise Untranslatable("how many items it gives depends on the data")

    def erfc(self, x: Array) -> Array:
        """One less the error function, also where that is close to one."""
        raise Untranslatable(f"{self.framework} has no complementary error function")

    def special(self, name: str, x: Array) -> Array:
        """A function of mathematical physics, by its name in SciPy."""
        raise Untranslatable(f"{self.framework} has no {name}")

    def tape(self) -> Any:
        """The target's record of what it computes, from which it takes slopes; None if it has functions for that."""
        return None

    def derivative(self, name: str) -> Any:
        """The target's function that makes derivatives of functions: ``grad_and_value``, ``jacrev``, ``jvp``."""
        raise Untranslatable(f"{self.framework} takes no derivatives of functions")


def _alike(xp: Namespace, new: tuple[Any, ...], state: tuple[Any, ...]) -> tuple[Any, ...]:
    """A new state in the dtypes of the old one."""
    return tuple(xp.astype(one, old.dtype) if one.dtype != old.dtype or one.spec.weak else one
                 for one, old in zip(new, state, strict=True))  # fmt: skip


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
