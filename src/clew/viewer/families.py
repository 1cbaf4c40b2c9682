"""What kind of operation a step is: one word for its colour, its place in the legend and its label in words."""

from __future__ import annotations

import re

from clew.ir.format import format_target
from clew.ir.guards import is_guard
from clew.ir.node import Node
from clew.ir.types import ArrayType, Type

_NAMES = {
    "matrix": "linear bilinear conv1d conv2d conv3d conv convtranspose1d convtranspose2d convtranspose3d "
    "conv_transpose1d conv_transpose2d conv_general_dilated matmul mm bmm addmm baddbmm dot dot_general einsum "
    "tensordot outer lstm gru rnn nondynamicallyquantizablelinear conv1d_ batchmatmulv2",
    "attention": "scaled_dot_product_attention multiheadattention multi_head_attention_forward dot_product_attention",
    "normalization": "layernorm layer_norm rmsnorm rms_norm batchnorm1d batchnorm2d batchnorm3d batch_norm groupnorm "
    "group_norm instance_norm instancenorm2d normalize softmax log_softmax softmin dropout dropout2d alpha_dropout",
    "activation": "relu relu6 gelu silu elu selu celu mish tanh sigmoid hardswish hardsigmoid hardtanh "
    "leaky_relu leakyrelu prelu softplus glu logsigmoid threshold",
    "embedding": "embedding embeddingbag embedding_bag one_hot gather index_select take getitem",
    "pool": "maxpool1d maxpool2d maxpool3d max_pool1d max_pool2d avgpool1d avgpool2d avg_pool2d adaptiveavgpool1d "
    "adaptiveavgpool2d adaptive_avg_pool2d adaptive_avg_pool1d sum mean amax amin max min argmax argmin prod "
    "norm var std logsumexp any all cumsum reduce_sum reduce_max interpolate upsample",
    "shape": "view reshape transpose permute flatten unflatten squeeze unsqueeze expand contiguous cat concat "
    "concatenate stack split chunk swapaxes movedim t broadcast_to repeat tile pad roll flip unbind narrow "
    "clone to detach type float half bool int long identity moveaxis ravel expand_dims broadcast_in_dim "
    "convert_element_type astype setitem",
}
_FAMILY = {name: family for family, names in _NAMES.items() for name in names.split()}


def family_of(node: Node, kind: str = "") -> str:
    """``input``, ``output``, ``weight``, ``guard``, or the family of the operation; ``kind`` is the class of a
    module."""
    plain = {"placeholder": "input", "output": "output", "get_attr": "weight"}.get(node.op)
    if plain is not None:
        return plain
    if is_guard(node):
        return "guard"
    name = (kind or format_target(node.target).rpartition(".")[2]).lower().rstrip("_")
    return _FAMILY.get(name, "operation")


def bytes_of(value_type: Type | None) -> int | None:
    """How many bytes an array of a type takes; None where that is not known."""
    if not isinstance(value_type, ArrayType):
        return None
    digits = re.search(r"\d+", value_type.dtype)
    size = 1 if digits is None else max(int(digits[0]) // 8, 1)
    for dimension in value_type.shape:
        if type(dimension) is not int:
            return None
        size *= dimension
    return size
