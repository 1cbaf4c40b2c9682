"""What a torch program consists of besides what every callable does: the functions hooked to a module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from clew.capture.example.programs import behind, check_slots, signature_of

__all__ = ["behind", "check_slots", "hooks", "signature_of"]


def hooks(parts: Iterable[torch.nn.Module]) -> list[Any]:
    """The functions hooked to some modules."""
    holders = [hooks for part in parts for hooks in (part._forward_hooks, part._forward_pre_hooks)]
    return [hook for hooks in holders for hook in hooks.values()]
