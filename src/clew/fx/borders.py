"""The borders of torch.fx's passes that run over Clew's classes: what goes in, and what comes out.

A function of such a module comes in, with torch's own function of the same name; out goes one that hands graphs of
torch.fx itself to torch's own, and gives the module that a pass builds anew the guards at the entrance of the one that
it was built from. Always holds: a graph that replaces a captured program refuses what that program would refuse.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any

import torch.fx

from clew.ir.graph import Graph
from clew.ir.guards import attached, attribute_paths, detached
from clew.ir.node import Node
from clew.runtime.module import BODY_ROOT, GraphModule, has_path, take_over

_THEIRS = (torch.fx.GraphModule, torch.fx.Graph, torch.fx.Node)
_OURS = (GraphModule, Graph, Node)


def put_borders(module: ModuleType, origin: str) -> None:
    """Give all functions that a module over Clew's classes has for others their borders."""
    for name, value in list(vars(module).items()):
        if isinstance(value, FunctionType) and value.__module__ == module.__name__ and not name.startswith("_"):
            setattr(module, name, _with_border(value, origin, name))


def _with_border(ours: FunctionType, origin: str, name: str) -> Callable[..., Any]:
    @functools.wraps(ours)
    def at_border(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if is_of_torch(given):
            return getattr(importlib.import_module(origin), name)(*args, **kwargs)
        source = next((value for value in given if isinstance(value, GraphModule)), None)
        token = BODY_ROOT.set(source)
        try:
            result = ours(*args, **kwargs)
        finally:
            BODY_ROOT.reset(token)
        if source is not None and source.graph.guards.entry:
            for made in result if isinstance(result, tuple) else (result,):
                carry_guards(source, made)
        return result

    return at_border


def is_of_torch(given: Iterable[Any]) -> bool:
    """Whether the arguments of a call are graphs of torch.fx itself, and none of Clew's."""
    kinds = [type(one).__mro__ for value in given for one in (value if type(value) in (list, tuple) else (value,))]
    of_torch = any(kind in mro for mro in kinds for kind in _THEIRS)
    return of_torch and not any(kind in mro for mro in kinds for kind in _OURS)


def carry_guards(source: GraphModule, made: Any) -> None:
    """Let a module that a pass has made of another one assume what the other assumes, if it takes its inputs."""
    if not isinstance(made, GraphModule) or made is source or made.graph.guards.entry:
        return
    names = {node.name: node.name for node in source.graph.find_nodes(op="placeholder")}
    names |= {str(node.target): node.name for node in source.graph.find_nodes(op="placeholder")}
    inputs = made.graph.find_nodes(op="placeholder")
    if any(node.target not in names for node in inputs):
        return  # a piece of the program, whose inputs are values that it computes
    guards = attached(detached(source.graph.guards.entry), {names[str(node.target)]: node for node in inputs})
    take_over(source, made, [path for path in attribute_paths(guards) if not has_path(made, path)], as_buffers=False)
    made.graph.guards = guards
