"""Whether the result of a call of torch is new memory, a view of its first argument, or either.

In comes the name of an operation that only computes its result; out comes a ``Result``. Views are a table. New memory
is what ATen's schema declares, for operators with kernels of their own; the schemas of operators that merely call
others (``dropout``, ``type_as``) are not to be relied on, so those are new only if they are listed here. Everything
else may be either: ``reshape`` gives a view where it can.
"""

from __future__ import annotations

import enum
import functools

import torch
from torch._ops import OpOverload

from clew.frameworks.torch.effects import overloads, packet


class Result(enum.Enum):
    """How the memory of a result relates to that of the arguments."""

    NEW = "new memory"
    VIEW = "a view of the first argument"
    PARTS = "several views of the first argument"
    EITHER = "a view or new memory"


VIEWS = frozenset(
    "view view_as unsqueeze squeeze unflatten t transpose permute swapaxes swapdims movedim moveaxis matrix_transpose "
    "select narrow diagonal expand expand_as broadcast_to detach real imag view_as_real view_as_complex unfold "
    "as_strided alias T mT H mH data".split()
)
PARTS = frozenset("split chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes unsafe_split".split())
_NEW_COMPOSITES = frozenset(
    "matmul linear tensordot layer_norm group_norm instance_norm batch_norm rms_norm softmax log_softmax conv1d conv2d "
    "conv3d conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention where bilinear normalize "
    "cross_entropy relu6 selu embedding gelu silu mish hardswish hardsigmoid hardtanh elu celu leaky_relu relu sigmoid "
    "tanh softplus logsigmoid glu one_hot max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d square "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d cosine_similarity mse_loss l1_loss nll_loss max min "
    "std var outer multiply subtract divide true_divide greater less greater_equal less_equal not_equal concat "
    "concatenate vstack hstack column_stack absolute argsort repeat_interleave with_item fitted and_ or_ xor truediv "
    "floordiv mod not_ invert".split()
)
"""Operators that call others, functions in Python and Python's own operators whose result is never a view."""


@functools.cache
def result_memory(name: str) -> Result:
    """What is known about the result of the function or method of this name."""
    if name in VIEWS:
        return Result.VIEW
    if name in PARTS:
        return Result.PARTS
    if name in _NEW_COMPOSITES:
        return Result.NEW
    operator = packet(name)
    return Result.NEW if operator is not None and all(map(_gives_new, overloads(operator))) else Result.EITHER


def _gives_new(overload: OpOverload) -> bool:
    schema = overload._schema
    if any(argument.is_out for argument in schema.arguments):
        return True  # the call says so itself, with ``out``
    name = overload._name
    if not torch._C._dispatch_has_kernel(name):
        return True  # TorchScript's, of lists and numbers
    calls_others = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
    return not calls_others and all(value.alias_info is None for value in schema.returns)
