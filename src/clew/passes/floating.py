"""Which values of a graph are arrays of floating-point numbers for every input, and not only for the example.

A graph comes in whose types are those of an example; out comes for each such value the inputs that must be floating for
it to be so: none where the operation, a layer or a parameter decides it. A pass that relies on inputs adds guards.
"""

from __future__ import annotations

from typing import Any

from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guards import Call, Guard
from clew.ir.guests import guest_of
from clew.ir.node import Node
from clew.ir.types import ArrayType

_ALWAYS = frozenset(
    "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d softmax log_softmax layer_norm "
    "group_norm batch_norm rms_norm gelu silu sigmoid tanh exp log sqrt rsqrt erf sin cos truediv mean embedding "
    "scaled_dot_product_attention float double half bfloat16".split()
)
_LIKE_INPUTS = frozenset(
    "add sub mul maximum minimum where relu neg abs transpose permute reshape view expand flatten unsqueeze squeeze "
    "contiguous clone detach matmul mm bmm addmm dropout clamp masked_fill tril triu roll cat stack sum pow".split()
)
_LAYERS = ("Linear", "Conv", "BatchNorm", "LayerNorm", "GroupNorm", "RMSNorm", "Embedding", "GELU", "SiLU", "Sigmoid",
           "Tanh", "Softmax")  # fmt: skip
_LAYERS_LIKE_INPUTS = ("Dropout", "ReLU", "Identity", "Flatten", "MaxPool")

Needed = frozenset[Node]


def floating_values(graph: Graph) -> dict[Node, Needed]:
    """The values that are floating if these inputs are."""
    found: dict[Node, Needed] = {}
    for node in graph.nodes:
        needed = _needed(node, found)
        if needed is not None:
            found[node] = needed
    return found


def floating_guard(node: Node) -> Guard:
    """The assumption that an input is an array of floating-point numbers."""
    reason = "a rewrite that holds for floating-point numbers alone was done"
    return Guard(Call("is_floating_point", (node,)), "equals", True, "type", node.source, reason)


def _needed(node: Node, found: dict[Node, Needed]) -> Needed | None:
    if node.op == "placeholder":
        kind = node.value_type
        is_floating = isinstance(kind, ArrayType) and kind.dtype.startswith(("float", "bfloat"))
        return frozenset({node}) if is_floating else None
    root = node.graph.owning_module
    if node.op == "get_attr":
        value = resolve(root, node.target)
        guest = guest_of(type(value))
        is_parameter = guest is not None and guest.parameter_class is not None and type(value) is guest.parameter_class
        is_constant = value is not None and guest is not None and vars(root).get(node.target) is value
        return frozenset() if (is_parameter or is_constant) and value.is_floating_point() else None
    dtype = _dtype_given(node)
    if dtype is not None:
        return _of_dtype(dtype, found)
    always, like_inputs = _rules(node, root)
    return frozenset() if always else _of_inputs(node, found) if like_inputs else None


def _rules(node: Node, root: Any) -> tuple[bool, bool]:
    """Whether the value of a call is always floating, and whether it is if an argument is."""
    if node.op == "call_module":
        kind = type(resolve(root, node.target))
        is_known = guest_of(kind) is not None
        name = kind.__name__
        return is_known and name.startswith(_LAYERS), is_known and name.startswith(_LAYERS_LIKE_INPUTS)
    if node.op == "call_function":
        is_operator = getattr(node.target, "__module__", "") == "_operator"
        if not is_operator and guest_of(node.target) is None:
            return False, False
        name = getattr(node.target, "__name__", "")
        return name in _ALWAYS, name in _LIKE_INPUTS
    return (node.target in _ALWAYS, node.target in _LIKE_INPUTS) if node.op == "call_method" else (False, False)


_MADE = frozenset("zeros ones full empty zeros_like ones_like full_like arange rand randn".split())
_CAST = frozenset({"to", "type"})


def _dtype_given(node: Node) -> Any:
    """The dtype that a call is told to give; None if it is told none."""
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    if name in _MADE or node.kwargs.get("dtype") is not None:
        return node.kwargs.get("dtype")
    is_cast = node.op == "call_method" and name in _CAST and len(node.args) == 2 and not node.kwargs
    return node.args[1] if is_cast else None


def _of_dtype(dtype: Any, found: dict[Node, Needed]) -> Needed | None:
    """What must be floating for a dtype to be that of floating-point numbers: the array whose dtype it is."""
    if isinstance(dtype, Node):
        is_read = dtype.target is getattr and len(dtype.args) == 2 and dtype.args[1] == "dtype"
        return found.get(dtype.args[0]) if is_read else None
    return frozenset() if str(dtype).removeprefix("torch.").startswith(("float", "bfloat")) else None


def _of_inputs(node: Node, found: dict[Node, Needed]) -> Needed | None:
    known = [found[used] for used in node._inputs if used in found]
    return min(known, key=len, default=None)
