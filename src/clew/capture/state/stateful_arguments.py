"""Stateful arguments: objects that a program may be given again after it has set attributes of them.

Their attributes report whether they are read or set first. One that is set before it is read may be there or not, and
hold anything: guards on it are loosened. Where a program looks at all attributes at once, nothing is.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from clew.capture.guards import notes
from clew.capture.patches import Patches
from clew.capture.recording.inputs import Inputs
from clew.capture.state.writes import set_attribute
from clew.ir.arguments import bodies_of
from clew.ir.graph import Graph
from clew.ir.node import Node

_HEAP_TYPE = 1 << 9  # the flag of classes whose attributes can be set


class Accesses:
    """The first accesses to the attributes of some objects during one run."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self._objects = {id(value): value for value in objects if type(value).__flags__ & _HEAP_TYPE}
        self._read: set[tuple[int, str]] = set()
        self._set: set[tuple[int, str]] = set()

    @contextmanager
    def watched(self, patches: Patches) -> Iterator[None]:
        """Let the objects report meanwhile. Where their class reports to somebody else already, nothing is learned."""
        for kind in {type(value) for value in self._objects.values()}:
            patches.on_class(kind, "__getattribute__", _reporting_reads, inherited=True)
            patches.on_class(kind, "__setattr__", _reporting_writes, inherited=True)
        token = current.set(self)
        try:
            yield
        finally:
            current.reset(token)

    def note_read(self, owner: Any, name: str) -> None:
        """An attribute is read, or asked for."""
        if id(owner) in self._objects and (id(owner), name) not in self._set:
            self._read.add((id(owner), name))

    def note_set(self, owner: Any, name: str) -> None:
        """An attribute is set."""
        if id(owner) in self._objects and (id(owner), name) not in self._read:
            self._set.add((id(owner), name))

    def loosen(self, inputs: Inputs, graph: Graph) -> None:
        """Let guards no longer ask for what the program set before it read it, on the only way that it can go."""
        if not self._set or any(bodies_of(node) for node in graph.nodes):
            return
        for container in inputs.containers:
            owner = id(container.value)
            place = inputs.recorder.resolve(container.place)
            fresh = sorted(_written(place) & {name for known, name in self._set if known == owner})
            if fresh and (owner, "__dict__") not in self._read:
                _loosen(graph, place, fresh)


def _written(owner: Node) -> set[str]:
    """The attributes that the graph sets whatever they were."""
    setters = [node for node in owner.users if node.target in (setattr, set_attribute) and node.args[0] is owner]
    return {str(node.args[1]) for node in setters}


def _loosen(graph: Graph, owner: Node, fresh: list[str]) -> None:
    for node in list(owner.users):
        if node.target is notes.require_attributes:
            names = tuple(name for name in node.args[1] if name not in fresh)  # type: ignore[union-attr]
            text = f"the attributes {names} and no others but {tuple(fresh)}"
            node.target, node.args = notes.require_other_attributes, (owner, (names, tuple(fresh)), text)
        elif node.target is getattr and node.args[1] in fresh:
            for check in [user for user in node.users if user.target in (notes.require, notes.require_type)]:
                graph.erase_node(check)


current: contextvars.ContextVar[Accesses | None] = contextvars.ContextVar("clew_accesses", default=None)


def _reporting_reads(original: Any) -> Any:
    def __getattribute__(self: Any, name: str) -> Any:
        accesses = current.get()
        if accesses is not None:
            accesses.note_read(self, name)
        return original(self, name)

    return __getattribute__


def _reporting_writes(original: Any) -> Any:
    def __setattr__(self: Any, name: str, value: Any) -> None:
        accesses = current.get()
        if accesses is not None:
            accesses.note_set(self, name)
        original(self, name, value)

    return __setattr__
