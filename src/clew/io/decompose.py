"""Decomposition: a captured torch module as one of core ATen operators, for back ends that know only these.

A captured module and an example call come in; out comes a new module, of the same parameters, buffers and call, whose
graph torch's exporter has made of the captured code; the capture itself stays as it is. ``operators`` is a table of
decompositions of torch's. The guards of the capture that are about its inputs are guards of the result; the sizes of
the example are its sizes, unless ``dynamic_shapes``, as for ``torch.export``, says otherwise, and torch checks them.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.errors import GraphError, a_or_an
from clew.io.exported import from_exported
from clew.ir.graph import Graph
from clew.ir.guards import Guard
from clew.passes.program import graph_in


def decompose(
    program: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    operators: Any = None,
) -> Any:
    """A module that does what the captured module does, in core ATen operators."""
    if not isinstance(program, torch.nn.Module):
        raise GraphError(
            f"{a_or_an(program)} cannot be decomposed",
            why="torch exports modules",
            fixes=["capture a module: clew.trace(module, args)"],
        )
    exported = torch.export.export(program, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
    result = from_exported(exported.run_decompositions(operators))
    result.graph.guards.add(*_carried(graph_in(program), result.graph))
    return result


def _carried(old: Graph, new: Graph) -> list[Guard]:
    """The guards over inputs alone, for the inputs of the same names."""
    inputs = {str(node.target): node for node in new.find_nodes(op="placeholder")}
    found = []
    for one in old.guards.entry:
        if one.inputs and all(str(node.target) in inputs for node in one.inputs):
            found.append(one.mapped(lambda leaf: inputs.get(str(getattr(leaf, "target", "")), leaf)))
    return found
