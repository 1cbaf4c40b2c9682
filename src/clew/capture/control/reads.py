"""Which nodes only ask: facts about values, numbers computed of these, guards; and which may change a value that is
there already."""

from __future__ import annotations

import operator
from types import FunctionType
from typing import Any

from clew.capture.example.guards import CHECKS
from clew.capture.example.lifting import is_context
from clew.ir.effects import effect_of
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.types import ScalarType

_FACTS = ("dtype", "device")
_CALCULATING = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
                operator.add, operator.sub, operator.mul, operator.neg, bool, min, max)  # fmt: skip
_DIVIDING = (operator.floordiv, operator.mod)
TOLD = 2
"""A check has a value and what it expects; the rest of its arguments tells people of it."""


def is_fact(node: Node) -> bool:
    """Whether a node reads a fact about a value, or an item of it."""
    return node.op == "call_function" and (node.target is getattr or node.target is operator.getitem)


def is_check(node: Node) -> bool:
    """Whether a node is a guard."""
    return node.op == "call_function" and type(node.target) is FunctionType and node.target in CHECKS


def is_size(node: Node) -> bool:
    """Whether a node reads a shape, or one of its sizes."""
    if node.op != "call_function" or node.kwargs or len(node.args) != 2:
        return False
    if node.target is getattr:
        return node.args[1] in ("shape", "ndim")
    is_item = node.target is operator.getitem and type(node.args[1]) is int
    return is_item and isinstance(node.args[0], Node) and node.args[0].target is getattr


def is_calculated(node: Node) -> bool:
    """Whether a call computes with numbers, and cannot fail."""
    if node.op != "call_function" or node.kwargs:
        return False
    if node.target in _DIVIDING:
        return type(node.args[1]) is int and node.args[1] != 0
    return node.target in _CALCULATING


def only_asks(node: Node) -> bool:
    """Whether a node cannot fail, and could as well be made earlier: a fact about a value, a number that is computed of
    such facts, a guard."""
    if is_check(node) or is_size(node):
        return True
    if node.op == "call_function" and node.target is getattr:
        return node.args[1] in _FACTS
    return is_calculated(node) and all(_is_number(one) for one in (node, *node.all_input_nodes))


def _is_number(node: Node) -> bool:
    return isinstance(node.value_type, ScalarType) or is_size(node)


def may_write(node: Node, root: Any) -> bool:
    """Whether a node may change a value that is there already; ``root`` has the modules that it may call."""
    if is_check(node) or is_context(node):
        return False
    return effect_of(node, root) not in (Effect.NONE, Effect.RANDOM)
