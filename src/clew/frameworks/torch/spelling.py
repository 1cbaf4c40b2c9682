"""torch's plain values as Python expressions: ``torch.float32``, ``torch.device("cuda", 1)``, ``torch.Size([2, 3])``.

Names of torch's classes are asked of ``name_of``, so that whoever writes the code decides how they are reached.
Tensors, generators and symbolic numbers have no expression: the answer is None, and they travel as objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

from clew.frameworks.torch.names import qualified_name
from clew.ir.literals import Speller

NameOf = Callable[[Any], str]


def spell(value: Any, name_of: NameOf) -> str | None:
    """The expression of ``value``, or None."""
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value, name_of)
    return None


def _named(value: Any, name_of: NameOf) -> str | None:
    """Values that torch itself has a name for; ``repr`` gives it, and the name is followed back before it is used."""
    name = repr(value).removeprefix("torch.")
    return f"{name_of(torch)}.{name}" if getattr(torch, name, None) is value else None


def _device(value: torch.device, name_of: NameOf) -> str:
    return f"{name_of(torch.device)}({str(value)!r})"


def _size(value: torch.Size, name_of: NameOf) -> str | None:
    if all(type(dimension) is int for dimension in value):
        return f"{name_of(torch.Size)}({list(value)!r})"
    return f"{name_of(torch.Size)}({Speller(name_of, lambda node: str(node.name)).spell(list(value))})"


def _limits(value: torch.finfo | torch.iinfo, name_of: NameOf) -> str:
    return f"{name_of(type(value))}({name_of(torch)}.{value.dtype})"


def _operator(value: Any, name_of: NameOf) -> str | None:
    return name_of(value) if qualified_name(value) is not None else None


_WRITERS: tuple[tuple[Any, Callable[[Any, NameOf], str | None]], ...] = (
    ((torch.dtype, torch.layout, torch.memory_format, torch.qscheme), _named),
    (torch.device, _device),
    (torch.Size, _size),
    ((torch.finfo, torch.iinfo), _limits),
    ((OpOverload, OpOverloadPacket, HigherOrderOperator), _operator),
)
