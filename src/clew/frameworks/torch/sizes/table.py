"""Which shape rule belongs to which function, method and layer of torch's.

In comes a node that was recorded; out goes what the rule for it says, or None. Functions are found by what they are,
not by their names, so that a function of the user's is never taken for one of torch's; layers by their exact class.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from clew.capture.guards.sizes import Size
from clew.frameworks.torch.sizes import rules
from clew.frameworks.torch.sizes import rules_of_parts as parts
from clew.frameworks.torch.sizes.rules import Answer, Call, Rule, Unknown
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.frameworks.torch.sizes.sizes import Sizes

# ---- modules ---------------------------------------------------------------------------------------------------------


class LayerCall(Call):
    """A call of one of torch's own layers: its parameters are symbols of their own."""

    __slots__ = ("layer", "path")

    def __init__(self, sizes: Sizes, node: Node, layer: torch.nn.Module) -> None:
        super().__init__(sizes, node.args, node.kwargs)
        self.layer = layer
        self.path = str(node.target)

    def parameter(self, name: str) -> tuple[Size, ...]:
        """The sizes of a parameter of the layer."""
        return self.sizes.shape_of_attribute(getattr(self.layer, name))


def _linear_layer(call: Any) -> Answer:
    return [*call.shape(call.get(0, "input"))[:-1], call.parameter("weight")[0]]


def _embedding_layer(call: Any) -> Answer:
    return [*call.shape(call.get(0, "input")), call.parameter("weight")[1]]


def _convolution_layer(count: int) -> Rule:
    """Where the windows lie hangs on settings of the layer, which may be set anew; batch and channels do not."""

    def rule(call: Any) -> Answer:
        shape = call.shape(call.get(0, "input"))
        return [*shape[: -count - 1], call.parameter("weight")[0], *[None] * count]

    return rule


def _pool_layer(count: int) -> Rule:
    def rule(call: Any) -> Answer:
        return [*call.shape(call.get(0, "input"))[:-count], *[None] * count]

    return rule


# ---- the tables ------------------------------------------------------------------------------------------------------

