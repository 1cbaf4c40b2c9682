"""Modes and flags that change what torch computes without any call of theirs being seen, and facts seldom asked for."""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.footguns.ledger import Case, call, program


def _rows(*counts, gradient=False):
    inputs = [lambda n=n: call(torch.randn(n, 4, requires_grad=gradient)) for n in counts]
    return {"example": inputs[0], "others": inputs[1:]}


@program("hooks_on_saved_tensors", kind="hidden_modes")
def _():
    def f(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda value: value * 2, lambda value: value):
            return x * x

    return Case(f, **_rows(2, 3, gradient=True), gradients=True)


@program("dispatch_mode_inside", kind="hidden_modes")
def _():
    class Shifted(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result + 1 if "sin" in str(func) else result

    def f(x):
        with Shifted():
            return torch.sin(x)

    return Case(f, **_rows(2, 3))


@program("function_mode_inside", kind="hidden_modes")
def _():
    class Doubled(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.sin else result

    def f(x):
        with Doubled():
            y = torch.sin(x)
        return y + torch.sin(x)

    return Case(f, **_rows(2, 3))


@program("forward_gradients", kind="hidden_modes")
def _():
    forward = torch.autograd.forward_ad

    def f(x):
        with forward.dual_level():
            return forward.unpack_dual(forward.make_dual(x, torch.ones_like(x)).sin()).tangent

    return Case(f, **_rows(2, 3))


@program("kernel_of_attention_chosen", kind="hidden_modes")
def _():
    def f(x):
        with sdpa_kernel(SDPBackend.MATH):
            return functional.scaled_dot_product_attention(x[None], x[None], x[None])

    return Case(f, **_rows(2, 3))


@program("weights_of_attention_asked_for_or_not", kind="hidden_modes")
def _():
    attention = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    flags = (False, True, False)
    others = [lambda flag=flag: call(torch.randn(2, 3, 4), need_weights=flag) for flag in flags]

    def f(x, need_weights=True):
        result, weights = attention(x, x, x, need_weights=need_weights)
        return result, weights, weights is None

    return Case(f, example=lambda: call(torch.randn(2, 3, 4)), others=others)


@program("attention_as_it_is", kind="hidden_modes")
def _():
    def inputs(**flags):
        return lambda: call(*[torch.randn(2, 3, 4)] * 3, **flags)

    others = [inputs(need_weights=False), inputs(), inputs(average_attn_weights=False)]
    return Case(make=lambda: nn.MultiheadAttention(4, 2, batch_first=True).eval(), example=inputs(), others=others)


@program("results_as_a_flag_says", kind="hidden_modes")
def _():
    def f(x, flag):
        found = functional.max_pool1d(x[None], 2, return_indices=flag)
        return found, isinstance(found, tuple)

    others = [lambda flag=flag: call(torch.randn(2, 4), flag) for flag in (True, False)]
    return Case(f, example=lambda: call(torch.randn(2, 4), False), others=others)


@program("hooks_on_the_gradient_of_a_layer_with_others", kind="hidden_modes")
def _():
    def make():
        layer = nn.Linear(4, 4)
        layer.register_forward_hook(lambda module, args, result: result + 1)
        layer.register_full_backward_pre_hook(lambda module, gradients: (gradients[0] * 3,))
        return nn.Sequential(layer, nn.ReLU())

    return Case(make=make, **_rows(2, 3), gradients=True)


@program("branch_on_quantization", kind="hidden_modes")
def _():
    def f(x):
        return x.dequantize() * 2 if x.is_quantized else x

    def quantized(scale):
        return lambda: call(torch.quantize_per_tensor(torch.ones(2), scale, 0, torch.quint8))

    return Case(f, example=lambda: call(torch.ones(2)), others=[quantized(0.1), quantized(0.2)])


@program("branch_on_legacy_types", kind="hidden_modes")
def _():
    def f(x):
        return x * 2 if isinstance(x, torch.FloatTensor) else x

    others = [lambda kind=kind: call(torch.ones(2, dtype=kind)) for kind in (torch.float64, torch.int32)]
    return Case(f, example=lambda: call(torch.ones(2)), others=others)


@program("branch_on_the_type_of_sparse_tensors", kind="hidden_modes")
def _():
    def f(x):
        return len(x.type()), x.is_nested

    return Case(f, example=lambda: call(torch.eye(2)), others=[lambda: call(torch.eye(2).double())] * 2)
