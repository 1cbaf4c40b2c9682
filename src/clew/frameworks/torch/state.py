"""The attributes of modules, which a traced forward may rebind: noted before the trace and put back after it.

Rebinding is Python's own doing, of which no node can be made: the user is told, and the module is left as it was.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.capture.symbolic.proxy import Proxy
from clew.capture.symbolic.watch import warn
from clew.ir.source import SourceLine

_GONE = object()


class ModuleState:
    """The plain attributes and buffers of all modules of a root, as they were."""

    def __init__(self, modules: dict[Any, str]) -> None:
        kinds = {kind: not _keeps_code(kind) for kind in set(map(type, modules))}
        self._noted = [
            (path, names, dict(names), [*map(id, names.values())])
            for module, path in modules.items()
            if kinds[type(module)]
            for names in (vars(module), module._buffers)
            if names and type(names) is dict
        ]

    def put_back(self, place: SourceLine | None) -> None:
        """Undo what the trace rebound, and warn of each attribute."""
        for path, names, before, values in self._noted:
            if [*map(id, names.values())] == values:
                continue
            for name in [key for key in names if key not in before and isinstance(names[key], Proxy)]:
                self._restore(path, names, name, _GONE, place)
            for name, value in before.items():
                if names.get(name, _GONE) is not value:
                    self._restore(path, names, name, value, place)

    @staticmethod
    def _restore(path: str, names: dict[str, Any], name: str, value: Any, place: SourceLine | None) -> None:
        if value is _GONE:
            del names[name]
        else:
            names[name] = value
        attribute = f"{path}.{name}" if path else name
        warn(
            f"the attribute {attribute!r} was assigned while tracing: the graph will not do so",
            "an assignment to an attribute of a module is no operation on a value; it has been undone",
            "update a buffer in place, self.buffer.add_(1) or self.buffer.copy_(value), which is recorded",
            place=place,
        )


def _keeps_code(kind: type) -> bool:
    """True for graph modules, which generate their code when they first run, and for scripted ones."""
    homes = ("clew.runtime", "torch.fx", "torch.jit")
    return any(base.__module__.startswith(homes) for base in kind.__mro__)


def warn_of_calls_around(root: Any) -> None:
    """Tell of what runs around the root's forward when the root is called, of which a trace of forward sees nothing."""
    if not isinstance(root, torch.nn.Module):
        return
    hooks = bool(root._forward_hooks or root._forward_pre_hooks)
    own = [kind for kind in type(root).__mro__ if "__call__" in vars(kind) and not _is_of_framework(kind)]
    if hooks or own:
        what = "forward hooks" if hooks else f"a __call__ of its own ({own[0].__name__}.__call__)"
        warn(
            f"the root, a {type(root).__name__}, has {what}, which the graph will not have: only forward is traced",
            "a graph is the program of the root's forward",
            "put it inside another module and trace that: hooks and __call__ of submodules are traced through",
        )


def _is_of_framework(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("torch", "clew", "builtins")
