"""Slots: where a program keeps values besides its arguments, and the nodes that read and write them.

An attribute of the captured module is reached by its path, so that each captured module has state of its own. A global,
a variable of a closure or an attribute of another object is where it is for the original.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from clew.capture.guards import notes
from clew.capture.guards.notes import Variable
from clew.capture.location import MISSING
from clew.codegen.statements import written_as_assignment
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.ir.node import Node

_HOLDERS = ("_parameters", "_buffers")
ROOT = "_self"
"""The attribute under which a captured callable gives its own root to its graph."""


def assign(root: Any, path: str, value: Any) -> None:
    """Set the attribute of the captured module at a dotted path."""
    owner, name = _owner(root, path)
    setattr(owner, name, value)


def assign_buffer(root: Any, path: str, value: Any, persistent: bool) -> None:
    """Set a buffer of the captured module at a dotted path, which may not be there yet."""
    owner, name = _owner(root, path)
    if name in owner._buffers:
        setattr(owner, name, value)
    else:
        owner.register_buffer(name, value, persistent=persistent)


def remove(root: Any, path: str) -> None:
    """Take away the attribute of the captured module at a dotted path."""
    owner, name = _owner(root, path)
    delattr(owner, name)


@pure
def has_attribute(root: Any, path: str) -> bool:
    """Whether the captured module has an attribute at a dotted path."""
    owner, name = _owner(root, path)
    return hasattr(owner, name)


@pure
def holds_attribute(root: Any, path: str, holder: str) -> bool:
    """Whether the captured module has an attribute at a dotted path among its parameters, say, whatever else it has."""
    owner, name = _owner(root, path)
    return name in getattr(owner, holder)


def _owner(root: Any, path: str) -> tuple[Any, str]:
    owner, _, name = path.rpartition(".")
    return (operator.attrgetter(owner)(root) if owner else root), name


class Slot:
    """One place. ``owner`` is the object whose attribute it is, if any; ``path`` leads there from the module."""

    __slots__ = ("existed", "is_only_read", "owner", "path", "variable")

    def __init__(self, variable: Variable, owner: Any = None, path: str | None = None) -> None:
        self.variable = variable
        self.owner = owner
        self.path = path
        self.existed = True
        self.is_only_read = False
        """Whether the program has not changed it when it was lifted: a number that is read again at each call."""

    @property
    def key(self) -> tuple[int, str]:
        """What tells places apart, the same in each run of one capture."""
        return self.variable.key

    @property
    def label(self) -> str:
        """The place in the user's words."""
        return f"self.{self.path}" if self.path else self.variable.label

    def read(self, graph: Graph) -> Node:
        """A node that reads the place."""
        if self.path is not None:
            return graph.create_node("get_attr", self.path, (), {})
        reader = notes.current_number if self.is_only_read else notes.read_variable
        return graph.call_function(reader, (self.variable,))

    def exists(self, graph: Graph) -> Node:
        """A node that tells whether there is a value."""
        if self.path is not None:
            root = graph.create_node("get_attr", ROOT, (), {})
            names = [name for name in _HOLDERS if getattr(self.owner, name, None) is self.variable.holder]
            if names:
                return graph.call_function(holds_attribute, (root, self.path, names[0]))
            return graph.call_function(has_attribute, (root, self.path))
        return graph.call_function(operator.is_not, (self.read(graph), MISSING))

    def write(self, graph: Graph, root: Callable[[], Node], value: Any) -> None:
        """Nodes that set the place."""
        if self.path is None:
            graph.call_function(notes.write_variable, (self.variable, value))
        elif value is MISSING:
            graph.call_function(remove, (root(), self.path))
        elif not self.existed and self.variable.holder is getattr(self.owner, "_buffers", None):
            persistent = self.variable.name not in self.owner._non_persistent_buffers_set
            graph.call_function(assign_buffer, (root(), self.path, value, persistent))
        else:
            graph.call_function(assign, (root(), self.path, value))


def places_in(objects: Iterable[Any]) -> Iterator[Slot]:
    """The places of all attributes of some objects."""
    for owner in objects:
        yield from (Slot(Variable(owner, name), owner) for name in vars(owner))


written_as_assignment(assign, ROOT)
written_as_assignment(remove, ROOT)
