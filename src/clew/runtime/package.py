"""A graph module in a package of ``torch.package``, which is read where there may be no Clew.

In come a module and the exporter; out goes what torch.fx's own modules give: their state, and the name of a module in
the package with the generated code, which torch.fx traces when the package is read. So a ``torch.fx.GraphModule`` comes
out of it. Always holds: a graph that torch.fx would trace into another program is refused.
"""

from __future__ import annotations

from typing import Any

from torch.fx.graph_module import reduce_package_graph_module

from clew.errors import CodegenError
from clew.ir.arguments import bodies_of
from clew.ir.effects import WRITING_OPERATORS
from clew.ir.graph import Graph


def reduce_for_package(module: Any, exporter: Any, own: frozenset[str]) -> tuple[Any, ...]:
    """How the exporter stores ``module``; ``own`` are attributes that follow from its graph."""
    refused = _not_for_torch(module.graph)
    if refused:
        raise CodegenError(
            f"{type(module).__name__} cannot be stored by torch.package, because {refused}",
            why="torch.package reads graph modules by tracing their code with torch.fx, which would lose that",
            fixes=["clew.save(module, file), and clew.load(file) to read it again"],
        )
    name = f"fx-generated._{exporter.get_unique_id()}"
    exporter.save_source_string(name, module.graph.python_code("self", portable=True).src)
    state = {key: value for key, value in vars(module).items() if key not in own}
    body = {**state, "meta": {}, "_graphmodule_cls_name": type(module).__name__}
    return reduce_package_graph_module, (body, name)


def _not_for_torch(graph: Graph) -> str:
    """What of a graph torch.fx could not trace, or would trace into something else; empty if there is nothing."""
    if len(graph.guards):
        return "it has guards"
    for node in graph.nodes:
        if bodies_of(node):
            return f"the node {node.name} has nested graphs"
        if node.op == "call_function" and node.target in WRITING_OPERATORS:
            return f"the node {node.name} writes in place by an operator"
    return ""
