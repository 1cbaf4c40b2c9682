"""The parameters and buffers of a captured module that its graph does not name: those of parts that did not run, and
other names of tied ones.

The original and the captured module come in; afterwards the captured one has all tensors of the original under the same
names, in the same order, so that state dicts, optimizers and checkpoints of one fit the other. Importing this file
imports torch.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch


def complete(source: torch.nn.Module, module: torch.nn.Module, taken: Container[str] = (), names: Any = None) -> None:
    """Let ``module`` hold what ``source`` does; names that are ``taken`` are left out, others may be changed ones."""
    _complete(source, module, taken, names or {})


def _complete(source: torch.nn.Module, module: torch.nn.Module, taken: Container[str], names: dict[str, str]) -> None:
    ours, theirs = vars(module), vars(source)
    for kind in ("_parameters", "_buffers"):
        if theirs[kind] and not _are_alike(ours[kind], theirs[kind]):
            _merge(ours, theirs, kind, taken, names)
            if kind == "_buffers":
                passing = theirs["_non_persistent_buffers_set"]
                ours["_non_persistent_buffers_set"].update(names.get(one, one) for one in passing & ours[kind].keys())
    children = theirs["_modules"]
    if not _are_alike(ours["_modules"], children):
        _merge(ours, theirs, "_modules", taken, names)
    for name, child in children.items():
        twin = ours["_modules"].get(names.get(name, name))
        if twin is not child and twin is not None and child is not None:
            _complete(child, twin, (), {})


def _are_alike(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    return len(ours) == len(theirs) and [*ours] == [*theirs]


def _merge(ours: Any, theirs: Any, kind: str, taken: Container[str], names: dict[str, str]) -> None:
    """Put what is missing into one of the tables of a module, and all of it into the order of the original's."""
    table = ours[kind]
    found = {}
    for old, value in theirs[kind].items():
        name = names.get(old, old)
        if name in table:
            found[name] = table[name]
        elif name not in taken and name not in ours and not _is_elsewhere(ours, name):
            found[name] = value
    rest = {name: value for name, value in table.items() if name not in found}
    table.clear()
    table.update(found)
    table.update(rest)


def _is_elsewhere(ours: Any, name: str) -> bool:
    return any(name in ours[kind] for kind in ("_parameters", "_buffers", "_modules"))
