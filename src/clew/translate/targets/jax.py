"""JAX as a target: ``jax.numpy`` for NumPy's functions, ``jax.nn`` and ``jax.lax`` for the rest.

Dtypes are JAX's: without ``jax_enable_x64`` integers of 64 bits are of 32 bits there, and float64 is refused. Shapes
and dtypes of results are asked of ``jax.eval_shape``. Sizes are plain numbers under ``jax.jit`` too.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy

from clew import tree
from clew.capture.recording.outputs import rebuild, rebuild_mapping
from clew.errors import GuardError
from clew.frameworks.jax.private import is_compiling
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.translate.refusals import Untranslatable
from clew.translate.result import Translated
from clew.translate.targets.namespace import Namespace
from clew.translate.values import Array, Number, Spec, Value
from clew.translate.writer import Writer, leaves_of, mapped, nodes_of

_NARROW = {"int64": "int32", "uint64": "uint32"}
_WIDE = {"float64": "float32", "complex128": "complex64"}
_AXES = "DHW"


class JaxNamespace(Namespace):
    """Writes graphs of JAX's functions."""

    framework = "jax"
    library = jnp
    jits = True
    vmap = staticmethod(jax.vmap)

    def dtype(self, name: str) -> str:
        if jax.config.read("jax_enable_x64"):
            return name
        if name in _WIDE:
            raise Untranslatable(
                f"it computes in {name}, and JAX has 32 bits: "
                f"jax.config.update('jax_enable_x64', True), or use {_WIDE[name]}"
            )
        return _NARROW.get(name, name)

    def dtype_object(self, name: str) -> Any:
        return jnp.bool_ if name == "bool" else getattr(jnp, self.dtype(name))

    def dtype_text(self, name: str) -> str:
        return name

    def infer(self, function: Any, args: Any, kwargs: Any) -> Any:
        arrays = [leaf for leaf in leaves_of((args, kwargs)) if isinstance(leaf, Spec)]
        structs = [jax.ShapeDtypeStruct(one.shape, jnp.dtype(one.dtype), weak_type=one.weak) for one in arrays]

        def run(*given: Any) -> Any:
            left = iter(given)
            filled = mapped((args, kwargs), lambda leaf: next(left) if isinstance(leaf, Spec) else leaf)
            return function(*filled[0], **filled[1])

        return jax.tree.map(_spec, jax.eval_shape(run, *structs))

    def convert(self, value: Any) -> Any:
        array = numpy.asarray(value)
        dtype = self.dtype(array.dtype.name)
        if dtype != array.dtype.name and array.size and not _fits(array, dtype):
            raise Untranslatable(f"a constant does not fit into {dtype}, and JAX has 32 bits")
        return jnp.array(array, dtype=dtype, copy=True)

    def common(self, *values: Any) -> str | None:
        known = [_known(one) for one in values if one is not None]
        return str(jnp.result_type(*known).name)

    def astype(self, x: Array, dtype: str) -> Array:
        made: Array = self.writer.method("astype", x, self.dtype_object(dtype))
        return made

    def at_set(self, x: Array, index: Any, value: Any, how: str = "set") -> Array:
        writer = self.writer
        place = writer.node(
            "call_function", operator.getitem, (writer.node("call_function", getattr, (x, "at")), index)
        )
        node = writer.node("call_method", how, (place, value))
        found = self.inferred(_AT[how], (x, index, value), {})
        made: Array = writer.wrap(node, found, x.differentiable or getattr(value, "differentiable", False))
        return made

    def put_masked(self, x: Array, mask: Array, values: Array) -> Array:
        self.of_data("how many items a mask takes")
        at = self.writer.node("call_function", getattr, (x, "at"))
        place = self.writer.node("call_function", operator.getitem, (at, mask))
        made: Array = self.writer.wrap(self.writer.node("call_method", "set", (place, values)), x.spec, True)
        return made

    def is_compiling(self) -> Any:
        return Number(self.writer, self.writer.node("call_function", is_compiling, ()), False)

    def stop_gradient(self, x: Array) -> Array:
        made: Array = self.writer.call(jax.lax.stop_gradient, x)
        made.differentiable = False
        return made

    def branch(self, predicate: Array, bodies: Sequence[Any], operands: Any, results: Any) -> Any:
        node = self.writer.node("call_function", jax.lax.cond, (predicate, *bodies, *operands))
        return self.writer.wrap(node, results, True)

    def repeat_while(self, bodies: Sequence[Any], operands: Sequence[Any], state: tuple[Array, ...]) -> Any:
        functions = bodies
        if operands:
            functions = [self.writer.node("call_function", functools.partial, (body, *operands)) for body in bodies]
        node = self.writer.node("call_function", repeat_while, (*functions, state))
        return self.writer.wrap(node, tuple(Spec(one.spec.shape, one.dtype) for one in state), True)

    # ---- our own functions -------------------------------------------------------------------------------------------

    def softmax(self, x: Array, axis: int) -> Array:
        return self._nn(jax.nn.softmax, x, axis=axis)

    def log_softmax(self, x: Array, axis: int) -> Array:
        return self._nn(jax.nn.log_softmax, x, axis=axis)

    def sigmoid(self, x: Array) -> Array:
        return self._nn(jax.nn.sigmoid, x)

    def relu(self, x: Array) -> Array:
        return self._nn(jax.nn.relu, x)

    def silu(self, x: Array) -> Array:
        return self._nn(jax.nn.silu, x)

    def erf(self, x: Array) -> Array:
        return self._nn(jax.scipy.special.erf, x)

    def rsqrt(self, x: Array) -> Array:
        return self._nn(jax.lax.rsqrt, x)

    def gelu(self, x: Array, approximate: bool) -> Array:
        return self._nn(jax.nn.gelu, x, approximate=approximate)

    def logsumexp(self, x: Array, axis: Any, keepdims: bool) -> Array:
        return self._nn(jax.nn.logsumexp, x, axis=axis, keepdims=keepdims)

    def softplus(self, x: Array) -> Array:
        return self._nn(jax.nn.softplus, x)

    def _nn(self, function: Any, x: Array, **kwargs: Any) -> Array:
        made: Array = self.writer.call(function, x, **kwargs)
        return made

    def complex_of(self, real: Array, imag: Array) -> Array:
        made: Array = self.writer.call(jax.lax.complex, real, imag)
        return made

    def one_hot(self, x: Array, classes: Any, dtype: str) -> Array:
        return self._nn(jax.nn.one_hot, x, num_classes=classes, dtype=self.dtype_object(dtype))

    def conv(self, x: Array, weight: Array, **given: Any) -> Array:
        axes = _AXES[3 - (x.ndim - 2) :]
        names = (f"NC{axes}", f"OI{axes}", f"NC{axes}")
        made: Array = self.writer.call(
            jax.lax.conv_general_dilated,
            x,
            weight,
            tuple(given["stride"]),
            [tuple(pair) for pair in given["padding"]],
            **({"lhs_dilation": tuple(given["spread"])} if set(given.get("spread", (1,))) != {1} else {}),
            **({"rhs_dilation": tuple(given["dilation"])} if set(given["dilation"]) != {1} else {}),
            dimension_numbers=names,
            **({"feature_group_count": given["groups"]} if given["groups"] != 1 else {}),
        )
        return made

    def grouped_matmul(self, x: Array, y: Array, ends: Array) -> Array:
        made: Array = self.writer.call(jax.lax.ragged_dot, x, y, self.diff(ends, prepend=0))
        return made

    def windows(self, x: Array, how: str, **given: Any) -> Array:
        start, function = (0.0, jax.lax.add) if how == "sum" else (-float("inf"), jax.lax.max)
        if not self.is_floating(x):
            start = 0 if how == "sum" else int(jnp.iinfo(x.dtype).min)
        front = x.ndim - len(given["window"])
        made: Array = self.writer.call(
            jax.lax.reduce_window, x, start, function,
            (1,) * front + tuple(given["window"]), (1,) * front + tuple(given["stride"]),
            [(0, 0)] * front + [tuple(pair) for pair in given["padding"]],
            **({"window_dilation": (1,) * front + tuple(given["dilation"])} if set(given["dilation"]) != {1} else {}),
        )  # fmt: skip
        return made

    def scan(self, step: Any, state: tuple[Any, ...], items: Array, operands: tuple[Any, ...]) -> tuple[Any, Array]:
        writer = Writer(Graph(), type(self), self.writer._notes)
        writer.origin, inner = self.writer.origin, writer.namespace
        others = [writer.wrap(writer.graph.placeholder(f"given_{place}"), Spec(one.spec.shape, one.dtype), True)
                  for place, one in enumerate(operands)]  # fmt: skip
        carried = writer.graph.placeholder("state")
        parts = tuple(writer.wrap(writer.node("call_function", operator.getitem, (carried, place)), one.spec, True)
                      for place, one in enumerate(state))  # fmt: skip
        item = writer.wrap(writer.graph.placeholder("item"), Spec(items.spec.shape[1:], items.dtype), True)
        new, found = step(inner, parts, item, *others)
        new = tuple(inner.cast(one, old.dtype) for one, old in zip(new, state, strict=True))
        writer.graph.output(nodes_of((new, found)))
        body = self.writer.node("call_function", functools.partial, (writer.graph, *operands))
        node = self.writer.node("call_function", jax.lax.scan, (body, state, items))
        specs = (tuple(Spec(one.spec.shape, one.dtype) for one in state),
                 Spec((items.spec.shape[0], *found.spec.shape), found.dtype))  # fmt: skip
        made: tuple[Any, Array] = self.writer.wrap(node, specs, True)
        return made

    def solve_triangular(self, x: Array, y: Array, upper: bool, unit: bool) -> Array:
        made: Array = self.writer.call(
            jax.scipy.linalg.solve_triangular, x, y, lower=not upper, **({"unit_diagonal": True} if unit else {})
        )
        return made

    def running(self, x: Array, how: str, axis: int) -> Array:
        made: Array = self.writer.call(jax.lax.cummax if how == "max" else jax.lax.cummin, x, axis=axis)
        return made

    def top_k(self, x: Array, count: int) -> tuple[Array, Array]:
        values, places = self.writer.call(jax.lax.top_k, x, count)
        return values, places

    def erfc(self, x: Array) -> Array:
        return self._nn(jax.scipy.special.erfc, x)

    def special(self, name: str, x: Array) -> Array:
        return self._nn(getattr(jax.scipy.special, name), x)

    # ---- random numbers ----------------------------------------------------------------------------------------------

    def draw(self, kind: str, shape: tuple[Any, ...], dtype: str, **given: Any) -> Array:
        writer = self.writer
        key = writer.next_key()
        function = getattr(jax.random, kind)
        args = (key, given["p"], shape) if kind == "bernoulli" else (key, shape)
        extra = {} if kind == "bernoulli" else {"dtype": self.dtype_object(dtype)}
        if kind == "randint":
            args = (*args, given["low"], given["high"])
        node = writer.node("call_function", function, args, extra)
        found = "bool" if kind == "bernoulli" else self.dtype(dtype)
        made: Array = writer.wrap(node, Spec(tuple(mapped(shape, _number)), found), False)
        return made

    def split_key(self, key: Value, number: int) -> Any:
        return self.writer.node("call_function", jax.random.fold_in, (key, number))


