"""Stand-ins for NumPy's numbers in torch programs: torch takes them wherever it takes the numbers themselves.

Torch's C++ argument parser takes nothing but its own symbolic numbers in the place of a number, so these derive from
them; in all else they are the stand-ins of NumPy's captures. The names that the symbolic numbers bring along mean what
they mean for a number of NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy
import torch

from clew.frameworks.numpy.traced import TracedGeneric
from clew.frameworks.torch.scalars import NODE


def _members(kind: type) -> dict[str, Any]:
    """The public names of a symbolic number, each asked of the number of NumPy's instead."""
    names = [name for base in kind.__mro__[:-1] for name in vars(base) if not name.startswith("_")]
    found: dict[str, Any] = {name: _asking(name) for name in names}
    return {**found, "node": NODE, "__hash__": TracedGeneric.__hash__}


def _asking(name: str) -> property:
    return property(lambda self: self.recorder.attribute(self, name))


TracedNumpyInt = type("TracedNumpyInt", (TracedGeneric, torch.SymInt), _members(torch.SymInt))
TracedNumpyFloat = type("TracedNumpyFloat", (TracedGeneric, torch.SymFloat), _members(torch.SymFloat))


def class_for(value: Any) -> Any:
    """The class of the stand-in of a number of NumPy's; None for all other values."""
    if isinstance(value, numpy.integer) and not isinstance(value, numpy.timedelta64):
        return TracedNumpyInt
    return TracedNumpyFloat if isinstance(value, numpy.floating) else None
