"""The guest of torch: answers the questions of the rooms by calling the files beside this one."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import _jit_internal
from torch.fx import _symbolic_trace
from torch.utils import _pytree as pytree

from clew.capture.symbolic.tracer import register_watch
from clew.frameworks.torch import effects, names, preserved_notes, signatures, types, unseen_writes
from clew.frameworks.torch.capture import capture
from clew.frameworks.torch.modules import hooks
from clew.frameworks.torch.symbolic import TracingAnswers, watch_torch
from clew.frameworks.torch.tracing_tools import is_capturing_stream
from clew.frameworks.torch.unchanged import resting_flags
from clew.ir.arguments import immutable_dict, immutable_list


class TorchGuest(TracingAnswers):
    """What the rooms may ask about torch."""

    package = "torch"
    stream_classes = (torch.Generator,)
    plain_modules = frozenset({"torch"})
    capture = staticmethod(capture)
    function_effect = staticmethod(effects.function_effect)
    method_effect = staticmethod(effects.method_effect)
    only_writes_first = staticmethod(effects.only_writes_first)
    module_effect = staticmethod(effects.module_effect)
    is_total = staticmethod(effects.is_total)
    qualified_name = staticmethod(names.qualified_name)
    spell = staticmethod(names.spell)
    type_of = staticmethod(types.type_of)
    same_value = staticmethod(types.same_value)
    resting_flags = staticmethod(resting_flags)
    shared_hooks = staticmethod(hooks.shared_hooks)
    normalized_arguments = staticmethod(signatures.normalized_arguments)
    hooks_made = staticmethod(hooks.hooks_made)
    settle_writes = staticmethod(unseen_writes.settle)
    keeps_notes = staticmethod(preserved_notes.keeps_notes)
    note = staticmethod(preserved_notes.note)
    noting = staticmethod(preserved_notes.noting)
    memory_of = staticmethod(types.memory_of)
    bytes_of = staticmethod(types.bytes_of)
    version_of = staticmethod(types.version_of)
    copy_of = staticmethod(types.copy_of)
    as_numpy = staticmethod(types.as_numpy)
    has_data = staticmethod(types.has_data)
    random_state = staticmethod(types.random_state)
    wait_for = staticmethod(types.wait_for)
    without_data = staticmethod(types.without_data)
    zeros_for = staticmethod(types.zeros_for)
    operators_inside = types.OperatorsInside

    def prepare(self) -> None:
        """torch's own functions on nests enter the immutable lists and dicts of nodes; traces see work on tensors."""
        pytree.register_pytree_node(
            immutable_list, lambda nest: (list(nest), None), lambda children, context: immutable_list(children)
        )
        pytree.register_pytree_node(
            immutable_dict,
            lambda nest: (list(nest.values()), list(nest)),
            lambda children, keys: immutable_dict(zip(keys, children, strict=True)),
        )
        register_watch("torch", watch_torch)

    def defaults(self, function: Any) -> dict[str, Any] | None:
        """The defaults of functions that torch has put together of two: pooling, with and without its indices."""
        both: dict[str, Any] | None = _jit_internal.boolean_dispatched.get(function)
        if both is None:
            return None
        parameters = inspect.signature(both["if_false"]).parameters.values()
        known = {one.name: one.default for one in parameters if one.default is not one.empty}
        return {**known, both["arg_name"]: both["default"]}

    def follows_stream(self, kind: type) -> bool:
        """Those of torch, and of the packages named after it, such as torchvision."""
        return kind.__module__.startswith("torch")

    def is_without_memory(self, kind: type) -> bool:
        """Whether tensors of this class are fake ones."""
        return kind.__module__.startswith("torch._subclasses.")

    def wrapped_elsewhere(self) -> tuple[list[tuple[dict[str, Any], str]], list[tuple[type, str]]]:
        """What ``torch.fx.wrap`` has noted."""
        functions = [(names, name) for (_, name), names in _symbolic_trace._wrapped_fns_to_patch.items()]
        return functions, list(_symbolic_trace._wrapped_methods_to_patch)

    def plain_number(self, value: Any) -> Any:
        """The size that a tensor stands for while ``torch.jit.trace`` is at work; all else as it is."""
        is_size = isinstance(value, torch.Tensor) and torch._C._get_tracing_state() is not None
        return value.item() if is_size and value.dim() == 0 else value

    def must_not_wait(self, array: Any = None) -> bool:
        """Whether a CUDA graph is being recorded, and a tensor is of the device."""
        return is_capturing_stream() and (array is None or array.is_cuda)
