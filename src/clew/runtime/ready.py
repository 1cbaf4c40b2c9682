"""Whether bound code may run: all that it relies on is as it was found.

What was found comes in, in columns; out comes a function that compares it with what there is now. It is asked before
each call, when little of what it looks at is near the processor: so it is short, goes through the columns in loops, and
looks at nothing twice. Importing this file imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules import module as hooks_of_all

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_Module = torch.nn.Module
_CALL, _CALL_IMPL, _GETATTR = _Module.__call__, _Module._call_impl, _Module.__getattr__
"""What stands between a call of a module and its ``forward``; a tool that traces puts its own there."""
_compiling, _modes = torch.compiler.is_dynamo_compiling, torch._C._len_torch_function_stack
_dispatching, _tracing = torch._C._len_torch_dispatch_stack, torch._C._is_tracing
_is_grad_enabled = torch.is_grad_enabled
_everywhere = tuple(getattr(hooks_of_all, f"_global{name}") for name in HOOKS)
SURROUNDINGS: dict[str, Callable[[], Any]] = {
    "compiling": _compiling, "modes": _modes, "dispatching": _dispatching, "tracing": _tracing,
}  # fmt: skip
"""What tells whether somebody looks at each call of torch."""


@dataclass
class Found:
    """What bound code relies on; a dict is that of a module, ``vars(module)``."""

    modules: dict[int, torch.nn.Module] = field(default_factory=dict)
    """Modules that must stay of their classes."""
    functions: dict[tuple[Any, str], Any] = field(default_factory=dict)
    """Attributes of classes and of Python modules that must stay what they are."""
    lengths: list[dict[str, Any]] = field(default_factory=list)
    """Dicts that must not become longer or shorter."""
    inner_lengths: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    """The same for a dict in such a dict."""
    called: list[dict[str, Any]] = field(default_factory=list)
    """Dicts of modules whose calls are written otherwise: they must have no hooks, and no ``forward`` of their own;"""
    passing_on: list[dict[str, Any]] = field(default_factory=list)
    """those among them that may give back what they are given."""
    parts: list[tuple[dict[str, Any], str, torch.nn.Module]] = field(default_factory=list)
    """Modules that must stay the parts of others, under these names."""
    own: dict[str, Any] = field(default_factory=dict)
    """A dict in which there must be none of these"""
    not_own: frozenset[str] = frozenset()


def ready_while(found: Found) -> Callable[[], bool | None]:
    """A function that is true while all is as it was found; None if that is so, but somebody looks at each call."""
    modules = tuple(found.modules.values())
    classes = [*map(type, modules)]
    owners, names = [tuple(key[place] for key in found.functions) for place in (0, 1)]
    functions = [*found.functions.values()]
    dicts = tuple(found.lengths)
    lengths = [*map(len, dicts)]
    inner = tuple((own, kind, len(own[kind])) for own, kind in found.inner_lengths)
    called, passing_on = tuple(found.called), tuple(found.passing_on)
    parents, steps, parts = zip(*found.parts, strict=True) if found.parts else ((), (), ())
    own, not_own = found.own, found.not_own

    def ready() -> bool | None:
        if _compiling() or _modes() or _dispatching() or _tracing() or any(_everywhere):
            return None
        if _Module.__call__ is not _CALL or _Module._call_impl is not _CALL_IMPL or _Module.__getattr__ is not _GETATTR:
            return None
        try:
            if [*map(type, modules)] != classes or [*map(len, dicts)] != lengths:
                return False
            if [*map(getattr, owners, names)] != functions or not not_own.isdisjoint(own):
                return False
            for one in called:
                if one["_forward_hooks"] or one["_forward_pre_hooks"] or "forward" in one:
                    return False
            # without gradients hooks of the backward pass are put on nothing but what has come in
            for one in called if _is_grad_enabled() else passing_on:
                if one["_backward_hooks"] or one["_backward_pre_hooks"]:
                    return False
            for one, step, part in zip(parents, steps, parts):  # noqa: B905 (of one length, and faster so)
                if one["_modules"][step] is not part:
                    return False
            for one, kind, length in inner:
                if len(one[kind]) != length:
                    return False
        except (KeyError, AttributeError):
            return False
        return True

    return ready
