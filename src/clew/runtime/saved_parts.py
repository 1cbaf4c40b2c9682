"""The parts of a captured module as they are saved: those that its graph does not call need no class of their own.

A module and the paths that its graph refers to come in; out come its children, in which each part of a user's class
that the graph neither calls nor reads is replaced by one that merely holds its parameters, buffers and parts. So a
captured module is loaded where the source of the original is not. Importing this file imports torch.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch

from clew.runtime.parts import CapturedPart

_HELD = ("_parameters", "_buffers", "_non_persistent_buffers_set", "training")


def saved_parts(module: torch.nn.Module, paths: Iterable[str]) -> dict[str, Any]:
    """The children of a module under their names, as they are saved."""
    needed: set[int] = set()
    for path in paths:
        _need(module, path.split("."), needed)
    made: dict[int, Any] = {}
    return {name: _saved(child, needed, made) for name, child in module._modules.items()}


def _need(module: Any, names: list[str], needed: set[int]) -> None:
    """Note the part that a path leads to with all that is below it, or the one whose attribute it is."""
    for name in names:
        child = getattr(module, "_modules", {}).get(name)
        if child is None:
            needed.add(id(module))
            return
        module = child
    needed.update(map(id, module.modules()))


def _saved(part: Any, needed: set[int], made: dict[int, Any]) -> Any:
    if part is None or id(part) in made:
        return made.get(id(part))
    children = {name: _saved(child, needed, made) for name, child in part._modules.items()}
    is_own = type(part).__module__.partition(".")[0] in ("torch", "clew")
    if is_own or id(part) in needed:
        twin = part
        if any(child is not part._modules[name] for name, child in children.items()):
            twin = copy.copy(part)
            twin.__dict__["_modules"] = children
    else:
        twin = CapturedPart()
        twin.__dict__.update({key: part.__dict__[key] for key in _HELD}, _modules=children)
    made[id(part)] = twin
    return twin