_ELEMENTWISE = (
    "add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow rsub maximum minimum fmax "
    "fmin atan2 arctan2 hypot copysign lt le gt ge eq ne less less_equal greater greater_equal not_equal logical_and "
    "logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift where lerp "
    "addcmul addcdiv masked_fill clamp clip clamp_min clamp_max isclose xlogy logaddexp logaddexp2 nextafter heaviside "
    "ldexp float_power gcd lcm "
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __div__ __rdiv__ __truediv__ __rtruediv__ __floordiv__ "
    "__rfloordiv__ __mod__ __rmod__ __pow__ __rpow__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ "
    "__rlshift__ __rshift__ __rrshift__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__"
)
_SHAPE_KEEPING = (
    "abs absolute neg negative positive exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan "
    "asin acos atan arcsin arccos arctan sinh cosh tanh asinh acosh atanh arcsinh arccosh arctanh sigmoid erf erfc "
    "erfinv floor ceil round trunc fix frac sign sgn signbit relu relu6 gelu silu mish elu selu celu leaky_relu "
    "hardtanh hardswish hardsigmoid softplus softsign softshrink hardshrink tanhshrink threshold logsigmoid rrelu "
    "softmax log_softmax softmin dropout alpha_dropout feature_dropout dropout1d dropout2d dropout3d layer_norm "
    "rms_norm batch_norm group_norm instance_norm normalize local_response_norm cumsum cumprod logcumsumexp roll flip "
    "fliplr flipud tril triu isnan isinf isfinite isposinf isneginf logical_not bitwise_not invert nan_to_num digamma "
    "lgamma i0 sinc deg2rad rad2deg conj conj_physical angle to float double half bfloat16 long int short "
    "char byte bool type_as contiguous clone detach alias cpu cuda scatter scatter_add "
    "scatter_reduce index_add index_copy index_fill index_put index_reduce put bernoulli argsort zeros_like "
    "ones_like empty_like full_like rand_like randn_like randint_like logit renorm _weight_norm "
    "__neg__ __pos__ __invert__ __abs__"
)
_BY_NAME: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE.split(), rules.elementwise_rule),
    **dict.fromkeys(_SHAPE_KEEPING.split(), rules.first_rule),
    **dict.fromkeys(
        "sum mean amax amin all any argmax argmin logsumexp nansum nanmean prod count_nonzero".split(),
        parts.reduction_rule,
    ),
    **dict.fromkeys("var std".split(), parts.statistic_rule),
    **dict.fromkeys("max min".split(), parts.extreme_rule),
    **dict.fromkeys("cummax cummin sort".split(), parts.sorted_rule),
    **dict.fromkeys("matmul __matmul__".split(), rules.matmul_rule),
    **dict.fromkeys("view reshape".split(), rules.view_rule),
    **dict.fromkeys("view_as reshape_as expand_as".split(), rules.view_as_rule),
    **dict.fromkeys("transpose swapaxes swapdims".split(), rules.transpose_rule),
    **dict.fromkeys("movedim moveaxis".split(), rules.movedim_rule),
    **dict.fromkeys("zeros ones empty rand randn".split(), rules.made_rule),
    **dict.fromkeys("new_zeros new_ones new_empty".split(), rules.made_anew_rule),
    **dict.fromkeys("cat concat concatenate".split(), rules.cat_rule),
    **dict.fromkeys("split split_with_sizes".split(), parts.split_rule),
    "masked_scatter": rules.masked_rule,
    "norm": parts.norm_rule,
    "mm": rules.matmul_rule,
    "mv": rules.matmul_rule,
    "bmm": rules.bmm_rule,
    "addmm": rules.addmm_rule,
    "baddbmm": rules.baddbmm_rule,
    **dict.fromkeys("_grouped_mm grouped_mm".split(), rules.grouped_rule),
    "linear": rules.linear_rule,
    "embedding": rules.embedding_rule,
    "scaled_dot_product_attention": rules.attention_rule,
    "einsum": rules.einsum_rule,
    "stack": rules.stack_rule,
    "flatten": rules.flatten_rule,
    "unflatten": rules.unflatten_rule,
    "t": rules.t_rule,
    "permute": rules.permute_rule,
    "unsqueeze": rules.unsqueeze_rule,
    "squeeze": rules.squeeze_rule,
    "expand": rules.expand_rule,
    "broadcast_to": rules.expand_rule,
    "repeat": rules.repeat_rule,
    "tile": rules.tile_rule,
    "repeat_interleave": rules.repeat_interleave_rule,
    "unfold": rules.unfold_rule,
    "diag_embed": rules.diagonal_free_rule,
    "getitem": parts.getitem_rule,
    "__getitem__": parts.getitem_rule,
    "select": parts.select_rule,
    "narrow": parts.narrow_rule,
    "index_select": parts.index_select_rule,
    "gather": parts.gather_rule,
    "chunk": parts.chunk_rule,
    "unbind": parts.unbind_rule,
    "topk": parts.topk_rule,
    "kthvalue": parts.kth_rule,
    "mode": parts.along_rule,
    "median": parts.median_rule,
    "dot": parts.nothing_rule,
    "full": rules.filled_rule,
    "new_full": rules.new_full_rule,
    "randint": rules.randint_rule,
    "arange": rules.arange_rule,
    "tensor": rules.tensor_rule,
    "linspace": rules.linspace_rule,
    "eye": rules.eye_rule,
    "one_hot": rules.one_hot_rule,
    "pad": rules.pad_rule,
    "conv1d": rules.convolution_rule(1),
    "conv2d": rules.convolution_rule(2),
    "conv3d": rules.convolution_rule(3),
    **{f"conv_transpose{count}d": rules.transposed_convolution_rule(count) for count in (1, 2, 3)},
    "max_pool1d": rules.pooled_rule(1),
    "max_pool2d": rules.pooled_rule(2),
    "max_pool3d": rules.pooled_rule(3),
    "avg_pool1d": rules.pooled_rule(1),
    "avg_pool2d": rules.pooled_rule(2),
    "avg_pool3d": rules.pooled_rule(3),
    "adaptive_avg_pool1d": rules.adaptive_rule(1),
    "adaptive_avg_pool2d": rules.adaptive_rule(2),
    "adaptive_avg_pool3d": rules.adaptive_rule(3),
    "interpolate": rules.interpolate_rule,
}


