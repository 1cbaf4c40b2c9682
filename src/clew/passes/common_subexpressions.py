"""Common subexpressions: a call that was made before with the same arguments is not made again.

A graph comes in, is changed in place and returned; graphs inside of it are treated each on its own. Always holds: the
program computes the same, and nobody can tell that a value is shared. Two calls become one only if
- both only compute their result: no effect, no random numbers, no iterator that is made or used up;
- nothing with an effect runs between them, since it could change what they read, or the mode in which they compute;
- no write anywhere in the graph touches memory that the result may share;
- not both results may be part of what the graph returns, and nobody compares their identities.
"""

from __future__ import annotations

import builtins
import operator
from typing import Any

from clew.ir.arguments import bodies_of, is_leaf
from clew.ir.gc_pause import CollectorPaused
from clew.ir.graph import Graph
from clew.ir.guests import Effect, guest_of
from clew.ir.node import Node
from clew.ir.shared_memory import SharedMemory
from clew.passes.program import ProgramT, opened

_BUILTINS = frozenset(
    getattr(builtins, name)
    for name in "abs bool divmod float getattr int isinstance issubclass len pow range round slice str".split()
)
"""Python's own functions that use up no iterator and make none."""
_CONSUMING = frozenset({operator.contains, operator.countOf, operator.indexOf, operator.length_hint})
_IDENTITY = frozenset({operator.is_, operator.is_not, id})
_BY_VALUE = frozenset({int, bool, str, bytes, type(None), type(...)})


def common_subexpressions(program: ProgramT) -> ProgramT:
    """The graph or captured program in which equal calls are made once; it is changed in place and returned."""
    with CollectorPaused(), opened(program) as graphs:
        for each in graphs:
            _Sharing(each).run()
    return program


class _Sharing:
    """One graph, and what is known of its values."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.memory = SharedMemory(graph)
        self.written: set[Any] = set()
        self.returned: set[Any] = set()
        self.first: dict[Any, Node] = {}
        self.repeatable: dict[int, bool] = {}
        self.functions = [node.target for node in graph.nodes]  # kept, so that their identities stay their own
        for node in graph.nodes:
            if self._has_effect(node):
                self.written |= self.memory.touched(node)
            elif node.op == "output":
                self.returned |= {self.memory.find(value) for value in node._inputs}
        self.escaping = {node for node in graph.nodes if self.memory.find(node) in self.returned}

    def _has_effect(self, node: Node) -> bool:
        return self.memory.effect[node] in (Effect.WRITE, Effect.UNKNOWN)

    def run(self) -> None:
        """Walk through the graph once; a call is compared with those since the last effect."""
        for node in list(self.graph.nodes):
            if self._has_effect(node):
                self.first.clear()
            elif self._may_be_shared(node):
                self._share(node)

    def _share(self, node: Node) -> None:
        """Use an equal call in the place of this one, or remember this one for later."""
        key = (node.op, _target_key(node), _key(node.args), _key(node.kwargs) if node.kwargs else None)
        earlier = self.first.setdefault(key, node)
        if earlier is node or earlier.type != node.type:
            return
        if node.op != "get_attr" and earlier in self.escaping and node in self.escaping:
            return
        if node in self.escaping:
            self.escaping.add(earlier)
        node.replace_all_uses_with(earlier)
        self.graph.erase_node(node)

    def _is_repeatable(self, function: Any) -> bool:
        """Asked once for each function."""
        known = self.repeatable.get(id(function))
        if known is None:
            known = self.repeatable[id(function)] = is_repeatable(function)
        return known

    def _may_be_shared(self, node: Node) -> bool:
        if node.op == "get_attr":  # the same object each time
            return True
        if node.op not in ("call_function", "call_method") or self.memory.effect[node] is not Effect.NONE:
            return False
        if node.op == "call_function" and not self._is_repeatable(node.target):
            return False
        if any(user.target in _IDENTITY for user in node.users if user.op == "call_function"):
            return False
        if self.graph._may_nest and bodies_of(node):
            return False
        return self.memory.find(node) not in self.written


def is_repeatable(function: Any) -> bool:
    """Whether a pure function gives the same each time that it is given the same objects."""
    try:
        if function in _CONSUMING:
            return False
        return function in _BUILTINS or function.__module__ in ("_operator", "math") or guest_of(function) is not None
    except (TypeError, AttributeError):  # a callable without a hash or a module is nobody's own function
        return False


def _target_key(node: Node) -> Any:
    return node.target if isinstance(node.target, str) else id(node.target)


def _key(value: Any) -> Any:
    """What two arguments have in common only if they mean the same: classes matter, and 0.0 is not -0.0."""
    kind = type(value)
    if kind is Node:
        return value
    if kind in _BY_VALUE:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is tuple:
        return kind, tuple([item if type(item) is Node else _key(item) for item in value])
    if is_leaf(value):
        return kind, id(value)  # the node that has it keeps it alive
    if isinstance(value, dict):
        return kind, tuple((_key(key), _key(item)) for key, item in value.items())
    if isinstance(value, slice):
        return kind, _key((value.start, value.stop, value.step))
    return kind, tuple(map(_key, value))
