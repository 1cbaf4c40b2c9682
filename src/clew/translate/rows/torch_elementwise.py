"""torch's elementwise functions: arithmetic, comparisons, roundings, activations.

Each computes in the dtype in which torch computes: where the target's own promotion would give another one, the
operands are cast first. Python numbers take part as they do in torch: they never widen an array of their own kind.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.table import Table, refuse_given
from clew.translate.values import Array, Number

TORCH = Table("torch")

# ---- promotion -------------------------------------------------------------------------------------------------------

_RANKS = {"bool": 0, "uint8": 1, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "uint16": 2, "uint32": 3, "uint64": 4}
_FLOATS = {"float16": 1, "bfloat16": 1, "float32": 2, "float64": 3}
_COMPLEX = {"complex64": 2, "complex128": 3}


def _category(value: Any) -> int:
    if isinstance(value, Array):
        return 0 if value.dtype == "bool" else 1 if value.dtype in _RANKS else 2 if value.dtype in _FLOATS else 3
    if isinstance(value, Number):
        value = value.value
    return 0 if isinstance(value, bool) else 1 if isinstance(value, int) else 2 if isinstance(value, float) else 3


def _wider(one: str, other: str) -> str:
    """The dtype of two arrays of the same priority."""
    if one == other:
        return one
    for kinds in (_COMPLEX, _FLOATS):
        if one in kinds and other in kinds:
            return "float32" if kinds[one] == kinds[other] else max((one, other), key=kinds.__getitem__)
        if one in kinds or other in kinds:
            wide, narrow = (one, other) if one in kinds else (other, one)
            return "complex128" if kinds is _COMPLEX and narrow == "float64" else wide
    if {one, other} == {"uint8", "int8"}:
        return "int16"
    return max((one, other), key=_RANKS.__getitem__)


def result_dtype(*values: Any) -> str | None:
    """The dtype in which torch computes with these values; None if none of them is an array."""
    arrays = [one for one in values if isinstance(one, Array)]
    if not arrays:
        return None
    found: str | None = None
    for level in ([one for one in arrays if one.ndim], [one for one in arrays if not one.ndim]):
        inner: str | None = None
        for one in level:
            inner = one.dtype if inner is None else _wider(inner, one.dtype)
        if inner is not None and (found is None or _kind(inner) > _kind(found)):
            found = inner
    assert found is not None
    top = max((_category(one) for one in values if not isinstance(one, Array)), default=0)
    if top > _kind(found):
        return {1: "int64", 2: "float32", 3: "complex64"}[top]
    return found


def _kind(dtype: str) -> int:
    return 0 if dtype == "bool" else 1 if dtype in _RANKS else 2 if dtype in _FLOATS else 3


def compared(xp: Any, *values: Any) -> tuple[Any, ...]:
    """Operands in the dtype in which torch compares them."""
    dtype = result_dtype(*values)
    return values if dtype is None else xp.together(*values, dtype=xp.dtype(dtype))


def computed(xp: Any, *values: Any) -> tuple[Any, ...]:
    """Operands in the dtype of the result."""
    return values if xp.wanted is None else xp.together(*values, dtype=xp.wanted.dtype)


# ---- arithmetic ------------------------------------------------------------------------------------------------------


@TORCH.row("add", "operator.add")
def add(xp: Any, x: Any, y: Any, *, alpha: Any = 1) -> Any:
    """A sum; of truth values an "or"."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return (*x, *y) if isinstance(x, tuple) else [*x, *y]
    x, y = computed(xp, x, y if alpha == 1 else mul(xp, y, alpha))
    if xp.wanted is not None and xp.wanted.dtype == "bool":
        return xp.logical_or(x, y)
    return x + y


@TORCH.row("sub", "subtract", "operator.sub")
def sub(xp: Any, x: Any, y: Any, *, alpha: Any = 1) -> Any:
    """A difference."""
    x, y = computed(xp, x, y if alpha == 1 else mul(xp, y, alpha))
    return x - y


@TORCH.row("rsub")
def rsub(xp: Any, x: Any, y: Any, *, alpha: Any = 1) -> Any:
    """A difference the other way round."""
    return sub(xp, y, x, alpha=alpha)


@TORCH.row("mul", "multiply", "operator.mul")
def mul(xp: Any, x: Any, y: Any) -> Any:
    """A product; of truth values an "and"."""
    if isinstance(x, (tuple, list)) and isinstance(y, int):
        return x * y
    x, y = computed(xp, x, y)
    if xp.wanted is not None and xp.wanted.dtype == "bool":
        return xp.logical_and(x, y)
    return x * y


