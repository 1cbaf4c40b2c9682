"""Decomposition: a captured torch module as one of core ATen operators, for back ends that know only these.

A captured module and an example call come in; out comes a new module, of the same parameters, buffers and call, whose
graph torch's exporter has made of the captured code; the capture itself stays as it is. ``operators`` is a table of
decompositions of torch's. The guards of the capture that are about its inputs are guards of the result; the sizes of
the example are its sizes, unless ``dynamic_shapes``, as for ``torch.export``, says otherwise, and torch checks them.
Where torch's exporter meets a branch or loop on what arrays hold, the way of the example is taken, and guarded.
"""

from __future__ import annotations

import contextlib
import copy
import io
from typing import Any

import torch
from torch._dynamo.exc import UserError
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from clew.errors import GraphError, InteropError, a_or_an
from clew.io.exported import from_exported
from clew.io.straight_line import straight_line
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Guard, guard
from clew.ir.node import Node
from clew.ir.source import SourceLine
from clew.passes.program import graph_in

_ASKING = (GuardOnDataDependentSymNode, UserError, DataDependentOutputException)
"""What torch's exporter raises where a program asks what a tensor holds."""


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
    graph = graph_in(program)
    checks: dict[str, Node] = {}
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):  # torch prints what it has so far when it comes to a question
            exported = _exported(program, graph, args, kwargs, dynamic_shapes, operators)
    except _ASKING:
        line, asked = straight_line(program, args, kwargs or {})
        checks = {f"guard {number} of Clew": one for number, one in enumerate(asked)}
        for message, check in checks.items():
            with line.inserting_before(check):
                line.call_function(torch._assert_async, (check.args[0], message))
            line.erase_node(check)
        exported = _exported(program, line, args, kwargs, dynamic_shapes, operators)
    result = from_exported(exported)
    for node in result.graph.find_nodes(op="call_function", target=torch.ops.aten._assert_async.msg):
        if node.args[1] in checks:
            _put_guard(node, checks[str(node.args[1])].source)
    result.graph.guards.add(*_carried(graph, result))
    return result


def _exported(program: Any, graph: Graph, args: Any, kwargs: Any, shapes: Any, operators: Any) -> Any:
    """What torch's exporter makes of a graph of a program; the assumptions about its inputs are left out."""
    plain = copy.deepcopy(graph)
    plain.set_guards(())
    module = program._part(plain, type(program).__name__)
    try:
        exported = torch.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=False)
        return exported.run_decompositions(operators)
    except _ASKING:
        raise
    except Exception as error:
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InteropError(
            f"torch's exporter does not take the program: {line}",
            fixes=["decompose the parts that it takes: clew.extract(captured, outputs=[...])"],
        ) from error


def _put_guard(node: Node, source: SourceLine | None) -> None:
    """A guard in the place of an assert that stands for it."""
    with node.graph.inserting_before(node):
        holds = node.graph.call_function(bool, (node.args[0],))
        node.graph.call_function(guard, (holds,)).source = holds.source = source
    node.graph.erase_node(node)


def _carried(old: Graph, result: Any) -> list[Guard]:
    """The guards over inputs, for the inputs of the same names; settings that the result has not are as they are."""
    new: Graph = result.graph
    inputs = {str(node.target): node for node in new.find_nodes(op="placeholder")}
    root, found = old.owning_module, []

    def moved(leaf: Any) -> Any:
        if isinstance(leaf, Attribute):
            return leaf if resolve(result, leaf.path) is not None else resolve(root, leaf.path)
        return inputs.get(str(getattr(leaf, "target", "")), leaf)

    for one in old.guards.entry:
        if one.inputs and all(str(node.target) in inputs for node in one.inputs):
            found.append(one.mapped(moved))
    return found
