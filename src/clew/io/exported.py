"""Programs of torch.export as graph modules that are called like the original module.

Parameters, buffers and constants are attributes under their original names, inputs and outputs have their original
nests, and writes to buffers and inputs are in the graph. What the export assumed about its inputs is checked by nodes
at the start of the graph (``check_tensors``, ``check_constants``): structure, shapes and their ranges, dtypes, devices
and constants; a call that breaks an assumption raises ``InputMismatch``. The hole that torch.export itself leaves: it
assumes that a dynamic size is neither 0 nor 1, and only the ranges that it states, as ``Dim.DYNAMIC`` does and
``Dim("batch")`` does not, can be checked here.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

import torch
import torch.fx
from torch.export import ExportedProgram
from torch.fx.proxy import GraphAppendingTracer, Proxy, TraceError

from clew.errors import InputMismatch, InteropError
from clew.io.torch_fx import graph_from_fx, share_registers
from clew.ir.effects import harmless
from clew.ir.types import ArrayType, type_of
from clew.ir.types import parse_type as parse_type_anew
from clew.runtime.module import GraphModule

# ---- exported programs -----------------------------------------------------------------------------------------------

_GUARDS = "_guards_fn"
_VARIABLE = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, torch.ScriptObject)


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
        _check_constants(graph, inputs)
        _check_tensors(graph, inputs, program.range_constraints)
    _write_out_guards(source, inputs)
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


# ---- checks put at the start of a graph ------------------------------------------------------------------------------


def _check_constants(graph: torch.fx.Graph, inputs: list[torch.fx.Node]) -> None:
    """Inputs that are no tensors were built into the program by their values."""
    constants = {node: node.meta.get("val") for node in inputs if not isinstance(node.meta.get("val"), _VARIABLE)}
    if constants:
        values = {str(node.target): node for node in constants}
        expected: dict[str, Any] = {str(node.target): value for node, value in constants.items()}
        graph.create_node("call_function", check_constants, (values, expected), name="constants_checked")


def _check_tensors(graph: torch.fx.Graph, inputs: list[torch.fx.Node], constraints: dict[Any, Any]) -> None:
    """Tensors have the dtype, device and sizes, and the program the ranges of sizes, that it was exported with."""
    names: dict[Any, str] = {}
    tensors = {str(node.target): node for node in inputs if isinstance(node.meta.get("val"), torch.Tensor)}
    types: dict[str, Any] = {name: _type_text(node.meta["val"], names) for name, node in tensors.items()}
    symbolic = [node for node in inputs if isinstance(node.meta.get("val"), torch.SymInt)]
    numbers = {_size_name(node.meta["val"], names): node for node in symbolic}
    limits: dict[str, Any] = {names[size]: _bounds(constraints[size]) for size in names if size in constraints}
    ranges = {name: bounds for name, bounds in limits.items() if bounds != (None, None)}
    if tensors or numbers:
        graph.create_node("call_function", check_tensors, (tensors, types, ranges, numbers), name="tensors_checked")
    derived = [size for size in names if not size.is_Symbol]
    if derived and not graph.find_nodes(op="call_module", target=_GUARDS):
        raise InteropError(
            f"the size {derived[0]} of an input depends on other sizes, and the program keeps no check of that",
            fixes=["export with example inputs, so that the program keeps its checks"],
        )


def _type_text(example: torch.Tensor, names: dict[Any, str]) -> str:
    """``f32[s0, 4]``: sizes that are not fixed by the names that they are given."""
    shape = tuple(size if isinstance(size, int) else _size_name(size, names) for size in example.shape)
    return str(ArrayType(str(example.dtype).removeprefix("torch."), shape, str(example.device)))


def _size_name(size: torch.SymInt, names: dict[Any, str]) -> str:
    """The symbol of a size; a fresh name for an expression, whose relation to others is in the program's guards."""
    expression = size.node.expr
    fresh = str(expression) if expression.is_Symbol else f"d{len(names)}"
    return names.setdefault(expression, fresh)


def _bounds(limits: Any) -> tuple[int | None, int | None]:
    """The lower and upper bound as numbers; None where there is none."""
    lowest, highest = (int(bound) if bound.is_Integer else None for bound in (limits.lower, limits.upper))
    return (lowest if lowest != 0 else None), highest


