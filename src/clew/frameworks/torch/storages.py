"""Where tensors lie: their storages, versions and devices, and the operators that a call runs.

A value comes in; out comes what tools that watch a run need to know of it. Tensors without a storage (sparse ones,
those of torch.func's transforms) count as memory of their own. Nothing here changes a tensor.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def memory_of(value: Any) -> tuple[Any, int] | None:
    """The storage of a tensor and its size in bytes; None for what is no tensor."""
    if not isinstance(value, torch.Tensor):
        return None
    if not torch._C._has_storage(value):
        return id(value), value.numel() * value.element_size()
    storage = value.untyped_storage()
    return storage._cdata, int(storage.nbytes())


def bytes_of(value: torch.Tensor) -> int:
    """How many bytes the elements of a tensor take; those that were expanded count once."""
    if not torch._C._has_storage(value):
        return value.numel() * value.element_size()
    sizes = zip(value.shape, value.stride(), strict=True)
    return value.element_size() * math.prod(size for size, stride in sizes if stride)


def version_of(value: Any) -> int | None:
    """How often a tensor was written to; torch does not count for those made in inference mode."""
    if not isinstance(value, torch.Tensor) or value.is_inference():
        return None
    return value._version


def has_data(value: Any) -> bool:
    """False for tensors of the meta device and fake ones."""
    return not (isinstance(value, torch.Tensor) and (value.is_meta or type(value).__name__ == "FakeTensor"))


def copy_of(value: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor, outside of autograd's graph."""
    return value.detach().clone()


def as_numpy(value: torch.Tensor) -> Any:
    """The numbers of a tensor; those of formats that NumPy does not have as wider ones."""
    value = value.detach().cpu().resolve_conj().resolve_neg()
    narrow = value.is_floating_point() and value.dtype not in (torch.float16, torch.float32, torch.float64)
    return (value.float() if narrow else value).numpy()


def wait_for(value: Any) -> None:
    """Return when the device of a tensor has done all that it was given."""
    if isinstance(value, torch.Tensor) and value.device.type not in ("cpu", "meta"):
        torch.accelerator.synchronize(value.device)


def without_data(value: Any) -> Any:
    """A tensor on the meta device, or a copy of a module whose tensors are there; they share what they shared."""
    if isinstance(value, torch.Tensor):
        return value if value.is_meta else value.detach().to("meta").requires_grad_(value.requires_grad)
    memo: dict[int, Any] = {}
    for tensor in (*value.parameters(), *value.buffers()):
        empty = tensor.detach().to("meta")
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        memo[id(tensor)] = torch.nn.Parameter(empty, tensor.requires_grad) if is_parameter else empty
    return copy.deepcopy(value, memo)


class OperatorsInside(TorchDispatchMode):
    """Tells of every operator of ATen that runs: ``see(name, args, kwargs, result)``."""

    def __init__(self, see: Callable[..., None]) -> None:
        super().__init__()
        self.see = see

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.see(func.__name__, args, kwargs or {}, result)
        return result
