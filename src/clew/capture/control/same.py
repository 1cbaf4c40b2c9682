"""Whether two arguments of nodes, of two runs of one program, are the same, and keys by which values are told apart.

Nodes are the same if they are one; graphs if they print the same; all else by kind and value, where nan is nan and a
zero has a sign. Objects that do not say when they are equal count as the same: each run makes its own.
"""

from __future__ import annotations

import math
from typing import Any

from clew.capture.example.guards import Variable
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
        return str(one) == str(other)
    if isinstance(one, Variable):
        return one.holder is other.holder and one.name == other.name
    return type(one).__eq__ is object.__eq__ or bool(one == other)


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
