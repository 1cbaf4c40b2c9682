"""Whether nothing may ask what tensors hold: while calls are recorded as a CUDA graph, and while tensors are fake.

Both questions can be asked of any torch. One that was built without CUDA, or that finds no GPU, raises an error when it
is asked for streams; no stream is recorded before CUDA has started.
"""

from __future__ import annotations

import torch

from clew.ir.effects import pure

_FAKE = torch._C._TorchDispatchModeKey.FAKE


def is_capturing_stream() -> bool:
    """Whether the calls on the current stream become a CUDA graph."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


@pure
def cannot_read_tensors() -> bool:
    """Whether a CUDA graph is being recorded, or tensors are fake."""
    has_modes = bool(torch._C._len_torch_dispatch_stack())
    return is_capturing_stream() or (has_modes and torch._C._get_dispatch_mode(_FAKE) is not None)


cannot_read_tensors._dynamo_marked_constant = True  # type: ignore[attr-defined]  # the compiler asks while it reads
