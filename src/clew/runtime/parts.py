"""The modules on the way to the parts of a captured module, which hold those parts and are never called themselves.

What a user does to such a module as if it were the original would have no effect on the graph: a hook on it, another
``forward``, another value of a plain attribute that the capture has read. That is refused where it is done.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from clew.errors import CaptureError
from clew.frameworks.torch.places import OWN
from clew.runtime.switched import note_others, switch_others

BAKED = "_baked"


def _refuse(what: str) -> NoReturn:
    raise CaptureError(
        what,
        why="the graph holds what was inside of it during the capture, and would not notice",
        fixes=("do it to the original, and capture again", "keep the part as one call: leaves="),
    )


def check_assignment(part: torch.nn.Module, name: str) -> None:
    """Raise if an attribute is set that the original has, and of which the graph knows only the value."""
    if name in part.__dict__.get(BAKED, ()):
        _refuse(f"{name!r} is set in a captured module, whose graph has the value of the capture")


class Part(torch.nn.Module):
    """Holds modules and tensors under the names that the original has for them; numbered ones by their numbers too."""

    def __getitem__(self, place: int) -> torch.nn.Module:
        found = self._modules[str(place)]
        assert found is not None
        return found

    def _get_name(self) -> str:
        return "Module"


HOLDERS = frozenset({torch.nn.Module, Part})
"""Classes of modules that only hold others."""


class CapturedPart(Part):
    """Holds parts of a captured module."""

    def __setattr__(self, name: str, value: Any) -> None:
        check_assignment(self, name)
        if name == "forward":
            _refuse("a part of a captured module that the graph does not call gets another forward")
        super().__setattr__(name, value)

    def train(self, mode: bool = True) -> Any:
        """Switch this part, and those that the original would switch with it."""
        return switch_others(super().train(mode), mode)

    def _refuse_hook(self, *args: Any, **kwargs: Any) -> NoReturn:
        """A hook belongs to a call, which the graph does not make."""
        _refuse("a hook is put on a part of a captured module that the graph does not call")

    register_forward_hook = register_forward_pre_hook = register_backward_hook = _refuse_hook
    register_full_backward_hook = register_full_backward_pre_hook = _refuse_hook


def mark_parts(source: torch.nn.Module, module: torch.nn.Module) -> None:
    """Let a captured module, and the modules that merely hold its parts, refuse what would have no effect."""
    waiting: list[tuple[torch.nn.Module, torch.nn.Module]] = [(source, module)]
    while waiting:
        original, part = waiting.pop()
        note_others(original, part)
        part.__dict__[BAKED] = original.__dict__.keys() - OWN - part.__dict__.keys() - _FORWARD
        for name, child in part._modules.items():
            twin = original._modules.get(name)
            if child is not None and type(child) in HOLDERS and twin is not None and twin is not child:
                object.__setattr__(child, "__class__", CapturedPart)
                waiting.append((twin, child))


_FORWARD = {"forward"}
