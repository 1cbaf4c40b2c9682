"""What symbolic tracing asks of torch: its classes of modules, parameters and constants, and its own assertion."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeCopyMode
from torch.overrides import is_tensor_method_or_property

from clew.frameworks.torch.signatures import check_for_mutable_operation
from clew.ir.guests import Guest

_LEAF_PACKAGES = ("torch.nn", "torch.ao.nn")


@functools.lru_cache(maxsize=4096)
def _method_name(function: Any) -> str | None:
    """Remembered, because torch's own answer takes longer than all the rest of recording a call."""
    return str(function.__name__) if is_tensor_method_or_property(function) else None


class TracingAnswers(Guest):
    """The part of torch's guest that symbolic tracing asks."""

    module_class = torch.nn.Module
    parameter_class = torch.nn.Parameter
    array_class = torch.Tensor
    constant_classes = (
        torch.Tensor,
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
        torch.Size,
        torch.Generator,
        torch.SymInt,
        torch.SymFloat,
        torch.SymBool,
        torch._ops.OpOverload,
        torch._ops.OpOverloadPacket,
        torch._ops.HigherOrderOperator,
    )
    attribute_classes = (torch.Tensor, torch.nn.Module, torch.ScriptObject)

    def new_root(self) -> torch.nn.Module:
        """An empty module, for graphs of plain functions."""
        return torch.nn.Module()

    def is_leaf_module(self, module: Any) -> bool:
        """True for torch's own layers; a Sequential is traced through."""
        return type(module).__module__.startswith(_LEAF_PACKAGES) and not isinstance(module, torch.nn.Sequential)

    def method_name(self, function: Any) -> str | None:
        """The name of a tensor's method or property."""
        return _method_name(function)

    def assertion(self) -> Callable[..., Any]:
        """The assertion that takes symbolic conditions."""
        return torch._assert

    def faked(self, module: Any, mode: Any) -> Any:
        """A copy of a module whose parameters and buffers are fake tensors of ``mode``."""
        with FakeCopyMode(mode):
            return copy.deepcopy(module)

    def memory_format(self, value: Any) -> Any:
        """The first memory format in which a tensor is contiguous."""
        formats = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
        return next((found for found in formats if value.is_contiguous(memory_format=found)), None)

    def check_mutable(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise if the call changes one of its arguments."""
        check_for_mutable_operation(target, args, kwargs)
