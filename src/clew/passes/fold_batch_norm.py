"""Batch norm folding: a convolution or linear layer and the batch norm behind it become one layer in evaluation mode.

A graph of a module comes in, or a captured module, is changed in place and returned; branches and loops are treated
too. The new layer stands under the path of the old one and has weights of its own, made of those as they are now; the
norm's path is gone, so a state dict of the original does not load silently. The graph gets a guard that the layer is
not in training mode: batch norm would use the statistics of the batch there, and ``GuardError`` is raised instead.

A pair is folded only if the layer is called once, nobody else uses its result or its weights, both are torch's own
without hooks or parametrizations, the norm has running statistics, and their numbers are of one dtype. Where a norm
could take other axes for the channels (``BatchNorm1d``), a guard on the rank is added. Functional calls
(``F.batch_norm`` of ``F.conv2d``) get weights that the graph computes from those of now, so that nothing is assumed;
``constant_folding`` computes them ahead.
"""

from __future__ import annotations

import copy
import operator
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from clew.frameworks.torch.effects import module_effect
from clew.frameworks.torch.unchanged import is_hooked
from clew.ir.arguments import all_nodes
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guards import guard, is_guard, referred_paths
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.shared_memory import OUTSIDE, SharedMemory
from clew.ir.types import ArrayType
from clew.passes.program import ProgramT, Root, add_guards, graph_in, mode_guard, opened

_PAIRS: dict[type, tuple[Any, int]] = {
    nn.Conv1d: (nn.BatchNorm1d, 3),
    nn.Conv2d: (nn.BatchNorm2d, 4),
    nn.Conv3d: (nn.BatchNorm3d, 5),
    nn.ConvTranspose1d: (nn.BatchNorm1d, 3),
    nn.ConvTranspose2d: (nn.BatchNorm2d, 4),
    nn.ConvTranspose3d: (nn.BatchNorm3d, 5),
    nn.Linear: (nn.BatchNorm1d, 2),
}
"""The norm that each layer goes with, and the rank of what lies between them."""
_REASON = "fold_batch_norm folded running statistics into the weights, which training would not use"


@dataclass(frozen=True)
class _Pair:
    layer: Node
    norm: Node


def fold_batch_norm(program: ProgramT) -> ProgramT:
    """The program with batch norms folded into the layers before them; it is changed in place and returned."""
    graph = graph_in(program)
    root = Root(graph)
    calls = Counter(id(root.get(node.target)) for node in all_nodes(graph) if node.op == "call_module")
    read = {path for path in referred_paths(graph) if not isinstance(root.get(path), nn.Module)}
    with opened(program) as graphs:
        for pair in [pair for each in graphs for pair in _pairs(each, root)]:
            layer = root.get(pair.layer.target)
            held = {path for path in read if path.startswith(f"{pair.layer.target}.")}
            if calls[id(layer)] == 1 and not held and root.may_replace(pair.layer.target):
                _fold(pair, graph, root)
        for each in graphs:
            for norm in each.find_nodes(op="call_function", target=F.batch_norm):
                _fold_call(each, norm)
    return program


# ---- functional calls ------------------------------------------------------------------------------------------------

_CALLS = {F.conv1d: 3, F.conv2d: 4, F.conv3d: 5, F.linear: 2}
"""The calls that a norm is folded into, and the rank of what they return; their weights have an output each row."""
_BOUND = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")


def _fold_call(graph: Graph, norm: Node) -> None:
    """Fold a call of ``F.batch_norm`` that uses running statistics into the call before it, if it can be."""
    given = {**dict(zip(_BOUND, norm.args, strict=False)), **norm.kwargs}
    layer = given["input"]
    is_off = given.get("training", False) is False and isinstance(given.get("running_mean"), Node)
    if not is_off or not isinstance(layer, Node) or layer.target not in _CALLS or len(layer.users) != 1:
        return
    bound = {**dict(zip(("input", "weight", "bias"), layer.args, strict=False)), **layer.kwargs}
    tensors = [bound.get("weight"), bound.get("bias"), *(given.get(name) for name in _BOUND[1:5])]
    held = [one for one in tensors if one is not None]
    kind = layer.value_type
    if not isinstance(kind, ArrayType) or len(kind.shape) != _CALLS[layer.target] or not _are_weights(held):
        return
    for one in held:
        if one > layer:
            layer.prepend(one)
    with graph.inserting_before(layer):
        made = _call_weights(graph, bound, given, len(kind.shape))
    for node in made:
        node.source, node.meta = norm.source, dict(norm.meta)
    *_, weight, bias = made
    rest = layer.args[3:]
    layer.args = (bound["input"], weight, bias, *rest)
    layer.kwargs = {name: one for name, one in layer.kwargs.items() if name not in ("input", "weight", "bias")}
    if layer.target in (F.conv1d, F.linear):
        _require_rank(layer, _CALLS[layer.target])
    layer.meta = {**layer.meta, **norm.meta}
    norm.replace_all_uses_with(layer)
    graph.erase_node(norm)


