"""Parts of a user's module that bear a name which a captured module needs for itself, ``graph`` or ``code`` for one.

A module and the graph of its capture come in; such parts get another name in the captured module, in the graph's
targets too, while its state dict keeps the names of the original. An attribute that is no part (a number, or state that
the program sets) cannot be renamed, and is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import torch

from clew.errors import CaptureError
from clew.ir.arguments import all_nodes
from clew.ir.graph import Graph
from clew.ir.guards import attribute_paths, rename_attributes

_KINDS = ("_modules", "_parameters", "_buffers")


def renamed(source: torch.nn.Module, graph: Graph, state: Iterable[str], taken: frozenset[str]) -> dict[str, str]:
    """Give parts of ``source`` whose names are ``taken`` other ones in the graph; the new names by the old."""
    named = [node.target for node in all_nodes(graph) if node.op in ("get_attr", "call_module")]
    first = {path.partition(".")[0] for path in (*named, *attribute_paths(graph.guards.entry))}
    wanted = taken & (first | {path.partition(".")[0] for path in state})
    if not wanted:
        return {}
    names = {name: _free_name(source, name, taken) for name in sorted(wanted)}
    parts = {name for kind in _KINDS for name in vars(source)[kind]}
    for name in wanted.difference(parts).union(taken & {path.partition(".")[0] for path in state}):
        raise CaptureError(
            f"{type(source).__name__} has an attribute {name!r}, which a captured module needs for itself",
            fixes=[f"give the attribute another name, {names[name]!r} say"],
        )
    rename_attributes(graph, functools.partial(_with_new_head, names))
    return names


def _with_new_head(names: dict[str, str], path: str) -> str:
    head, dot, rest = path.partition(".")
    return f"{names.get(head, head)}{dot}{rest}"


def _free_name(source: torch.nn.Module, name: str, taken: frozenset[str]) -> str:
    found = f"{name}_"
    while found in taken or hasattr(source, found):
        found += "_"
    return found


def add_parts(source: torch.nn.Module, names: dict[str, str]) -> None:
    """Let a module hold its parts under their new names too."""
    for old, new in names.items():
        for kind in _KINDS:
            if old in vars(source)[kind]:
                vars(source)[kind] = {**vars(source)[kind], new: vars(source)[kind][old]}
        if old in source._non_persistent_buffers_set:
            vars(source)["_non_persistent_buffers_set"] = {*source._non_persistent_buffers_set, new}


def keep_state_names(module: torch.nn.Module, names: dict[str, str]) -> None:
    """Let the state dict of a captured module have the names of the original."""
    if names:
        module.register_state_dict_post_hook(functools.partial(_name_back, names))
        module.register_load_state_dict_pre_hook(functools.partial(_name_anew, names))


def _name_back(names: dict[str, str], module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    back = {f"{prefix}{new}": f"{prefix}{old}" for old, new in names.items()}
    _rename(state, back)


def _name_anew(names: dict[str, str], module: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    _rename(state, {f"{prefix}{old}": f"{prefix}{new}" for old, new in names.items()})


def _rename(state: dict[str, Any], names: dict[str, str]) -> None:
    """Rename the keys of a state dict that begin with these names, in place, and in the order that they have."""
    for key, value in list(state.items()):
        head = next((head for head in names if key == head or key.startswith(f"{head}.")), None)
        del state[key]
        state[key if head is None else names[head] + key[len(head) :]] = value
