"""Inlining of modules: a call of one of torch's own layers becomes the functional call that the layer makes.

A captured module or its graph comes in, is changed in place and returned; branches and loops are treated too.
``self.fc(x)`` becomes ``F.linear(x, self.fc.weight, self.fc.bias)``: parameters stay where they are, so state dicts,
training and ``.to()`` go on as before; settings (a stride, an eps) are those of now. The flag of a dropout is read at
each call; a batch norm is inlined in evaluation mode only, with a guard on that. Layers with hooks or parametrizations,
and classes that the table does not know, stay calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from clew.frameworks.torch.unchanged import is_hooked
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guards import Guard
from clew.ir.node import Node
from clew.passes.program import ProgramT, add_guards, graph_in, mode_guard, opened, put_in_place

Arguments = tuple[Any, ...]


class State:
    """In the table below: an attribute of the module that is read at each call, a parameter, buffer or flag."""

    def __init__(self, name: str) -> None:
        self.name = name


W, B, TRAINING = State("weight"), State("bias"), State("training")
_MEAN, _VAR = State("running_mean"), State("running_var")


def _conv(function: Any) -> Callable[[Any], Arguments | None]:
    def rule(m: Any) -> Arguments | None:
        arguments = (function, W, B, m.stride, m.padding, m.dilation, m.groups)
        return arguments if m.padding_mode == "zeros" else None

    return rule


def _pool(function: Any, *names: str) -> Callable[[Any], Arguments | None]:
    return lambda m: (function, *(getattr(m, name) for name in names))


def _batch_norm(m: Any) -> Arguments | None:
    is_ready = not m.training and m.running_mean is not None
    return (F.batch_norm, _MEAN, _VAR, W, B, False, 0.0, m.eps) if is_ready else None


def _embedding(m: Any) -> Arguments | None:
    return (F.embedding, W, m.padding_idx, None, 2.0, m.scale_grad_by_freq, m.sparse) if m.max_norm is None else None


_MAX = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
_AVERAGE = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")

TABLE: dict[type, Callable[[Any], Arguments | None]] = {
    nn.Linear: lambda m: (F.linear, W, B),
    nn.Conv1d: _conv(F.conv1d),
    nn.Conv2d: _conv(F.conv2d),
    nn.Conv3d: _conv(F.conv3d),
    nn.Embedding: _embedding,
    nn.LayerNorm: lambda m: (F.layer_norm, m.normalized_shape, W, B, m.eps),
    nn.GroupNorm: lambda m: (F.group_norm, m.num_groups, W, B, m.eps),
    nn.RMSNorm: lambda m: (F.rms_norm, m.normalized_shape, W, m.eps),
    nn.BatchNorm1d: _batch_norm,
    nn.BatchNorm2d: _batch_norm,
    nn.BatchNorm3d: _batch_norm,
    nn.Dropout: lambda m: (F.dropout, m.p, TRAINING, m.inplace),
    nn.ReLU: lambda m: (F.relu, m.inplace),
    nn.ReLU6: lambda m: (F.relu6, m.inplace),
    nn.GELU: lambda m: (F.gelu,) if m.approximate == "none" else None,
    nn.SiLU: lambda m: (F.silu, m.inplace),
    nn.Sigmoid: lambda m: (torch.sigmoid,),
    nn.Tanh: lambda m: (torch.tanh,),
    nn.LeakyReLU: lambda m: (F.leaky_relu, m.negative_slope, m.inplace),
    nn.Hardswish: lambda m: (F.hardswish, m.inplace),
    nn.Hardsigmoid: lambda m: (F.hardsigmoid, m.inplace),
    nn.Hardtanh: lambda m: (F.hardtanh, m.min_val, m.max_val, m.inplace),
    nn.ELU: lambda m: (F.elu, m.alpha, m.inplace),
    nn.CELU: lambda m: (F.celu, m.alpha, m.inplace),
    nn.SELU: lambda m: (F.selu, m.inplace),
    nn.Mish: lambda m: (F.mish, m.inplace),
    nn.Softmax: lambda m: (torch.softmax, m.dim) if m.dim is not None else None,
    nn.Flatten: lambda m: (torch.flatten, m.start_dim, m.end_dim),
    nn.MaxPool2d: _pool(F.max_pool2d, *_MAX),
    nn.AvgPool2d: _pool(F.avg_pool2d, *_AVERAGE),
    nn.AdaptiveAvgPool2d: _pool(F.adaptive_avg_pool2d, "output_size"),
}
"""The function that a layer calls, and its arguments behind the input; None where the layer does something else."""


def inline_modules(program: ProgramT) -> ProgramT:
    """The program with functional calls in the place of layers; it is changed in place and returned."""
    with opened(program) as graphs:
        inline_layers(graph_in(program), graphs, lambda module: True)
    return program


def inline_layers(graph: Graph, graphs: list[Graph], wanted: Callable[[Any], bool]) -> None:
    """Inline the calls of those layers that are wanted, in a graph and in those inside of it."""
    guards: list[Guard] = []
    for each in graphs:
        for node in each.find_nodes(op="call_module"):
            module = resolve(graph.owning_module, node.target)
            arguments = _arguments(node, module) if wanted(module) else None
            if arguments is not None:
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    reason = "inline_modules made batch norm a call that uses the running statistics"
                    guards.append(mode_guard(f"{node.target}.training", node.source, reason))
                _inline(each, node, arguments)
    add_guards(graph, guards)


def _arguments(node: Node, module: Any) -> Arguments | None:
    rule = TABLE.get(type(module))
    if rule is None or len(node.args) != 1 or node.kwargs or is_hooked(module):
        return None
    return rule(module)


def _inline(graph: Graph, node: Node, arguments: Arguments) -> None:
    function, *rest = arguments
    with graph.inserting_before(node):
        args = [_read(graph, node, item) if isinstance(item, State) else item for item in rest]
        made = graph.call_function(function, (node.args[0], *args))
    made.source, made.value_type, made.meta = node.source, node.value_type, dict(node.meta)
    put_in_place(node, made)


def _read(graph: Graph, node: Node, state: State) -> Node | None:
    path = f"{node.target}.{state.name}"
    if resolve(node.graph.owning_module, path) is None:
        return None
    made = graph.get_attr(path)
    made.source, made.meta = node.source, dict(node.meta)
    return made