def _are_weights(nodes: list[Any]) -> bool:
    """Whether these are weights and buffers of the module, of one dtype, which nothing in the graph writes into."""
    found = [resolve(one.graph.owning_module, str(one.target)) for one in nodes if isinstance(one, Node)]
    if len(found) != len(nodes) or not all(one.op == "get_attr" for one in nodes):
        return False
    if not all(isinstance(one, torch.Tensor) for one in found) or len({(one.dtype, one.device) for one in found}) != 1:
        return False
    memory = SharedMemory(nodes[0].graph)
    outside = memory.find(OUTSIDE)
    writes = [one for one, effect in memory.effect.items() if effect in (Effect.WRITE, Effect.UNKNOWN)]
    return not any(outside in memory.touched(one) for one in writes if not is_guard(one))


def _call_weights(graph: Graph, bound: dict[str, Any], given: dict[str, Any], rank: int) -> list[Node]:
    """The nodes that compute the weight and the bias, which come last."""
    call = graph.call_function
    made = [call(operator.add, (given["running_var"], given.get("eps", 1e-5)))]
    made.append(call(torch.rsqrt, (made[-1],)))
    if given.get("weight") is not None:
        made.append(call(operator.mul, (made[-1], given["weight"])))
    scale = made[-1]
    mean, own = given["running_mean"], bound.get("bias")
    made.append(call(torch.neg, (mean,)) if own is None else call(operator.sub, (own, mean)))
    made.append(call(operator.mul, (made[-1], scale)))
    if given.get("bias") is not None:
        made.append(call(operator.add, (made[-1], given["bias"])))
    bias = made[-1]
    made.append(graph.call_method("reshape", (scale, -1, *[1] * (1 if rank == 2 else rank - 1))))
    weight = call(operator.mul, (bound["weight"], made[-1]))
    return [*(one for one in made if one is not bias), weight, bias]


# ---- layers ----------------------------------------------------------------------------------------------------------


def _pairs(graph: Graph, root: Root) -> list[_Pair]:
    found = []
    for node in graph.find_nodes(op="call_module"):
        layer = node.args[0] if len(node.args) == 1 and not node.kwargs else None
        if not isinstance(layer, Node) or layer.op != "call_module" or len(layer.users) != 1:
            continue
        if _fit(root.get(layer.target), root.get(node.target)):
            found.append(_Pair(layer, node))
    return found


def _fit(layer: Any, norm: Any) -> bool:
    """Whether a layer and a norm can become one."""
    if type(layer) not in _PAIRS or type(norm) is not _PAIRS[type(layer)][0]:
        return False
    if norm.training or layer.training or norm.running_mean is None:
        return False
    if is_hooked(layer) or is_hooked(norm):
        return False
    if module_effect(layer) is not Effect.NONE or module_effect(norm) is Effect.UNKNOWN:
        return False
    tensors = [layer.weight, layer.bias, norm.weight, norm.bias, norm.running_mean, norm.running_var]
    return len({(one.dtype, one.device) for one in tensors if one is not None}) == 1


def _fold(pair: _Pair, graph: Graph, root: Root) -> None:
    path = str(pair.layer.target)
    layer, norm = root.get(path), root.get(pair.norm.target)
    kind, rank = _PAIRS[type(layer)]
    root.replace_module(path, folded(layer, norm))
    norm_path = str(pair.norm.target)
    pair.layer.append(pair.norm)  # the value that stays is the norm's, at the place of the layer
    pair.norm.target, pair.norm.args = path, pair.layer.args
    pair.norm.kwargs, pair.norm.meta = pair.layer.kwargs, {**pair.norm.meta, **pair.layer.meta}
    pair.layer.graph.erase_node(pair.layer)
    root.forget_module(norm_path)
    if kind is nn.BatchNorm1d:
        _require_rank(pair.norm, rank)
    add_guards(graph, [mode_guard(f"{path}.training", pair.norm.source, _REASON)])


def _require_rank(layer: Node, rank: int) -> None:
    """A batch norm in one dimension also takes an array of another rank, of which another axis is the channels."""
    with layer.graph.inserting_before(layer):
        asked = layer.graph.call_function(getattr, (layer.args[0], "ndim"))
        check = layer.graph.call_function(guard, (asked, rank))
    for node in (asked, check):
        node.source = layer.source
    check.meta["guard"] = {"reason": "fold_batch_norm took the axis behind the batch for the channels"}


def folded(layer: Any, norm: Any) -> Any:
    """A layer that computes what ``layer`` and ``norm`` do after each other in evaluation mode."""
    with torch.no_grad():
        scale = torch.rsqrt(norm.running_var + norm.eps)
        if norm.weight is not None:
            scale = scale * norm.weight
        shift = -norm.running_mean if layer.bias is None else layer.bias - norm.running_mean
        bias = shift * scale if norm.bias is None else shift * scale + norm.bias
        weight = layer.weight * _along_outputs(scale, layer)
    twin = copy.copy(layer)
    twin.__dict__["_parameters"] = {
        "weight": nn.Parameter(weight, layer.weight.requires_grad),
        "bias": nn.Parameter(bias, layer.weight.requires_grad),
    }
    return twin


def _along_outputs(scale: torch.Tensor, layer: Any) -> torch.Tensor:
    """The scale in the shape in which it multiplies the weights of each output."""
    rank = layer.weight.ndim
    if not getattr(layer, "transposed", False):
        return scale.reshape(-1, *[1] * (rank - 1))
    per_group = scale.reshape(layer.groups, 1, -1).expand(-1, layer.weight.shape[0] // layer.groups, -1)
    return per_group.reshape(layer.weight.shape[0], -1, *[1] * (rank - 2))
