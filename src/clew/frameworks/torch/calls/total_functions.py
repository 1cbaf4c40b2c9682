"""Which calls of torch can be computed whatever numbers their tensors hold: none that indexes, divides whole numbers,
or makes a plain value or a shape of what a tensor holds.

In comes a node of a graph, of which nothing is asked but whether it is one of these; what is not known is none.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from clew.ir.arguments import leaves
from clew.ir.effects import resolve
from clew.ir.guests import package_of
from clew.ir.node import Node
from clew.ir.types import ArrayType

_OPERATORS = frozenset(
    getattr(operator, name) for name in "add sub mul truediv neg matmul eq ne lt le gt ge and_ or_ xor invert".split()
)
_NAMES = frozenset(
    "abs add addmm all amax amin any baddbmm bitwise_and bitwise_not bitwise_or bmm cat chunk clamp clip clone "
    "contiguous conv1d conv2d conv3d cos cumsum detach div dropout elu eq exp expand expand_as flatten float ge gelu "
    "group_norm gt half hardtanh bfloat16 layer_norm le leaky_relu linear log log_softmax logical_and logical_not "
    "logical_or lt masked_fill matmul maximum mean minimum mish mm mul ne neg ones_like permute relu relu6 reshape "
    "rms_norm rsqrt scaled_dot_product_attention sigmoid silu sin softmax softplus split sqrt square squeeze stack sub "
    "sum tanh to transpose tril triu type_as unbind unsqueeze var view where zeros_like".split()
)
_LAYERS: frozenset[type] = frozenset(
    getattr(torch.nn, name)
    for name in (
        "Linear LayerNorm GroupNorm Dropout Identity ReLU ReLU6 GELU SiLU Mish Tanh Sigmoid Softmax Softplus Hardtanh "
        "LeakyReLU ELU Conv1d Conv2d Conv3d Flatten"
    ).split()
)
_FACTS = frozenset({"shape", "ndim", "dtype", "device"})


def is_total(node: Node, root: Any) -> bool:
    """Whether a call gives a result, and does not wait for what its tensors hold."""
    if node.op == "call_module":
        return type(resolve(root, str(node.target))) in _LAYERS
    if node.op == "call_method":
        return node.target in _NAMES
    target = node.target
    if target is getattr:
        return node.args[1] in _FACTS
    if target is operator.getitem:
        return not any(isinstance(one, Node) and isinstance(one.value_type, ArrayType) for one in leaves(node.args[1]))
    if isinstance(target, type):  # a container in which results are given back
        return issubclass(target, (tuple, list, dict)) and all(user.op == "output" for user in node.users)
    if getattr(target, "__module__", "") == "_operator":
        return target in _OPERATORS
    return package_of(target) == "torch" and getattr(target, "__name__", "") in _NAMES
