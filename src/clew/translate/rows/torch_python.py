"""What a torch program asks of torch itself: modes, tracing, gradients; and plain Python on numbers.

A translated program is one that a compiler may trace, so that is what it is told: libraries then leave out questions
about data. Gradients are on, and autocast is off.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.values import Array, Number, Value

TRUE = ("compiler.is_compiling", "_dynamo.is_compiling", "is_grad_enabled")
FALSE = (
    "compiler.is_exporting", "compiler.is_dynamo_compiling", "jit.is_tracing", "jit.is_scripting",
    "_C._get_tracing_state", "is_autocast_enabled", "is_autocast_cpu_enabled", "is_inference_mode_enabled",
    "cannot_read_tensors", "cuda.is_available", "attribute.is_cuda", "attribute.is_sparse",
    "attribute.is_quantized", "attribute.is_mkldnn", "attribute.is_mps", "attribute.is_xpu",
    "attribute.is_nested", "attribute.is_meta", "is_inference", "is_neg", "is_conj",
    "cuda.is_current_stream_capturing", "_C._is_torch_function_mode_enabled",
)  # fmt: skip


def _constant(value: bool) -> Any:
    def row(xp: Any, *args: Any, **kwargs: Any) -> bool:
        return value

    return row


for _name in TRUE:
    TORCH.add(_name, _constant(True))
for _name in FALSE:
    TORCH.add(_name, _constant(False))


@TORCH.row("is_tensor")
def is_tensor(xp: Any, x: Any) -> bool:
    """Whether it is an array."""
    return isinstance(x, Array)


@TORCH.row("operator.not_")
def not_row(xp: Any, x: Any) -> Any:
    """Python's "not"; of an array without axes, its opposite."""
    if isinstance(x, Array):
        return xp.logical_not(x)
    return xp.writer.plain(operator.not_, x) if isinstance(x, Value) else not x


@TORCH.row("operator.truth")
def truth(xp: Any, x: Any) -> Any:
    """Python's truth; of an array without axes, whether it is not zero."""
    if isinstance(x, Array):
        return x if x.dtype == "bool" else x != 0
    return xp.writer.plain(operator.truth, x) if isinstance(x, Value) else bool(x)


@TORCH.row("operator.is_", "operator.is_not", "operator.contains")
def identity(xp: Any, *args: Any) -> Any:
    """Questions that are answered while the program is translated, where that can be."""
    raise Untranslatable("it asks which object a value is")


def _on_numbers(function: Any) -> Any:
    def row(xp: Any, *args: Any) -> Any:
        if any(isinstance(one, Array) for one in args):
            raise Untranslatable(f"{function.__name__} of an array")
        return xp.writer.plain(function, *args)

    return row


for _function in (math.sqrt, math.floor, math.ceil, math.log, math.exp, math.prod, math.pow):
    TORCH.add(f"math.{_function.__name__}", _on_numbers(_function))
for _builtin in (max, min, int, float, range, bool, round, sum):
    if f"builtins.{_builtin.__name__}" not in TORCH.rows:
        TORCH.add(f"builtins.{_builtin.__name__}", _on_numbers(_builtin))


@TORCH.row("sym_max", "sym_min", "sym_not", "sym_float", "sym_int", "sym_sqrt")
def symbolic(xp: Any, *args: Any) -> Any:
    """Numbers of torch's own tracers."""
    raise Untranslatable("a number of torch's own tracers")


@TORCH.row("broadcast_shapes", "functional.broadcast_shapes")
def broadcast_shapes(xp: Any, *shapes: Any) -> Any:
    """The common shape of several."""
    rank = max(len(one) for one in shapes)
    found = []
    for place in range(-rank, 0):
        kinds = [one[place] for one in shapes if len(one) >= -place]
        large = [one for one in kinds if not (isinstance(one, int) and one == 1)]
        if any(isinstance(one, Number) and one.value == 1 for one in large):
            raise Untranslatable("a common shape of sizes that are not fixed")
        found.append(large[0] if large else 1)
    return tuple(found)


SOURCE_ROWS = TORCH
