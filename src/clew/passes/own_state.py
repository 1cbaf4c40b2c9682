"""State of its own: a captured torch module gets parameters, buffers and modules that it shares with nobody.

A graph with its root comes in, and a function of tensors; the modules that merely hold parts for the capture stay, all
others are exchanged for twins, whose tensors the function has changed. What is one object stays one, so that tied
weights stay tied. The original that was captured keeps its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from clew.errors import GraphError, a_or_an
from clew.ir.graph import Graph
from clew.ir.guards import referred_paths
from clew.runtime.module import GraphModule
from clew.runtime.parts import Part

Change = Callable[[torch.Tensor], torch.Tensor]


def own_state(graph: Graph, change: Change) -> None:
    """Give the root of a graph tensors and modules of its own, changed by ``change``."""
    root = graph.owning_module
    if isinstance(root, GraphModule):
        _Owning(change).hold(root)
    elif any(isinstance(getattr(root, path.partition(".")[0], None), nn.Module) for path in referred_paths(graph)):
        raise GraphError(
            f"the state of {a_or_an(root)} belongs to others",
            why="a captured function works on the modules around it, which the pass must not change",
            fixes=["capture the module itself: clew.trace(module, args)"],
        )


class _Owning:
    """What was made so far, by the identities of what it was made of."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self.made: dict[int, Any] = {}
        self.kept: list[Any] = []
        """Keeps alive what is known by its identity."""

    def hold(self, holder: nn.Module) -> None:
        """Exchange what a module of the capture's own holds."""
        for table in ("_parameters", "_buffers"):
            held = vars(holder)[table]
            held.update({name: self._tensor(one) for name, one in held.items() if one is not None})
        parts = vars(holder)["_modules"]
        for name, part in parts.items():
            if isinstance(part, Part):
                self.hold(part)
            elif part is not None:
                parts[name] = self._module(part)

    def _tensor(self, value: torch.Tensor) -> torch.Tensor:
        if id(value) not in self.made:
            with torch.no_grad():
                changed = self.change(value.detach())
            if isinstance(value, nn.Parameter):
                changed = nn.Parameter(changed, value.requires_grad)
            self._note(value, changed)
        found: torch.Tensor = self.made[id(value)]
        return found

    def _module(self, value: nn.Module) -> nn.Module:
        if id(value) not in self.made:
            twin = _twin(value)
            self._note(value, twin)
            for table in ("_parameters", "_buffers", "_modules"):
                vars(twin)[table] = dict(vars(value)[table])
            self._fill(twin)
        found: nn.Module = self.made[id(value)]
        return found

    def _fill(self, twin: nn.Module) -> None:
        for table, exchange in (("_parameters", self._tensor), ("_buffers", self._tensor), ("_modules", self._module)):
            held = vars(twin)[table]
            held.update({name: exchange(one) for name, one in held.items() if one is not None})

    def _note(self, old: Any, new: Any) -> None:
        self.made[id(old)] = new
        self.kept.append(old)


def _twin(value: nn.Module) -> nn.Module:
    """A module like this one, which holds the same; those with parametrized weights do not let others copy them."""
    if not is_parametrized(value):
        return copy.copy(value)
    twin = object.__new__(type(value))
    vars(twin).update(vars(value))
    return twin
