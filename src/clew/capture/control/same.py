"""Whether two arguments of nodes, of two runs of one program, are the same, and keys by which values are told apart.

Nodes are the same if they are one; graphs if they differ in names alone; all else by kind and value, where nan is nan
and a zero has a sign. Objects that do not say when they are equal count as the same: each run makes its own.
"""

from __future__ import annotations

import math
from typing import Any

from clew.capture.control.reads import TOLD, is_check
from clew.capture.example.guards import Variable
from clew.ir.arguments import map_arg
from clew.ir.graph import Graph
from clew.ir.node import Node


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
