"""Recognition: torch's fused functions in the place of the parts that they are written out in.

A graph or a captured torch program comes in, is changed in place and returned; branches and loops are searched too.
Found are ``linear``, ``layer_norm``, ``rms_norm``, ``gelu``, ``scaled_dot_product_attention`` and rotary embeddings,
however their parts are spelled; the patterns are data (``PATTERNS``), and ``only`` chooses among them. A fused function
computes the same but for rounding, and casts around a norm stay where they are. Where it would mean something else for
values of another kind than the pattern's, that is excluded: weights are parameters of the size of the last axis, a mask
that is added is floating for every input that the guards let in, and finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from clew.ir.effects import pure, resolve
from clew.ir.graph import Graph
from clew.ir.guards import Guard
from clew.ir.node import Node
from clew.ir.spellings import any_of
from clew.ir.types import ArrayType, ScalarType
from clew.passes.floating import floating_guard, floating_values
from clew.passes.match import InternalMatch
from clew.passes.program import ProgramT, add_guards, graph_in, opened
from clew.passes.replace import keep_origins, replace_pattern_with_filters
from clew.passes.simplify import Holder
from clew.passes.views import operation


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


def _norm_alone(x: Any, eps: Any) -> Any:
    return x * torch.rsqrt((x**2).mean(-1, keepdim=True) + eps)


def _half_of(x: Any, part: Any) -> Any:
    return any_of(x * 0.5, 0.5 * x) * any_of(part + 1, part + 1.0)


def _gelu(x: Any) -> Any:
    return _half_of(x, torch.erf(any_of(x / math.sqrt(2), x * math.sqrt(0.5))))


def _gelu_by_tanh(x: Any) -> Any:
    cube = any_of(torch.pow(x, 3), torch.pow(x, 3.0))
    return _half_of(x, torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * cube)))


def _products(q: Any, k: Any) -> Any:
    return any_of(torch.matmul(q, k.mT), torch.matmul(q, k.transpose(-2, -1)), torch.matmul(q, k.transpose(-1, -2)))


def _weighted(scores: Any, q: Any, v: Any) -> Any:
    """The sum of the values by the softmax of the scores, which may be cast on the way to it and back."""
    plain, wide = torch.softmax(scores, -1), torch.softmax(scores, -1, dtype=torch.float32)
    weights = any_of(plain, wide, wide.to(q.dtype), wide.to(v.dtype), plain.type(v.dtype), plain.to(q.dtype))
    return torch.matmul(weights, v)


SCORES: dict[str, Callable[..., Any]] = {
    "{s} = scale": lambda q, k, s: _products(q, k) * s,
    "{s} = 1 / scale": lambda q, k, s: _products(q, k) / s,
    "{s} = scale, of the queries": lambda q, k, s: _products(q * s, k),
    "{s} = 1 / scale, of the queries": lambda q, k, s: _products(q / s, k),
    "{s} = scale, of the queries, transposed": lambda q, t, s: torch.matmul(q * s, t),
    "{s} = 1 / scale, of the queries, transposed": lambda q, t, s: torch.matmul(q / s, t),
    "{s} = scale, transposed": lambda q, t, s: torch.matmul(q, t) * s,
    "{s} = 1 / scale, transposed": lambda q, t, s: torch.matmul(q, t) / s,
}
"""How scores are written: ``s`` is the scale or what is divided by; ``t`` are keys that were transposed in any way."""


def _attentions() -> Iterator[Pattern]:
    """Attention with and without a mask, for each way to write the scores."""
    for way, scores in SCORES.items():
        divides, turned = "1 /" in way, "transposed" in way
        for make, floating in ((_attention, ()), (_masked_attention, ("mask",))):
            pattern, fused = make(scores, divides, turned)
            yield Pattern("scaled_dot_product_attention", pattern, fused, (), ("s",), floating, "softmax")


def _attention(scores: Callable[..., Any], divides: bool, turned: bool) -> tuple[Any, Any]:
    def pattern(q: Any, k: Any, v: Any, s: Any) -> Any:
        return _weighted(scores(q, k, s), q, v)

    def fused(q: Any, k: Any, v: Any, s: Any) -> Any:
        return F.scaled_dot_product_attention(q, k.mT if turned else k, v, scale=1 / s if divides else s)

    return pattern, fused


def _masked_attention(scores: Callable[..., Any], divides: bool, turned: bool) -> tuple[Any, Any]:
    def pattern(q: Any, k: Any, v: Any, s: Any, mask: Any) -> Any:
        return _weighted(scores(q, k, s) + mask, q, v)

    def fused(q: Any, k: Any, v: Any, s: Any, mask: Any) -> Any:
        keys, scale = k.mT if turned else k, 1 / s if divides else s
        return F.scaled_dot_product_attention(q, keys, v, attn_mask=mask, scale=scale)

    return pattern, fused


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
    needs: str = ""
    """An operation without which a graph is not searched."""


def _call_of(function: Callable[..., Any], *names: str) -> Graph:
    """The graph of one call of a function."""
    graph = Graph()
    graph.output(graph.call_function(function, tuple(graph.placeholder(name) for name in names)))
    return graph


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
    Pattern("rms_norm", _norm_alone, lambda x, eps: F.rms_norm(x, x.shape[-1:], None, eps), (), ("eps",), (), "rsqrt"),
    Pattern("gelu", _gelu, lambda x: F.gelu(x), (), (), ("x",), "erf"),
    Pattern("gelu", _gelu_by_tanh, lambda x: F.gelu(x, approximate="tanh"), (), (), ("x",), "tanh"),
    *_attentions(),
)


# ---- the pass --------------------------------------------------------------------------------------------------------


def recognize(program: ProgramT, *, only: tuple[str, ...] = (), fast: bool = False) -> ProgramT:
    """The program with fused functions; it is changed in place and returned. ``only`` names those that are searched.

    Attention whose mask may be minus infinity in a whole row is fused with ``fast`` alone: its parts give nan for such
    a row, the fused function zeros. Dropout between the parts hides them: run ``remove_dropout`` first.
    """
    graph = graph_in(program)
    with opened(program) as graphs:
        operations = {operation(node).lower() for each in graphs for node in each.nodes}
        operations |= {type(resolve(graph.owning_module, str(one.target))).__name__.lower() for one in _layers(graphs)}
        for pattern in PATTERNS:
            if (not only or pattern.name in only) and (not pattern.needs or pattern.needs in operations):
                places = _Places(pattern, graph, fast)
                holder = Holder.of(program, graph)
                found = replace_pattern_with_filters(holder, pattern.pattern, pattern.replacement, [places.accepts])
                keep_origins(found)
                add_guards(graph, places.guards)
    return program


def _layers(graphs: list[Graph]) -> Iterator[Node]:
    return (node for each in graphs for node in each.nodes if node.op == "call_module")


class _Places:
    """The places where a pattern may be replaced, and the guards that this asks for."""

    def __init__(self, pattern: Pattern, graph: Graph, fast: bool) -> None:
        self.pattern, self.graph, self.fast = pattern, graph, fast
        self.guards: list[Guard] = []

    def accepts(self, match: InternalMatch, graph: Graph, pattern: Graph) -> bool:
        """Whether what parameters of the pattern stand for is of the kind that the fused function takes."""
        names = [str(node.target) for node in pattern.find_nodes(op="placeholder")]
        bound = dict(zip(names, match.placeholder_nodes, strict=True))
        if not all(_is_number(bound[name], name) for name in self.pattern.numbers):
            return False
        if self.pattern.name == "scaled_dot_product_attention" and not _are_alike(bound):
            return False
        if "mask" in bound and not self.fast and not is_finite(bound["mask"]):
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


def _is_number(value: Any, name: str) -> bool:
    """A literal; a scale may also be a number that the program computes."""
    if isinstance(value, Node):
        return name == "s" and value.value_type in (ScalarType("int"), ScalarType("float"))
    return type(value) in (int, float)


def _are_alike(bound: dict[str, Any]) -> bool:
    """Whether queries, keys and values are arrays of as many axes, and of the same sizes up to the last two."""
    types = [getattr(bound[name], "value_type", None) for name in "qkv"]
    shapes = [one.shape[:-2] for one in types if isinstance(one, ArrayType) and len(one.shape) > 2]
    return len(shapes) == 3 and shapes[0] == shapes[1] == shapes[2]


_KEEPS_FINITE = frozenset(
    "expand expand_as view reshape unsqueeze squeeze getitem contiguous transpose clone detach".split()
)


def is_finite(value: Any) -> bool:
    """Whether a value is surely no infinity: a literal, a constant, a bound of a dtype, or taken from such."""
    if not isinstance(value, Node):
        return type(value) in (int, float, bool) and math.isfinite(value)
    name, args = operation(value), value.args
    if value.op == "get_attr":
        constant = vars(value.graph.owning_module).get(str(value.target))
        return isinstance(constant, torch.Tensor) and bool(constant.isfinite().all())
    if value.target is getattr:
        return args[1] in ("min", "max") and isinstance(args[0], Node) and operation(args[0]) == "finfo"
    if name in ("zeros", "ones", "zeros_like", "ones_like"):
        return True
    if name == "full":
        return len(args) > 1 and is_finite(args[1])
    if name == "where":
        return len(args) == 3 and is_finite(args[1]) and is_finite(args[2])
    if name == "masked_fill":
        return len(args) == 3 and is_finite(args[0]) and is_finite(args[2])
    return name in _KEEPS_FINITE and bool(args) and is_finite(args[0])


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
