"""The effects of all nodes of a graph, asked once for equal calls.

Frameworks answer what a call does from its function and arguments, which takes time; a large graph makes few different
calls. The cache key is the target, the literals, and for nodes the annotations and types at their places: all that a
framework can know of a node ahead of a run.
"""

from __future__ import annotations

from typing import Any

from clew.ir.arguments import FLAT
from clew.ir.effects import effect_of
from clew.ir.guests import Effect
from clew.ir.node import Node


class KnownEffects:
    """Answers like ``effect_of``; the answers for plain calls of functions and methods are kept."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Effect, Any]] = {}

    def of(self, node: Node) -> Effect:
        """The effect of running ``node``."""
        key = _key(node)
        if key is None:
            return effect_of(node)
        try:
            found = self._known.get(key)
        except TypeError:  # an annotation without a hash
            return effect_of(node)
        if found is None:
            found = self._known[key] = (effect_of(node), node)  # the node keeps alive what the key knows by identity
        return found[0]


def _key(node: Node) -> Any:
    """What alike calls have in common; None for nodes that are asked about one by one."""
    if node.op not in ("call_function", "call_method") or node.kwargs or not FLAT.issuperset(map(type, node.args)):
        return None
    target = node.target if isinstance(node.target, str) else id(node.target)
    arguments = [(item.type, item.value_type) if type(item) is Node else (type(item), repr(item)) for item in node.args]
    return node.op, target, tuple(arguments)