@pure
def repeat_while(test: Callable[[Any], Any], body: Callable[[Any], Any], values: Any) -> Any:
    """``jax.lax.while_loop`` where JAX traces; a loop of Python's elsewhere, through which gradients flow backwards."""
    while True:
        try:
            if not test(values):
                return values
        except jax.errors.TracerBoolConversionError:
            return jax.lax.while_loop(test, body, values)
        values = body(values)


def _number(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, Number) else leaf


_AT = {
    how: (lambda x, index, value, how=how: getattr(x.at[index], how)(value))  # type: ignore[misc]
    for how in ("set", "add", "multiply", "min", "max")
}


def _spec(found: Any) -> Any:
    if not hasattr(found, "dtype"):
        return found
    return Spec(tuple(found.shape), str(found.dtype), bool(getattr(found, "weak_type", False)))


def _known(value: Any) -> Any:
    """What ``jnp.result_type`` takes for a value."""
    if isinstance(value, Array):
        return jax.ShapeDtypeStruct(value.spec.shape, jnp.dtype(value.dtype), weak_type=value.spec.weak)
    return value.value if isinstance(value, Number) else value


def _fits(array: Any, dtype: str) -> bool:
    kinds = numpy.iinfo(dtype)
    return bool(array.min() >= kinds.min and array.max() <= kinds.max)


