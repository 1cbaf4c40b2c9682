"""The borders of torch.fx's passes that run over Clew's classes: what goes in, and what comes out.

A function of such a module comes in, with torch's own function of the same name; out goes one that hands graphs of
torch.fx itself to torch's own, and gives the module that a pass builds anew the guards at the entrance of the one that
it was built from. Always holds: a graph that replaces a captured program refuses what that program would refuse.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch.fx

from clew.errors import GraphError
from clew.ir.graph import Graph
from clew.ir.guards import attached, attribute_paths, detached
from clew.ir.node import Node
from clew.ir.shared_memory import written_array
from clew.runtime.module import BODY_ROOT, GraphModule, has_path, take_over

_THEIRS = (torch.fx.GraphModule, torch.fx.Graph, torch.fx.Node)
_OURS = (GraphModule, Graph, Node)


def put_borders(module: ModuleType, origin: str) -> None:
    """Give all functions and planners that a module over Clew's classes has for others their borders."""
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", "") != module.__name__ or name.startswith("_"):
            continue
        if isinstance(value, FunctionType):
            setattr(module, name, _with_border(value, origin, name))
        elif isinstance(value, type) and name in _PLANNING:
            value.__init__ = _after_writes_are_inputs(value.__init__)  # type: ignore[misc]


def _with_border(ours: FunctionType, origin: str, name: str) -> Callable[..., Any]:
    @functools.wraps(ours)
    def at_border(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if is_of_torch(given):
            return getattr(importlib.import_module(origin), name)(*args, **kwargs)
        source = next((value for value in given if isinstance(value, GraphModule)), None)
        orders = _orders(source.graph) if source is not None and name in _SORTING else []
        token = BODY_ROOT.set(source)
        try:
            result = ours(*args, **kwargs)
        finally:
            BODY_ROOT.reset(token)
        if orders and isinstance(result, GraphModule):
            _keep_orders(result, orders)
        if source is not None and source.graph.guards.entry:
            for made in result if isinstance(result, tuple) else (result,):
                carry_guards(source, made)
        return result

    return at_border


# ---- writes in place, which passes of torch.fx move ------------------------------------------------------------------

_SORTING = frozenset({"fuse_by_partitions", "legalize_graph"})
"""Passes that sort a graph anew, by who uses whose value alone."""

_PLANNING = frozenset({"CapabilityBasedPartitioner"})
"""Classes that decide by who uses whose value which nodes may run as one."""


def _after_writes_are_inputs(made: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(made)
    def init(self: Any, graph_module: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(graph_module, GraphModule):
            let_writes_be_inputs(graph_module.graph)
        made(self, graph_module, *args, **kwargs)

    return init


def let_writes_be_inputs(graph: Graph) -> None:
    """Let what reads an array behind a write in place take what the write returns, which is the same array.

    So who asks only for users and inputs sees that it has to stay behind the write.
    """
    for write in graph.nodes:
        array = written_array(write)
        if array is not None and write.target not in _WITHOUT_A_VALUE:
            for reader in [user for user in array.users if user > write]:
                reader.replace_input_with(array, write)


_WITHOUT_A_VALUE = (operator.setitem, "__setitem__")

Order = tuple[str, str]


def _orders(graph: Graph) -> list[Order]:
    """The names of two nodes, of which the first has to run before the second since one of them writes to an array."""
    places = {node: place for place, node in enumerate(graph.nodes)}
    found = []
    for write in graph.nodes:
        array = written_array(write)
        for other in () if array is None else array.users:
            if other is not write:
                first, second = sorted((write, other), key=places.__getitem__)
                found.append((first.name, second.name))
    return found


def _keep_orders(module: GraphModule, orders: list[Order]) -> None:
    """Put the nodes of a module that a pass has sorted into an order again in which writes are where they were."""
    if not _broken(module, orders):
        return
    around = {name: node for node in module.graph.nodes for name in _names_in(module, node)}
    waits = {node: set(node.all_input_nodes) for node in module.graph.nodes}
    for first, second in orders:
        if first in around and second in around and around[first] is not around[second]:
            waits[around[second]].add(around[first])
    waiting, placed = list(module.graph.nodes), dict[Node, None]()
    while (ready := next((node for node in waiting if waits[node] <= placed.keys()), None)) is not None:
        waiting.remove(ready)
        if placed:
            next(reversed(placed)).append(ready)
        placed[ready] = None
    broken = _broken(module, orders)
    if waiting or broken:
        names = " and ".join((broken or orders)[0])
        raise GraphError(
            f"a pass has joined nodes around a write in place: {names} cannot be kept in this order",
            why="one of them writes to an array that the other reads, and a part that holds both sides runs at once",
            fixes=[
                "make writes calls that give new arrays first: clew.functionalize",
                "leave the node out of the part",
            ],
        )


def _broken(module: GraphModule, orders: list[Order]) -> list[Order]:
    names = (name for node in module.graph.nodes for name in _names_in(module, node))
    places = {name: place for place, name in enumerate(names)}
    return [(one, other) for one, other in orders if places.get(one, -1) > places.get(other, len(places))]


def _names_in(module: GraphModule, node: Node) -> Iterator[str]:
    """The name of a node; of one that calls a part that was cut out, those of the nodes in it."""
    part = module.get_submodule(str(node.target)) if node.op == "call_module" else None
    if not isinstance(part, GraphModule):
        yield node.name
        return
    for inner in part.graph.nodes:
        if inner.op not in ("placeholder", "output"):
            yield from _names_in(part, inner)


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
