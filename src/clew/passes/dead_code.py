"""Dead code: nodes that nobody uses and that have no effect are erased.

Inputs stay, because they are the function's signature; unknown effects stay, because dropping one changes a program.
"""

from __future__ import annotations

from collections.abc import Callable

from clew.ir.graph import Graph
from clew.ir.node import Node


def dead_code(graph: Graph, is_impure_node: Callable[[Node], bool] | None = None) -> Graph:
    """The graph without its dead nodes; it is changed in place and returned."""
    graph.eliminate_dead_code(is_impure_node)
    return graph
