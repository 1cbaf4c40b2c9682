"""Programs of TorchScript, scripted or traced, as graphs of torch functions that are called like the original.

The graph of a module or function comes in, with all its calls inlined; out comes a graph module with the same
parameters, or a graph function. Branches and loops are those of Clew, so generated code has ``if``, ``for``, ``while``.
Arguments are checked and converted as the program declares them. An operator that has no counterpart is an error.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from clew.errors import InteropError
from clew.io.torch_state import share_registers
from clew.io.torchscript_blocks import Blocks
from clew.io.torchscript_types import spec_of
from clew.io.torchscript_values import as_declared, require_tensor
from clew.ir.arguments import all_nodes
from clew.ir.graph import Graph
from clew.runtime.function import GraphFunction
from clew.runtime.module import GraphModule


class ScriptedModule(GraphModule):
    """The module of a TorchScript program."""

    @property
    def _self(self) -> Any:
        """The object whose attributes the graph sets."""
        return self


def from_torchscript(source: Any, method: str = "forward") -> Any:
    """A module or function that computes what a scripted or traced one does, called in the same way.

    Of a module one method is taken, ``forward`` or one that was exported to TorchScript.
    """
    if isinstance(source, torch.jit.ScriptFunction):
        blocks = _converted(source.inlined_graph, source.schema, None)
        root = _root_of(None, blocks)
        return GraphFunction(root, blocks.graph, str(source.name))
    if not isinstance(source, torch.jit.ScriptModule):
        raise InteropError(
            f"a {type(source).__module__}.{type(source).__qualname__} is no program of TorchScript",
            fixes=["torch.jit.script(model) or torch.jit.trace(model, args) makes one", "clew.trace captures Python"],
        )
    if not source._c._has_method(method):
        raise InteropError(f"the TorchScript module {source.original_name} has no method {method!r}")
    compiled = source._c._get_method(method)
    blocks = _converted(compiled.inlined_graph, compiled.schema, source)
    root = _root_of(source, blocks)
    module = ScriptedModule(root, blocks.graph, source.original_name)
    share_registers(root, module)
    for path in blocks.written:
        _copy_attribute(source, module, path)
    _copy_modes(source, module)
    return module


def _converted(graph: Any, schema: Any, module: Any) -> Blocks:
    """The graph of a TorchScript program as one of Clew."""
    blocks = Blocks(Graph(), graph)
    inputs = list(graph.inputs())
    arguments = list(schema.arguments)
    if module is not None:
        blocks.bind_module(inputs.pop(0))
        arguments.pop(0)
    placed = []
    for value, argument in zip(inputs, arguments, strict=True):
        default = (argument.default_value,) if argument.has_default_value() else ()
        kind = {"keyword_only": True} if argument.kwarg_only else {}
        placed.append((value, argument, blocks.graph.create_node("placeholder", argument.name, default, kind)))
    for value, argument, node in placed:
        spec = spec_of(argument.type)
        if spec == "Tensor":
            blocks.graph.call_function(require_tensor, (node, argument.name))
        elif spec != "Any":
            declared = (node, spec, argument.name)
            node = blocks.graph.create_node("call_function", as_declared, declared, {}, argument.name)
        blocks.bind(value, node)
    blocks.run(graph)
    results = [blocks.value(output) for output in graph.outputs()]
    blocks.graph.output(results[0] if len(results) == 1 else tuple(results) or None)
    blocks.graph.eliminate_dead_code(is_impure_node=_is_kept)
    return blocks


def _is_kept(node: Any) -> bool:
    """What checks an argument stays, also where the argument is not used."""
    return node.target is as_declared or node.is_impure()


def _root_of(source: Any, blocks: Blocks) -> Any:
    """A plain module with the parameters, buffers and attributes of a TorchScript module, and the constants."""
    root = torch.nn.Module() if source is None else _mirrored(source)
    for path in dict.fromkeys(node.target for node in all_nodes(blocks.graph) if node.op == "get_attr"):
        if path in blocks.constants:
            root.register_buffer(path, blocks.constants[path], persistent=False)
    for path in blocks.attributes:
        _copy_attribute(source, root, path)
    return root


def _mirrored(source: Any) -> torch.nn.Module:
    module = torch.nn.Module()
    module.training = getattr(source, "training", False)  # a frozen module has no mode any more
    for name, value in source.named_parameters(recurse=False):
        is_parameter = isinstance(value, torch.nn.Parameter)
        module.register_parameter(name, value if is_parameter else torch.nn.Parameter(value, value.requires_grad))
    for name, value in source.named_buffers(recurse=False):
        module.register_buffer(name, value)
    for name, child in source.named_children():
        module.add_module(name, _mirrored(child))
    return module


def _copy_attribute(source: Any, root: torch.nn.Module, path: str) -> None:
    """Give the root an attribute that is neither a parameter nor a buffer: a number, a text, a list."""
    holder, _, name = path.rpartition(".")
    owner = root.get_submodule(holder)
    if name not in owner._parameters and name not in owner._buffers and name != "training":
        value = getattr(operator.attrgetter(holder)(source) if holder else source, name)
        object.__setattr__(owner, name, list(value) if isinstance(value, list) else value)


def _copy_modes(source: Any, module: torch.nn.Module) -> None:
    for path, part in source.named_modules():
        module.get_submodule(path).training = getattr(part, "training", False)
