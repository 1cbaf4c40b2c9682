"""What a torch program asks of torch itself: modes, tracing, gradients.

Whether a compiler traces the program is asked when it runs, of the target's own, so that plain calls and compiled ones
each do what the original does. Exporters and torch's other tools never trace it. Gradients are on, and autocast is off.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.frameworks.torch.entry_facts import follows_from_sizes
from clew.translate.refusals import Untranslatable
from clew.translate.rows.python import add_python
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.values import Array, Number

TRUE = ("is_grad_enabled",)
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


@TORCH.row("compiler.is_compiling", "_dynamo.is_compiling")
def is_compiling(xp: Any) -> Any:
    """Whether a compiler traces the program: the target's own, when the program runs."""
    return xp.is_compiling()


for _name in TRUE:
    TORCH.add(_name, _constant(True))
for _name in FALSE:
    TORCH.add(_name, _constant(False))


@TORCH.row("is_tensor")
def is_tensor(xp: Any, x: Any) -> bool:
    """Whether it is an array."""
    return isinstance(x, Array)


def _parts(xp: Any, parts: Any, *others: Any) -> Any:
    """The results of a function under torch's names: a plain tuple, where there is no torch."""
    return tuple(parts)


for _name in dir(torch.return_types):
    TORCH.add(f"return_types.{_name}", _parts)


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


@TORCH.row("clew.frameworks.torch.entry_facts.follows_from_sizes")
def of_sizes(xp: Any, text: str, *sizes: Any) -> Any:
    """What torch computes of sizes alone: it is computed at once, and the sizes are fixed."""
    reason = "what the program computes of these sizes is not carried over"
    return follows_from_sizes(text, *(xp.writer.fixed(one, reason) for one in sizes))


add_python(TORCH)
