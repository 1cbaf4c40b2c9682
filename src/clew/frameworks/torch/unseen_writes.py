"""Writes that nobody sees: ``x += y`` recorded as ``x + y`` where that is the same.

In comes a graph of a symbolic trace and its root; where the value that ``x += y`` writes to is fresh, nobody else reads
it, or a view of it, later, and the result has the dtype of ``x`` for certain, the node becomes an ``add``, which is
what tools look for. The dtype is certain if ``y`` is a number, or if both come out of convolutions and linear layers,
modules or functions, with weights of one dtype, by way of calls that keep it; autocast, too, gives all of those one
dtype. Everywhere else the write stays a write.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from clew.frameworks.torch.effects import is_off
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.node import Node

PLAIN = {getattr(operator, f"i{name}"): getattr(operator, name) for name in "add sub mul truediv".split()}
"""The operators that write in place, and the same without."""

_WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_WEIGHTED_FUNCTIONS = frozenset(
    {functional.linear, functional.conv1d, functional.conv2d, functional.conv3d, functional.conv_transpose1d,
     functional.conv_transpose2d, functional.conv_transpose3d}
)  # fmt: skip
_KEEPING = (
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool2d,
    nn.AdaptiveAvgPool2d, nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.Hardtanh, nn.Hardswish, nn.SiLU,
    nn.Sigmoid, nn.Hardsigmoid, nn.GELU,
)  # fmt: skip
_KEEPING_FUNCTIONS = frozenset(
    {torch.relu, functional.relu, functional.relu6, functional.leaky_relu, functional.max_pool2d, functional.avg_pool2d}
)
_COMPUTING = frozenset({operator.add, operator.sub, operator.mul})
_MAY_PASS_ON = frozenset({("torchvision.ops.stochastic_depth", "stochastic_depth")})
"""Functions that give their first argument itself, or a new value of its dtype, and keep no reference to it."""
_VIEWING = frozenset({torch.flatten, "flatten", "view", "reshape", "contiguous", "permute", "transpose"})


def settle(graph: Graph, root: Any) -> None:
    """Let writes that nobody sees be no writes."""
    for node in graph.nodes:
        plain = PLAIN.get(node.target) if node.op == "call_function" else None
        if plain is not None and _is_unseen(node, root):
            node.target = plain


def _is_unseen(node: Node, root: Any) -> bool:
    written, other = node.args
    if not isinstance(written, Node) or (isinstance(other, Node) and not _have_one_dtype(written, other, root)):
        return False
    if not isinstance(other, (Node, int, float)):
        return False
    source = _memory_of(written, root)
    return source is not None and not _is_read_later(source, node, root)


def _memory_of(node: Node, root: Any) -> Node | None:
    """The node that has made the memory which the value of ``node`` is in; None if that may be somebody else's."""
    while _returns_input(node, root):
        node = node.args[0]
    return node if _is_fresh(node, root) else None


def _is_read_later(source: Node, write: Node, root: Any) -> bool:
    """Whether anything that may share the memory of ``source`` is read behind ``write``, other than its result."""
    sharing, waiting = {source}, [source]
    while waiting:
        for user in waiting.pop().users:
            if user is write:
                continue
            if user.op == "output" or user > write:
                return True
            if user not in sharing and not _is_fresh(user, root):
                sharing.add(user)
                waiting.append(user)
    return False


# ---- what is known of a node -----------------------------------------------------------------------------------------


def _module(node: Node, root: Any) -> nn.Module | None:
    """The module that a node calls, if it is one of torch's own without hooks."""
    found = resolve(root, str(node.target)) if node.op == "call_module" else None
    if not isinstance(found, nn.Module) or found._forward_hooks or found._forward_pre_hooks or "forward" in vars(found):
        return None
    return found


def _keeps(node: Node, root: Any) -> bool:
    """Whether a call gives a value of the dtype of its first argument."""
    if node.op == "call_module":
        return type(_module(node, root)) in _KEEPING
    if _may_pass_on(node):
        return True
    return _is_one_of(node.target, _KEEPING_FUNCTIONS) or _is_one_of(node.target, PLAIN)


def _may_pass_on(node: Node) -> bool:
    place = (getattr(node.target, "__module__", None), getattr(node.target, "__qualname__", None))
    return node.op == "call_function" and place in _MAY_PASS_ON


def _writes(node: Node, root: Any) -> bool:
    if _is_one_of(node.target, PLAIN):
        return True
    flag = getattr(_module(node, root), "inplace", False) if node.op == "call_module" else node.kwargs.get("inplace")
    given = node.op == "call_function" and _is_one_of(node.target, _KEEPING_FUNCTIONS) and len(node.args) > 1
    return given or not is_off(flag)


def _returns_input(node: Node, root: Any) -> bool:
    """Whether a call gives its first argument, written to, or a view of it, or may do so."""
    if not node.args or not isinstance(node.args[0], Node):
        return False
    return _may_pass_on(node) or _is_one_of(node.target, _VIEWING) or (_keeps(node, root) and _writes(node, root))


def _is_fresh(node: Node, root: Any) -> bool:
    """Whether a call gives memory of its own for certain."""
    if node.op == "call_module" and type(_module(node, root)) in _WEIGHTED:
        return True
    is_computed = node.op == "call_function" and _is_one_of(node.target, _COMPUTING | _WEIGHTED_FUNCTIONS)
    return is_computed or (_keeps(node, root) and not _writes(node, root) and not _may_pass_on(node))


def _have_one_dtype(left: Node, right: Node, root: Any) -> bool:
    first = _dtype(left, root)
    return first is not None and first == _dtype(right, root)


def _dtype(node: Any, root: Any) -> torch.dtype | None:
    """The dtype of the weights of all layers that a value comes out of, if it comes out of nothing else."""
    known: dict[Node, torch.dtype | None] = {}
    waiting: list[Any] = [node]
    while waiting:
        last = waiting[-1]
        sources = _sources(last, root) if last not in known else ()
        open_ones = [one for one in sources if one not in known]
        if open_ones:
            waiting.extend(open_ones)
            continue
        waiting.pop()
        if last not in known:
            found = {known[one] for one in sources} if sources else {_dtype_of_weights(last, root)}
            known[last] = found.pop() if len(found) == 1 else None
    return known[node]


def _sources(node: Any, root: Any) -> list[Node]:
    """The nodes of whose dtype the value of ``node`` is; none if it decides by itself, or is unknown."""
    if _is_one_of(node.target, _COMPUTING):
        numbers = [value for value in node.args if isinstance(value, (int, float))]
        nodes = [value for value in node.args if isinstance(value, Node)]
        return nodes if len(nodes) + len(numbers) == len(node.args) else []
    is_kept = _keeps(node, root) or _is_one_of(node.target, _VIEWING)
    return [node.args[0]] if is_kept and node.args and isinstance(node.args[0], Node) else []


def _dtype_of_weights(node: Node, root: Any) -> torch.dtype | None:
    module = _module(node, root)
    weight: Any = module.weight if type(module) in _WEIGHTED else None  # type: ignore[union-attr]
    if node.op == "call_function" and _is_one_of(node.target, _WEIGHTED_FUNCTIONS):
        given = node.args[1] if len(node.args) > 1 else node.kwargs.get("weight")
        weight = resolve(root, str(given.target)) if isinstance(given, Node) and given.op == "get_attr" else None
    return weight.dtype if isinstance(weight, torch.Tensor) else None


def _is_one_of(target: Any, functions: Iterable[Any] | Callable[..., Any]) -> bool:
    try:
        return target in functions  # type: ignore[operator]
    except TypeError:  # a callable without a hash
        return False
