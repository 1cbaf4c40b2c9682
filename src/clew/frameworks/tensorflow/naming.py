"""Nodes are called like the user's variables, where a source line assigns what they compute.

TensorFlow tells the line that made an operation. Of several operations of one line the last one makes the value.
"""

from __future__ import annotations

import re

from clew.ir.arguments import nested_graphs
from clew.ir.graph import Graph
from clew.ir.node import Node

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\s*(?::[^=]+)?(?:[-+*/@%]|//|\*\*)?=(?!=)")


def name_by_variables(graph: Graph) -> None:
    """Rename the nodes of a graph and of those inside it."""
    for one in (graph, *nested_graphs(graph)):
        nodes = [node for node in one.nodes if node.op in ("call_function", "call_method") and node.source is not None]
        for node, following in zip(nodes, [*nodes[1:], None], strict=False):
            if node.users and (following is None or following.source != node.source):
                name = _variable(node)
                if name is not None and name != node.name:
                    node.name = name


def _variable(node: Node) -> str | None:
    assert node.source is not None
    found = _ASSIGNMENT.match(node.source.text)
    return None if found is None or not found[1].strip("_") else found[1]
