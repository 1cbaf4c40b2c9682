"""Dtype conversion: a captured torch module computes in another floating-point dtype from then on.

A captured program comes in, is changed in place and returned. It computes what a copy of the original computes after
``.to(dtype)`` on inputs that were converted too: parameters and buffers of floating-point dtypes are converted, in
modules that the program gets for itself; inputs that were floating in the example are converted at the entrance, and
results back on request. Conversions that the program makes itself, to float32 for a norm say, stay.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.ir.arguments import map_aggregate
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.passes.own_state import own_state
from clew.passes.program import ProgramT, graph_in, insert_at_entrance


def convert_dtype(program: ProgramT, dtype: torch.dtype, *, results: torch.dtype | None = None) -> ProgramT:
    """The program in another dtype; it is changed in place and returned.

    With ``results``, floating-point arrays that it returns are converted to that.
    """
    graph = graph_in(program)
    own_state(graph, lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor.clone())
    insert_at_entrance(graph, _is_floating, lambda node: graph.call_method("to", (node, dtype)))
    if results is not None:
        _convert_results(graph, results)
    return program


def _is_floating(value: Any) -> bool:
    kind = value.value_type if isinstance(value, Node) else None
    return isinstance(kind, ArrayType) and kind.dtype.startswith(("float", "bfloat"))


def _convert_results(graph: Graph, dtype: torch.dtype) -> None:
    output = graph.output_node()

    def converted(value: Any) -> Any:
        if not _is_floating(value):
            return value
        with graph.inserting_before(output):
            return graph.call_method("to", (value, dtype))

    output.args = map_aggregate(output.args, converted)
