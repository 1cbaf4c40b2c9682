"""The IR types of torch's values, and when two of its constants are the same.

A tensor's type is its dtype, shape and device, and is read without looking at its data, so fake and meta tensors have
one too. Two tensors are the same constant when they could stand for each other in a graph: NaN equals NaN, and a
negative zero is no zero.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

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
