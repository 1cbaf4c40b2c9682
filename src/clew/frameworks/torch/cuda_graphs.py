"""Whether calls are being recorded as a CUDA graph, where nothing may wait for what the device computes.

The question can be asked of any torch; one that was built without CUDA raises an error when it is asked itself.
Importing this file imports torch.
"""

from __future__ import annotations

import torch

from clew.ir.effects import pure


@pure
def is_capturing_stream() -> bool:
    """Whether the calls on the current stream become a CUDA graph."""
    return bool(torch._C._has_cuda and torch.cuda.is_current_stream_capturing())