@TORCH.row("div", "divide", "true_divide", "operator.truediv")
def div(xp: Any, x: Any, y: Any, *, rounding_mode: Any = None) -> Any:
    """A quotient, which is rounded where that is asked for."""
    if rounding_mode == "floor":
        return floor_divide(xp, x, y)
    if rounding_mode == "trunc" and isinstance(x, (int, Number)) and isinstance(y, (int, Number)):
        return _of_numbers(xp, x, y)
    if rounding_mode == "trunc":
        x, y = computed(xp, x, y)
        if xp.wanted.dtype in _FLOATS:
            return xp.trunc(x / y)
        whole = x // y
        return xp.where((xp.remainder(x, y) != 0) & ((x < 0) != (y < 0)), whole + 1, whole)
    x, y = computed(xp, x, y)
    return x / y


def _of_numbers(xp: Any, x: Any, y: Any) -> Any:
    """The quotient of two plain numbers, as an array that is known to hold it."""
    quotient = xp.writer.operate(int, xp.writer.operate(operator.truediv, x, y))
    made = xp.as_array(quotient, xp.wanted.dtype)
    made.plain = quotient
    return made


@TORCH.row("floor_divide", "operator.floordiv")
def floor_divide(xp: Any, x: Any, y: Any) -> Any:
    """A quotient rounded down."""
    x, y = computed(xp, x, y)
    return x // y


@TORCH.row("remainder", "operator.mod")
def remainder(xp: Any, x: Any, y: Any) -> Any:
    """What a division rounded down leaves, with the sign of the divisor."""
    x, y = computed(xp, x, y)
    return x % y


@TORCH.row("fmod")
def fmod(xp: Any, x: Any, y: Any) -> Any:
    """What a division rounded towards zero leaves."""
    return xp.fmod(*computed(xp, x, y))


@TORCH.row("pow", "operator.pow", "float_power")
def power(xp: Any, x: Any, y: Any) -> Any:
    """A power; of integers with a fixed exponent that is not negative."""
    x, y = computed(xp, x, y)
    integers = xp.wanted is not None and xp.wanted.dtype not in _FLOATS and xp.wanted.dtype not in _COMPLEX
    if integers and not (isinstance(y, int) and y >= 0):
        raise Untranslatable("a negative power of integers is an error in torch")
    return x**y


for _name in ("atan2", "arctan2", "hypot", "logaddexp", "copysign", "nextafter", "maximum", "minimum", "fmax", "fmin"):

    def _call(xp: Any, x: Any, y: Any, _numpy: str = _name.replace("atan2", "arctan2").replace("arcarc", "arc")) -> Any:
        return getattr(xp, _numpy)(*computed(xp, x, y))

    TORCH.add(_name, _call)

for _name, _function in {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}.items():

    def _compare(xp: Any, x: Any, y: Any, _function: Any = _function) -> Any:
        return _function(*compared(xp, x, y))

    TORCH.row(_name, f"operator.{_name}")(_compare)
TORCH.rows |= {"less": TORCH.rows["lt"], "greater": TORCH.rows["gt"], "less_equal": TORCH.rows["le"]}
TORCH.rows |= {"greater_equal": TORCH.rows["ge"], "not_equal": TORCH.rows["ne"]}

for _name, _function in {"and": operator.and_, "or": operator.or_, "xor": operator.xor}.items():

    def _bits(xp: Any, x: Any, y: Any, _function: Any = _function) -> Any:
        return _function(*computed(xp, x, y))

    _operator = _name if _name == "xor" else f"{_name}_"
    TORCH.row(f"bitwise_{_name}", f"__{_name}__", f"operator.{_operator}")(_bits)

    def _logical(xp: Any, x: Any, y: Any, _numpy: str = f"logical_{_name}") -> Any:
        return getattr(xp, _numpy)(x, y)

    TORCH.add(f"logical_{_name}", _logical)


@TORCH.row("bitwise_left_shift", "operator.lshift")
def left_shift(xp: Any, x: Any, y: Any) -> Any:
    """Bits moved to the left."""
    x, y = computed(xp, x, y)
    return x << y


@TORCH.row("bitwise_right_shift", "operator.rshift")
def right_shift(xp: Any, x: Any, y: Any) -> Any:
    """Bits moved to the right."""
    x, y = computed(xp, x, y)
    return x >> y