_NO_DATA = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
"""What JAX raises where a program needs values that a compiler does not have."""


class JaxTranslated(Translated):
    """A translated program of JAX."""

    framework = "jax"
    key_example = "key=jax.random.key(0)"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        with self._asking_for_data():
            return super().__call__(*args, **kwargs)

    def pure(self, params: dict[str, Any], state: dict[str, Any], /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        with self._asking_for_data():
            return super().pure(params, state, *args, **kwargs)

    @contextlib.contextmanager
    def _asking_for_data(self) -> Iterator[None]:
        """Where a compiler knows no data, and the program asks for some, say so, and in which lines."""
        try:
            yield
        except _NO_DATA as error:
            told = [one for one in self.notes if "cannot be compiled" in one]
            raise GuardError(
                "the program asks for data, which are not there when JAX compiles it",
                why="; ".join(told) or str(error).partition("\n")[0],
                fixes=("call it without jax.jit", "compile the parts before and after: clew.split"),
            ) from error

    def slopes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The gradients of the sum of all float results for the weights, by their names."""

        def total(params: Any) -> Any:
            result, _ = self.pure(params, self.state, *args, **kwargs)
            leaves = [leaf for leaf in tree.flatten(result)[0] if isinstance(leaf, jax.Array)]
            return sum(leaf.astype("float32").sum() for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating))

        floats = {path: one for path, one in self.params.items() if jnp.issubdtype(one.dtype, jnp.floating)}
        slopes = jax.grad(lambda floats: total(self.params | floats))(floats)
        return dict(slopes)


def make(graph: Graph, params: dict[str, Any], state: dict[str, Any], name: str, kinds: Iterable[type]) -> Any:
    """The program of a translated graph; JAX learns how the objects that it returns are taken apart."""
    for kind in kinds:
        with contextlib.suppress(ValueError):  # it is registered already
            jax.tree_util.register_pytree_node(kind, _taken_apart, functools.partial(_put_together, kind))
    return JaxTranslated.of(graph, params, state, name)


def _taken_apart(value: Any) -> tuple[list[Any], Any]:
    items = dict(value) if isinstance(value, dict) else {}
    fields = [*items.items(), *((name, one) for name, one in vars(value).items() if name not in items)]
    arrays = [one for _, one in fields if _holds_arrays(one)]
    plain = tuple((name, None if _holds_arrays(one) else (one,)) for name, one in fields)
    return arrays, (plain, tuple(items))


def _holds_arrays(value: Any) -> bool:
    return any(isinstance(leaf, (jax.Array, numpy.ndarray)) or leaf is _ANY for leaf in jax.tree.leaves(value))


_ANY = object()


def _put_together(kind: type, told: Any, arrays: Iterable[Any]) -> Any:
    plain, keys = told
    left = iter(arrays)
    fields = {name: next(left) if one is None else one[0] for name, one in plain}
    items = {name: fields.pop(name) for name in keys}
    return rebuild_mapping(kind, items, fields | items) if issubclass(kind, dict) else rebuild(kind, fields)


class PlainNamespace(JaxNamespace):
    """Writes programs for plain calls alone, where what compilers take cannot be carried over."""

    def is_compiling(self) -> Any:
        return False


NAMESPACE = JaxNamespace
PLAIN = PlainNamespace, is_compiling
