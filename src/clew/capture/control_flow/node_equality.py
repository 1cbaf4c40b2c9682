"""Whether arguments of nodes from two runs of one program are equal, and which nodes only ask.

Nodes are equal if they are one; graphs if they differ in names alone; all else by class and value, where nan is nan
and a zero has a sign. Objects without equality of their own count as equal: each run makes its own.
"""

from __future__ import annotations

import math
import operator
from types import FunctionType
from typing import Any

from clew.capture.guards.lifting import is_context
from clew.capture.guards.notes import CHECKS, Variable
from clew.ir.arguments import map_arg
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.types import ArrayType, ScalarType


def same_argument(one: Any, other: Any) -> bool:
    """Whether two arguments of nodes are the same, as far as it can be told."""
    if one is other:
        return True
    if isinstance(one, Node) or isinstance(other, Node):
        return False
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(map(same_argument, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same_argument(one[key], other[key]) for key in one)
    if type(one) is not type(other):
        return False
    if isinstance(one, slice):
        return same_argument((one.start, one.stop, one.step), (other.start, other.stop, other.step))
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or repr(one) == repr(other)
    if isinstance(one, Graph):
        return same_body(one, other)
    if isinstance(one, Variable):
        return one.holder is other.holder and one.name == other.name
    return type(one).__eq__ is object.__eq__ or bool(one == other)


def same_body(one: Graph, other: Graph) -> bool:
    """Whether two graphs do the same, whatever their nodes are called, which guards tell in their texts."""
    if len(one.nodes) != len(other.nodes):
        return False
    pairs: dict[Node, Node] = {}
    for left, right in zip(one.nodes, other.nodes, strict=True):
        if left.op != right.op or (left.op != "placeholder" and not same_argument(left.target, right.target)):
            return False
        told = TOLD if is_check(left) else None
        given = map_arg((left.args[:told], left.kwargs), pairs.__getitem__)
        if not same_argument(given, (right.args[:told], right.kwargs)):
            return False
        pairs[left] = right
    return True


PLAIN = (bool, int, float, complex, str, bytes, type(None))


def identity(value: Any) -> Any:
    """A key for a value: plain ones by what they are, those that say when they are equal by that, all others by which
    they are."""
    kind = type(value)
    if kind in PLAIN:
        return kind, repr(value)
    return (kind, value) if kind.__eq__ is not object.__eq__ and _has_hash(value) else id(value)


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


# ---- nodes that only ask, and nodes that may write -------------------------------------------------------------------

_FACTS = ("dtype", "device")
_CALCULATING = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
                operator.add, operator.sub, operator.mul, operator.neg, bool, min, max)  # fmt: skip
_DIVIDING = (operator.floordiv, operator.mod)
TOLD = 2
"""A check has a value and what it expects; the rest of its arguments tells people of it."""


def is_fact(node: Node) -> bool:
    """Whether a node reads a fact about a value, or an item; one of an array may be a copy, or not be there."""
    if node.op != "call_function" or (node.target is not getattr and node.target is not operator.getitem):
        return False
    owner = node.args[0]
    return node.target is getattr or not (isinstance(owner, Node) and isinstance(owner.value_type, ArrayType))


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