@TORCH.row("logical_not")
def logical_not(xp: Any, x: Any) -> Any:
    """Whether an item is zero."""
    return xp.logical_not(x)


@TORCH.row("bitwise_not", "operator.invert")
def invert(xp: Any, x: Any) -> Any:
    """All bits the other way; of truth values "not"."""
    return ~x


@TORCH.row("neg", "negative", "operator.neg")
def neg(xp: Any, x: Any) -> Any:
    """The negative."""
    return -x


@TORCH.row(
    "operator.pos",
    "positive",
    "resolve_conj",
    "resolve_neg",
    "clone",
    "contiguous",
    "requires_grad_",
    "cpu",
    "_conj_physical_if_complex",
    "alias",
    "lift_fresh",
    "view_of",
)
def same(xp: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The same values: a copy and a layout in memory are no matter where arrays are not written to."""
    return x


@TORCH.row("addcmul")
def addcmul(xp: Any, x: Any, y: Any, z: Any, *, value: Any = 1) -> Any:
    """``x + value * y * z``."""
    x, y, z = computed(xp, x, y, z)
    return x + y * z if value == 1 else x + value * y * z


@TORCH.row("addcdiv")
def addcdiv(xp: Any, x: Any, y: Any, z: Any, *, value: Any = 1) -> Any:
    """``x + value * y / z``."""
    x, y, z = computed(xp, x, y, z)
    return x + value * (y / z)


@TORCH.row("lerp")
def lerp(xp: Any, x: Any, y: Any, weight: Any) -> Any:
    """A value between two."""
    x, y, weight = computed(xp, x, y, weight)
    return x + weight * (y - x)


# ---- functions of one array ------------------------------------------------------------------------------------------

_SAME = (
    "exp expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh floor ceil trunc sign isnan isinf isfinite "
    "square conj deg2rad rad2deg exp2 angle real imag abs signbit sinc"
).split()
_RENAMED = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "absolute": "abs", "fix": "trunc", "special.expm1": "expm1", "special.exp2": "exp2", "special.log1p": "log1p",
    "isposinf": "isposinf", "isneginf": "isneginf", "isreal": "isreal", "arcsin": "arcsin", "arccos": "arccos",
    "arctan": "arctan", "special.sinc": "sinc", "conj_physical": "conj", "sgn": "sign",
}  # fmt: skip
_FLOAT_ONLY = frozenset(
    "exp expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh exp2 "
    "deg2rad rad2deg sinc".split()
)
_WHOLE = ("floor", "ceil", "trunc", "round")


def _unary(name: str, numpy: str) -> None:
    def row(xp: Any, x: Any) -> Any:
        if not isinstance(x, Array):
            return xp.writer.plain(getattr(math, numpy), x) if isinstance(x, Number) else getattr(math, numpy)(x)
        if numpy in _FLOAT_ONLY:
            x = xp.to_wanted(x)
        if numpy in _WHOLE and not xp.is_floating(x):
            return x
        return getattr(xp, numpy)(x)

    TORCH.add(name, row)


for _name in _SAME:
    _unary(_name, _name)
for _name, _numpy_name in _RENAMED.items():
    _unary(_name, _numpy_name)
TORCH.row("operator.abs")(TORCH.rows["abs"])


@TORCH.row("round", "builtins.round")
def rounded(xp: Any, x: Any, *, decimals: int = 0) -> Any:
    """The nearest whole number, of two the even one."""
    if not xp.is_floating(x):
        return x
    if decimals:
        raise Untranslatable("rounding to decimals differs in the last digit")
    return xp.round(x)


@TORCH.row("frac")
def frac(xp: Any, x: Any) -> Any:
    """What stands behind the point."""
    return x - xp.trunc(x)


@TORCH.row("reciprocal")
def reciprocal(xp: Any, x: Any) -> Any:
    """One over it."""
    return 1.0 / xp.to_wanted(x)


@TORCH.row("rsqrt")
def rsqrt(xp: Any, x: Any) -> Any:
    """One over the square root."""
    return xp.rsqrt(xp.to_wanted(x))


_SPECIAL = {
    "erfinv": "erfinv", "erfc": "erfc", "lgamma": "gammaln", "special.gammaln": "gammaln", "digamma": "digamma",
    "special.psi": "digamma", "i0": "i0", "special.i0e": "i0e", "special.i1": "i1", "special.i1e": "i1e",
    "special.ndtr": "ndtr", "special.ndtri": "ndtri", "special.log_ndtr": "log_ndtr", "special.entr": "entr",
}  # fmt: skip
"""torch's functions of mathematical physics, and their names in SciPy."""


def _of_physics(name: str) -> Any:
    def row(xp: Any, x: Array) -> Any:
        return xp.to_wanted(xp.special(name, xp.to_wanted(x)))

    return row


for _name, _scipy in _SPECIAL.items():
    for _full in {_name, f"special.{_name.removeprefix('special.')}"}:
        TORCH.add(_full, _of_physics(_scipy))


@TORCH.row("erf", "special.erf")
def erf(xp: Any, x: Any) -> Any:
    """The error function."""
    return xp.erf(xp.to_wanted(x))


@TORCH.row("sigmoid", "special.expit", "nn.functional.sigmoid")
def sigmoid(xp: Any, x: Any) -> Any:
    """The logistic function."""
    return xp.sigmoid(xp.to_wanted(x))


@TORCH.row("logit", "special.logit")
def logit(xp: Any, x: Any, eps: Any = None) -> Any:
    """The inverse of the logistic function."""
    x = xp.to_wanted(x)
    if eps is not None:
        x = xp.clip(x, eps, 1 - eps)
    return xp.log(x / (1.0 - x))


@TORCH.row("nan_to_num")
def nan_to_num(xp: Any, x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Numbers in the place of nan and infinities."""
    return xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@TORCH.row("clamp", "clip")
def clamp(xp: Any, x: Any, min: Any = None, max: Any = None) -> Any:
    """Between two bounds; nan stays nan."""
    x = xp.to_wanted(x)
    if min is not None:
        x = xp.maximum(*computed(xp, x, min))
    return x if max is None else xp.minimum(*computed(xp, x, max))


@TORCH.row("clamp_min")
def clamp_min(xp: Any, x: Any, min: Any) -> Any:
    """At least this."""
    return clamp(xp, x, min=min)


@TORCH.row("clamp_max")
def clamp_max(xp: Any, x: Any, max: Any) -> Any:
    """At most this."""
    return clamp(xp, x, max=max)


def where(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    """Items of the one or the other."""
    x, y = computed(xp, x, y)
    if not isinstance(x, Array) and not isinstance(y, Array):
        x = xp.as_array(x, xp.wanted.dtype)
    return xp.where(condition, x, y)


@TORCH.row("masked_fill")
def masked_fill(xp: Any, x: Array, mask: Array, value: Any) -> Any:
    """A value where the mask is true."""
    return xp.where(mask, fitting(xp, value, x.dtype), x)


def fitting(xp: Any, value: Any, dtype: str) -> Any:
    """A value as one of this dtype: arrays are cast, numbers are of its kind."""
    if isinstance(value, Array):
        return xp.cast(value, dtype)
    if isinstance(value, Number) or dtype in _COMPLEX:
        return value
    return bool(value) if dtype == "bool" else float(value) if dtype in _FLOATS else int(value)


# ---- activations -----------------------------------------------------------------------------------------------------


@TORCH.row("relu", "nn.functional.relu")
def relu(xp: Any, x: Any, inplace: bool = False) -> Any:
    """The positive part."""
    return xp.relu(x)


@TORCH.row("nn.functional.relu6")
def relu6(xp: Any, x: Any, inplace: bool = False) -> Any:
    """Between zero and six."""
    return clamp(xp, x, 0, 6)


@TORCH.row("nn.functional.hardtanh")
def hardtanh(xp: Any, x: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Any:
    """Between two bounds."""
    return clamp(xp, x, min_val, max_val)


@TORCH.row("nn.functional.gelu", "gelu")
def gelu(xp: Any, x: Any, approximate: str = "none") -> Any:
    """The Gaussian error linear unit."""
    return xp.gelu(x, approximate == "tanh")


@TORCH.row("nn.functional.silu", "silu")
def silu(xp: Any, x: Any, inplace: bool = False) -> Any:
    """``x`` times its sigmoid."""
    return xp.silu(x)


@TORCH.row("nn.functional.mish")
def mish(xp: Any, x: Any, inplace: bool = False) -> Any:
    """``x * tanh(softplus(x))``."""
    return x * xp.tanh(xp.softplus(x))


@TORCH.row("nn.functional.softplus", "softplus")
def softplus(xp: Any, x: Any, beta: Any = 1.0, threshold: Any = 20.0) -> Any:
    """``log(1 + exp(beta * x)) / beta``, and ``x`` itself above the threshold."""
    scaled = x if beta == 1 else x * beta
    found = xp.softplus(scaled)
    return xp.where(scaled > threshold, x, found if beta == 1 else found / beta)


@TORCH.row("nn.functional.leaky_relu")
def leaky_relu(xp: Any, x: Any, negative_slope: Any = 0.01, inplace: bool = False) -> Any:
    """A small slope below zero."""
    return xp.where(x > 0, x, x * negative_slope)


@TORCH.row("nn.functional.prelu", "prelu")
def prelu(xp: Any, x: Any, weight: Any) -> Any:
    """A slope below zero for each channel."""
    if weight.ndim == 1 and x.ndim > 2 and weight.spec.shape[0] != 1:
        weight = xp.reshape(weight, (-1, *(1,) * (x.ndim - 2)))
    return xp.where(x > 0, x, x * weight)


@TORCH.row("nn.functional.elu", "elu")
def elu(xp: Any, x: Any, alpha: Any = 1.0, inplace: bool = False) -> Any:
    """An exponential below zero."""
    below = xp.expm1(xp.where(x > 0, 0.0, x))
    return xp.where(x > 0, x, below if alpha == 1 else alpha * below)


@TORCH.row("nn.functional.celu", "celu")
def celu(xp: Any, x: Any, alpha: Any = 1.0, inplace: bool = False) -> Any:
    """An exponential below zero, of which alpha tells the width."""
    return xp.where(x > 0, x, alpha * xp.expm1(xp.where(x > 0, 0.0, x) / alpha))


@TORCH.row("nn.functional.selu", "selu")
def selu(xp: Any, x: Any, inplace: bool = False) -> Any:
    """A scaled exponential unit."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * xp.where(x > 0, x, alpha * xp.expm1(xp.where(x > 0, 0.0, x)))


@TORCH.row("nn.functional.hardsigmoid")
def hardsigmoid(xp: Any, x: Any, inplace: bool = False) -> Any:
    """A sigmoid of straight lines."""
    return xp.clip(x + 3, 0, 6) / 6


@TORCH.row("nn.functional.hardswish")
def hardswish(xp: Any, x: Any, inplace: bool = False) -> Any:
    """``x`` times the sigmoid of straight lines."""
    return x * (xp.clip(x + 3, 0, 6) / 6)


@TORCH.row("nn.functional.logsigmoid", "log_sigmoid")
def logsigmoid(xp: Any, x: Any) -> Any:
    """The logarithm of the sigmoid."""
    return -xp.softplus(-x)


@TORCH.row("nn.functional.softsign")
def softsign(xp: Any, x: Any) -> Any:
    """``x / (1 + |x|)``."""
    return x / (1 + xp.abs(x))


@TORCH.row("nn.functional.tanh")
def tanh(xp: Any, x: Any) -> Any:
    """The hyperbolic tangent."""
    return xp.tanh(x)


@TORCH.row("nn.functional.glu")
def glu(xp: Any, x: Any, dim: int = -1) -> Any:
    """One half, gated by the sigmoid of the other."""
    first, second = xp.split(x, 2, axis=dim)
    return first * xp.sigmoid(second)


@TORCH.row("nn.functional.softmax")
def softmax(xp: Any, x: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Exponentials that sum to one."""
    if dim is None:
        raise Untranslatable("softmax without dim")
    return xp.softmax(xp.to_wanted(x), dim)


@TORCH.row("softmax", "special.softmax")
def torch_softmax(xp: Any, x: Any, dim: Any, dtype: Any = None) -> Any:
    """Exponentials that sum to one."""
    return softmax(xp, x, dim, dtype=dtype)


@TORCH.row("nn.functional.log_softmax")
def log_softmax(xp: Any, x: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """The logarithm of the softmax."""
    if dim is None:
        raise Untranslatable("log_softmax without dim")
    return xp.log_softmax(xp.to_wanted(x), dim)


@TORCH.row("log_softmax", "special.log_softmax")
def torch_log_softmax(xp: Any, x: Any, dim: Any, dtype: Any = None) -> Any:
    """The logarithm of the softmax."""
    return log_softmax(xp, x, dim, dtype=dtype)


@TORCH.row("nn.functional.softmin")
def softmin(xp: Any, x: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """The softmax of the negative."""
    refuse_given("softmin", dtype=dtype)
    return xp.softmax(-x, dim)
