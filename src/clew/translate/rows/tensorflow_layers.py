"""TensorFlow's layers against the array namespace: products, activations, convolutions, pools, variables, lists.

Channels come last in TensorFlow and first in the namespace, so axes are moved around convolutions and pools. Lists of
tensors are lists of Python's. Random numbers are drawn from what the translated program is given.
"""

from __future__ import annotations

import operator
from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.table import refuse_given, taking
from clew.translate.rows.tensorflow import TENSORFLOW, _array, _places, row
from clew.translate.rows.tensorflow_sizes import array, fixed, number, operand, plain, sizes
from clew.translate.values import Array, Number, Opaque, Spec, Value
from clew.translate.writer import Writer

# ---- products --------------------------------------------------------------------------------------------------------


@row("matmul", "linalg.matmul", "raw_ops.BatchMatMulV2", "raw_ops.MatMul", "operator.matmul")
def matmul(xp: Any, a: Any = None, b: Any = None, transpose_a: bool = False, transpose_b: bool = False,
           adjoint_a: bool = False, adjoint_b: bool = False, **given: Any) -> Any:  # fmt: skip
    """A product of matrices."""
    a, b = given.get("x", a), given.get("y", b)
    a, b = _array(xp, a), _array(xp, b)
    if adjoint_a or adjoint_b or given.get("adj_x") or given.get("adj_y"):
        raise Untranslatable("a product with an adjoint")
    a = xp.matrix_transpose(a) if transpose_a else a
    return xp.matmul(a, xp.matrix_transpose(b) if transpose_b else b)


@row("einsum", "linalg.einsum")
def einsum(xp: Any, equation: str, *inputs: Any, **given: Any) -> Any:
    """Sums of products, by letters."""
    return xp.einsum(equation.replace(" ", ""), *inputs)


TENSORFLOW.add("raw_ops.Einsum", lambda xp, inputs, equation: einsum(xp, equation, *inputs))


@row("tensordot", "linalg.tensordot")
def tensordot(xp: Any, a: Any, b: Any, axes: Any, **given: Any) -> Any:
    """A product over axes."""
    found = fixed(axes)
    return xp.tensordot(a, b, axes=found if isinstance(found, int) else [
        one if isinstance(one, list) else [one] for one in found])  # fmt: skip


for _name, _others in {"cholesky": "linalg.cholesky raw_ops.Cholesky", "inv": "linalg.inv raw_ops.MatrixInverse",
                       "det": "linalg.det raw_ops.MatrixDeterminant"}.items():  # fmt: skip

    def _algebra(xp: Any, input: Any, *args: Any, _name: str = _name, **given: Any) -> Any:
        return xp.call(f"linalg.{_name}", input)

    row(*_others.split())(_algebra)


@row("linalg.solve", "raw_ops.MatrixSolve")
def solve(xp: Any, matrix: Any, rhs: Any, adjoint: bool = False, **given: Any) -> Any:
    """The solution of a linear system."""
    return xp.call("linalg.solve", xp.matrix_transpose(matrix) if adjoint else matrix, rhs)


@row("linalg.triangular_solve", "raw_ops.MatrixTriangularSolve")
def triangular_solve(xp: Any, matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, **given: Any) -> Any:
    """The solution of a linear system of which one half is zero."""
    return solve(xp, xp.tril(matrix) if lower else xp.triu(matrix), rhs, adjoint)


@row("raw_ops.Svd", "linalg.svd", "linalg.eigh", "linalg.qr", "raw_ops.SelfAdjointEigV2", "raw_ops.Qr")
def factors(xp: Any, *args: Any, **given: Any) -> Any:
    """Factors that are unique but for signs."""
    raise Untranslatable("its factors are unique but for signs, which each library chooses as it likes")


