"""The guest of torch: answers the questions of the rooms by calling the files beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import _symbolic_trace

from clew.frameworks.torch import effects, names, signatures, types, unseen_writes
from clew.frameworks.torch.capture import capture
from clew.frameworks.torch.modules import hooks
from clew.frameworks.torch.symbolic import TracingAnswers
from clew.frameworks.torch.tracing_tools import is_capturing_stream
from clew.frameworks.torch.unchanged import resting_flags
from clew.ir.guests import Effect


class TorchGuest(TracingAnswers):
    """What the rooms may ask about torch."""

    package = "torch"

    def capture(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Any) -> Any:
        """Run ``fn`` on an example and record it."""
        return capture(fn, args, kwargs, options)

    def function_effect(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
        """The effect of calling a function of torch; None for functions that nobody vouched for."""
        return effects.function_effect(target, args, kwargs)

    def method_effect(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
        """The effect of calling the method ``name``, which is a tensor's for all that is known."""
        return effects.method_effect(name, args, kwargs)

    def resting_flags(self, module: Any, path: str) -> list[str] | None:
        """The flags of a module and its parts, all off, that must stay off for a call to only compute its value."""
        return resting_flags(module, path)

    def only_writes_first(self, name: str) -> bool:
        """Whether the method ``name`` writes into its tensor, and neither keeps others nor draws random numbers."""
        return effects.only_writes_first(name)

    def module_effect(self, module: Any) -> Effect | None:
        """The effect of calling a module of ``torch.nn`` in the state it is in; None for classes of users."""
        return effects.module_effect(module)

    def shared_hooks(self) -> list[dict[int, Any]]:
        """The tables of functions that run with every module."""
        return hooks.shared_hooks()

    hooks_made = staticmethod(hooks.hooks_made)
    settle_writes = staticmethod(unseen_writes.settle)

    def wrapped_elsewhere(self) -> tuple[list[tuple[dict[str, Any], str]], list[tuple[type, str]]]:
        """What ``torch.fx.wrap`` has noted."""
        functions = [(names, name) for (_, name), names in _symbolic_trace._wrapped_fns_to_patch.items()]
        return functions, list(_symbolic_trace._wrapped_methods_to_patch)

    def qualified_name(self, function: Any) -> str | None:
        """The public name of a function or class of torch."""
        return names.qualified_name(function)

    def spell(self, value: Any, name_of: Callable[[Any], str]) -> str | None:
        """The expression of a dtype, device and the like; None for tensors."""
        return names.spell(value, name_of)

    def type_of(self, value: Any) -> Any:
        """The IR type of a tensor or another value of torch."""
        return types.type_of(value)

    def plain_number(self, value: Any) -> Any:
        """The size that a tensor stands for while ``torch.jit.trace`` is at work; all else as it is."""
        is_size = isinstance(value, torch.Tensor) and torch._C._get_tracing_state() is not None
        return value.item() if is_size and value.dim() == 0 else value

    def is_total(self, node: Any, root: Any) -> bool:
        """Whether a call of torch gives a result, and waits for nothing, whatever numbers its tensors hold."""
        return effects.is_total(node, root)

    def must_not_wait(self, array: Any = None) -> bool:
        """Whether a CUDA graph is being recorded, and a tensor is of the device."""
        return is_capturing_stream() and (array is None or array.is_cuda)

    def same_value(self, left: Any, right: Any) -> bool | None:
        """Whether two tensors, or two plain values of torch, are the same constant."""
        return types.same_value(left, right)

    memory_of = staticmethod(types.memory_of)
    bytes_of = staticmethod(types.bytes_of)
    version_of = staticmethod(types.version_of)
    copy_of = staticmethod(types.copy_of)
    as_numpy = staticmethod(types.as_numpy)
    has_data = staticmethod(types.has_data)
    wait_for = staticmethod(types.wait_for)
    without_data = staticmethod(types.without_data)
    operators_inside = types.OperatorsInside

    def normalized_arguments(self, node: Any, root: Any, options: dict[str, Any]) -> Any:
        """The arguments of a node matched to the signature of its target."""
        return signatures.normalized_arguments(node, root, options)
