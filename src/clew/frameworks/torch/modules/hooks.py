"""What a torch program consists of besides what every callable does: the functions hooked to a module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch.nn.modules import module as torch_module
from torch.utils.hooks import RemovableHandle

from clew.capture.state.reachable import behind, check_slots, signature_of
from clew.capture.state.surroundings import functions_of

__all__ = [
    "behind",
    "check_slots",
    "count_of_global_hooks",
    "functions_behind",
    "has_own_hooks",
    "hook_tables",
    "hooks",
    "hooks_made",
    "shared_hooks",
    "signature_of",
]


def functions_behind(programs: Iterable[Any]) -> list[Any]:
    """The Python functions of all parts of a program, each once; modules of one class have the same."""
    kinds: set[type] = set()
    found: dict[Any, None] = {}
    for part in programs:
        kind = type(part)
        if isinstance(part, torch.nn.Module) and _OWN_FUNCTIONS.isdisjoint(vars(part)):
            if kind in kinds:
                continue
            kinds.add(kind)
        found.update(dict.fromkeys(functions_of(part)))
    return list(found)


_OWN_FUNCTIONS = frozenset({"__func__", "__wrapped__", "__code__"})
"""Attributes by which a single object can be something else than its class says."""


def hooks(parts: Iterable[torch.nn.Module]) -> list[Any]:
    """The functions hooked to some modules."""
    holders = [hooks for part in parts for hooks in (part._forward_hooks, part._forward_pre_hooks)]
    return [hook for hooks in holders for hook in hooks.values()]


def shared_hooks() -> list[dict[int, Any]]:
    """The tables of functions that run with every module."""
    tables = (torch_module._global_forward_pre_hooks, torch_module._global_forward_hooks)
    return [*tables, torch_module._global_backward_pre_hooks, torch_module._global_backward_hooks]


hooks_made: Callable[[], int] = partial(getattr, RemovableHandle, "next_id")
"""The number that the next hook will get, on whatever module or tensor."""


def hook_tables(part: torch.nn.Module) -> list[dict[int, Any]]:
    """The tables of functions that run with a module, and with its gradients."""
    return [part._forward_pre_hooks, part._forward_hooks, part._backward_pre_hooks, part._backward_hooks]


def count_of_global_hooks() -> int:
    """How many hooks run with every module."""
    return len(torch_module._global_forward_hooks) + len(torch_module._global_forward_pre_hooks)


def has_own_hooks(module: torch.nn.Module) -> bool:
    """Whether functions of the user's run before or after a module."""
    if not module._forward_hooks and not module._forward_pre_hooks:
        return False
    held = (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    return any(not str(getattr(hook, "__module__", type(hook).__module__)).startswith("torch.") for hook in held)
