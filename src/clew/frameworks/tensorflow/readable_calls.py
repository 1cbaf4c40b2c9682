"""Operations in the words that users write: ``tf.matmul(x, w)``, ``x + 1.0``, ``x[:, 0]``.

A spelling is used only where calling it runs the very same operation with the same attributes; all other operations
are calls of ``tf.raw_ops``. In come an importer and a call, out comes the node, or None for "no such words".
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from clew.frameworks.tensorflow.operations import Call
from clew.frameworks.tensorflow.types import _NUMBERS, Literal
from clew.ir.node import Node
from clew.ir.types import ArrayType

if TYPE_CHECKING:
    from clew.frameworks.tensorflow.importer import Importer

UNARY = {
    "Abs": tf.abs, "Exp": tf.exp, "Log": tf.math.log, "Log1p": tf.math.log1p, "Expm1": tf.math.expm1,
    "Sqrt": tf.sqrt, "Rsqrt": tf.math.rsqrt, "Square": tf.square, "Sin": tf.sin, "Cos": tf.cos, "Tan": tf.tan,
    "Asin": tf.asin, "Acos": tf.acos, "Atan": tf.atan, "Sinh": tf.sinh, "Cosh": tf.cosh, "Tanh": tf.tanh,
    "Asinh": tf.asinh, "Acosh": tf.acosh, "Atanh": tf.atanh, "Floor": tf.floor, "Ceil": tf.math.ceil,
    "Rint": tf.math.rint, "Erf": tf.math.erf, "Erfc": tf.math.erfc, "Lgamma": tf.math.lgamma,
    "Digamma": tf.math.digamma, "Sigmoid": tf.sigmoid, "Relu": tf.nn.relu, "Relu6": tf.nn.relu6, "Elu": tf.nn.elu,
    "Selu": tf.nn.selu, "Softplus": tf.math.softplus, "Softsign": tf.nn.softsign, "IsNan": tf.math.is_nan,
    "IsInf": tf.math.is_inf, "IsFinite": tf.math.is_finite, "LogicalNot": tf.logical_not,
    "StopGradient": tf.stop_gradient, "Reciprocal": tf.math.reciprocal, "L2Loss": tf.nn.l2_loss,
    "Cholesky": tf.linalg.cholesky, "MatrixDeterminant": tf.linalg.det, "FFT": tf.signal.fft, "IFFT": tf.signal.ifft,
    "OnesLike": tf.ones_like, "ZerosLike": tf.zeros_like, "InvertPermutation": tf.math.invert_permutation,
}  # fmt: skip
"""Operations of one tensor without attributes."""

BINARY = {
    "AddV2": operator.add, "Sub": operator.sub, "Mul": operator.mul, "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod, "Pow": operator.pow, "Less": operator.lt, "LessEqual": operator.le,
    "Greater": operator.gt, "GreaterEqual": operator.ge, "Maximum": tf.maximum, "Minimum": tf.minimum,
    "SquaredDifference": tf.math.squared_difference, "Atan2": tf.atan2, "LogicalAnd": tf.logical_and,
    "LogicalOr": tf.logical_or, "DivNoNan": tf.math.divide_no_nan,
}  # fmt: skip
"""Operations of two tensors of one dtype."""

REDUCTIONS = {
    "Sum": tf.reduce_sum, "Mean": tf.reduce_mean, "Max": tf.reduce_max, "Min": tf.reduce_min, "Prod": tf.reduce_prod,
    "All": tf.reduce_all, "Any": tf.reduce_any,
}  # fmt: skip

_OPERATORS = frozenset(function for function in BINARY.values() if function.__module__ == "_operator")


def spelled(importer: Importer, call: Call) -> Node | None:
    """The friendly call for an operation."""
    if call.kind in UNARY:
        (value,) = call.inputs.values()
        return importer.call(UNARY[call.kind], (importer.node(value),))
    if call.kind in BINARY:
        return _binary(importer, call, BINARY[call.kind])
    if call.kind in REDUCTIONS:
        return _reduction(importer, call, REDUCTIONS[call.kind])
    writer = WRITERS.get(call.kind)
    return None if writer is None else writer(importer, call)


def _binary(importer: Importer, call: Call, function: Any) -> Node | None:
    left, right = call.inputs.values()
    if isinstance(left, Literal) and isinstance(right, Literal):
        left = importer.node(left)
    if function not in _OPERATORS and isinstance(left, Literal) and not left.has_default_dtype:
        left = importer.node(left)
    operands = [_operand(importer, value) for value in (left, right)]
    if function in _OPERATORS:
        operands = [_as_number(one, other) for one, other in zip(operands, reversed(operands), strict=True)]
    return importer.call(function, tuple(operands))


def _as_number(operand: Any, other: Any) -> Any:
    """A number of Python beside a tensor: TensorFlow makes a tensor of that dtype of it by itself."""
    is_made = isinstance(operand, Node) and operand.target is tf.constant and isinstance(operand.args[0], Node)
    kind = getattr(other, "value_type", None)
    if not is_made or not isinstance(kind, ArrayType) or operand.kwargs.get("dtype") is None:
        return operand
    is_same = operand.kwargs["dtype"].name == kind.dtype and other.target is not tf.constant
    return operand.args[0] if is_same and operand.args[0].value_type is None else operand


def _operand(importer: Importer, value: Any) -> Any:
    """A number beside a tensor takes the tensor's dtype, which is the number's own."""
    if isinstance(value, Literal) and value.array.ndim == 0 and value.dtype.name in _NUMBERS:
        return value.plain()
    return importer.node(value)


def _division(importer: Importer, call: Call) -> Node | None:
    """``/`` makes floating point numbers of integers first, which the operation does not."""
    is_exact = call.output.dtype.is_floating or call.output.dtype.is_complex
    return _binary(importer, call, operator.truediv) if is_exact else None


def _negation(importer: Importer, call: Call) -> Node | None:
    return importer.call(operator.neg, (importer.node(call.inputs["x"]),))


def _equality(same: Any, plain: Any) -> Callable[[Importer, Call], Node | None]:
    def write(importer: Importer, call: Call) -> Node | None:
        if call.attribute("incompatible_shape_error"):
            left, right = (importer.node(value) for value in call.inputs.values())
            return importer.call(plain, (left, right))
        return _binary(importer, call, same) if not isinstance(call.inputs["x"], Literal) else None

    return write


def _reduction(importer: Importer, call: Call, function: Any) -> Node | None:
    value, axis = call.inputs.values()
    rank = call.operation.inputs[0].shape.rank
    options: dict[str, Any] = {"keepdims": True} if call.attribute("keep_dims") else {}
    if isinstance(axis, Literal):
        if axis.array.dtype.name != "int32":
            return None
        if not axis.array.size or axis.array.ndim != 1 or axis.plain() != list(range(rank or 0)):
            options = {"axis": axis.plain(), **options}
    else:
        options = {"axis": importer.node(axis), **options}
    return importer.call(function, (importer.node(value),), options)


def _plain_or_node(importer: Importer, value: Any) -> Any:
    """A list of int32, or a node."""
    if isinstance(value, Literal) and value.dtype == tf.int32 and value.array.size and value.is_small:
        return value.plain()
    return importer.node(value)


def _shaped(function: Any, first: str, second: str) -> Callable[[Importer, Call], Node | None]:
    """A tensor and a shape, or another list of integers."""

    def write(importer: Importer, call: Call) -> Node | None:
        return importer.call(
            function, (importer.node(call.inputs[first]), _plain_or_node(importer, call.inputs[second]))
        )

    return write


def _matmul(importer: Importer, call: Call) -> Node | None:
    flags = {name: True for name in ("transpose_a", "transpose_b") if call.attribute(name)}
    return importer.call(tf.matmul, (importer.node(call.inputs["a"]), importer.node(call.inputs["b"])), flags)


def _batch_matmul(importer: Importer, call: Call) -> Node | None:
    ranks = [tensor.shape.rank for tensor in call.operation.inputs]
    if None in ranks or max(ranks) < 3 or call.output.dtype.is_complex:
        return None
    flags = {f"transpose_{other}": True for name, other in (("adj_x", "a"), ("adj_y", "b")) if call.attribute(name)}
    return importer.call(tf.matmul, (importer.node(call.inputs["x"]), importer.node(call.inputs["y"])), flags)


def _concat(importer: Importer, call: Call) -> Node | None:
    values = [importer.node(value) for value in call.inputs["values"]]
    return importer.call(tf.concat, (values, _plain_or_node(importer, call.inputs["axis"])))


def _stack(importer: Importer, call: Call) -> Node | None:
    axis = call.attribute("axis")
    values = [importer.node(value) for value in call.inputs["values"]]
    return importer.call(tf.stack, (values,), {"axis": axis} if axis else {})


def _unstack(importer: Importer, call: Call) -> Node | None:
    axis = call.attribute("axis")
    options = {"num": call.attribute("num"), **({"axis": axis} if axis else {})}
    return importer.call(tf.unstack, (importer.node(call.inputs["value"]),), options)


def _split(importer: Importer, call: Call) -> Node | None:
    axis = call.inputs["split_dim"]
    if not isinstance(axis, Literal):
        return None
    args = (importer.node(call.inputs["value"]), call.attribute("num_split"))
    return importer.call(tf.split, args, {"axis": axis.plain()})


def _expand(importer: Importer, call: Call) -> Node | None:
    return importer.call(
        tf.expand_dims, (importer.node(call.inputs["input"]), _plain_or_node(importer, call.inputs["dim"]))
    )


def _squeeze(importer: Importer, call: Call) -> Node | None:
    axis = call.attribute("squeeze_dims")
    return importer.call(tf.squeeze, (importer.node(call.inputs["input"]),), {"axis": axis} if axis else {})


def _cast(importer: Importer, call: Call) -> Node | None:
    if call.attribute("Truncate"):
        return None
    return importer.call(tf.cast, (importer.node(call.inputs["x"]), call.attribute("DstT")))


def _shape(importer: Importer, call: Call) -> Node | None:
    kind = call.attribute("out_type")
    options = {} if kind == tf.int32 else {"out_type": kind}
    return importer.call(tf.shape, (importer.node(call.inputs["input"]),), options)


def _select(importer: Importer, call: Call) -> Node | None:
    return importer.call(tf.where, tuple(importer.node(call.inputs[name]) for name in ("condition", "t", "e")))


def _gather(importer: Importer, call: Call) -> Node | None:
    axis, batch = call.inputs["axis"], call.attribute("batch_dims")
    if not isinstance(axis, Literal) or axis.dtype != tf.int32:
        return None
    options = {"axis": axis.plain(), **({"batch_dims": batch} if batch else {})}
    options = {} if options == {"axis": 0} else options
    args = (importer.node(call.inputs["params"]), _plain_or_node(importer, call.inputs["indices"]))
    return importer.call(tf.gather, args, options)


def _einsum(importer: Importer, call: Call) -> Node | None:
    inputs = [importer.node(value) for value in call.inputs["inputs"]]
    equation = call.attribute("equation")
    is_plain = len(inputs) <= 2 and "." not in equation
    return importer.call(tf.einsum, (equation, *inputs)) if is_plain else None


def _bias(importer: Importer, call: Call) -> Node | None:
    order = call.attribute("data_format")
    options = {} if order == "NHWC" else {"data_format": order}
    return importer.call(
        tf.nn.bias_add, (importer.node(call.inputs["value"]), importer.node(call.inputs["bias"])), options
    )


def _convolution(importer: Importer, call: Call) -> Node | None:
    padding, order = call.attribute("padding"), call.attribute("data_format")
    if padding not in ("SAME", "VALID") or order != "NHWC":
        return None
    options: dict[str, Any] = {"strides": call.attribute("strides"), "padding": padding}
    if call.attribute("dilations") != [1, 1, 1, 1]:
        options["dilations"] = call.attribute("dilations")
    return importer.call(
        tf.nn.conv2d, (importer.node(call.inputs["input"]), importer.node(call.inputs["filter"])), options
    )


def _pool(function: Any, name: str) -> Callable[[Importer, Call], Node | None]:
    def write(importer: Importer, call: Call) -> Node | None:
        padding = call.attribute("padding")
        if padding not in ("SAME", "VALID") or call.attribute("data_format") != "NHWC":
            return None
        args = (importer.node(call.inputs[name]), call.attribute("ksize"), call.attribute("strides"), padding)
        return importer.call(function, args)

    return write


def _softmax(function: Any) -> Callable[[Importer, Call], Node | None]:
    def write(importer: Importer, call: Call) -> Node | None:
        return importer.call(function, (importer.node(call.inputs["logits"]),))

    return write


def _range(importer: Importer, call: Call) -> Node | None:
    if call.output.dtype != tf.int32:
        return None
    start, limit, delta = (_plain_or_node(importer, call.inputs[name]) for name in ("start", "limit", "delta"))
    if delta != 1:
        return importer.call(tf.range, (start, limit, delta))
    return importer.call(tf.range, (limit,) if start == 0 else (start, limit))


def _argument(function: Any) -> Callable[[Importer, Call], Node | None]:
    def write(importer: Importer, call: Call) -> Node | None:
        axis, kind = call.inputs["dimension"], call.attribute("output_type")
        if not isinstance(axis, Literal):
            return None
        options = {"axis": axis.plain(), **({} if kind == tf.int64 else {"output_type": kind})}
        return importer.call(function, (importer.node(call.inputs["input"]),), options)

    return write


def _strided(importer: Importer, call: Call) -> Node | None:
    """``x[1:, 0]`` where all places are constants."""
    parts = [call.inputs[name] for name in ("begin", "end", "strides")]
    if not all(isinstance(part, Literal) for part in parts):
        return None
    begin, end, strides = (part.array.tolist() for part in parts)
    mask = {name: call.attribute(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    index: list[Any] = []
    for place, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << place
        if mask["ellipsis"] & bit:
            index.append(...)
        elif mask["new_axis"] & bit:
            index.append(None)
        elif mask["shrink_axis"] & bit:
            index.append(first)
        else:
            lower = None if mask["begin"] & bit else first
            upper = None if mask["end"] & bit else last
            index.append(slice(lower, upper, None if step == 1 else step))
    value = importer.node(call.inputs["input"])
    return importer.call(operator.getitem, (value, index[0] if len(index) == 1 else tuple(index)))


WRITERS: dict[str, Callable[[Importer, Call], Node | None]] = {
    "RealDiv": _division,
    "Equal": _equality(operator.eq, tf.equal),
    "NotEqual": _equality(operator.ne, tf.not_equal),
    "Neg": _negation,
    "MatMul": _matmul,
    "BatchMatMulV2": _batch_matmul,
    "Reshape": _shaped(tf.reshape, "tensor", "shape"),
    "Transpose": _shaped(tf.transpose, "x", "perm"),
    "Tile": _shaped(tf.tile, "input", "multiples"),
    "BroadcastTo": _shaped(tf.broadcast_to, "input", "shape"),
    "Pad": _shaped(tf.pad, "input", "paddings"),
    "ReverseV2": _shaped(tf.reverse, "tensor", "axis"),
    "ConcatV2": _concat,
    "Pack": _stack,
    "Unpack": _unstack,
    "Split": _split,
    "ExpandDims": _expand,
    "Squeeze": _squeeze,
    "Cast": _cast,
    "Shape": _shape,
    "SelectV2": _select,
    "GatherV2": _gather,
    "Einsum": _einsum,
    "BiasAdd": _bias,
    "Conv2D": _convolution,
    "MaxPool": _pool(tf.nn.max_pool2d, "input"),
    "AvgPool": _pool(tf.nn.avg_pool2d, "value"),
    "Softmax": _softmax(tf.nn.softmax),
    "LogSoftmax": _softmax(tf.nn.log_softmax),
    "Range": _range,
    "ArgMax": _argument(tf.argmax),
    "ArgMin": _argument(tf.argmin),
    "StridedSlice": _strided,
}


PURE = frozenset(
    id(function)
    for function in (
        *UNARY.values(), *BINARY.values(), *REDUCTIONS.values(), tf.equal, tf.not_equal, tf.matmul, tf.reshape,
        tf.transpose, tf.tile, tf.broadcast_to, tf.pad, tf.reverse, tf.concat, tf.stack, tf.unstack, tf.split,
        tf.expand_dims, tf.squeeze, tf.cast, tf.shape, tf.where, tf.gather, tf.einsum, tf.nn.bias_add, tf.nn.conv2d,
        tf.nn.max_pool2d, tf.nn.avg_pool2d, tf.nn.softmax, tf.nn.log_softmax, tf.range, tf.argmax, tf.argmin,
        tf.constant, tf.convert_to_tensor, tf.identity, tf.nest.flatten, tf.nn.silu,
    )
)  # fmt: skip
"""The functions above, which do nothing but compute."""

_OWN_GRADIENTS = {"swish.<locals>.swish_impl": tf.nn.silu}
"""Functions of TensorFlow with a gradient of their own, by where TensorFlow defines them."""


def own_gradient(function: Any) -> Any:
    """What to call for a function with a gradient of its own: the one that users call, if it has a name."""
    place = getattr(function, "__qualname__", "")
    known = _OWN_GRADIENTS.get(place)
    if known is not None and str(function.__module__).startswith("tensorflow."):
        return known
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for atom in place.split("."):
        found = getattr(found, atom, None)
    if getattr(found, "__wrapped__", None) is function:
        return found
    return tf.custom_gradient(function)
