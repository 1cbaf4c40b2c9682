"""Programs of torch.export as graph modules that are called like the original module.

Parameters, buffers and constants are attributes under their original names, inputs and outputs have their original
nests, and writes to buffers and inputs are in the graph. What the export assumed about its inputs is checked by nodes
at the start of the graph: structure, shapes and their ranges, dtypes, devices and constants. A call that breaks an
assumption raises an error. The hole that torch.export itself leaves: it assumes that a dynamic size is neither 0 nor
1, and only the ranges that it states, as ``Dim.DYNAMIC`` does and ``Dim("batch")`` does not, can be checked here.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
import torch.fx
from torch.export import ExportedProgram
from torch.fx.proxy import GraphAppendingTracer, Proxy, TraceError

from clew.errors import InteropError
from clew.io.torch_fx import graph_from_fx
from clew.io.torch_state import share_registers
from clew.runtime.module import GraphModule

_GUARDS = "_guards_fn"


class ExportedModule(GraphModule):
    """The module of an exported program. Training or not was decided when it was exported."""

    def train(self, mode: bool = True) -> ExportedModule:
        """Always an error: the graph computes what the model did in the mode it was exported in."""
        raise InteropError(
            f"{type(self).__name__} cannot be switched to {'training' if mode else 'evaluation'}",
            why="dropout and batch norm were exported in the mode that the model was in",
            fixes=["export the model again after model.train() or model.eval()"],
        )

    def eval(self) -> ExportedModule:
        """Always an error, like ``train``."""
        return self.train(False)


def from_exported(program: ExportedProgram) -> ExportedModule:
    """A module that computes what ``program`` does, called with the arguments of the exported model."""
    if not isinstance(program, ExportedProgram):
        raise InteropError(
            f"a {type(program).__module__}.{type(program).__qualname__} is no exported program",
            fixes=["export it first: torch.export.export(model, args, kwargs)"],
        )
    source = program.module()
    graph = source.graph
    inputs = graph.find_nodes(op="placeholder")
    _put_inputs_first(graph, inputs)
    with graph.inserting_before(_after(graph, inputs)):
        _check_kinds(graph, inputs)
        _check_ranges(graph, inputs, program.range_constraints)
        if not graph.find_nodes(op="call_module", target=_GUARDS):
            _check_shapes(graph, inputs)
    _write_out_guards(source)
    module = ExportedModule(source, graph_from_fx(graph), _class_name(program))
    share_registers(source, module)
    _add_missing_state(program, module)
    module.meta.update(source.meta)
    return module


def _class_name(program: ExportedProgram) -> str:
    """The name of the exported model's class, as far as the notes of the nodes tell."""
    for node in program.graph.nodes:
        stack = node.meta.get("nn_module_stack")
        if stack:
            _, kind = next(iter(stack.values()))
            name = kind if isinstance(kind, str) else kind.__qualname__
            return str(name).rpartition(".")[2]
    return "GraphModule"


def _put_inputs_first(graph: torch.fx.Graph, inputs: list[torch.fx.Node]) -> None:
    """Checks come right after the inputs, before anything is read or computed."""
    for node in reversed(inputs):
        next(iter(graph.nodes)).prepend(node)


def _after(graph: torch.fx.Graph, inputs: list[torch.fx.Node]) -> torch.fx.Node:
    return inputs[-1].next if inputs else next(iter(graph.nodes))


# ---- checks ------------------------------------------------------------------------------------------------------


def _check_kinds(graph: torch.fx.Graph, inputs: list[torch.fx.Node]) -> None:
    """Each tensor has the dtype and the kind of device that it was exported with; all else has its very value."""
    for node in inputs:
        example = node.meta.get("val")
        if isinstance(example, torch.Tensor):
            _check_tensor(graph, node, example)
        elif example is None or isinstance(example, (bool, str)):
            comparison = operator.eq if isinstance(example, str) else operator.is_
            same = graph.call_function(comparison, (node, example))
            _assert(graph, same, f"the input {node.target} must be {example!r}, as it was when exported")


def _check_tensor(graph: torch.fx.Graph, node: torch.fx.Node, example: torch.Tensor) -> None:
    is_tensor = graph.call_function(isinstance, (node, torch.Tensor))
    _assert(graph, is_tensor, f"the input {node.target} must be a tensor, as it was when exported")
    facts = {"dtype": (("dtype",), example.dtype), "device": (("device", "type"), example.device.type)}
    for fact, (path, expected) in facts.items():
        value = node
        for attribute in path:
            value = graph.call_function(getattr, (value, attribute))
        same = graph.call_function(operator.eq, (value, expected))
        _assert(graph, same, f"the {fact} of the input {node.target} must be {expected}, as it was when exported")
    dimensions = graph.call_method("dim", (node,))
    same = graph.call_function(operator.eq, (dimensions, example.dim()))
    _assert(graph, same, f"the input {node.target} must have {example.dim()} dimensions, as it had when exported")