@row("raw_ops.MatrixBandPart", "linalg.band_part")
def band_part(xp: Any, input: Any, num_lower: Any, num_upper: Any, **given: Any) -> Any:
    """A band of a matrix, zeros elsewhere; a negative width is a whole half."""
    low, high = number(num_lower), number(num_upper)
    input = array(xp, input)
    input = input if isinstance(high, int) and high < 0 else xp.tril(input, high)
    return input if isinstance(low, int) and low < 0 else xp.triu(input, -low)


@row("raw_ops.MatrixDiagV3", "linalg.diag")
def matrix_diag(xp: Any, diagonal: Any, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0,
                **given: Any) -> Any:  # fmt: skip
    """The matrix of a diagonal."""
    if (number(k), number(num_rows), number(num_cols), operand(padding_value)) != (0, -1, -1, 0):
        raise Untranslatable("a matrix of another diagonal")
    diagonal = _array(xp, diagonal)
    ones = xp.eye(diagonal.size(-1), dtype=xp.dtype_object("bool"))
    return xp.where(ones, xp.expand_dims(diagonal, -1), 0)


@row("raw_ops.MatrixDiagPartV3", "linalg.diag_part", "linalg.tensor_diag_part")
def diag_part(xp: Any, input: Any, k: Any = 0, **given: Any) -> Any:
    """The diagonal of a matrix."""
    refuse_given("diag_part", k=number(k))
    return xp.diagonal(input, offset=0, axis1=-2, axis2=-1)


@row("linalg.trace")
def trace(xp: Any, x: Any, **given: Any) -> Any:
    """The sum of the diagonal."""
    return xp.call("sum", diag_part(xp, x), axis=-1)


@row("norm", "linalg.norm")
def norm(xp: Any, tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool = False, **given: Any) -> Any:
    """The root of the sum of squares."""
    if ord not in ("euclidean", 2):
        raise Untranslatable(f"the norm {ord!r}")
    options = {} if axis is None else {"axis": tuple(fixed(axis)) if isinstance(fixed(axis), list) else fixed(axis)}
    return xp.sqrt(xp.call("sum", xp.square(tensor), **options, **({"keepdims": True} if keepdims else {})))


# ---- spectra ---------------------------------------------------------------------------------------------------------


def _spectrum(name: str) -> None:
    def run(xp: Any, input: Any = None, fft_length: Any = None, **given: Any) -> Any:
        x = array(xp, input)
        length = () if fft_length is None else (sizes(fft_length)[0],)
        if name == "rfft" and length and xp.writer is not None:
            length = () if _is_size(length[0], x.size(-1)) else length
        return xp.to_wanted(xp.call(f"fft.{name}", x, *length))

    row(f"signal.{name}", f"raw_ops.{name.upper()}")(run)


def _is_size(value: Any, size: Any) -> bool:
    if isinstance(value, Number) and isinstance(size, Number):
        return value.node is size.node
    return not isinstance(value, Value) and not isinstance(size, Value) and value == size


for _name in ("rfft", "irfft", "fft", "ifft"):
    _spectrum(_name)


# ---- activations -----------------------------------------------------------------------------------------------------

for _name, _others in {"relu": "nn.relu raw_ops.Relu", "sigmoid": "sigmoid math.sigmoid nn.sigmoid raw_ops.Sigmoid",
                       "softplus": "nn.softplus math.softplus raw_ops.Softplus"}.items():  # fmt: skip

    def _activation(xp: Any, features: Any, *args: Any, _name: str = _name, **given: Any) -> Any:
        return getattr(xp, _name)(array(xp, features))

    row(*_others.split())(_activation)


@row("nn.silu", "nn.swish")
def silu(xp: Any, features: Any, beta: Any = 1.0, **given: Any) -> Any:
    """An array times its sigmoid."""
    beta = operand(beta)
    return xp.silu(features) if not isinstance(beta, Value) and beta == 1.0 else features * xp.sigmoid(features * beta)


@row("nn.elu", "raw_ops.Elu")
def elu(xp: Any, features: Any, **given: Any) -> Any:
    """The exponential below zero."""
    return xp.where(features > 0, features, xp.expm1(xp.where(features > 0, 0.0, features)))


