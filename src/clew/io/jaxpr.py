"""Jaxprs in and out: a closed jaxpr as a graph of readable calls, and a graph as a closed jaxpr.

``from_jaxpr`` gives a function that takes the inputs of the jaxpr and returns the list of its results. ``to_jaxpr``
traces a captured function with JAX; its guards are checked on the way, since arrays without data have a kind as well.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from clew.errors import GraphError, a_or_an
from clew.frameworks.jax.importer import Importer
from clew.frameworks.jax.types import type_of_aval
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.runtime.function import GraphFunction


def from_jaxpr(jaxpr: ClosedJaxpr, name: str = "jaxpr") -> GraphFunction:
    """The function of a closed jaxpr, as ``jax.make_jaxpr`` gives it, with a graph that can be read and edited."""
    if not isinstance(jaxpr, ClosedJaxpr):
        raise GraphError(
            f"from_jaxpr takes a closed jaxpr, not {a_or_an(jaxpr)}",
            fixes=("give what jax.make_jaxpr(fn)(*args) returns",),
        )
    graph = Graph()
    constants: dict[str, Any] = {}
    nodes: dict[int, Node] = {}

    def constant(value: Any) -> Node:
        if id(value) not in nodes:
            path = f"_constant{len(constants)}"
            constants[path] = value
            nodes[id(value)] = graph.create_node("get_attr", path, (), {})
        return nodes[id(value)]

    operands = [_parameter(graph, place, variable) for place, variable in enumerate(jaxpr.jaxpr.invars)]
    graph.output(list(Importer(graph, constant).run(jaxpr, operands)))
    graph.eliminate_dead_code()
    return GraphFunction(SimpleNamespace(**constants), graph, name)


def _parameter(graph: Graph, place: int, variable: Any) -> Node:
    node = graph.placeholder(chr(ord("a") + place) if place < 26 else f"a{place}")
    object.__setattr__(node, "value_type", type_of_aval(variable.aval))
    return node


def to_jaxpr(graph: Any, *args: Any, **kwargs: Any) -> ClosedJaxpr:
    """The closed jaxpr of a captured function, or of a graph, on such arguments; arrays may be without data."""
    function = GraphFunction(graph.owning_module, graph) if isinstance(graph, Graph) else graph
    if not callable(function):
        raise GraphError(f"to_jaxpr takes a captured function or a graph, not {a_or_an(graph)}")
    return jax.make_jaxpr(lambda given, named: function(*given, **named))(args, kwargs)
