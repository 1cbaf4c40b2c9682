"""torch's functions that make arrays, convert them, or draw random numbers.

Dtypes are written out, as those of torch: the defaults of targets differ. Random numbers are of the same distributions,
from the key or seed that the translated program is given: another stream than torch's.
"""

from __future__ import annotations

from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.rows.torch_shapes import result_sizes, whole
from clew.translate.values import Array, Number, Value

_PLACES = ("device", "layout", "requires_grad", "pin_memory", "memory_format", "non_blocking", "copy")


def _dtype(xp: Any) -> Any:
    if xp.wanted is None:
        raise Untranslatable("the dtype that it gives is not known")
    return xp.dtype_object(xp.wanted.dtype)


def _check(given: dict[str, Any]) -> None:
    for name in given:
        if name not in (*_PLACES, "dtype", "size", "fill_value", "generator"):
            raise Untranslatable(f"the option {name}")
    if given.get("generator") is not None:
        raise Untranslatable("a generator of its own")


def _sized(xp: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    return result_sizes(xp, (named["size"],) if "size" in named else given)


@TORCH.row("zeros", "empty")
def zeros(xp: Any, *size: Any, **named: Any) -> Any:
    """Zeros; so is what torch leaves as it is."""
    _check(named)
    return xp.zeros(_sized(xp, size, named), dtype=_dtype(xp))


@TORCH.row("ones")
def ones(xp: Any, *size: Any, **named: Any) -> Any:
    """Ones."""
    _check(named)
    return xp.ones(_sized(xp, size, named), dtype=_dtype(xp))


@TORCH.row("full")
def full(xp: Any, size: Any, fill_value: Any, **named: Any) -> Any:
    """One number everywhere."""
    _check(named)
    return xp.full(result_sizes(xp, (size,)), fill_value, dtype=_dtype(xp))


@TORCH.row("zeros_like", "empty_like")
def zeros_like(xp: Any, x: Array, **named: Any) -> Any:
    """Zeros in the shape of another array."""
    _check(named)
    return xp.zeros_like(x, dtype=_dtype(xp))


@TORCH.row("ones_like")
def ones_like(xp: Any, x: Array, **named: Any) -> Any:
    """Ones in the shape of another array."""
    _check(named)
    return xp.ones_like(x, dtype=_dtype(xp))


@TORCH.row("full_like")
def full_like(xp: Any, x: Array, fill_value: Any, **named: Any) -> Any:
    """One number in the shape of another array."""
    _check(named)
    return xp.full_like(x, fill_value, dtype=_dtype(xp))


@TORCH.row("new_zeros", "new_empty")
def new_zeros(xp: Any, x: Array, *size: Any, **named: Any) -> Any:
    """Zeros of the kind of another array."""
    return zeros(xp, *size, **named)


@TORCH.row("new_ones")
def new_ones(xp: Any, x: Array, *size: Any, **named: Any) -> Any:
    """Ones of the kind of another array."""
    return ones(xp, *size, **named)


@TORCH.row("new_full")
def new_full(xp: Any, x: Array, size: Any, fill_value: Any, **named: Any) -> Any:
    """One number, of the kind of another array."""
    return full(xp, size, fill_value, **named)


@TORCH.row("new_tensor")
def new_tensor(xp: Any, x: Array, data: Any, **named: Any) -> Any:
    """An array of these numbers, of the kind of another."""
    return tensor(xp, data, **named)


@TORCH.row("arange")
def arange(xp: Any, *bounds: Any, **named: Any) -> Any:
    """Numbers in steps."""
    bounds = (*bounds, *(named.pop(name) for name in ("start", "end", "step") if name in named))
    _check(named)
    bounds = tuple(one.plain if isinstance(one, Array) and one.plain is not None else one for one in bounds)
    if any(isinstance(one, Array) for one in bounds):
        bounds = tuple(_bound(xp, one) if isinstance(one, Array) else one for one in bounds)
        return xp.sized_by_data(xp.function("arange"), *bounds, dtype=_dtype(xp))
    return xp.arange(*bounds, dtype=_dtype(xp))


def _bound(xp: Any, x: Array) -> Any:
    """A bound as a plain number; what it is for the example does not matter."""
    return xp.writer.node("call_method", "item", (xp.concrete(x),))


@TORCH.row("linspace")
def linspace(xp: Any, start: Any, end: Any, steps: Any, **named: Any) -> Any:
    """Numbers at equal distances."""
    _check(named)
    return xp.linspace(start, end, whole(steps), dtype=_dtype(xp))


@TORCH.row("eye")
def eye(xp: Any, n: Any, m: Any = None, **named: Any) -> Any:
    """The unit matrix."""
    _check(named)
    return xp.eye(n, m, dtype=_dtype(xp)) if m is not None else xp.eye(n, dtype=_dtype(xp))


@TORCH.row("tensor", "as_tensor", "asarray", "scalar_tensor")
def tensor(xp: Any, data: Any, **named: Any) -> Any:
    """An array of these numbers."""
    _check(named)
    if isinstance(data, Array):
        return xp.to_wanted(data)
    if isinstance(data, Number) and isinstance(data.value, list):  # a list that a loop may have collected
        node = xp.writer.node("call_function", xp.function("array"), (data,), {"dtype": _dtype(xp)})
        return xp.writer.wrap(node, xp.wanted, False)
    made = xp.array(_plain(data), dtype=_dtype(xp))
    made.plain = data if isinstance(data, (Number, int)) else None
    if not any(isinstance(leaf, Value) for leaf in _leaves(data)):
        made.fixed = True
    return made


def _plain(data: Any) -> Any:
    return [_plain(item) for item in data] if isinstance(data, (list, tuple)) else data


def _leaves(data: Any) -> list[Any]:
    return [leaf for item in data for leaf in _leaves(item)] if isinstance(data, (list, tuple)) else [data]


# ---- conversions -----------------------------------------------------------------------------------------------------


@TORCH.row("to", "type", "_to_copy")
def to(xp: Any, x: Array, *args: Any, **named: Any) -> Any:
    """In another dtype; a device is no matter."""
    if not isinstance(x, Array):
        raise Untranslatable("a conversion of something that is no array")
    if xp.wanted is None:
        raise Untranslatable("the dtype that it gives is not known")
    return xp.to_wanted(x)


for _name in (
    "float",
    "half",
    "double",
    "bfloat16",
    "int",
    "long",
    "short",
    "bool",
    "byte",
    "char",
    "type_as",
    "cfloat",
):
    TORCH.add(_name, to)


@TORCH.row("detach", "attribute.data")
def detach(xp: Any, x: Array) -> Any:
    """The same values, without gradients."""
    return xp.stop_gradient(x) if x.differentiable else x


@TORCH.row("copy", "fill")
def copied(xp: Any, x: Array, value: Any, non_blocking: bool = False) -> Any:
    """The values of another array, in the shape and dtype of this one."""
    if isinstance(value, Array) and value.spec.shape == x.spec.shape and value.ndim:
        return xp.cast(value, x.dtype)
    return xp.broadcast_to(xp.as_array(value, x.dtype), x.shape)


@TORCH.row("fitted")
def fitted(xp: Any, value: Array, array: Array) -> Any:
    """A value in the dtype of the array that it is written into."""
    if value.spec.shape != array.spec.shape:
        raise Untranslatable("what is written has another shape than the array")
    return xp.cast(value, array.dtype)


@TORCH.row("may_be_out")
def may_be_out(xp: Any, out: Array, value: Array, *given: Any) -> bool:
    """Whether a result fits into the array that was given for it."""
    return out.spec.shape == value.spec.shape


@TORCH.row("needs_no_gradients")
def needs_no_gradients(xp: Any, value: Array) -> bool:
    """Arrays that are never written into have no views that refuse gradients."""
    return True


@TORCH.row("drawn")
def drawn(xp: Any, array: Array, method: str, *args: Any, **named: Any) -> Any:
    """Random numbers in the place of an array."""
    if method == "bernoulli_":
        return xp.cast(bernoulli(xp, array, *(args or (0.5,)), **named), array.dtype)
    raise Untranslatable(f"no row draws what {method} does")


@TORCH.row("zero")
def zero(xp: Any, x: Array) -> Any:
    """Zeros in its place."""
    return xp.zeros_like(x)


def _converted(kind: Any) -> None:
    def row(xp: Any, x: Any) -> Any:
        if isinstance(x, Array):
            if x.dtype == "bool" and kind is bool:
                return xp.truth(x)
            return xp.item(x, kind)
        return xp.writer.plain(kind, x) if isinstance(x, Value) else kind(x)

    TORCH.row(f"__{kind.__name__}__", f"builtins.{kind.__name__}")(row)


for _kind in (bool, int, float):
    _converted(_kind)


@TORCH.row("item", "tolist")
def plain_value(xp: Any, x: Any) -> Any:
    """A plain number out of an array."""
    return xp.item(x)


# ---- random numbers --------------------------------------------------------------------------------------------------


@TORCH.row("rand")
def rand(xp: Any, *size: Any, **named: Any) -> Any:
    """Uniform numbers."""
    _check(named)
    return xp.draw("uniform", _sized(xp, size, named), xp.wanted.dtype)


@TORCH.row("randn")
def randn(xp: Any, *size: Any, **named: Any) -> Any:
    """Normal numbers."""
    _check(named)
    return xp.draw("normal", _sized(xp, size, named), xp.wanted.dtype)


@TORCH.row("rand_like")
def rand_like(xp: Any, x: Array, **named: Any) -> Any:
    """Uniform numbers in the shape of another array."""
    _check(named)
    return xp.draw("uniform", x.shape, xp.wanted.dtype)


@TORCH.row("randn_like")
def randn_like(xp: Any, x: Array, **named: Any) -> Any:
    """Normal numbers in the shape of another array."""
    _check(named)
    return xp.draw("normal", x.shape, xp.wanted.dtype)


@TORCH.row("randint")
def randint(xp: Any, *args: Any, **named: Any) -> Any:
    """Whole numbers below a bound."""
    low, high, size = (0, *args) if len(args) == 2 else args
    _check(named)
    return xp.draw("randint", result_sizes(xp, (size,)), xp.wanted.dtype, low=low, high=high)


@TORCH.row("bernoulli")
def bernoulli(xp: Any, x: Array, p: Any = None, **named: Any) -> Any:
    """Ones with these probabilities."""
    _check(named)
    return xp.to_wanted(xp.draw("bernoulli", x.shape, "bool", p=x if p is None else p))


@TORCH.row("nn.functional.dropout", "dropout")
def dropout(xp: Any, x: Array, p: Any = 0.5, training: Any = True, inplace: bool = False) -> Any:
    """Items left out with a probability; the others made larger by as much."""
    if isinstance(training, Value) or isinstance(p, Value):
        raise Untranslatable("a dropout whose mode or probability is not fixed")
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    keep = xp.draw("bernoulli", x.shape, "bool", p=1.0 - p)
    return xp.where(keep, x / (1.0 - p), 0.0)