@row("nn.leaky_relu", "raw_ops.LeakyRelu")
def leaky_relu(xp: Any, features: Any, alpha: Any = 0.2, **given: Any) -> Any:
    """A smaller slope below zero."""
    return xp.where(features > 0, features, operand(alpha) * features)


@row("nn.gelu")
def gelu(xp: Any, features: Any, approximate: bool = False, **given: Any) -> Any:
    """The Gaussian error linear unit."""
    return xp.gelu(features, approximate)


@row("nn.relu6", "raw_ops.Relu6")
def relu6(xp: Any, features: Any, **given: Any) -> Any:
    """The positive part, up to six."""
    return xp.minimum(xp.relu(features), 6.0)


def _soft(name: str, others: str) -> None:
    def run(xp: Any, logits: Any, axis: Any = None, **given: Any) -> Any:
        return getattr(xp, name)(logits, -1 if axis is None else number(axis))

    row(*others.split())(run)


_soft("softmax", "nn.softmax raw_ops.Softmax")
_soft("log_softmax", "nn.log_softmax raw_ops.LogSoftmax")


@row("nn.bias_add", "raw_ops.BiasAdd")
def bias_add(xp: Any, value: Any, bias: Any, data_format: Any = None, **given: Any) -> Any:
    """A number added to each channel."""
    if data_format not in (None, "NHWC", "NDHWC"):
        raise Untranslatable(f"the order of axes {data_format!r}")
    return value + bias


@row("one_hot")
def one_hot(
    xp: Any, indices: Any, depth: Any, on_value: Any = 1, off_value: Any = 0, axis: Any = None, **given: Any
) -> Any:
    """Ones at the positions that integers tell."""
    if (operand(on_value), operand(off_value)) not in ((1, 0), (None, None)) or axis not in (None, -1):
        raise Untranslatable("one_hot of other numbers, or along another axis")
    return xp.cast(xp.expand_dims(indices, -1) == xp.arange(number(depth), dtype=xp.dtype_object(indices.dtype)),
                   xp.wanted.dtype)  # fmt: skip


