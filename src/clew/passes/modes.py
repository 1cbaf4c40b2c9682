"""Modes: the flags under which a call does more than compute its value, ``self.bn.training`` for one.

A node comes in, whose graph knows its root; out come the paths of flags. A call that only computes its value while
these are off may be treated as pure by a pass that adds a guard on each. Only torch has such
flags.
"""

from __future__ import annotations

from typing import Any

from clew.ir.arguments import map_arg
from clew.ir.effects import effect_of, resolve
from clew.ir.guests import Effect, guest_of
from clew.ir.node import Node


def flags_of(node: Node) -> list[str] | None:
    """The flags of the root, all of them off at present, that must stay off for a call to be pure; None if no flags
    decide that, or one of them is on."""
    root = node.graph.owning_module
    if node.op == "call_module":
        module = resolve(root, node.target)
        guest = None if module is None else guest_of(type(module))
        return None if guest is None else guest.resting_flags(module, node.target)
    if node.op != "call_function":
        return None
    flags = {used.target: used for used in node._inputs if is_flag(used)}
    if not flags or effect_of(_without(node, set(flags.values())), root) is not Effect.NONE:
        return None
    return list(flags)


def is_flag(value: Any) -> bool:
    """Whether a value is the reading of a flag of the root that is off at present: of ``training`` of a module."""
    if not isinstance(value, Node) or value.op != "get_attr" or value.target.rpartition(".")[2] != "training":
        return False
    return resolve(value.graph.owning_module, value.target) is False


class _Call:
    """A call as ``effect_of`` looks at it, with other arguments than those of its node."""

    def __init__(self, node: Node, args: Any, kwargs: Any) -> None:
        self.op, self.target, self.graph = node.op, node.target, node.graph
        self.args, self.kwargs = args, kwargs


def _without(node: Node, flags: set[Node]) -> _Call:
    """The call in which False stands for these flags."""
    args, kwargs = map_arg((node.args, node.kwargs), lambda one: False if one in flags else one)
    return _Call(node, args, kwargs)
