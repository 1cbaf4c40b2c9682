"""The IR types of torch's values, and when two of its constants are the same.

A tensor's type is its dtype, shape and device, and is read without looking at its data, so fake and meta tensors have
one too. Two tensors are the same constant when they could stand for each other in a graph: NaN equals NaN, and a
negative zero is no zero.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from clew.ir.types import ArrayType, Dimension, ObjectType, ScalarType, TupleType, Type
from clew.ir.types import type_of as type_of_any

_PLAIN = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.qscheme, torch.Size)
_SYMBOLIC = {torch.SymInt: "int", torch.SymFloat: "float", torch.SymBool: "bool"}


def type_of(value: Any) -> Type | None:
    """The type of a value of torch; None for modules and other objects, which the IR names by their class."""
    if isinstance(value, torch.Tensor):
        return tensor_type(value)
    if isinstance(value, _PLAIN):
        return ObjectType(f"torch.{type(value).__name__}")
    if isinstance(value, tuple) and type(value).__module__ == "torch.return_types":
        return TupleType(tuple(type_of_any(item) for item in value))
    return next((ScalarType(name) for kind, name in _SYMBOLIC.items() if isinstance(value, kind)), None)


def tensor_type(tensor: torch.Tensor) -> Type:
    """Dtype, shape and device of a tensor."""
    if tensor.is_nested and tensor.layout is torch.strided:  # such a tensor has no one shape
        return ObjectType("torch.Tensor")
    shape = tensor.shape
    if type(tensor) in _ORDINARY:
        return _array_type(tensor.dtype, shape, tensor.device)
    return ArrayType(_dtype_name(tensor.dtype), tuple(map(_dimension, shape)), _device_name(tensor.device))


def ordinary_type(tensor: torch.Tensor) -> Type | None:
    """The type of a tensor of torch's own class, read at once where no mode of torch listens; None anywhere else."""
    if _count_modes() or tensor.is_nested:
        return None
    return _array_type(tensor.dtype, tensor.shape, tensor.device)


_count_modes = torch._C._len_torch_function_stack
_ORDINARY = (torch.Tensor, torch.nn.Parameter)
"""Classes whose sizes are plain numbers."""


@functools.lru_cache(maxsize=4096)
def _array_type(dtype: torch.dtype, shape: torch.Size, device: torch.device) -> Type:
    """Made once for all tensors of a kind: most layers of a model give the same few."""
    return ArrayType(_dtype_name(dtype), tuple(map(int, shape)), _device_name(device))


@functools.cache
def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@functools.lru_cache(maxsize=256)
def _device_name(device: torch.device) -> str:
    return str(device)


def _dimension(size: int | torch.SymInt) -> Dimension:
    """A number, or the name of a size that is not fixed."""
    return int(size) if type(size) is int else str(size)


def same_value(left: Any, right: Any) -> bool | None:
    """Whether two values of torch are the same constant; None when they are not torch's."""
    if isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor):
        both = isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor)
        return left is right or (both and _same_tensor(left, right))
    if isinstance(left, _PLAIN) or isinstance(right, _PLAIN):
        return type(left) is type(right) and bool(left == right)
    return None


def _same_tensor(left: torch.Tensor, right: torch.Tensor) -> bool:
    if type(left) is not type(right) or left.requires_grad != right.requires_grad or left.layout is not right.layout:
        return False
    if left.dtype != right.dtype or left.device != right.device or left.is_quantized != right.is_quantized:
        return False
    has_values = type(left) in (torch.Tensor, torch.nn.Parameter) and left.device.type != "meta"
    if not has_values or left.layout is not torch.strided or left.is_nested or left.shape != right.shape:
        return False
    with torch.no_grad():
        return bool(_same_bits(left, right))


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal values, where NaN equals NaN and the sign of a zero counts."""
    if left.is_complex():
        return _same_bits(torch.view_as_real(left.resolve_conj()), torch.view_as_real(right.resolve_conj()))
    if not left.is_floating_point():
        return torch.equal(left, right)
    if left.element_size() == 1:  # the narrow floats can be compared by their bytes alone
        return torch.equal(left.view(torch.uint8), right.view(torch.uint8))
    equal = (left == right) & (left.signbit() == right.signbit())
    return bool((equal | (left.isnan() & right.isnan())).all())


# ---- memory, versions and devices of tensors -------------------------------------------------------------------------
#
# Where tensors lie: their storages, versions and devices, and the operators that a call runs. A value comes in; out
# comes what tools that watch a run need to know of it. Tensors without a storage (sparse ones, those of torch.func's
# transforms) count as memory of their own. Nothing here changes a tensor.


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


def random_state() -> Callable[[], None]:
    """The function that puts torch's own streams of random numbers back, those of the devices in use too."""
    state, devices = torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None

    def put_back() -> None:
        torch.set_rng_state(state)
        if devices is not None:
            torch.cuda.set_rng_state_all(devices)

    return put_back


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


def zeros_for(value: Any) -> Any:
    """Zeros on the CPU for a tensor on the meta device."""
    return torch.zeros_like(value, device="cpu") if isinstance(value, torch.Tensor) and value.is_meta else value


class OperatorsInside(TorchDispatchMode):
    """Tells of every operator of ATen that runs: ``see(name, args, kwargs, result)``."""

    def __init__(self, see: Callable[..., None]) -> None:
        super().__init__()
        self.see = see

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.see(func.__name__, args, kwargs or {}, result)
        return result
