"""Clew's graphs for programs that know torch.fx only, and cannot be changed: ``install``.

While it is installed, ``isinstance`` takes Clew's graphs, nodes and graph modules for torch.fx's, walks through the
arguments of nodes (``map_arg``) meet Clew's nodes, and ``torch.fx.GraphModule(root, graph)`` of a graph of Clew's is
Clew's. Modules of the packages that are named are moreover imported anew, with ``clew.fx`` where they say ``torch.fx``.
Limits: a class derived from torch.fx's stays so, and what torch itself made in C (the list of a torch.fx graph's nodes)
takes no node of Clew's; ``clew.to_fx`` gives a graph that is torch.fx's in every respect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch.fx
from torch.fx import node as torch_node

from clew.fx.torch_source import clients_over_clew
from clew.ir.arguments import Reference, leaves, map_aggregate
from clew.ir.graph import Graph
from clew.ir.guests import PRESENTED, Presented
from clew.ir.node import Node
from clew.runtime.module import GraphModule

_FOR = {Graph: torch.fx.Graph, GraphModule: torch.fx.GraphModule, Node: torch.fx.Node}
"""Classes of Clew, and those of torch.fx that they stand for."""

_installed: list[install] = []


class install(AbstractContextManager["install"]):
    """Let programs that know torch.fx only work on Clew's graphs, until ``uninstall()`` or the end of ``with``.

    ``install("torchvision.models")`` moreover imports these packages anew, over Clew's classes.
    """

    def __init__(self, *packages: str) -> None:
        self._undo = ExitStack()
        if not _installed:
            # A class of its own for each, derived from torch.fx's: programs set the name of ``module.__class__``.
            PRESENTED.update({ours: type(theirs.__name__, (theirs,), {}) for ours, theirs in _FOR.items()})
            self._undo.callback(PRESENTED.clear)
            for ours in PRESENTED:
                self._undo.callback(setattr, ours, "__bases__", ours.__bases__)
                ours.__bases__ = (*ours.__bases__, Presented)
            self._undo.callback(setattr, torch.fx.GraphModule, "__new__", torch.fx.GraphModule.__new__)
            torch.fx.GraphModule.__new__ = _new_module  # type: ignore[method-assign, assignment]
            self._exchange(_EXCHANGED)
        if packages:
            self._undo.enter_context(clients_over_clew(packages))
        _installed.append(self)

    def _exchange(self, functions: dict[Callable[..., Any], Callable[..., Any]]) -> None:
        """Put functions in the places of others, in all modules that hold them by now."""
        for module in list(sys.modules.values()):
            names: Any = getattr(module, "__dict__", None)
            is_open = type(names) is dict and module is not sys.modules[__name__]
            for name, value in list(names.items()) if is_open else ():
                ours = functions.get(value) if isinstance(value, (FunctionType, BuiltinFunctionType)) else None
                if ours is not None and names is not None:
                    names[name] = ours
                    self._undo.callback(names.__setitem__, name, value)

    def uninstall(self) -> None:
        """Put everything back, unless another installation is left."""
        if self not in _installed:
            return
        _installed.remove(self)
        if _installed:
            _installed[0]._undo.push(self._undo)
        else:
            self._undo.close()

    def __exit__(self, *error: object) -> None:
        self.uninstall()


_their_new = torch.fx.GraphModule.__new__


def _new_module(cls: type, *args: Any, **kwargs: Any) -> Any:
    """A module of Clew's for a graph of Clew's, where torch.fx's own class is asked."""
    graph = next((value for value in (*args, *kwargs.values()) if Graph in type(value).__mro__), None)
    return _their_new(cls, *args, **kwargs) if graph is None else GraphModule(*args, **kwargs)  # type: ignore[arg-type]


_their_map_arg, _their_map_aggregate = torch._C._fx_map_arg, torch._C._fx_map_aggregate


def _map_arg(a: Any, fn: Callable[[Any], Any]) -> Any:
    """``map_arg`` of torch.fx, for nodes of both."""
    if not any(isinstance(leaf, Reference) for leaf in leaves(a)):
        return _their_map_arg(a, fn)
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, (Reference, torch.fx.Node)) else leaf)


def _map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """``map_aggregate`` of torch.fx, for nodes of both."""
    if not any(isinstance(leaf, Reference) for leaf in leaves(a)):
        return _their_map_aggregate(a, fn)
    return map_aggregate(a, fn)


_EXCHANGED: dict[Callable[..., Any], Callable[..., Any]] = {
    torch_node.map_arg: _map_arg,
    torch_node.map_aggregate: _map_aggregate,
    torch._C._fx_map_arg: _map_arg,
    torch._C._fx_map_aggregate: _map_aggregate,
}
