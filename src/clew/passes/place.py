"""Device placement: a captured torch module computes on another device from then on.

A captured program comes in, is changed in place and returned. Parameters, buffers and the constants that the capture
keeps are on the device afterwards, in modules that the program gets for itself; arrays among the inputs are moved at
the entrance, and literals that name another device, ``device=torch.device("cpu")``, name this one. What the
program makes without naming a device is made where torch makes it by default.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.ir.arguments import all_nodes, map_aggregate
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.passes.own_state import own_state
from clew.passes.program import ProgramT, Root, graph_in, insert_at_entrance


def place(program: ProgramT, device: torch.device | str) -> ProgramT:
    """The program on another device; it is changed in place and returned."""
    graph, where = graph_in(program), torch.device(device)
    own_state(graph, lambda tensor: tensor.to(where))
    root = Root(graph)
    for node in list(all_nodes(graph)):
        _rename(node, where)
        value = root.plain(node.target) if node.op == "get_attr" else None
        if isinstance(value, torch.Tensor):
            root.set_plain(node.target, value.to(where))
    insert_at_entrance(graph, _is_array, lambda node: graph.call_method("to", (node, where)))
    return program


def _is_array(node: Node) -> bool:
    return isinstance(node.value_type, ArrayType)


def _rename(node: Node, where: torch.device) -> None:
    """Let the literals of a node name the device."""

    def moved(leaf: Any) -> Any:
        return where if isinstance(leaf, torch.device) else leaf

    if any(isinstance(one, torch.device) for one in (*node.args, *node.kwargs.values())):
        node.args, node.kwargs = map_aggregate((node.args, node.kwargs), moved)
