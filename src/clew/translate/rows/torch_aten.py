"""ATen's functions, of which torch's decompositions consist, where they differ from torch's of the same name.

Most take what torch's own take, and have the rows of those. ``OTHERWISE`` names those that take something else or mean
something else, and which are no rows therefore; a few of them have rows here.
"""

from __future__ import annotations

from typing import Any

from clew.translate.rows import torch_creation, torch_indexing
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.values import Array

OTHERWISE = frozenset(
    "batch_norm binary_cross_entropy_with_logits bilinear cosine_similarity cross_entropy dropout elu embedding "
    "group_norm instance_norm interpolate l1_loss layer_norm mse_loss nll_loss normalize one_hot pad rms_norm "
    "tensordot _reshape_alias bernoulli __getitem__ tensor as_tensor einsum".split()
)
"""ATen's functions that take other arguments than torch's of the same name."""

ELEMENTWISE = frozenset(
    "abs acos acosh asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil cos cosh div eq "
    "erf exp exp2 expm1 floor fmax fmin fmod ge gt hypot imag isfinite le log log10 log1p log2 lt maximum minimum mul "
    "ne neg nextafter pow real reciprocal remainder round rsqrt sign signbit sin sinh sqrt sub tan tanh trunc "
    "where".split()
)
"""Primitives that are torch's functions of the same name; the others mean something else."""

TORCH.add("prims.convert_element_type", torch_creation.to)
TORCH.add("aten.lift_fresh_copy", TORCH.rows["clone"])


@TORCH.row("aten.embedding")
def embedding(
    xp: Any,
    weight: Array,
    indices: Array,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of a table."""
    return torch_indexing.embedding(xp, indices, weight, None if padding_idx < 0 else padding_idx)


@TORCH.row("aten.sym_size", "sym_size")
def sym_size(xp: Any, x: Array, dim: int) -> Any:
    """A size."""
    return x.size(dim)


@TORCH.row("aten.sym_numel")
def sym_numel(xp: Any, x: Array) -> Any:
    """The number of items."""
    return TORCH.rows["numel"](xp, x)


@TORCH.row("aten._softmax")
def softmax(xp: Any, x: Array, dim: int, half_to_float: bool) -> Any:
    """Exponentials that sum to one."""
    return xp.softmax(xp.to_wanted(x), dim) if x.ndim else xp.ones_like(x)


@TORCH.row("aten._log_softmax")
def log_softmax(xp: Any, x: Array, dim: int, half_to_float: bool) -> Any:
    """The logarithm of the softmax."""
    return xp.log_softmax(xp.to_wanted(x), dim) if x.ndim else xp.zeros_like(x)


@TORCH.row("aten.index", "aten._unsafe_index")
def index(xp: Any, x: Array, indices: Any) -> Any:
    """Items by arrays of indices, a whole axis where there is none."""
    return TORCH.rows["operator.getitem"](xp, x, tuple(slice(None) if one is None else one for one in indices))


@TORCH.row("aten.convolution")
def convolution(xp: Any, input: Array, weight: Array, bias: Any, stride: Any, *others: Any) -> Any:
    """A convolution, plain or transposed."""
    padding, dilation, transposed, output_padding, groups = others
    count = input.ndim - 2
    if transposed:
        name = f"nn.functional.conv_transpose{count}d"
        return TORCH.rows[name](xp, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return TORCH.rows[f"nn.functional.conv{count}d"](xp, input, weight, bias, stride, padding, dilation, groups)


@TORCH.row("aten.native_dropout")
def native_dropout(xp: Any, x: Array, p: Any, train: Any) -> Any:
    """Items left out with a probability, and which were kept."""
    if train is False:
        return (x, xp.ones_like(x, dtype=xp.dtype_object("bool")))
    if p == 1:
        return (x * 0.0, xp.zeros_like(x, dtype=xp.dtype_object("bool")))
    keep = xp.draw("bernoulli", x.shape, "bool", p=1.0 - p)
    return (xp.where(keep, x / (1.0 - p), 0.0), keep)


@TORCH.row("aten.bernoulli")
def bernoulli(xp: Any, x: Array, p: Any = None, generator: Any = None) -> Any:
    """Ones with these probabilities."""
    return torch_creation.bernoulli(xp, x, p, generator=generator)


def _sizes(name: str, function: Any) -> None:
    def row(xp: Any, *args: Any) -> Any:
        return xp.writer.plain(function, *args) if any(hasattr(one, "node") for one in args) else function(*args)

    TORCH.add(name, row)


_sizes("sym_float", float)
_sizes("sym_int", int)
_sizes("sym_max", max)
_sizes("sym_min", min)
