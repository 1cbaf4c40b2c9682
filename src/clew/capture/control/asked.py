"""What a question is about: whether it hangs on what the program is given, and whether it was asked before.

In comes the node whose truth is asked for, and the bodies that are open: a parameter of a body stands for a node around
it. An expression is a key: equal keys, equal values, as long as nothing was written between. What is not known to only
compute has a key of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clew.capture.control.reads import may_write
from clew.capture.control.same import identity
from clew.capture.example.bodies import Bodies
from clew.ir.arguments import bodies_of, leaves
from clew.ir.effects import effect_of
from clew.ir.guests import Effect
from clew.ir.node import Node

_DEPTH = 12
_SHAPES = frozenset({"shape", "ndim", "dtype", "device"})
_SIZES = frozenset({"size", "dim", "numel", "nelement"})


class Asked:
    """A look at nodes from inside of the bodies that are open; ``root`` has the modules that nodes call."""

    def __init__(self, bodies: Bodies, root: Any) -> None:
        self._outer = {parameter: node for body in bodies.open for node, parameter in body.free.items()}
        self._root = root

    def _home(self, node: Node) -> Node:
        """The node that a parameter stands for."""
        while node in self._outer:
            node = self._outer[node]
        return node

    def depends_on_data(self, node: Node) -> bool:
        """Whether a value comes from what arrays hold, or is drawn, and not from sizes alone."""
        waiting, seen = [node], set()
        while waiting:
            found = self._home(waiting.pop())
            if found in seen or _is_size(found):
                continue
            seen.add(found)
            if found.op in ("placeholder", "get_attr") or effect_of(found, self._root) is not Effect.NONE:
                return True
            waiting += found.all_input_nodes
        return False

    def expression(self, node: Node, depth: int = 0) -> Any:
        """What a node computes, of nodes that both sides of a comparison share."""
        node = self._home(node)
        is_call = node.op in ("call_function", "call_method") and not bodies_of(node)
        if not is_call or depth > _DEPTH or effect_of(node, self._root) is not Effect.NONE:
            return id(node) if node.op != "get_attr" else (node.op, node.target)
        args = [self._argument(leaf, depth) for leaf in leaves((node.args, node.kwargs))]
        return node.op, node.target, len(node.args), tuple(node.kwargs), *args

    def _argument(self, value: Any, depth: int) -> Any:
        return self.expression(value, depth + 1) if isinstance(value, Node) else identity(value)

    def writes(self, nodes: Iterable[Node]) -> bool:
        """Whether one of the nodes may change a value that is there already."""
        return any(may_write(node, self._root) for node in nodes)


def _is_size(node: Node) -> bool:
    """Whether a node reads what is known of an array without what it holds."""
    if node.op == "call_function" and node.target is getattr:
        return node.args[1] in _SHAPES
    return node.op == "call_method" and node.target in _SIZES
