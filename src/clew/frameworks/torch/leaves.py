"""Which modules stay one call in a graph: torch's own layers, unless the user says otherwise."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Callable
from typing import Any

import torch

from clew.errors import CaptureError

Leaves = Callable[[Any, str], bool]


def default_leaves(module: Any, path: str) -> bool:
    """torch's own layers, and compiled modules, stay calls; containers are entered."""
    kind: Any = type(module)
    return _is_leaf_class(kind)


@functools.lru_cache(maxsize=4096)
def _is_leaf_class(kind: Any) -> bool:
    containers = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)
    if issubclass(kind, torch.jit.ScriptModule):
        return True
    return bool(kind.__module__.startswith("torch.nn.modules")) and not issubclass(kind, containers)


def leaf_policy(leaves: Any) -> Leaves:
    """The predicate for what a user may give: None, "none", a class or several, a path pattern, or a predicate."""
    if leaves is None:
        return default_leaves
    if leaves == "none":
        return lambda module, path: False
    if isinstance(leaves, str):
        return lambda module, path: fnmatch.fnmatchcase(path, leaves)
    if isinstance(leaves, (type, tuple, list, set, frozenset)):
        kinds = (leaves,) if isinstance(leaves, type) else tuple(leaves)
        return lambda module, path: isinstance(module, kinds)
    if callable(leaves):
        return leaves  # type: ignore[no-any-return]
    raise CaptureError(
        f"leaves={leaves!r} names no modules",
        fixes=('give "none", a class, a tuple of classes, a path pattern such as "encoder.*", or a predicate',),
    )
