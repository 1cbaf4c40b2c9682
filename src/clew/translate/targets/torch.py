"""PyTorch as a target: its own functions under NumPy's names; the result is an ``nn.Module``.

A call by a name of NumPy's API becomes torch's function of that meaning, with ``dim`` for ``axis``; what torch has
under another name or in other words is a method here, named ``as_`` and NumPy's name. Dtypes and shapes of results are
asked of torch on the meta device. Branches and loops stay Python's; random numbers come from torch's own generator.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import torch

from clew.capture.state.slots import assign
from clew.ir.arguments import nested_graphs
from clew.ir.graph import Graph
from clew.runtime.torch_captured import callable_of
from clew.translate.refusals import Untranslatable
from clew.translate.targets.namespace import Namespace
from clew.translate.values import Array, Number, Opaque, Spec
from clew.translate.writer import mapped

_WORDS = {"axis": "dim", "keepdims": "keepdim", "ddof": "correction"}
_NAMES = {
    "concatenate": "cat", "expand_dims": "unsqueeze", "remainder": "remainder", "power": "pow", "arctan2": "atan2",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "broadcast_arrays": "broadcast_tensors", "invert": "bitwise_not", "cumprod": "cumprod", "conjugate": "conj",
    "max": "amax", "min": "amin", "degrees": "rad2deg", "radians": "deg2rad", "fabs": "abs", "absolute": "abs",
    "true_divide": "divide", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
    "swapaxes": "swapaxes", "permute_dims": "permute", "array_split": "tensor_split", "mod": "remainder",
    "float_power": "float_power", "rint": "round", "moveaxis": "movedim", "product": "prod",
}  # fmt: skip
_TWO = frozenset("atan2 hypot logaddexp copysign nextafter maximum minimum fmax fmin fmod logical_and logical_or "
                 "logical_xor".split())  # fmt: skip
"""Functions that take arrays alone where NumPy's take a number too."""


