"""torch's layers as functions: matrix products, convolutions, pools, norms, attention, resizing, losses."""

from __future__ import annotations

import math
from typing import Any

from clew.translate.refusals import Undecided, Untranslatable
from clew.translate.rows.table import refuse_given, spread, taking
from clew.translate.rows.torch_elementwise import TORCH, computed, fitting
from clew.translate.values import Array, Number

# ---- products --------------------------------------------------------------------------------------------------------


@TORCH.row("matmul", "mm", "bmm", "mv", "operator.matmul", "dot", "inner", "vdot", "linalg.matmul")
def matmul(xp: Any, x: Array, y: Array) -> Any:
    """A product of matrices or vectors."""
    return xp.matmul(x, y)


@TORCH.row("_grouped_mm", "nn.functional.grouped_mm", "ops.transformers.grouped_mm_fallback")
def grouped_matmul(xp: Any, x: Array, y: Array, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """A product for each group of rows with a matrix of its own; ``offs`` says where the groups end."""
    refuse_given("grouped_mm", bias=bias)
    if offs is None or x.ndim != 2 or y.ndim != 3:
        raise Untranslatable("grouped_mm of batches, or of groups of columns")
    return xp.to_wanted(xp.grouped_matmul(x, y, offs))


@TORCH.row("linalg.multi_dot", "chain_matmul")
def multi_dot(xp: Any, arrays: Any, *others: Any) -> Any:
    """A product of several."""
    found, *rest = arrays if isinstance(arrays, (tuple, list)) else (arrays, *others)
    for one in rest:
        found = xp.matmul(found, one)
    return found


@TORCH.row("addmm", "baddbmm", "addmv")
def addmm(xp: Any, x: Array, y: Array, z: Array, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """A product added to something."""
    product, beta, alpha = xp.matmul(y, z), fitting(xp, beta, x.dtype), fitting(xp, alpha, x.dtype)
    return (x if beta == 1 else beta * x) + (product if alpha == 1 else alpha * product)


@TORCH.row("outer", "ger")
def outer(xp: Any, x: Array, y: Array) -> Any:
    """All products of two."""
    x, y = computed(xp, x, y)
    return xp.outer(x, y)


@TORCH.row("einsum", "functional.einsum")
def einsum(xp: Any, equation: Any, *operands: Any) -> Any:
    """Sums of products, by letters."""
    if not isinstance(equation, str):
        raise Untranslatable("einsum without letters")
    arrays = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    return xp.einsum(equation.replace(" ", ""), *arrays)


@TORCH.row("tensordot", "functional.tensordot")
def tensordot(xp: Any, x: Array, y: Array, dims: Any = 2, out: Any = None) -> Any:
    """Sums of products over axes."""
    return xp.tensordot(x, y, axes=dims)


@TORCH.row("kron")
def kron(xp: Any, x: Array, y: Array) -> Any:
    """Each item times a whole array."""
    return xp.kron(*computed(xp, x, y))


@TORCH.row("cross", "linalg.cross")
def cross(xp: Any, x: Array, y: Array, dim: int = -1) -> Any:
    """The cross product."""
    return xp.cross(x, y, axis=dim)


@TORCH.row("nn.functional.linear", "linear")
def linear(xp: Any, x: Array, weight: Array, bias: Any = None) -> Any:
    """A linear layer."""
    return xp.linear(x, weight, bias)


@TORCH.row("nn.functional.bilinear", "bilinear")
def bilinear(xp: Any, x: Array, y: Array, weight: Array, bias: Any = None) -> Any:
    """A form of two arguments."""
    found = xp.einsum("...i,kij,...j->...k", x, weight, y)
    return found if bias is None else found + bias


# ---- convolutions ----------------------------------------------------------------------------------------------------


def _conv(xp: Any, x: Array, weight: Array, bias: Any, count: int, given: tuple[Any, ...]) -> Any:
    stride, padding, dilation, groups = given
    stride, dilation = spread(stride, count), spread(dilation, count)
    if padding == "same":
        totals = [rate * (size - 1) for rate, size in zip(dilation, weight.spec.shape[2:], strict=True)]
        pairs = [(total // 2, total - total // 2) for total in totals]
    else:
        pairs = [(one, one) for one in ((0,) * count if padding == "valid" else spread(padding, count))]
    single = x.ndim == count + 1
    x = xp.expand_dims(x, 0) if single else x
    found = xp.conv(x, weight, stride=stride, padding=pairs, dilation=dilation, groups=groups)
    found = found if bias is None else found + xp.reshape(bias, (-1, *(1,) * count))
    return found[0] if single else found


def _conv_row(count: int) -> None:
    def row(
        xp: Any,
        input: Array,
        weight: Array,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        return _conv(xp, input, weight, bias, count, (stride, padding, dilation, groups))

    TORCH.row(f"nn.functional.conv{count}d", f"conv{count}d")(row)

    @taking("input", "weight", bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1)
    def transposed(xp: Any, given: Any) -> Any:
        weight, groups = given.weight, given.groups
        stride, dilation = spread(given.stride, count), spread(given.dilation, count)
        more, cut = spread(given.output_padding, count), spread(given.padding, count)
        reach = [rate * (size - 1) for rate, size in zip(dilation, weight.spec.shape[2:], strict=True)]
        pairs = [(one - c, one - c + m) for one, c, m in zip(reach, cut, more, strict=True)]
        turned = _turned(xp, weight, groups, count)
        single = given.input.ndim == count + 1
        x = xp.expand_dims(given.input, 0) if single else given.input
        found = xp.conv(x, turned, stride=(1,) * count, padding=pairs, dilation=dilation, groups=groups, spread=stride)
        found = found if given.bias is None else found + xp.reshape(given.bias, (-1, *(1,) * count))
        return found[0] if single else found

    TORCH.row(f"nn.functional.conv_transpose{count}d", f"conv_transpose{count}d")(transposed)


def _turned(xp: Any, weight: Array, groups: int, count: int) -> Array:
    """The weight of a transposed convolution as that of a plain one."""
    turned = xp.flip(weight, axis=tuple(range(2, 2 + count)))
    if groups == 1:
        found: Array = xp.swapaxes(turned, 0, 1)
        return found
    inputs, outputs, *sizes = weight.spec.shape
    parts = xp.reshape(turned, (groups, inputs // groups, outputs, *sizes))
    parts = xp.swapaxes(parts, 1, 2)
    found = xp.reshape(parts, (groups * outputs, inputs // groups, *sizes))
    return found


for _count in (1, 2, 3):
    _conv_row(_count)

# ---- pools -----------------------------------------------------------------------------------------------------------


def _ends(xp: Any, x: Array, count: int, given: dict[str, Any], ceil_mode: bool) -> list[tuple[int, int]]:
    """How much is put before and behind each axis; with ``ceil_mode`` so much that the last window fits."""
    pairs = [(one, one) for one in given["padding"]]
    if not ceil_mode:
        return pairs
    found = []
    for place, (low, high) in enumerate(pairs):
        size = xp.writer.fixed(x.size(x.ndim - count + place), "the windows of ceil_mode depend on this size")
        reach = given["dilation"][place] * (given["window"][place] - 1) + 1
        step = given["stride"][place]
        windows = -(-(size + 2 * low - reach) // step) + 1
        if (windows - 1) * step >= size + low:
            windows -= 1
        found.append((low, max((windows - 1) * step + reach - size - low, 0) if windows else high))
    return found


def _max_pool_row(count: int) -> None:
    def row(
        xp: Any,
        input: Array,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        refuse_given("max_pool", return_indices=return_indices)
        window = spread(kernel_size, count)
        given: dict[str, Any] = {
            "window": window,
            "stride": spread(stride, count) if stride not in (None, [], ()) else window,
            "padding": spread(padding, count),
            "dilation": spread(dilation, count),
        }
        given["padding"] = _ends(xp, input, count, given, ceil_mode)
        return xp.windows(input, "max", **given)

    for name in (
        "nn.functional.max_pool{}d",
        "max_pool{}d",
        "nn.functional._max_pool{}d",
        "nn.functional.boolean_dispatch{}",
    ):
        TORCH.add(name.format(count), row)


def _avg_pool_row(count: int) -> None:
    def row(
        xp: Any,
        input: Array,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:
        window = spread(kernel_size, count)
        given: dict[str, Any] = {
            "window": window, "stride": spread(stride, count) if stride not in (None, [], ()) else window,
            "padding": spread(padding, count), "dilation": (1,) * count}  # fmt: skip
        padded = any(given["padding"])
        given["padding"] = _ends(xp, input, count, given, ceil_mode)
        total = xp.windows(input, "sum", **given)
        if divisor_override:
            return total / divisor_override
        if ceil_mode and count_include_pad and padded:
            raise Untranslatable("an average pool with ceil_mode and padding that is counted")
        if (padded and not count_include_pad) or ceil_mode:
            return total / xp.windows(xp.ones_like(input), "sum", **given)
        return total / math.prod(window)

    TORCH.row(f"nn.functional.avg_pool{count}d", f"avg_pool{count}d", f"_C._nn.avg_pool{count}d")(row)


def _adaptive_row(count: int) -> None:
    def row(xp: Any, input: Array, output_size: Any) -> Any:
        wanted = spread(output_size, count)
        axes = [input.ndim - count + place for place in range(count)]
        if all(one == 1 for one in wanted):
            return xp.mean(input, axis=tuple(axes), keepdims=True)
        found = input
        for axis, size in zip(axes, wanted, strict=True):
            if size is not None:
                found = _averaged(xp, found, axis, size)
        return found

    TORCH.row(f"nn.functional.adaptive_avg_pool{count}d", f"adaptive_avg_pool{count}d")(row)


def _averaged(xp: Any, x: Array, axis: int, size: Any) -> Array:
    """Means of as many parts of an axis, which may overlap."""
    total = xp.writer.fixed(x.size(axis), "the windows of an adaptive pool depend on this size")
    if total == size:
        return x
    if total % size == 0:
        before, after = [x.size(one) for one in range(axis)], [x.size(one) for one in range(axis + 1, x.ndim)]
        found: Array = xp.mean(xp.reshape(x, (*before, size, total // size, *after)), axis=axis + 1)
        return found
    parts = []
    for place in range(size):
        start, end = place * total // size, -(-(place + 1) * total // size)
        parts.append(xp.mean(x[(*(slice(None),) * axis, slice(start, end))], axis=axis, keepdims=True))
    found = xp.concatenate(parts, axis=axis)
    return found


for _count in (1, 2, 3):
    _max_pool_row(_count)
    _avg_pool_row(_count)
    _adaptive_row(_count)

# ---- norms -----------------------------------------------------------------------------------------------------------


@TORCH.row("nn.functional.layer_norm", "layer_norm")
def layer_norm(
    xp: Any,
    input: Array,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: Any = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    """Mean zero and variance one over the last axes."""
    return _scaled(xp, _normal(xp, input, tuple(range(-len(normalized_shape), 0)), eps), weight, bias)


def _normal(xp: Any, x: Array, axes: tuple[int, ...], eps: Any) -> Array:
    """Normalised in float32 at least, as torch computes it."""
    wide = xp.astype(x, "float32") if x.dtype in ("float16", "bfloat16") else x
    found: Array = xp.normalized(wide, axes, eps)
    return found


def _scaled(xp: Any, x: Array, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return xp.to_wanted(x if bias is None else x + bias)


@TORCH.row("nn.functional.rms_norm", "rms_norm")
def rms_norm(xp: Any, input: Array, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """Divided by the root of the mean square."""
    axes = tuple(range(-len(normalized_shape), 0))
    wide = xp.astype(input, "float32") if input.dtype in ("float16", "bfloat16") else input
    small = eps if eps is not None else {"float64": 2.220446049250313e-16}.get(wide.dtype, 1.1920928955078125e-07)
    found = wide * xp.rsqrt(xp.mean(xp.square(wide), axis=axes, keepdims=True) + small)
    return _scaled(xp, found, weight, None)


@TORCH.row("nn.functional.group_norm", "group_norm")
def group_norm(
    xp: Any,
    input: Array,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: Any = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    """Mean zero and variance one over groups of channels."""
    batch, channels, *rest = input.shape
    parts = xp.reshape(input, (batch, num_groups, -1))
    found = xp.reshape(_normal(xp, parts, (-1,), eps), (batch, channels, *rest))
    return _scaled(xp, found, *_by_channel(xp, input, weight, bias))


def _by_channel(xp: Any, x: Array, *values: Any) -> list[Any]:
    """Values for each channel, shaped such that they meet the second axis."""
    if x.ndim == 2:
        return list(values)
    return [None if one is None else xp.reshape(one, (-1, *(1,) * (x.ndim - 2))) for one in values]


@TORCH.row("nn.functional.instance_norm", "instance_norm")
@taking(
    "input",
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
    cudnn_enabled=True,
)
def instance_norm(xp: Any, given: Any) -> Any:
    """Mean zero and variance one for each channel of each item."""
    x = given.input
    if not given.use_input_stats:
        return _by_statistics(xp, x, given)
    if given.running_mean is not None:
        raise Untranslatable("instance_norm that keeps running statistics")
    found = _normal(xp, x, tuple(range(2, x.ndim)), given.eps)
    return _scaled(xp, found, *_by_channel(xp, x, given.weight, given.bias))


@TORCH.row("nn.functional.batch_norm", "batch_norm")
@taking(
    "input",
    "running_mean",
    "running_var",
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
    cudnn_enabled=True,
)
def batch_norm(xp: Any, given: Any) -> Any:
    """By running statistics; in training by those of the batch, which move the running ones."""
    x = given.input
    if not given.training:
        return _by_statistics(xp, x, given)
    axes = (0, *range(2, x.ndim))
    found = _normal(xp, x, axes, given.eps)
    if given.running_mean is not None:
        _move_statistics(xp, x, axes, (given.running_mean, given.running_var), given.momentum)
    return _scaled(xp, found, *_by_channel(xp, x, given.weight, given.bias))


def _by_statistics(xp: Any, x: Array, given: Any) -> Any:
    mean, variance = _by_channel(xp, x, given.running_mean, given.running_var)
    found = (x - mean) * xp.rsqrt(variance + given.eps)
    return _scaled(xp, found, *_by_channel(xp, x, given.weight, given.bias))


def _move_statistics(xp: Any, x: Array, axes: tuple[int, ...], running: tuple[Any, Any], momentum: Any) -> None:
    mean, variance = running
    new_mean = xp.stop_gradient(xp.mean(x, axis=axes))
    new_variance = xp.stop_gradient(xp.var(x, axis=axes, ddof=1))
    xp.writer.rebind(mean, (1 - momentum) * mean + momentum * new_mean)
    xp.writer.rebind(variance, (1 - momentum) * variance + momentum * new_variance)


@TORCH.row("nn.functional.local_response_norm")
def local_response_norm(xp: Any, input: Array, size: int, alpha: Any = 1e-4, beta: Any = 0.75, k: Any = 1.0) -> Any:
    """Divided by the squares of neighbouring channels."""
    raise Untranslatable("local_response_norm")


# ---- attention -------------------------------------------------------------------------------------------------------


@TORCH.row(
    "nn.functional.scaled_dot_product_attention", "scaled_dot_product_attention", "_C._nn.scaled_dot_product_attention"
)
@taking("query", "key", "value", attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False)
def attention(xp: Any, given: Any) -> Any:
    """Scaled dot products of queries and keys, as weights of values."""
    query, key, value, scale = given.query, given.key, given.value, given.scale
    if isinstance(given.is_causal, Number):
        raise Undecided(given.is_causal)
    if not isinstance(given.is_causal, bool):
        raise Untranslatable("attention that is causal by a value that is not fixed")
    if not isinstance(given.dropout_p, (int, float)) or given.dropout_p:
        raise Untranslatable("attention with dropout")
    if given.enable_gqa:
        times = query.size(-3) // key.size(-3)
        key, value = xp.repeat(key, times, axis=-3), xp.repeat(value, times, axis=-3)
    if scale is None:
        width = query.size(-1)
        scale = 1 / math.sqrt(width) if isinstance(width, int) else width**-0.5
    return xp.attention(query, key, value, given.attn_mask, given.is_causal, scale)


# ---- resizing --------------------------------------------------------------------------------------------------------


@TORCH.row("nn.functional.interpolate", "nn.functional.upsample")
def interpolate(
    xp: Any,
    input: Array,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:
    """Images of another size."""
    refuse_given("interpolate", antialias=antialias)
    count = input.ndim - 2
    factors = None if scale_factor is None else spread(scale_factor, count)
    found = input
    for place in range(count):
        axis, have = 2 + place, input.size(2 + place)
        if factors is None:
            want = spread(size, count)[place]
            step = have / want
        else:
            want = _floor(xp, have, factors[place])
            step = have / want if recompute_scale_factor else 1.0 / factors[place]
        found = _resized(xp, found, axis, (have, want, step), mode, bool(align_corners))
    return found


def _floor(xp: Any, size: Any, factor: Any) -> Any:
    if float(factor).is_integer():
        return size * int(factor)
    return xp.writer.plain(math.floor, size * factor) if isinstance(size, Number) else math.floor(size * factor)


def _resized(xp: Any, x: Array, axis: int, sizes: tuple[Any, Any, Any], mode: str, corners: bool) -> Array:
    have, want, step = sizes
    places = xp.arange(want, dtype=xp.dtype_object("float32"))
    last = have - 1
    if mode in ("nearest", "nearest-exact"):
        at = xp.floor((places + 0.5) * step if mode == "nearest-exact" else places * step)
        index = xp.minimum(xp.astype(at, "int32"), last)
        found: Array = xp.take(x, index, axis=axis)
        return found
    if mode not in ("linear", "bilinear", "trilinear", "bicubic"):
        raise Untranslatable(f"interpolation by {mode}")
    if corners:
        single = (
            xp.writer.fixed(want == 1, "the corners of one pixel are one") if isinstance(want, Number) else want == 1
        )
        at = places * 0.0 if single else places * (last / (want - 1))
    else:
        at = (places + 0.5) * step - 0.5
    cubic = mode == "bicubic"
    at = at if cubic else xp.maximum(at, 0.0)
    whole = xp.floor(at)
    return _mixed(xp, x, axis, xp.astype(whole, "int32"), at - whole, last, cubic)


def _mixed(xp: Any, x: Array, axis: int, index: Array, part: Array, last: Any, cubic: bool) -> Array:
    """Neighbours along an axis, weighted."""
    part = xp.reshape(part, (-1, *(1,) * (x.ndim - axis - 1)))
    weights = _cubic(part) if cubic else [1.0 - part, part]
    found: Any = None
    for offset, weight in zip(range(-1, 3) if cubic else range(2), weights, strict=True):
        near = xp.clip(index + offset, 0, last) if offset else xp.clip(index, 0, last)
        term = xp.take(x, near, axis=axis) * weight
        found = term if found is None else found + term
    result: Array = found
    return result


def _cubic(t: Any, a: float = -0.75) -> list[Any]:
    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


# ---- losses ----------------------------------------------------------------------------------------------------------


def _meaned(xp: Any, loss: Array, reduction: str) -> Any:
    if reduction == "none":
        return loss
    return xp.mean(loss) if reduction == "mean" else xp.sum(loss)


@TORCH.row("nn.functional.mse_loss", "mse_loss")
def mse_loss(
    xp: Any,
    input: Array,
    target: Array,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """Squared differences."""
    refuse_given("mse_loss", size_average=size_average, reduce=reduce, weight=weight)
    return _meaned(xp, xp.square(input - target), reduction)


@TORCH.row("nn.functional.l1_loss", "l1_loss")
def l1_loss(
    xp: Any,
    input: Array,
    target: Array,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """Differences without sign."""
    refuse_given("l1_loss", size_average=size_average, reduce=reduce, weight=weight)
    return _meaned(xp, xp.abs(input - target), reduction)


@TORCH.row("nn.functional.binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits")
def bce_logits(
    xp: Any,
    input: Array,
    target: Array,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """The cross entropy of two classes, of logits."""
    refuse_given("binary_cross_entropy_with_logits", size_average=size_average, reduce=reduce)
    factor = 1.0 if pos_weight is None else (pos_weight - 1.0) * target + 1.0
    loss = (1.0 - target) * input + factor * xp.softplus(-input)
    return _meaned(xp, loss if weight is None else loss * weight, reduction)


@TORCH.row("nn.functional.nll_loss")
def nll_loss(
    xp: Any,
    input: Array,
    target: Array,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Negative log probabilities of the targets."""
    refuse_given("nll_loss", size_average=size_average, reduce=reduce)
    if input.ndim == 1:
        raise Untranslatable("the loss of a single item")
    counts = target != ignore_index
    safe = xp.where(counts, target, 0)
    picked = -xp.squeeze(xp.take_along_axis(input, xp.expand_dims(safe, 1), axis=1), axis=1)
    scale = None if weight is None else xp.take(weight, safe, axis=0)
    loss = xp.where(counts, picked if scale is None else picked * scale, 0.0)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return xp.sum(loss)
    total = xp.astype(counts, input.dtype) if scale is None else xp.where(counts, scale, 0.0)
    return xp.sum(loss) / xp.sum(total)


@TORCH.row("nn.functional.cross_entropy")
@taking(
    "input",
    "target",
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
)
def cross_entropy(xp: Any, given: Any) -> Any:
    """The cross entropy of logits and classes, or of logits and probabilities."""
    refuse_given("cross_entropy", size_average=given.size_average, reduce=given.reduce)
    refuse_given("cross_entropy", label_smoothing=given.label_smoothing)
    x, target, weight = given.input, given.target, given.weight
    logs = xp.log_softmax(x, 0 if x.ndim == 1 else 1)
    if not xp.is_floating(target):
        return nll_loss(xp, logs, target, weight, None, given.ignore_index, None, given.reduction)
    if weight is not None or x.ndim == 1:
        raise Untranslatable("cross_entropy of probabilities with weights")
    loss = -xp.sum(logs * target, axis=1)
    return _meaned(xp, loss, given.reduction)
