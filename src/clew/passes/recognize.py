"""Recognition: torch's fused functions in the place of the parts that they are written out in.

A graph or a captured torch program comes in, is changed in place and returned; branches and loops are searched too.
Found are ``linear``, ``layer_norm``, ``rms_norm``, ``scaled_dot_product_attention`` and rotary embeddings, however
their parts are spelled; the patterns are data (``PATTERNS``), and ``only`` chooses among them. A fused function
computes the same but for rounding. Where it would mean something else for values of another kind than the pattern's,
that is excluded: weights are parameters of the size of the last axis, a mask that is added is floating for every input
that the guards let in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from clew.ir.effects import pure, resolve
from clew.ir.graph import Graph
from clew.ir.guards import Guard
from clew.ir.node import Node
from clew.ir.spellings import any_of
from clew.ir.types import ArrayType
from clew.passes.floating import floating_guard, floating_values
from clew.passes.match import InternalMatch
from clew.passes.program import ProgramT, add_guards, graph_in, opened
from clew.passes.replace import keep_origins, replace_pattern_with_filters
from clew.passes.simplify import Holder


@pure
def rotary_embedding(x: Any, cos: Any, sin: Any, half: int) -> Any:
    """A rotary embedding: each pair of numbers that are ``half`` apart on the last axis is turned by its angle."""
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


# ---- the patterns ----------------------------------------------------------------------------------------------------


def _linear(x: Any, w: Any, b: Any) -> Any:
    return any_of(torch.matmul(x, w.t()) + b, torch.matmul(x, w.T) + b, torch.matmul(x, w.transpose(0, 1)) + b)


def _linear_of_sum(x: Any, w: Any, b: Any) -> Any:
    return any_of(torch.addmm(b, x, w.t()), torch.addmm(b, x, w.T), torch.addmm(b, x, w.transpose(0, 1)))


def _layer_norm(x: Any, w: Any, b: Any, eps: Any) -> Any:
    deviation = torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + eps)
    return (x - x.mean(-1, keepdim=True)) / deviation * w + b


def _layer_norm_of_squares(x: Any, w: Any, b: Any, eps: Any) -> Any:
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + eps) * w + b


def _layer_norm_by_product(x: Any, w: Any, b: Any, eps: Any) -> Any:
    inverse = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + eps)
    return (x - x.mean(-1, keepdim=True)) * inverse * w + b


def _layer_norm_of_squares_by_product(x: Any, w: Any, b: Any, eps: Any) -> Any:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred**2).mean(-1, keepdim=True) + eps) * w + b


def _rms_norm(x: Any, w: Any, eps: Any) -> Any:
    return x * torch.rsqrt((x**2).mean(-1, keepdim=True) + eps) * w


def _scores(q: Any, k: Any, scale: Any) -> Any:
    raw = any_of(torch.matmul(q, k.mT), torch.matmul(q, k.transpose(-2, -1)))
    return raw * scale


def _attention(q: Any, k: Any, v: Any, scale: Any) -> Any:
    return torch.matmul(torch.softmax(_scores(q, k, scale), -1), v)


def _masked_attention(q: Any, k: Any, v: Any, scale: Any, mask: Any) -> Any:
    return torch.matmul(torch.softmax(_scores(q, k, scale) + mask, -1), v)


def _divided_attention(q: Any, k: Any, v: Any, root: Any) -> Any:
    raw = any_of(torch.matmul(q, k.mT), torch.matmul(q, k.transpose(-2, -1)))
    return torch.matmul(torch.softmax(raw / root, -1), v)


def _rotary(x: Any, cos: Any, sin: Any, half: Any) -> Any:
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


@dataclass(frozen=True)
class Pattern:
    """What is searched, what takes its place, and the parameters about which more must be known."""

    name: str
    pattern: Callable[..., Any]
    replacement: Callable[..., Any] | Graph
    weights: tuple[str, ...] = ()
    """Parameters of the module, of the size of the last axis; the first axis of a matrix may be another."""
    numbers: tuple[str, ...] = ()
    floating: tuple[str, ...] = ()


def _call_of(function: Callable[..., Any], *names: str) -> Graph:
    """The graph of one call of a function."""
    graph = Graph()
    graph.output(graph.call_function(function, tuple(graph.placeholder(name) for name in names)))
    return graph


def _sdpa(q: Any, k: Any, v: Any, scale: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, scale=scale)


PATTERNS = (
    Pattern("rotary_embedding", _rotary, _call_of(rotary_embedding, "x", "cos", "sin", "half")),
    Pattern("linear", _linear, lambda x, w, b: F.linear(x, w, b), ("w", "b")),
    Pattern("linear", _linear_of_sum, lambda x, w, b: F.linear(x, w, b), ("w", "b")),
    *(
        Pattern("layer_norm", one, lambda x, w, b, eps: F.layer_norm(x, w.shape, w, b, eps), ("w", "b"), ("eps",))
        for one in (
            _layer_norm,
            _layer_norm_of_squares,
            _layer_norm_by_product,
            _layer_norm_of_squares_by_product,
        )
    ),
    Pattern("rms_norm", _rms_norm, lambda x, w, eps: F.rms_norm(x, w.shape, w, eps), ("w",), ("eps",)),
    Pattern("scaled_dot_product_attention", _attention, _sdpa, numbers=("scale",)),
    Pattern(
        "scaled_dot_product_attention",
        _masked_attention,
        lambda q, k, v, scale, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale),
        numbers=("scale",),
        floating=("mask",),
    ),
    Pattern(
        "scaled_dot_product_attention",
        _divided_attention,
        lambda q, k, v, root: F.scaled_dot_product_attention(q, k, v, scale=1 / root),
        numbers=("root",),
    ),
)


# ---- the pass --------------------------------------------------------------------------------------------------------


def recognize(program: ProgramT, *, only: tuple[str, ...] = ()) -> ProgramT:
    """The program with fused functions; it is changed in place and returned. ``only`` names those that are searched."""
    graph = graph_in(program)
    with opened(program):
        for pattern in PATTERNS:
            if not only or pattern.name in only:
                places = _Places(pattern, graph)
                holder = Holder.of(program, graph)
                found = replace_pattern_with_filters(holder, pattern.pattern, pattern.replacement, [places.accepts])
                keep_origins(found)
                add_guards(graph, places.guards)
    return program


class _Places:
    """The places where a pattern may be replaced, and the guards that this asks for."""

    def __init__(self, pattern: Pattern, graph: Graph) -> None:
        self.pattern, self.graph = pattern, graph
        self.guards: list[Guard] = []

    def accepts(self, match: InternalMatch, graph: Graph, pattern: Graph) -> bool:
        """Whether what parameters of the pattern stand for is of the kind that the fused function takes."""
        names = [str(node.target) for node in pattern.find_nodes(op="placeholder")]
        bound = dict(zip(names, match.placeholder_nodes, strict=True))
        if not all(type(bound[name]) in (int, float) for name in self.pattern.numbers):
            return False
        rank = 2 if self.pattern.name == "linear" else 1
        if not all(_is_weight(bound[name], bound["x"], bound["w"], rank) for name in self.pattern.weights):
            return False
        return all(self._is_floating(bound[name], graph) for name in self.pattern.floating)

    def _is_floating(self, value: Any, graph: Graph) -> bool:
        needed = floating_values(graph).get(value)
        if needed is None or (needed and graph is not self.graph):
            return False
        self.guards += map(floating_guard, needed)
        return True


def _is_weight(value: Any, x: Any, weight: Any, rank: int) -> bool:
    """Whether a value is a parameter that goes with the last axis of ``x``, or of what a matrix makes of it."""
    if not isinstance(value, Node) or value.op != "get_attr" or not isinstance(x, Node):
        return False
    tensor, main = (resolve(one.graph.owning_module, one.target) for one in (value, weight))
    if not isinstance(tensor, torch.nn.Parameter) or not isinstance(x.value_type, ArrayType):
        return False
    if value is weight:
        return tensor.numel() > 1 and tensor.ndim == rank and tensor.shape[-1] == x.value_type.shape[-1]
    return tensor.ndim == 1 and tensor.shape[0] == main.shape[0]