def _assert(graph: torch.fx.Graph, condition: torch.fx.Node, message: str) -> None:
    graph.call_function(torch._assert, (condition, message))


def _sizes(inputs: list[torch.fx.Node]) -> Iterator[tuple[torch.fx.Node, int | None, Any]]:
    """Each input number and each dimension of an input tensor: the input, the dimension, what it was exported with."""
    for node in inputs:
        example = node.meta.get("val")
        if isinstance(example, torch.Tensor):
            yield from ((node, place, size) for place, size in enumerate(example.shape))
        elif isinstance(example, (int, float, torch.SymInt)) and not isinstance(example, bool):
            yield node, None, example


def _read(graph: torch.fx.Graph, node: torch.fx.Node, place: int | None) -> torch.fx.Node:
    return node if place is None else graph.call_method("size", (node, place))


def _told(node: torch.fx.Node, place: int | None) -> str:
    return f"the input {node.target}" if place is None else f"size {place} of the input {node.target}"


def _check_ranges(graph: torch.fx.Graph, inputs: list[torch.fx.Node], ranges: dict[Any, Any]) -> None:
    """The lower and upper bounds that the program states for its sizes."""
    for node, place, example in _sizes(inputs):
        stated = ranges.get(example.node.expr) if isinstance(example, torch.SymInt) else None
        if stated is None:
            continue
        bounds = [(operator.ge, ">=", stated.lower, 0), (operator.le, "<=", stated.upper, None)]
        for comparison, sign, bound, trivial in bounds:
            if not bound.is_Integer or bound == trivial:  # no bound
                continue
            held = graph.call_function(comparison, (_read(graph, node, place), int(bound)))
            _assert(graph, held, f"{_told(node, place)} must be {sign} {int(bound)}, as the exported program states")


def _check_shapes(graph: torch.fx.Graph, inputs: list[torch.fx.Node]) -> None:
    """Sizes that were fixed, and sizes that were the same, where torch.export keeps no checks of its own."""
    seen: dict[Any, tuple[torch.fx.Node, int | None]] = {}
    for node, place, example in _sizes(inputs):
        if not isinstance(example, torch.SymInt):
            held = graph.call_function(operator.eq, (_read(graph, node, place), example))
            _assert(graph, held, f"{_told(node, place)} must be {example}, as it was when exported")
            continue
        expression = example.node.expr
        if not expression.is_Symbol:
            raise InteropError(
                f"{_told(node, place)} is {expression} in the exported program, which cannot be checked here",
                fixes=["export with example inputs, so that the program keeps checks of its own"],
            )
        if expression in seen:
            first = seen[expression]
            held = graph.call_function(operator.eq, (_read(graph, node, place), _read(graph, *first)))
            _assert(graph, held, f"{_told(node, place)} must be the same as {_told(*first)}")
        seen.setdefault(expression, (node, place))


def _write_out_guards(source: Any) -> None:
    """Replace the one call that checks all guards by nodes for each, where they can be written as nodes."""
    graph = source.graph
    for call in graph.find_nodes(op="call_module", target=_GUARDS):
        before = set(graph.nodes)
        tracer = GraphAppendingTracer(graph)
        try:
            with graph.inserting_before(call):
                getattr(source, _GUARDS).forward(*(Proxy(argument, tracer) for argument in call.args))
        except (TraceError, TypeError, AssertionError, RuntimeError):
            # A guard with a function of numbers that does not take proxies: the call itself stays and checks it.
            for node in reversed([node for node in graph.nodes if node not in before]):
                graph.erase_node(node)
            continue
        graph.erase_node(call)
        del source._modules[_GUARDS]


def _add_missing_state(program: ExportedProgram, module: torch.nn.Module) -> None:
    """Entries of the program's state that no node reads keep their place in the state of the module."""
    for path, value in program.state_dict.items():
        *holders, name = path.split(".")
        holder = module
        for atom in holders:
            if atom not in holder._modules:
                holder.add_module(atom, torch.nn.Module())
            holder = holder._modules[atom]  # type: ignore[assignment]
        if name not in holder._parameters and name not in holder._buffers:
            is_parameter = isinstance(value, torch.nn.Parameter)
            (holder.register_parameter if is_parameter else holder.register_buffer)(name, value)  # type: ignore[operator]
