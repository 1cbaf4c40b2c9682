"""What a module that ``torch.jit`` has compiled keeps: tensors and plain values, which live in its compiled form.

In comes a module; out goes a mapping of what may change in a call, as ``State`` remembers and puts back attributes:
parameters, buffers, numbers and texts by name. Compiled lists and dicts are copies for Python, so they are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import torch

from clew.capture.state.containers import SIMPLE


def holders_of(part: torch.nn.Module) -> tuple[MutableMapping[str, Any], ...]:
    """The mappings in which a module keeps its tensors, as it is called."""
    if isinstance(part, torch.jit.ScriptModule):
        return (CompiledAttributes(part),)
    return part._buffers, part._parameters


class CompiledAttributes(MutableMapping[str, Any]):
    """The attributes of a compiled module, read and set where it keeps them."""

    def __init__(self, module: torch.jit.ScriptModule) -> None:
        self._core: Any = module._c
        kept = [name for name in module._concrete_type.get_attributes() if self._core.hasattr(name)]
        self._names = [name for name in kept if type(self._core.getattr(name)) in _KEPT]

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._core.getattr(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._core.setattr(name, value)

    def __delitem__(self, name: str) -> None:
        raise KeyError(name)  # a compiled class has the attributes that it has

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


_KEPT = (torch.Tensor, torch.nn.Parameter, *SIMPLE)
