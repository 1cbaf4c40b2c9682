"""What a value of a graph computes, as a guard says it: ``x.shape[1] <= 512``."""

from __future__ import annotations

from typing import Any

from clew.ir.guards import EQUALS, spelled
from clew.ir.node import Node

expression_of = spelled


def describe(node: Node, answer: Any) -> str:
    """A guard in Python's notation: an expression, or ``not`` of it."""
    return EQUALS.text(expression_of(node), answer)
