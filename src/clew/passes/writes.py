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
from clew.frameworks.torch.functional_writes import drawn, fitted, may_be_out, needs_no_gradients, with_item
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guards import guard
from clew.ir.guests import Effect, guest_of
from clew.ir.node import Node
from clew.ir.shared_memory import written_array
from clew.ir.types import ScalarType
from clew.passes.views import operation

OPERATORS = {
    getattr(operator, f"i{name}"): getattr(operator, name)
    for name in "add sub mul truediv floordiv mod pow matmul lshift rshift xor".split()
} | {operator.iand: operator.and_, operator.ior: operator.or_}
_KEEPS_TYPE = frozenset({"relu", "neg"})
"""Of these the result has the shape and dtype of the array, or the call raises as the one in place does; it has the
strides of one without gaps."""
_WIDENING = frozenset({"cumsum_", "cumprod_"})
"""Of whole numbers the call that gives a new array adds up in a wider dtype."""
_OF_FORM = frozenset("squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_ detach_ rename_".split())
"""These change what an array looks like, and not what is in it."""
_DRAWING = frozenset("uniform_ normal_ exponential_ random_ cauchy_ log_normal_ geometric_ bernoulli_".split())

Make = Callable[[Graph, Node, Node], Node]


@dataclass(frozen=True)
class Write:
    """The array that a node writes into, and what makes its new value from the node and the array's present one."""

    array: Node
    make: Make
    is_fitted: bool = True
    """Whether what is made has the shape, dtype and strides of the array in any case."""
    is_fitted_without_gaps: bool = False
    """Whether it has them where the array fills its memory, as what the program computed itself does."""


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
    return Write(out, _to_out, is_fitted=False) if is_torchs and same else None


def _flagged(node: Node) -> Write | None:
    """A call with ``inplace=True``."""
    if node.op != "call_function" or not node.args or not isinstance(node.args[0], Node):
        return None
    named = _named(node)
    if named.get("inplace") is not True or guest_of(node.target) is None:
        return None
    return Write(node.args[0], _without_flag, is_fitted=False, is_fitted_without_gaps=operation(node) in _KEEPS_TYPE)


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
    if array is None or name in _OF_FORM or name in _WIDENING:
        return None
    if name in ("copy_", "fill_", "zero_"):
        return _filling(node, array) if node.op == "call_method" else None
    if new_target(node) is None:
        return None
    return Write(array, _computed, is_fitted=False, is_fitted_without_gaps=_new_name(node) in _KEEPS_TYPE)


def _filling(node: Node, array: Node) -> Write:
    if node.target == "zero_":
        return Write(array, _zeroed)
    if node.target == "copy_":
        return Write(array, _copied)
    is_array = _may_be_array(_value(node))
    return Write(array, _filled_with_array, is_fitted=False) if is_array else Write(array, _filled)


def _may_be_array(value: Any) -> bool:
    return isinstance(value, Node) and not isinstance(value.value_type, ScalarType)


def _new_name(node: Node) -> str:
    return operation(node).removesuffix("_")


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
    return node


def _drawn(graph: Graph, node: Node, array: Node) -> Node:
    node.op, node.target, node.args = "call_function", drawn, (array, node.target, *node.args[1:])
    return node


def _zeroed(graph: Graph, node: Node, array: Node) -> Node:
    return _replaced(node, array, 0)


def _copied(graph: Graph, node: Node, array: Node) -> Node:
    """What is copied may have fewer dimensions than the array, and not more, as items may."""
    value = _value(node)
    if _may_be_array(value):
        with graph.inserting_before(node):
            value = graph.call_method("expand_as", (value, array))
        value.source = node.source
    return _replaced(node, array, value)


def _filled(graph: Graph, node: Node, array: Node) -> Node:
    return _replaced(node, array, _value(node))


def _filled_with_array(graph: Graph, node: Node, array: Node) -> Node:
    node.op, node.target, node.args, node.kwargs = "call_function", torch.fill, (array, _value(node)), {}
    return node


def _value(node: Node) -> Any:
    return node.args[1] if len(node.args) > 1 else next(iter(node.kwargs.values()))


def _replaced(node: Node, array: Node, value: Any) -> Node:
    node.op, node.target, node.args, node.kwargs = "call_function", with_item, (array, Ellipsis, value), {}
    node._rename(array.name)
    return node


def _without_flag(graph: Graph, node: Node, array: Node) -> Node:
    if "inplace" in node.kwargs:
        node.kwargs = {**node.kwargs, "inplace": False}
    else:
        place = list(_named(node)).index("inplace")
        node.args = (*node.args[:place], False, *node.args[place + 1 :])
    return node


def _to_out(graph: Graph, node: Node, array: Node) -> Node:
    node.kwargs = {name: value for name, value in node.kwargs.items() if name != "out"}
    _require(graph, node, may_be_out, (array, node, *node.all_input_nodes))
    return node


def require_no_gradients(graph: Graph, value: Node) -> None:
    """Guard that a new value needs no gradients: torch writes none into what it has split into several views."""
    _require(graph, value, needs_no_gradients, (value,))


def _require(graph: Graph, node: Node, question: Callable[..., bool], args: tuple[Node, ...]) -> None:
    with graph.inserting_after(node):
        holds = graph.call_function(question, args)
    with graph.inserting_after(holds):
        check = graph.call_function(guard, (holds,))
    check.meta["guard"] = {"reason": "functionalize computes a new array, where torch may refuse to write"}
    for one in (holds, check):
        one.source = node.source


def fit(graph: Graph, node: Node, array: Node) -> Node:
    """What a node computed, as it is once it is written: that keeps dtype and strides of the array."""
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
