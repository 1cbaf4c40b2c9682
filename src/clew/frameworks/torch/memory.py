"""Memory that tensors and arrays have in common: what is written through one is seen through the other.

In come tensors; out come arrays of bytes over the same memory, by which NumPy tells whether two values overlap. What
has no memory of the CPU's (meta and fake tensors, sparse ones, those of other devices) overlaps with no array.
"""

from __future__ import annotations

from typing import Any

import numpy
import torch


def bytes_of(tensor: torch.Tensor) -> Any:
    """All bytes of the memory that a tensor is a part of, as an array; None for a tensor that no array can share."""
    with torch._C.DisableTorchFunction():
        while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            tensor = torch._C._functorch.get_unwrapped(tensor)
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            return None
        storage = tensor.untyped_storage()
        if storage.device.type != "cpu" or not storage.nbytes():
            return None
        return torch._C.TensorBase.set_(torch.empty(0, dtype=torch.uint8), storage).numpy()


def overlap(array: Any, value: Any) -> bool:
    """Whether an array may share memory with another one, or with a tensor."""
    if isinstance(value, torch.Tensor):
        value = bytes_of(value)
    return isinstance(value, numpy.ndarray) and numpy.may_share_memory(array, value)
