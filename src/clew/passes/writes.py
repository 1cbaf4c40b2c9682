"""Writes: what a node writes into, and how the same value is computed as a new array.

In comes a node; ``write_of`` gives a ``Write`` with the arrays that it writes into, if there are calls that give new
arrays instead, else None. ``Write.make`` turns the node into such a call in place and returns the new values, one for
each array written into, in that array's shape and dtype. ``y[i] = z``, in-place methods and functions,
``inplace=True``, ``out=`` and the draws of ``uniform_`` and its like are known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

import torch

from clew.frameworks.torch.effects import is_off, python_signature
from clew.frameworks.torch.functional_writes import fitted, with_item
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect, guest_of
from clew.ir.node import Node
from clew.ir.shared_memory import written_array
from clew.passes.views import operation

OPERATORS = {
    getattr(operator, f"i{name}"): getattr(operator, name)
    for name in "add sub mul truediv floordiv mod pow matmul lshift rshift xor".split()
} | {operator.iand: operator.and_, operator.ior: operator.or_}
_KEEPS_TYPE = frozenset({"relu", "neg"})
"""Of these the result has the shape and dtype of the array, or the call raises as the one in place does."""
_OF_FORM = frozenset("squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_ detach_ rename_".split())
"""These change what an array looks like, and not what is in it."""
_DRAWING = {
    "uniform_": "uniform", "normal_": "normal_functional", "exponential_": "exponential", "random_": "random",
    "cauchy_": "cauchy", "log_normal_": "log_normal", "geometric_": "geometric", "bernoulli_": "bernoulli",
}  # fmt: skip

Make = Callable[[Graph, Node, Node], Node]


@dataclass(frozen=True)
class Write:
    """The array that a node writes into, and what makes its new value from the node and the array's present one."""

    array: Node
    make: Make


def write_of(node: Node, arrays: Container[Node]) -> Write | None:
    """The write that a node is; None if it is none, or one that has no call that gives a new array."""
    if node.op not in ("call_function", "call_method"):
        return None
    if isinstance(node.kwargs.get("out"), Node):
        return _write_to_out(node)
    if node.target is operator.setitem:
        array = written_array(node, arrays)
        return None if array is None else Write(array, _item)
    flagged = _flagged(node)
    if flagged is not None:
        return flagged
    return _write_in_place(node, arrays)


def _write_to_out(node: Node) -> Write | None:
    out = node.kwargs["out"]
    is_torchs = guest_of(node.target) is not None if node.op == "call_function" else False
    same = out.value_type is None or node.value_type is None or out.value_type == node.value_type
    return Write(out, _to_out) if is_torchs and same else None


def _flagged(node: Node) -> Write | None:
    """A call with ``inplace=True``."""
    if node.op != "call_function" or not node.args or not isinstance(node.args[0], Node):
        return None
    named = _named(node)
    if named.get("inplace") is not True or guest_of(node.target) is None:
        return None
    return Write(node.args[0], _without_flag)


def _named(node: Node) -> dict[str, Any]:
    signature = python_signature(node.target)
    if signature is None or "inplace" not in signature.parameters:
        return {}
    return dict(signature.bind_partial(*node.args, **node.kwargs).arguments)


def _write_in_place(node: Node, arrays: Container[Node]) -> Write | None:
    name = operation(node)
    first = node.args[0] if node.args else None
    if name in _DRAWING and isinstance(first, Node) and node.op == "call_method":
        return Write(first, _drawn)
    array = written_array(node, arrays)
    if array is None or name in _OF_FORM:
        return None
    if name in ("copy_", "fill_", "zero_"):
        return Write(array, _filled) if node.op == "call_method" else None
    return Write(array, _computed) if new_target(node) is not None else None


def new_target(node: Node) -> Any:
    """The function or method that gives a new array where the node's own writes; None if there is none."""
    if node.op == "call_function" and node.target in OPERATORS:
        return OPERATORS[node.target]
    name = operation(node)
    if not name.endswith("_") or name.endswith("__"):
        return None
    if node.op == "call_method":
        return name[:-1] if hasattr(torch.Tensor, name[:-1]) else None
    is_torchs = guest_of(node.target) is not None and getattr(torch, name, None) is node.target
    return getattr(torch, name[:-1], None) if is_torchs else None


# ---- the calls that give new arrays ----------------------------------------------------------------------------------


def _item(graph: Graph, node: Node, array: Node) -> Node:
    node.target, node.args = with_item, (array, *node.args[1:])
    node._rename(array.name)
    return node


def _computed(graph: Graph, node: Node, array: Node) -> Node:
    node.target = new_target(node)
    return node if operation(node) in _KEEPS_TYPE else _fit(graph, node, array)


def _drawn(graph: Graph, node: Node, array: Node) -> Node:
    name = node.target
    args = node.args if name != "bernoulli_" or len(node.args) > 1 or node.kwargs else (*node.args, 0.5)
    node.op, node.target, node.args = "call_function", getattr(torch.ops.aten, _DRAWING[name]), args
    return node


def _filled(graph: Graph, node: Node, array: Node) -> Node:
    if node.target == "zero_":
        node.op, node.target, node.args = "call_function", torch.zeros_like, (array,)
        return node
    value = node.args[1] if len(node.args) > 1 else next(iter(node.kwargs.values()))
    node.op, node.target, node.args, node.kwargs = "call_function", with_item, (array, Ellipsis, value), {}
    node._rename(array.name)
    return node


def _without_flag(graph: Graph, node: Node, array: Node) -> Node:
    if "inplace" in node.kwargs:
        node.kwargs = {**node.kwargs, "inplace": False}
    else:
        place = list(_named(node)).index("inplace")
        node.args = (*node.args[:place], False, *node.args[place + 1 :])
    return node if operation(node) in _KEEPS_TYPE else _fit(graph, node, array)


def _to_out(graph: Graph, node: Node, array: Node) -> Node:
    node.kwargs = {name: value for name, value in node.kwargs.items() if name != "out"}
    return _fit(graph, node, array)


def _fit(graph: Graph, node: Node, array: Node) -> Node:
    """Writing keeps the dtype of the array, while computing may give a wider one."""
    with graph.inserting_after(node):
        made = graph.create_node("call_function", fitted, (node, array), name=array.name)
    made.source, made.meta = node.source, dict(node.meta)
    return made


# ---- what is left ----------------------------------------------------------------------------------------------------


def is_write(node: Node) -> bool:
    """Whether a node writes into arrays that it is given, as far as anybody knows; draws and settings are none."""
    if node.op not in ("call_function", "call_method"):
        return False
    name = operation(node)
    if node.target is operator.setitem or node.target in OPERATORS or node.kwargs.get("out") is not None:
        return True
    if name.endswith("_") and not name.endswith("__") and node.all_input_nodes:
        return True
    flag = _named(node).get("inplace", False) if node.op == "call_function" else False
    return not is_off(flag) and effect_of(node) in (Effect.WRITE, Effect.UNKNOWN)