class TorchNamespace(Namespace):
    """Writes graphs of torch's functions."""

    framework = "torch"
    library = torch
    key_name = ""

    def function(self, name: str) -> Any:
        found = super().function(_NAMES.get(name, name))
        return found if callable(found) else None

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        own = getattr(type(self), f"as_{name}", None)
        if own is not None:
            return own(self, *args, **kwargs)
        function = self.function(name)
        if function is None:
            raise Untranslatable(f"torch has no {name}")
        if name in _TWO or _NAMES.get(name) in _TWO:
            args = self._arrays(args)
        return self.writer.call(function, *args, **{_WORDS.get(word, word): one for word, one in kwargs.items()})

    def _arrays(self, args: Any) -> tuple[Any, ...]:
        """Numbers as arrays of the dtype that they meet."""
        dtype = next(one.dtype for one in args if isinstance(one, Array))
        return tuple(one if isinstance(one, Array) else self.as_array(one, dtype) for one in args)

    def dtype_object(self, name: str) -> Any:
        return getattr(torch, name)

    def dtype_text(self, name: str) -> str:
        return f"torch.{name}"

    def infer(self, function: Any, args: Any, kwargs: Any) -> Any:
        given, named = mapped((args, kwargs), _meta)
        if function is operator.getitem:
            given = (given[0], mapped(args[1], _meta_index))
        with torch.no_grad():
            return mapped(function(*given, **named), _spec)

    def convert(self, value: Any) -> Any:
        if getattr(value, "dtype", None) is not None and value.dtype.name == "bfloat16":
            return torch.tensor(value.astype("float32")).to(torch.bfloat16)
        return torch.tensor(value)

    def common(self, *values: Any) -> str | None:
        given = [_meta(one.spec) if isinstance(one, Array) else _number(one) for one in values if one is not None]
        arrays = [one for one in given if isinstance(one, torch.Tensor)]
        while len(arrays) > 1:
            arrays[:2] = [torch.empty((1,) * max(arrays[0].ndim and 1, arrays[1].ndim and 1), device="meta",
                                      dtype=torch.result_type(arrays[0], arrays[1]))]  # fmt: skip
        found = arrays[0].dtype
        for one in given:
            if not isinstance(one, torch.Tensor):
                found = torch.result_type(arrays[0], one) if found == arrays[0].dtype else found
        return str(found).removeprefix("torch.")

    def astype(self, x: Array, dtype: str) -> Array:
        made: Array = self.writer.method("to", x, self.dtype_object(dtype))
        return made

    def item(self, x: Array) -> Any:
        node = self.writer.node("call_method", "item", (x,))
        kind = bool if x.dtype == "bool" else float if self.is_floating(x) else int
        return Number(self.writer, node, kind(1)) if not x.dtype.startswith("complex") else Opaque(self.writer, node)

    def stop_gradient(self, x: Array) -> Array:
        made: Array = self.writer.method("detach", x)
        made.differentiable = False
        return made

    def getitem(self, x: Array, index: Any) -> Any:
        """Items; a slice that goes backwards is one of the flipped array."""
        parts = list(index) if isinstance(index, tuple) else [index]
        taken = sum(part is not None and part is not Ellipsis for part in parts)
        axis, turned = 0, []
        for place, part in enumerate(parts):
            if part is Ellipsis:
                axis += x.ndim - taken
            elif part is not None:
                if isinstance(part, slice) and isinstance(part.step, int) and part.step < 0:
                    if part.start is not None or part.stop is not None:
                        raise Untranslatable("a slice that goes backwards from one place to another")
                    turned.append(axis)
                    parts[place] = slice(None, None, -part.step if part.step != -1 else None)
                axis += 1
        if not turned:
            return super().getitem(x, index)
        flipped = self.writer.call(torch.flip, x, tuple(turned))
        if all(isinstance(one, slice) and one == slice(None) for one in parts):
            return flipped
        return super().getitem(flipped, tuple(parts))

    def at_set(self, x: Array, index: Any, value: Any, how: str = "set") -> Array:
        if how not in ("set", "add"):
            return self._reduced_at(x, index, value, how)
        if how == "add" and not any(isinstance(one, Array) for one in _parts(index)):
            value, how = super().getitem(x, index) + value, "set"
        made: Array = self.writer.method("clone", x)
        if how == "set":
            self.writer.node("call_function", operator.setitem, (made, index, value))
            return made
        parts = _parts(index)
        if not all(isinstance(one, Array) for one in parts):
            raise Untranslatable("torch adds to items by arrays of indices alone")
        value = value if isinstance(value, Array) else self.as_array(value, x.dtype)
        added: Array = self.writer.method("index_put", x, tuple(parts), value, accumulate=True)
        return added

    # ---- NumPy's functions in torch's words --------------------------------------------------------------------------

    def as_reshape(self, x: Array, shape: Any, order: str = "C") -> Any:
        if order != "C":
            raise Untranslatable("an order of items in memory")
        return self.writer.method("reshape", x, shape if isinstance(shape, tuple) else tuple(_parts(shape)))

    def as_transpose(self, x: Array, axes: Any = None) -> Any:
        order = tuple(reversed(range(x.ndim))) if axes is None else tuple(axes)
        return self.writer.method("permute", x, order)

    def as_broadcast_to(self, x: Array, shape: Any) -> Any:
        return self.writer.call(torch.broadcast_to, x, shape if isinstance(shape, tuple) else (shape,))

    def as_expand_dims(self, x: Array, axis: Any) -> Any:
        for one in sorted(_parts(axis)):
            x = self.writer.method("unsqueeze", x, one)
        return x

    def as_squeeze(self, x: Array, axis: Any = None) -> Any:
        return self.writer.method("squeeze", x, *(() if axis is None else (axis,)))

    def as_take(self, x: Array, index: Any, axis: Any = None) -> Any:
        if axis is None:
            x, axis = self.as_reshape(x, (-1,)), 0
        front = (slice(None),) * (axis % x.ndim)
        return super().getitem(x, (*front, index) if front else index)

    def as_take_along_axis(self, x: Array, index: Array, axis: Any) -> Any:
        return self.writer.call(torch.take_along_dim, x, self.cast(index, "int64"), dim=axis)

    def as_tile(self, x: Array, counts: Any) -> Any:
        return self.writer.call(torch.tile, x, tuple(_parts(counts)))

    def as_repeat(self, x: Array, count: Any, axis: Any = None, **given: Any) -> Any:
        size = {"output_size": given["total_repeat_length"]} if "total_repeat_length" in given else {}
        return self.writer.call(torch.repeat_interleave, x, count, dim=axis, **size)

    def as_flip(self, x: Array, axis: Any = None) -> Any:
        return self.writer.call(torch.flip, x, tuple(range(x.ndim)) if axis is None else tuple(_parts(axis)))

    def as_roll(self, x: Array, shift: Any, axis: Any = None) -> Any:
        return self.writer.call(torch.roll, x, shift, axis)

    def as_split(self, x: Array, parts: Any, axis: int = 0) -> Any:
        return list(self.writer.call(torch.tensor_split, x, parts, dim=axis))

    def as_pad(self, x: Array, widths: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
        modes = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}
        if mode not in modes:
            raise Untranslatable(f"torch has no padding by {mode}")
        pairs = [widths] * x.ndim if not isinstance(widths, (tuple, list)) else list(widths)
        pairs = pairs * x.ndim if len(pairs) == 1 else pairs
        if len(pairs) == 2 and not isinstance(pairs[0], (tuple, list)):
            pairs = [tuple(pairs)] * x.ndim
        flat = [one for pair in reversed(pairs) for one in (pair if isinstance(pair, (tuple, list)) else (pair, pair))]
        while len(flat) > 2 and flat[-2:] == [0, 0]:
            flat = flat[:-2]
        value = {"value": constant_values} if mode == "constant" and constant_values else {}
        if mode != "constant" and x.ndim <= len(flat) // 2:  # torch takes the first axes for a batch and channels
            wide = self.as_expand_dims(x, 0)
            found = self.writer.call(torch.nn.functional.pad, wide, tuple(flat), mode=modes[mode])
            return self.as_squeeze(found, 0)
        return self.writer.call(torch.nn.functional.pad, x, tuple(flat), mode=modes[mode], **value)

    def as_clip(self, x: Array, low: Any = None, high: Any = None, **named: Any) -> Any:
        low, high = named.get("a_min", named.get("min", low)), named.get("a_max", named.get("max", high))
        return self.writer.call(torch.clamp, x, **{name: one for name, one in (("min", low), ("max", high))
                                                  if one is not None})  # fmt: skip

    def as_maximum(self, x: Any, y: Any) -> Any:
        return self._bounded(x, y, "min", torch.maximum)

    def as_minimum(self, x: Any, y: Any) -> Any:
        return self._bounded(x, y, "max", torch.minimum)

    def _bounded(self, x: Any, y: Any, word: str, function: Any) -> Any:
        if isinstance(x, Array) and isinstance(y, Array):
            return self.writer.call(function, x, y)
        array, bound = (x, y) if isinstance(x, Array) else (y, x)
        return self.writer.call(torch.clamp, array, **{word: bound})

    def as_argsort(self, x: Array, axis: Any = -1, stable: Any = None, kind: Any = None) -> Any:
        if axis is None:
            x, axis = self.as_reshape(x, (-1,)), -1
        return self.writer.call(torch.argsort, x, dim=axis, stable=True)

    def as_sort(self, x: Array, axis: Any = -1, stable: Any = None, kind: Any = None) -> Any:
        if axis is None:
            x, axis = self.as_reshape(x, (-1,)), -1
        return self.writer.call(_sort, x, axis)[0]

    def as_array(self, value: Any, dtype: Any = None, **given: Any) -> Any:  # also called by rows
        if isinstance(value, Array):
            return value if dtype is None else self.cast(value, _name(dtype))
        options = {} if dtype is None else {"dtype": self.dtype_object(_name(dtype))}
        if any(isinstance(one, Array) for one in _leaves(value)):
            raise Untranslatable("an array made of a list of arrays")
        return self.writer.call(torch.tensor, value, **options)

    as_asarray = as_array

    def as_diff(self, x: Array, n: int = 1, axis: int = -1, **ends: Any) -> Any:
        return self.writer.call(torch.diff, x, n=n, dim=axis, **ends)

    def as_tensordot(self, x: Array, y: Array, axes: Any = 2) -> Any:
        return self.writer.call(torch.tensordot, x, y, dims=axes)

    def as_diagonal(self, x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return self.writer.call(torch.diagonal, x, offset=offset, dim1=axis1, dim2=axis2)

    def as_nan_to_num(self, x: Array, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
        return self.writer.call(torch.nan_to_num, x, nan=nan, posinf=posinf, neginf=neginf)

    def as_rot90(self, x: Array, k: int = 1, axes: Any = (0, 1)) -> Any:
        return self.writer.call(torch.rot90, x, k, tuple(axes))

    def as_searchsorted(self, x: Array, values: Any, side: str = "left") -> Any:
        return self.writer.call(torch.searchsorted, x, values, side=side)

    def as_einsum(self, text: str, *arrays: Any, optimize: Any = None) -> Any:
        return self.writer.call(torch.einsum, text, *arrays)

    def as_dot(self, x: Array, y: Array) -> Any:
        if x.ndim > 2 or y.ndim > 2 or not x.ndim or not y.ndim:
            raise Untranslatable("dot of arrays of these ranks")
        return self.matmul(x, y)

    def as_swapaxes(self, x: Array, one: int, other: int) -> Any:
        return self.writer.method("transpose", x, one, other)

    def as_moveaxis(self, x: Array, source: Any, destination: Any) -> Any:
        return self.writer.call(torch.movedim, x, source, destination)

    def as_full(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        return self.writer.call(torch.full, tuple(_parts(shape)), value, **({} if dtype is None else {"dtype": dtype}))

    # ---- our own functions -------------------------------------------------------------------------------------------

    def softmax(self, x: Array, axis: int) -> Array:
        return self._made(torch.softmax, x, dim=axis)

    def log_softmax(self, x: Array, axis: int) -> Array:
        return self._made(torch.log_softmax, x, dim=axis)

    def sigmoid(self, x: Array) -> Array:
        return self._made(torch.sigmoid, x)

    def relu(self, x: Array) -> Array:
        return self._made(torch.relu, x)

    def silu(self, x: Array) -> Array:
        return self._made(torch.nn.functional.silu, x)

    def erf(self, x: Array) -> Array:
        return self._made(torch.erf, x)

    def rsqrt(self, x: Array) -> Array:
        return self._made(torch.rsqrt, x)

    def gelu(self, x: Array, approximate: bool) -> Array:
        return self._made(torch.nn.functional.gelu, x, **({"approximate": "tanh"} if approximate else {}))

    def logsumexp(self, x: Array, axis: Any, keepdims: bool) -> Array:
        return self._made(torch.logsumexp, x, dim=axis, keepdim=keepdims)

    def softplus(self, x: Array) -> Array:
        return self.logaddexp(x, self.zeros_like(x))  # type: ignore[no-any-return]

    def conv(self, x: Array, weight: Array, **given: Any) -> Array:
        count = x.ndim - 2
        x = self._spread_out(x, tuple(given.get("spread", (1,))))
        flat = [one for pair in reversed(given["padding"]) for one in pair]
        x = self._made(torch.nn.functional.pad, x, tuple(flat)) if any(flat) else x
        function = getattr(torch.nn.functional, f"conv{count}d")
        return self._made(function, x, weight, stride=tuple(given["stride"]), dilation=tuple(given["dilation"]),
                          groups=given["groups"])  # fmt: skip

    def _made(self, function: Any, x: Any, *args: Any, **kwargs: Any) -> Array:
        made: Array = self.writer.call(function, x, *args, **kwargs)
        return made

    def draw(self, kind: str, shape: tuple[Any, ...], dtype: str, **given: Any) -> Array:
        self.writer.next_key()
        if kind == "bernoulli":
            found: Array = self.writer.call(torch.rand, shape) < given["p"]
            return found
        if kind == "randint":
            return self._made(torch.randint, given["low"], given["high"], shape, dtype=self.dtype_object(dtype))
        function = torch.rand if kind == "uniform" else torch.randn
        return self._made(function, shape, dtype=self.dtype_object(dtype))

    def _reduced_at(self, x: Array, index: Any, value: Any, how: str) -> Array:
        """Items made a minimum, maximum or product with others, at the rows that one array of indices tells."""
        words = {"max": "amax", "min": "amin", "multiply": "prod"}
        if how not in words or not isinstance(index, Array) or index.ndim != 1 or index.dtype == "bool":
            raise Untranslatable(f"torch has no {how} at items that are given by several indices")
        value = value if isinstance(value, Array) else self.as_array(value, x.dtype)
        value = self.as_broadcast_to(value, (index.size(0), *x.shape[1:]))
        return self._made(torch.index_reduce, x, 0, self.cast(index, "int64"), value, words[how])

    def _spread_out(self, x: Array, steps: tuple[int, ...]) -> Array:
        """Zeros between the items of the axes behind the second."""
        for axis, step in enumerate(steps, 2):
            if step != 1:
                sizes = x.shape
                wide = self._made(torch.nn.functional.pad, self.as_expand_dims(x, axis + 1),
                                  (0, 0) * (x.ndim - 1 - axis) + (0, step - 1))  # fmt: skip
                wide = self.as_reshape(wide, (*sizes[:axis], sizes[axis] * step, *sizes[axis + 1 :]))
                x = wide[(*(slice(None),) * axis, slice(None, (sizes[axis] - 1) * step + 1))]
        return x

    def windows(self, x: Array, how: str, **given: Any) -> Array:
        if not self.is_floating(x):
            raise Untranslatable("a pool of integers")
        count = len(given["window"])
        lowest = -float("inf") if how == "max" else 0.0
        flat = [one for pair in reversed(given["padding"]) for one in pair]
        x = self._made(torch.nn.functional.pad, x, tuple(flat), value=lowest) if any(flat) else x
        window, stride = tuple(given["window"]), tuple(given["stride"])
        if how == "max":
            function = getattr(torch.nn.functional, f"max_pool{count}d")
            return self._made(function, x, window, stride=stride, dilation=tuple(given["dilation"]))
        if set(given["dilation"]) != {1}:
            raise Untranslatable("sums of windows with holes")
        found = self._made(getattr(torch.nn.functional, f"avg_pool{count}d"), x, window, stride=stride)
        return found * float(math.prod(window))

    def nonzero_places(self, x: Array, count: int) -> tuple[Array, ...]:
        node = self.writer.node("call_function", torch.nonzero, (x,), {"as_tuple": True})
        found = self.writer.wrap(node, (Spec((count,), "int64"),) * x.ndim, False)
        return tuple(found)

    def unique_counts(self, x: Array) -> tuple[Array, Array]:
        node = self.writer.node("call_function", torch.unique, (x,), {"return_counts": True})
        values, counts = self.writer.wrap(node, (Spec((2,), x.dtype), Spec((2,), "int64")), False)
        return values, counts

    def counts_of(self, x: Array, weights: Any, least: Any, wanted: Any) -> Array:
        given = {} if weights is None else {"weights": weights}
        node = self.writer.node("call_function", torch.bincount, (x,), {**given, "minlength": least})
        dtype = "int64" if weights is None else weights.dtype
        made: Array = self.writer.wrap(node, Spec(wanted.shape, dtype), False)
        return made

    def masked(self, x: Array, mask: Array) -> Any:
        return self.writer.node("call_function", operator.getitem, (x, mask))

    def set_masked(self, x: Array, mask: Array, value: Array) -> Array:
        return self.at_set(x, mask, value)

    def erfc(self, x: Array) -> Array:
        return self._made(torch.special.erfc, x)

    def derivative(self, name: str) -> Any:
        return getattr(torch.func, name)


def _sort(x: Any, axis: int) -> Any:
    return tuple(torch.sort(x, dim=axis, stable=True))


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, (tuple, list)) else [value]


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _number(value: Any) -> Any:
    return value.value if isinstance(value, Number) else value


def _meta(leaf: Any) -> Any:
    return torch.empty(leaf.shape, dtype=getattr(torch, leaf.dtype), device="meta") if isinstance(leaf, Spec) else leaf


def _meta_index(leaf: Any) -> Any:
    """An index without axes is a number: torch asks for it."""
    is_number = isinstance(leaf, Spec) and not leaf.shape and leaf.dtype != "bool"
    return 0 if is_number else _meta(leaf)


def _spec(found: Any) -> Any:
    return Spec(tuple(found.shape), _name(found.dtype)) if isinstance(found, torch.Tensor) else found


class _Weights(torch.nn.Module):
    """Parameters and buffers by their dotted paths."""

    def __init__(self, params: dict[str, Any], state: dict[str, Any]) -> None:
        super().__init__()
        for path, value in (params | state).items():
            *way, name = path.split(".")
            owner: torch.nn.Module = self
            for part in way:
                if part not in owner._modules:
                    owner.add_module(part, torch.nn.Module())
                owner = owner.get_submodule(part)
            if path in params:
                owner.register_parameter(name, torch.nn.Parameter(value))
            elif isinstance(value, torch.Tensor):
                owner.register_buffer(name, value)
            else:
                setattr(owner, name, value)


def _renamed(graph: Graph, held: dict[str, Any]) -> dict[str, Any]:
    """What a module holds, by names that no method of modules has."""
    names = {path: f"{path}_" for path in held if hasattr(torch.nn.Module, path.rpartition(".")[2])}
    for one in (graph, *nested_graphs(graph)) if names else ():
        for node in one.nodes:
            if node.op == "get_attr":
                node.target = names.get(str(node.target), node.target)
            elif node.op == "call_function" and node.target is assign:
                owner, path, value = node.args
                node.args = (owner, names.get(path, path), value)
    return {names.get(path, path): value for path, value in held.items()}


def make(graph: Graph, params: dict[str, Any], state: dict[str, Any], name: str, kinds: Iterable[type]) -> Any:
    """The module of a translated graph; a function where it holds nothing."""
    params, state = _renamed(graph, params), _renamed(graph, state)
    weights = _Weights(params, state) if params or state else None
    return callable_of(weights, {}, graph, name, (), False)


NAMESPACE = TorchNamespace