def _functions() -> dict[Any, Rule]:
    """The rules by function: of torch, of its functional layers and of Python's operators."""
    found: dict[Any, Rule] = {}
    for holder in (torch, F, torch._C._nn):
        for name, rule in _BY_NAME.items():
            function = getattr(holder, name, None)
            if callable(function) and name != "unfold":  # as a function it is another one
                found[function] = rule
    found[torch.embedding] = lambda call: [*call.shape(call.args[1]), call.shape(call.args[0])[1]]
    for name in "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt le gt ge eq ne".split():
        found[getattr(operator, name)] = rules.elementwise_rule
    found |= {getattr(operator, name): rules.first_rule for name in ("neg", "pos", "invert", "abs")}
    found |= {operator.matmul: rules.matmul_rule, operator.getitem: parts.getitem_rule}
    methods = {getattr(torch.Tensor, name): rule for name, rule in _BY_NAME.items() if hasattr(torch.Tensor, name)}
    return methods | found


FUNCTIONS = _functions()
METHODS = {name: rule for name, rule in _BY_NAME.items() if hasattr(torch.Tensor, name)}
_KEEPING_LAYERS = (
    "ReLU ReLU6 GELU SiLU Mish ELU SELU CELU LeakyReLU Hardtanh Hardswish Hardsigmoid Softplus Softsign Softshrink "
    "Hardshrink Tanhshrink Threshold LogSigmoid Sigmoid Tanh Softmax LogSoftmax Softmin Dropout Dropout1d Dropout2d "
    "Dropout3d AlphaDropout FeatureAlphaDropout LayerNorm RMSNorm BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm "
    "InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm Identity PReLU"
)
LAYERS: dict[type, Rule] = {
    **{getattr(torch.nn, name): rules.first_rule for name in _KEEPING_LAYERS.split() if hasattr(torch.nn, name)},
    torch.nn.Linear: _linear_layer,
    torch.nn.Embedding: _embedding_layer,
    torch.nn.Conv1d: _convolution_layer(1),
    torch.nn.Conv2d: _convolution_layer(2),
    torch.nn.Conv3d: _convolution_layer(3),
    torch.nn.ConvTranspose1d: rules.transposed_convolution_rule(1),
    torch.nn.ConvTranspose2d: rules.transposed_convolution_rule(2),
    torch.nn.ConvTranspose3d: rules.transposed_convolution_rule(3),
    **{
        getattr(torch.nn, f"{kind}{count}d"): _pool_layer(count)
        for kind in ("MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool")
        for count in (1, 2, 3)
    },
}


_TOTAL: frozenset[Rule] = frozenset(
    {
        rules.elementwise_rule,
        rules.masked_rule,
        rules.flatten_rule,
        rules.transpose_rule,
        rules.t_rule,
        rules.permute_rule,
        rules.movedim_rule,
        rules.unsqueeze_rule,
        rules.squeeze_rule,
        parts.reduction_rule,
        parts.extreme_rule,
        parts.sorted_rule,
        rules.made_rule,
        rules.filled_rule,
        rules.made_anew_rule,
        rules.new_full_rule,
        rules.randint_rule,
        rules.tensor_rule,
        parts.unbind_rule,
        parts.chunk_rule,
    }
)
"""The rules of functions that never raise because of sizes, except where ``is_assuming`` says so."""


def rule_of(node: Node) -> Rule | None:
    """The rule for a call of a function or method."""
    if node.op == "call_function":
        return FUNCTIONS.get(node.target) if _is_hashable(node.target) else None
    return METHODS.get(str(node.target)) if node.op == "call_method" else None


def answer_of(sizes: Sizes, node: Node, layer_at: Callable[[str], Any]) -> Answer:
    """What the rules say of the result of a call; None if they say nothing."""
    call, rule = Call(sizes, node.args, node.kwargs), rule_of(node)
    if node.op not in ("call_function", "call_method"):
        layer: Any = layer_at(str(node.target)) if node.op == "call_module" else None
        rule = LAYERS.get(type(layer))
        call = LayerCall(sizes, node, layer)
    if rule is None or "out" in node.kwargs:
        return None
    sizes.is_assuming = rule not in _TOTAL and node.target not in _NEVER_RAISING
    try:
        return rule(call)
    except (Unknown, LookupError, ValueError, StopIteration):
        return None


_NEVER_RAISING = frozenset("to float double half bfloat16 long int bool contiguous clone detach".split())


def _is_hashable(target: Any) -> bool:
    return getattr(type(target), "__hash__", None) is not None