def _write_out_guards(source: Any, inputs: list[torch.fx.Node]) -> None:
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
            covered = [node for node in graph.nodes if node not in before]
        else:
            guards = [node for node in graph.nodes if node not in before and node.target is torch._assert]
            covered = [call, *(guard for guard in guards if _is_covered(guard.args[0], inputs))]
            del source._modules[_GUARDS]
        _erase(graph, covered, before)


def _is_covered(condition: Any, inputs: list[torch.fx.Node]) -> bool:
    """True for ``x.size()[i] == 4``, which the check of the tensors' types has asked already."""
    if not isinstance(condition, torch.fx.Node) or condition.target is not operator.eq:
        return False
    size, expected = condition.args
    if not isinstance(size, torch.fx.Node) or size.target is not operator.getitem or not isinstance(expected, int):
        return False
    shape, place = size.args
    tensor = shape.args[0] if isinstance(shape, torch.fx.Node) and shape.target == "size" else None
    example = tensor.meta.get("val") if tensor in inputs else None  # type: ignore[union-attr]
    return isinstance(example, torch.Tensor) and example.shape[place] is expected  # type: ignore[index]


def _erase(graph: torch.fx.Graph, nodes: list[torch.fx.Node], keep: set[torch.fx.Node]) -> None:
    """Erase nodes, and what was added only for them."""
    for node in reversed(nodes):
        pending = [node]
        while pending:
            dead = pending.pop()
            if dead.users or dead._erased or (dead in keep and dead is not node):
                continue
            pending += dead.all_input_nodes
            graph.erase_node(dead)


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


# ---- checks that the graphs call -------------------------------------------------------------------------------------


Range = tuple[int | None, int | None]
parse_type = functools.lru_cache(maxsize=1024)(parse_type_anew)


@harmless
def check_tensors(
    tensors: Mapping[str, Any], types: Mapping[str, str], ranges: Mapping[str, Range], numbers: Mapping[str, Any]
) -> None:
    """Each tensor has its dtype, kind of device and shape; each named size is the same everywhere and in its range.

    ``numbers`` gives the sizes that are inputs themselves.
    """
    sizes = dict(numbers)
    for symbol, size in numbers.items():
        _check_range(symbol, size, ranges, "the program")
    for name, text in types.items():
        expected, found = parse_type(text), type_of(tensors[name])
        if not isinstance(expected, ArrayType) or not isinstance(found, ArrayType) or not _fits(found, expected):
            raise _mismatch(f"the input {name} is {found}, and {text} is expected")
        for place, (size, wanted) in enumerate(zip(found.shape, expected.shape, strict=True)):
            if isinstance(wanted, str):
                if sizes.setdefault(wanted, size) != size:
                    raise _mismatch(
                        f"the input {name} is {found}, and {text} is expected, where {wanted} is {sizes[wanted]}"
                    )
                _check_range(wanted, size, ranges, f"size {place} of the input {name}")


def _fits(found: ArrayType, expected: ArrayType) -> bool:
    same_kind = found.dtype == expected.dtype and found.device.split(":")[0] == expected.device.split(":")[0]
    return same_kind and len(found.shape) == len(expected.shape) and all(map(_size_fits, found.shape, expected.shape))


def _size_fits(found: int | str, expected: int | str) -> bool:
    return isinstance(expected, str) or found == expected


def _check_range(symbol: str, size: Any, ranges: Mapping[str, Range], where: str) -> None:
    lowest, highest = ranges.get(symbol, (None, None))
    if lowest is not None and size < lowest:
        raise _mismatch(f"{where}: {symbol} is {size}, and at least {lowest} is expected")
    if highest is not None and size > highest:
        raise _mismatch(f"{where}: {symbol} is {size}, and at most {highest} is expected")


@harmless
def check_constants(values: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
    """Each value is the constant that was built into the graph; NaN is NaN, and True is not 1."""
    for name, expected in constants.items():
        value = values[name]
        same = value is expected or (type(value) is type(expected) and (value == expected or value != value))
        if not same or (value != value) != (expected != expected):
            raise _mismatch(f"the input {name} is {value!r}, and {expected!r} is expected")


def _mismatch(what: str) -> InputMismatch:
    return InputMismatch(
        what,
        why="the graph was made for such inputs only, and might compute something else for others",
        fixes=["capture the program again with inputs like these, or with sizes that may vary"],
    )
