"""Which nodes only ask: facts about values, guards; and which may change a value that is there already."""

from __future__ import annotations

import operator
from types import FunctionType
from typing import Any

from clew.capture.example.guards import CHECKS
from clew.ir.effects import effect_of
from clew.ir.guests import Effect
from clew.ir.node import Node

_BLOCKS = frozenset({"__enter__", "__exit__"})


def is_fact(node: Node) -> bool:
    """Whether a node reads a fact about a value, or an item of it."""
    return node.op == "call_function" and (node.target is getattr or node.target is operator.getitem)


def is_check(node: Node) -> bool:
    """Whether a node is a guard."""
    return node.op == "call_function" and type(node.target) is FunctionType and node.target in CHECKS


def may_write(node: Node, root: Any) -> bool:
    """Whether a node may change a value that is there already; ``root`` has the modules that it may call."""
    if is_check(node) or (node.op == "call_method" and node.target in _BLOCKS):
        return False
    return effect_of(node, root) not in (Effect.NONE, Effect.RANDOM)
