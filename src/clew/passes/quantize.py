"""Quantization: linear layers and convolutions with weights of 8 bits, one scale for each output channel.

A captured torch module comes in, is changed in place and returned. ``insert_observers`` puts a module in front of each
layer that keeps the range of what passes through it in plain calls; ``quantize`` puts a layer with whole numbers in the
place of each layer, whose inputs are rounded to the range that was observed, and takes the observers out again. What is
no module is treated too: ``F.linear``, ``torch.addmm`` and products with a parameter of the program. Always holds: the
original keeps its weights; layers with parametrized weights, or whose weights the program reads besides calling them,
stay as they are; nothing else of what the program computes is changed.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from clew.errors import GraphError
from clew.frameworks.torch.unchanged import is_hooked
from clew.ir.arguments import all_nodes
from clew.ir.graph import Graph
from clew.ir.guards import referred_paths
from clew.ir.module_calls import nearest, path_pattern, stack_of
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.passes.program import ProgramT, Root, graph_in, opened
from clew.runtime.function import free_name
from clew.runtime.parts import Part

_CONVOLUTIONS: dict[type, Any] = {nn.Conv1d: F.conv1d, nn.Conv2d: F.conv2d, nn.Conv3d: F.conv3d}
_PRODUCTS = (torch.matmul, torch.mm, operator.matmul)

# ---- modules ---------------------------------------------------------------------------------------------------------


class RangeObserver(nn.Module):
    """Gives back what it is given, and keeps the smallest and the largest number that it has seen."""

    minimum: torch.Tensor
    maximum: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("minimum", torch.tensor(torch.inf))
        self.register_buffer("maximum", torch.tensor(-torch.inf))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.numel():
            low, high = torch.aminmax(x.detach())
            self.minimum.copy_(torch.minimum(self.minimum, low))
            self.maximum.copy_(torch.maximum(self.maximum, high))
        return x

    def extra_repr(self) -> str:
        return f"{float(self.minimum):.4g} to {float(self.maximum):.4g}"


class _Int8Layer(nn.Module):
    """Weights as whole numbers from -127 to 127, a scale for each output channel; inputs as whole numbers, too, where
    their range is known or looked up in each call (``dynamic``)."""

    weight: torch.Tensor
    scales: torch.Tensor
    step: torch.Tensor | None
    zero: torch.Tensor | None

    def __init__(self, weight: Any, bias: Any, bounds: tuple[float, float] | None, dynamic: bool) -> None:
        super().__init__()
        weight = weight.detach()
        scales = weight.abs().flatten(1).amax(1).clamp_min(torch.finfo(weight.dtype).tiny * 127) / 127
        steps = scales.view(-1, *(1 for _ in weight.shape[1:]))
        self.register_buffer("weight", torch.round(weight / steps).to(torch.int8))
        self.register_buffer("scales", scales)
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone(), bias.requires_grad)
        step = zero = None
        if bounds is not None:
            low, high = min(bounds[0], 0.0), max(bounds[1], 0.0)
            step = max((high - low) / 255, torch.finfo(torch.float32).tiny)
            zero = round(-128 - low / step)
        self.register_buffer("step", None if step is None else scales.new_tensor(step))
        self.register_buffer("zero", None if zero is None else scales.new_tensor(float(zero)))
        self.dynamic = dynamic and bounds is None

    def applied(self, x: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
        """What the layer does with weights."""
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, scales = self.weight.to(x.dtype), self.scales.to(x.dtype)
        if self.step is not None and self.zero is not None:
            step, zero = self.step.to(x.dtype), self.zero.to(x.dtype)
            x = torch.clamp(torch.round(x / step) + zero, -128, 127) - zero
        elif self.dynamic:
            step = (x.abs().amax() / 127).clamp_min(torch.finfo(x.dtype).tiny)
            x = torch.round(x / step)
        else:
            return self.applied(x, weight * scales.view(-1, *(1 for _ in weight.shape[1:])), self.bias)
        trailing = (1,) * (weight.ndim - 2)
        result = self.applied(x, weight, None) * (scales * step).view(-1, *trailing)
        return result if self.bias is None else result + self.bias.view(-1, *trailing)

    def extra_repr(self) -> str:
        known = "rounded in each call" if self.dynamic else "as they are"
        inputs = known if self.step is None else f"in steps of {float(self.step):.3g}"
        return f"{tuple(self.weight.shape)}, inputs {inputs}"


class Int8Linear(_Int8Layer):
    """A linear layer with weights of 8 bits."""

    def applied(self, x: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
        return F.linear(x, weight, bias)


class Int8Convolution(_Int8Layer):
    """A convolution with weights of 8 bits."""

    def __init__(self, layer: Any, bounds: tuple[float, float] | None, dynamic: bool) -> None:
        super().__init__(layer.weight, layer.bias, bounds, dynamic)
        self.function = _CONVOLUTIONS[type(layer)]
        self.settings = (layer.stride, layer.padding, layer.dilation, layer.groups)

    def applied(self, x: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
        result: torch.Tensor = self.function(x, weight, bias, *self.settings)
        return result


# ---- which layers there are ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Layer:
    """A call that can be quantized: what it is given, and its weight with a row for each output channel."""

    node: Node
    given: Node
    path: str
    """Of the module, or of the weight."""
    weight: torch.Tensor
    bias: torch.Tensor | None


def _layers(graphs: Sequence[Graph], root: Root, patterns: Sequence[str], skip: Sequence[str]) -> Iterator[_Layer]:
    nodes = [node for graph in graphs for node in graph.nodes]
    read = {str(node.target) for node in nodes if node.op == "get_attr"}
    odd = {node.target for node in nodes if node.op == "call_module" and (node.kwargs or len(node.args) != 1)}
    for node in nodes:
        is_module = node.op == "call_module" and node.target not in odd
        layer = _module_layer(node, root, read) if is_module else _called_layer(node, root)
        if layer is not None and _fits(layer.path, patterns) and not _fits(layer.path, skip):
            yield layer


def _fits(path: str, patterns: Iterable[str]) -> bool:
    return any(path_pattern(one).fullmatch(path) for one in patterns)


def _check_names(graphs: Sequence[Graph], root: Root, patterns: Sequence[str], skip: Sequence[str]) -> None:
    """Raise for a path that chooses no layer, or leaves none out, which would be silent otherwise. Modules without
    layers may be left out."""
    layers = {layer.path for layer in _layers(graphs, root, ("**",), ())}
    modules = {path for graph in graphs for node in graph.nodes for path, _ in stack_of(node).values()}
    for one in (*patterns, *skip):
        inside = any(path.startswith(f"{one}.") for path in layers)
        is_empty = one in skip and not inside and any(map(path_pattern(one).fullmatch, modules))
        if not is_empty and not any(map(path_pattern(one).fullmatch, layers)):
            advice = f"{one}.** means all layers inside of it" if inside else nearest(layers, one)
            raise GraphError(f"{one!r} is the path of no layer of this program", fixes=[advice])


def _module_layer(node: Node, root: Root, read: set[str]) -> _Layer | None:
    module, path = root.get(str(node.target)), str(node.target)
    kind = type(module)
    if kind is not nn.Linear and kind not in _CONVOLUTIONS:
        return None
    is_read = any(one.startswith(f"{path}.") for one in read)
    is_plain = not is_hooked(module) and getattr(module, "padding_mode", "zeros") == "zeros"
    if is_read or not is_plain or not root.may_replace(path):
        return None
    given = node.args[0]
    return _Layer(node, given, path, module.weight, module.bias) if isinstance(given, Node) else None


def _called_layer(node: Node, root: Root) -> _Layer | None:
    """A call of a function with a parameter: ``F.linear(x, w, b)``, ``torch.addmm(b, x, w)``, ``x @ w``."""
    if node.op != "call_function" or node.kwargs:
        return None
    if node.target is F.linear and len(node.args) in (2, 3):
        given, weight, bias, is_turned = *node.args[:2], (node.args[2] if len(node.args) == 3 else None), False
    elif node.target is torch.addmm and len(node.args) == 3:
        (bias, given, weight), is_turned = node.args, True
    elif node.target in _PRODUCTS and len(node.args) == 2:
        (given, weight), bias, is_turned = node.args, None, True
    else:
        return None
    tensor, addend = _parameter(weight, root), _parameter(bias, root)
    if tensor is None or tensor.ndim != 2 or (bias is not None and addend is None):
        return None
    if not isinstance(given, Node) or given.op == "get_attr":
        return None
    if addend is not None and (addend.ndim != 1 or not isinstance(given.value_type, ArrayType)):
        return None
    return _Layer(node, given, str(weight.target), tensor.t() if is_turned else tensor, addend)


def _parameter(value: Any, root: Root) -> torch.Tensor | None:
    found = root.get(str(value.target)) if isinstance(value, Node) and value.op == "get_attr" else None
    return found if isinstance(found, nn.Parameter) else None


# ---- the passes ------------------------------------------------------------------------------------------------------


def insert_observers(program: ProgramT, *modules: str, skip: Sequence[str] = ()) -> ProgramT:
    """The program with observers of what its layers are given; it is changed in place and returned.

    ``modules`` are patterns of paths (``encoder.layer.*.output.**``), by default all; ``skip`` are those to leave out.
    Calls of the program calibrate from then on, and ``quantize`` uses what was seen.
    """
    graph = graph_in(program)
    root = _root_of(graph)
    known: dict[Node, Node] = {}
    with opened(program) as graphs:
        _check_names(graphs, root, modules, skip)
        for layer in list(_layers(graphs, root, modules or ("**",), skip)):
            if _observer_before(layer, root) is not None:
                continue
            if layer.given not in known:
                known[layer.given] = _observed(layer, root)
            layer.node.replace_input_with(layer.given, known[layer.given])
    return program


def _observed(layer: _Layer, root: Root) -> Node:
    """The value that a layer is given, through an observer."""
    graph = layer.node.graph
    path = _hold(root, "observer", layer.path, RangeObserver().to(layer.weight.device))
    with graph.inserting_before(layer.node):
        seen = graph.call_module(path, (layer.given,))
    seen.source, seen.value_type = layer.node.source, layer.given.value_type
    seen.meta["nn_module_stack"] = dict(layer.node.meta.get("nn_module_stack") or {})
    return seen


def quantize(
    program: ProgramT,
    *modules: str,
    skip: Sequence[str] = (),
    ranges: Mapping[str, Any] | None = None,
    dynamic: bool = False,
) -> ProgramT:
    """The program with layers of 8 bits; it is changed in place and returned.

    ``modules`` are patterns of paths, by default all; ``skip`` are those to leave out. Where observers have seen what a
    layer is given, or ``ranges`` says it by the path (``clew.Observer(...).inputs``, or the largest magnitude), that is
    rounded to 256 steps as well; elsewhere inputs stay as they are, or with ``dynamic=True`` are rounded by their
    largest number in each call.
    """
    graph = graph_in(program)
    root = _root_of(graph)
    with opened(program) as graphs:
        _check_names(graphs, root, modules, skip)
        _check_calibration(graphs, root)
        found = list(_layers(graphs, root, modules or ("**",), skip))
        bounds = {layer.node: _bounds(layer, root, ranges or {}) for layer in found}
        made: dict[str, str] = {}
        for layer in found:
            module = root.get(layer.path)
            if layer.node.op == "call_module":
                together = _united([bounds[other.node] for other in found if other.path == layer.path])
                if isinstance(module, nn.Linear):
                    new: nn.Module = Int8Linear(layer.weight, layer.bias, together, dynamic)
                    root.replace_module(layer.path, new.train(module.training))
                elif type(module) in _CONVOLUTIONS:
                    new = Int8Convolution(module, together, dynamic)
                    root.replace_module(layer.path, new.train(module.training))
                continue
            quantized = Int8Linear(layer.weight, layer.bias, bounds[layer.node], dynamic)
            made[layer.path] = _hold(root, "int8", layer.path, quantized)
            _call_instead(layer, made[layer.path])
        _take_observers_out(graphs, root)
        _forget_weights(graph, root, list(made))
    return program


def _root_of(graph: Graph) -> Root:
    root = Root(graph)
    if not hasattr(root.value, "add_submodule"):
        raise GraphError(
            "this program has nowhere to keep quantized layers",
            why="layers are replaced in captured modules, and captured functions work on the modules around them",
            fixes=["capture the module itself: clew.trace(module, args)"],
        )
    return root


def _hold(root: Root, prefix: str, path: str, module: nn.Module) -> str:
    """Hold a module in the program under a name that tells which layer it is of."""
    name = free_name(f"{prefix}_{path.replace('.', '_')}", lambda taken: hasattr(root.value, taken))
    root.value.add_submodule(name, module.train(root.value.training))
    return name


def _observer_of(node: Any, root: Root) -> RangeObserver | None:
    found = root.get(str(node.target)) if isinstance(node, Node) and node.op == "call_module" else None
    return found if isinstance(found, RangeObserver) else None


def _observer_before(layer: _Layer, root: Root) -> RangeObserver | None:
    return _observer_of(layer.given, root)


def _check_calibration(graphs: Sequence[Graph], root: Root) -> None:
    observers = [found for graph in graphs for node in graph.nodes if (found := _observer_of(node, root)) is not None]
    if observers and not any(torch.isfinite(one.minimum) for one in observers):
        raise GraphError(
            "the observers of the program have seen nothing yet",
            fixes=["call the program on some batches first: captured(batch)"],
        )


def _bounds(layer: _Layer, root: Root, ranges: Mapping[str, Any]) -> tuple[float, float] | None:
    """The range of what a layer is given; None where nobody has seen it."""
    told = ranges.get(layer.path)
    if told is not None:
        return (-float(told), float(told)) if not hasattr(told, "minimum") else (told.minimum, told.maximum)
    observer = _observer_before(layer, root)
    if observer is None or not (torch.isfinite(observer.minimum) and torch.isfinite(observer.maximum)):
        return None
    return float(observer.minimum), float(observer.maximum)


def _united(bounds: list[tuple[float, float] | None]) -> tuple[float, float] | None:
    """The range of all calls of a layer; None if one of them is not known."""
    known = [one for one in bounds if one is not None]
    if not known or len(known) != len(bounds):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _call_instead(layer: _Layer, path: str) -> None:
    node = layer.node
    with node.graph.inserting_before(node):
        new = node.graph.call_module(path, (layer.given,))
    new.source, new.value_type = node.source, node.value_type
    new.meta.update(copy.copy(node.meta))
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)


def _take_observers_out(graphs: Sequence[Graph], root: Root) -> None:
    for graph in graphs:
        for node in list(graph.nodes):
            if _observer_of(node, root) is not None:
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    for name in [name for name, part in root.value.named_children() if isinstance(part, RangeObserver)]:
        root.value.delete_submodule(name)


def _forget_weights(graph: Graph, root: Root, paths: list[str]) -> None:
    """Let go of parameters that the program does not read any more."""
    for node in reversed(list(all_nodes(graph))):
        if node.op == "get_attr" and not node.users and isinstance(root.get(str(node.target)), nn.Parameter):
            paths.append(str(node.target))
            node.graph.erase_node(node)
    used = set(referred_paths(graph))
    for path in paths:
        holder, _, name = path.rpartition(".")
        owner = root.value.get_submodule(holder)
        if path not in used and (owner is root.value or isinstance(owner, Part)):
            owner._parameters.pop(name, None)