@row("raw_ops.SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(xp: Any, features: Any, labels: Any, **given: Any) -> Any:
    """The loss of each row and its slopes."""
    logs = xp.log_softmax(features, -1)
    places = xp.expand_dims(_places(xp, labels), -1)
    losses = -xp.squeeze(xp.take_along_axis(logs, places, axis=-1), axis=-1)
    hits = places == xp.arange(features.size(-1), dtype=xp.dtype_object(places.dtype))
    return [losses, xp.exp(logs) - xp.cast(hits, features.dtype)]


@row("raw_ops.SoftmaxCrossEntropyWithLogits")
def cross_entropy(xp: Any, features: Any, labels: Any, **given: Any) -> Any:
    """The loss of each row and its slopes."""
    logs = xp.log_softmax(features, -1)
    return [-xp.call("sum", labels * logs, axis=-1), xp.exp(logs) - labels]


TENSORFLOW.add("raw_ops.TanhGrad", lambda xp, y, dy: dy * (1.0 - y * y))
TENSORFLOW.add("raw_ops.SigmoidGrad", lambda xp, y, dy: dy * y * (1.0 - y))
TENSORFLOW.add("raw_ops.SqrtGrad", lambda xp, y, dy: dy * 0.5 / y)
TENSORFLOW.add("raw_ops.RsqrtGrad", lambda xp, y, dy: dy * -0.5 * y * y * y)
TENSORFLOW.add("raw_ops.ReciprocalGrad", lambda xp, y, dy: -dy * y * y)
TENSORFLOW.add("raw_ops.SoftplusGrad", lambda xp, gradients, features: gradients * xp.sigmoid(features))
TENSORFLOW.add("raw_ops.ReluGrad", lambda xp, gradients, features: xp.where(features > 0, gradients, 0.0))


@row("raw_ops.BiasAddGrad")
def bias_add_grad(xp: Any, out_backprop: Any, data_format: str = "NHWC", **given: Any) -> Any:
    """The slopes of what is added to each channel."""
    if data_format != "NHWC":
        raise Untranslatable(f"the order of axes {data_format!r}")
    return xp.call("sum", out_backprop, axis=tuple(range(out_backprop.ndim - 1)))


# ---- convolutions and pools ------------------------------------------------------------------------------------------


def _first(xp: Any, x: Array) -> Any:
    return xp.transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def _last(xp: Any, x: Array) -> Any:
    return xp.transpose(x, (0, *range(2, x.ndim), 1))


def _edges(xp: Any, padding: Any, have: Any, reach: Any, steps: Any) -> list[tuple[int, int]]:
    if padding == "VALID":
        return [(0, 0)] * len(reach)
    if padding != "SAME":
        raise Untranslatable(f"the padding {padding!r}")
    found = []
    for size, wide, step in zip(have, reach, steps, strict=True):
        if step != 1:
            size = xp.writer.fixed(size, "padding depends on this size, so it is fixed")
        total = wide - 1 if step == 1 else max((-(-size // step) - 1) * step + wide - size, 0)
        found.append((total // 2, total - total // 2))
    return found


def _middle(value: Any, count: int) -> tuple[int, ...]:
    """A number for each axis between the first and the last."""
    found = fixed(value)
    if isinstance(found, int):
        return (found,) * count
    found = list(found)
    return tuple(found[1:-1] if len(found) == count + 2 else found * (count if len(found) == 1 else 1))


def convolution(xp: Any, x: Any, filters: Any, strides: Any, padding: Any, dilations: Any, groups: int = 1) -> Any:
    """A convolution with channels last; the filters' axes are those of TensorFlow."""
    count = x.ndim - 2
    kernel = xp.transpose(filters, (count + 1, count, *range(count)))
    steps, rates = _middle(strides, count), _middle(dilations or 1, count)
    reach = [(size - 1) * rate + 1 for size, rate in zip(kernel.spec.shape[2:], rates, strict=True)]
    edges = _edges(xp, padding, x.shape[1:-1], reach, steps)
    return _last(xp, xp.conv(_first(xp, x), kernel, stride=steps, padding=edges, dilation=rates, groups=groups))


def _conv_row(*names: str) -> None:
    def run(xp: Any, input: Any, filters: Any = None, strides: Any = 1, padding: Any = "VALID", data_format: Any = None,
            dilations: Any = None, **given: Any) -> Any:  # fmt: skip
        filters = given.get("filter", filters)
        if data_format not in (None, "NWC", "NHWC", "NDHWC"):
            raise Untranslatable(f"the order of axes {data_format!r}")
        groups = input.spec.shape[-1] // filters.spec.shape[-2]
        return convolution(xp, input, filters, strides, padding, dilations, groups)

    row(*names)(run)


_conv_row("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.convolution", "raw_ops.Conv2D", "raw_ops.Conv3D")


@row("raw_ops.DepthwiseConv2dNative", "nn.depthwise_conv2d")
def depthwise(xp: Any, input: Any, filter: Any, strides: Any, padding: Any, data_format: Any = None,
              dilations: Any = None, **given: Any) -> Any:  # fmt: skip
    """A convolution of each channel by itself."""
    if data_format not in (None, "NHWC"):
        raise Untranslatable(f"the order of axes {data_format!r}")
    high, wide, channels, times = filter.spec.shape
    kernel = xp.reshape(filter, (high, wide, 1, channels * times))
    return convolution(xp, input, kernel, strides, padding, dilations, channels)


@row("raw_ops.Conv2DBackpropInput")
@taking("input_sizes", "filter", "out_backprop", "strides", "padding", use_cudnn_on_gpu=True, explicit_paddings=(),
        data_format="NHWC", dilations=None)  # fmt: skip
def conv_transpose(xp: Any, given: Any) -> Any:
    """What a convolution takes to its slopes: the input is spread out, and the kernel turned around."""
    if given.data_format != "NHWC" or set(_middle(given.dilations or 1, 2)) != {1}:
        raise Untranslatable("a transposed convolution with holes, or another order of axes")
    steps, wanted = _middle(given.strides, 2), list(sizes(given.input_sizes))[1:-1]
    kernel = xp.flip(xp.transpose(given.filter, (2, 3, 0, 1)), axis=(2, 3))
    edges = []
    for axis, (size, step) in enumerate(zip(wanted, steps, strict=True)):
        reach = kernel.spec.shape[2 + axis]
        size = xp.writer.fixed(size, "padding depends on this size, so it is fixed")
        have = xp.writer.fixed(given.out_backprop.size(1 + axis), "padding depends on this size, so it is fixed")
        ((before, _),) = _edges(xp, given.padding, (size,), (reach,), (step,))
        first = reach - 1 - before
        edges.append((first, size + reach - 1 - ((have - 1) * step + 1) - first))
    found = xp.conv(_first(xp, given.out_backprop), kernel, stride=(1, 1), padding=edges, dilation=(1, 1), groups=1,
                    spread=steps)  # fmt: skip
    return _last(xp, found)


def _pool_row(how: str, *names: str) -> None:
    def run(xp: Any, input: Any = None, ksize: Any = None, strides: Any = None, padding: Any = "VALID",
            data_format: Any = None, **given: Any) -> Any:  # fmt: skip
        x = given.get("value", input)
        if data_format not in (None, "NWC", "NHWC", "NDHWC"):
            raise Untranslatable(f"the order of axes {data_format!r}")
        count = x.ndim - 2
        window, steps = _middle(ksize, count), _middle(strides if strides is not None else 1, count)
        edges = _edges(xp, padding, x.shape[1:-1], window, steps)
        options = {"window": window, "stride": steps, "padding": edges, "dilation": (1,) * count}
        if how == "max":
            x = xp.where(xp.isnan(x), -float("inf"), x)  # TensorFlow passes over nan
            return _last(xp, xp.windows(_first(xp, x), "max", **options))
        total = xp.windows(_first(xp, x), "sum", **options)
        if not any(map(any, edges)):
            size = 1
            for one in window:
                size *= one
            return _last(xp, total / float(size))
        ones = xp.ones_like(_first(xp, x))
        return _last(xp, total / xp.windows(ones, "sum", **options))

    row(*names)(run)


_pool_row("max", "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.max_pool", "raw_ops.MaxPool")
_pool_row("mean", "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "nn.avg_pool", "raw_ops.AvgPool")


# ---- variables -------------------------------------------------------------------------------------------------------


@row("value", "read_value")
def value(xp: Any, variable: Any, *args: Any, **given: Any) -> Any:
    """What a variable holds now: later writes do not change it."""
    if not isinstance(variable, Array):
        raise Untranslatable("a variable of which nothing is known")
    return Array(variable.writer, variable.node, variable.spec, variable.differentiable, variable.fixed)


TENSORFLOW.add("assign", lambda xp, x, new, *args, **given: _array(xp, new))
TENSORFLOW.add("assign_add", lambda xp, x, new, *args, **given: x + operand(new))
TENSORFLOW.add("assign_sub", lambda xp, x, new, *args, **given: x - operand(new))


# ---- lists of tensors ------------------------------------------------------------------------------------------------


class Items(Value):
    """A list of Python's with tensors of one kind; ``spec`` is theirs, as far as it is known."""

    __slots__ = ("count", "spec")

    def __init__(self, writer: Writer, node: Any, spec: Spec | None, count: int) -> None:
        super().__init__(writer, node, True)
        self.spec = spec
        self.count = count


def _of_item(xp: Any, item: Any) -> Any:
    found = array(xp, item)
    if isinstance(found, Array):
        return found
    return xp.as_array(found, "int32" if isinstance(operand(found), int) else "float32")


def _shown(value: Any) -> int:
    return value.value if isinstance(value, Number) else int(value)


@row("raw_ops.TensorListReserve", "raw_ops.EmptyTensorList")
def reserve(xp: Any, element_shape: Any = None, num_elements: Any = 0, element_dtype: Any = None, **given: Any) -> Any:
    """A list of so many places."""
    count = number(num_elements)
    return Items(xp.writer, xp.writer.node("call_function", operator.mul, ([None], count)), None, _shown(count))


@row("raw_ops.TensorListFromTensor")
def from_tensor(xp: Any, tensor: Any, element_shape: Any = None, **given: Any) -> Any:
    """The items along the first axis."""
    x = array(xp, tensor)
    node = xp.writer.node("call_function", list, (x,))
    return Items(xp.writer, node, Spec(x.spec.shape[1:], x.dtype), x.spec.shape[0])


@row("raw_ops.TensorListSetItem")
def set_item(xp: Any, input_handle: Any, index: Any, item: Any, resize_if_index_out_of_bounds: bool = False) -> Any:
    """The list with another item."""
    writer, place, made = xp.writer, number(index), _of_item(xp, item)
    before = writer.node("call_function", operator.getitem, (input_handle, slice(None, place)))
    behind = writer.node("call_function", operator.getitem, (input_handle, slice(place + 1, None)))
    if resize_if_index_out_of_bounds:
        have = Number(writer, writer.node("call_function", len, (input_handle,)), _shown(place))
        writer.require(have >= place, True, "an item is written right behind the last one")
    node = writer.node("call_function", operator.add, (before, [made]))
    node = writer.node("call_function", operator.add, (node, behind))
    count = max(input_handle.count, _shown(place) + 1)
    return Items(writer, node, Spec(made.spec.shape, made.dtype), count)


@row("raw_ops.TensorListGetItem")
def get_item(xp: Any, input_handle: Any, index: Any, element_shape: Any = None, **given: Any) -> Any:
    """One item of a list."""
    node = xp.writer.node("call_function", operator.getitem, (input_handle, number(index)))
    spec = input_handle.spec or xp.wanted
    return xp.writer.wrap(node, spec, True)


@row("raw_ops.TensorListStack")
def stacked(xp: Any, input_handle: Any, element_shape: Any = None, **given: Any) -> Any:
    """The items along an axis of their own."""
    if input_handle.spec is None:
        raise Untranslatable("a list of which no item is known")
    node = xp.writer.node("call_function", xp.function("stack"), (input_handle,))
    return xp.writer.wrap(node, Spec((input_handle.count, *input_handle.spec.shape), input_handle.spec.dtype), True)


@row("raw_ops.TensorListLength")
def list_length(xp: Any, input_handle: Any) -> Any:
    """How many places a list has."""
    return plain(xp, Number(xp.writer, xp.writer.node("call_function", len, (input_handle,)), input_handle.count))


# ---- random numbers --------------------------------------------------------------------------------------------------

_STREAM = "random numbers are of the same distribution, and of another stream: the seed of the source is not used"


class Seed(Opaque):
    """Where the source draws random numbers from; the translation is given its own."""

    __slots__ = ()

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer, None)  # type: ignore[arg-type]


@row("raw_ops.StatelessRandomGetKeyCounter")
def key_counter(xp: Any, seed: Any) -> Any:
    """What a seed stands for."""
    return [Seed(xp.writer), Seed(xp.writer)]


def _random(kind: str, *names: str) -> None:
    def run(xp: Any, shape: Any, *args: Any, **given: Any) -> Any:
        if not xp.is_floating(_Kind(xp.wanted.dtype)):
            raise Untranslatable("random integers")
        xp.writer.note(_STREAM)
        return xp.draw(kind, sizes(shape), xp.wanted.dtype)

    row(*names)(run)


class _Kind:
    def __init__(self, dtype: str) -> None:
        self.dtype = dtype


_random("uniform", "raw_ops.StatelessRandomUniformV2", "raw_ops.RandomUniform")
_random("normal", "raw_ops.StatelessRandomNormalV2", "raw_ops.RandomStandardNormal")
