"""What every pass starts from: a ``Graph``, or a captured program around one, and the root that its paths lead to.

A pass takes either and gives back what it took, changed in place. While a pass is at work, the graphs inside of the
graph know the root too, since their nodes read and call its attributes. ``Root`` puts new attributes and modules there
without touching the original that was captured: a captured module holds the parts of the original, not its holders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from clew.errors import GraphError, a_or_an
from clew.ir.arguments import map_arg, nested_graphs
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Guard, referred_paths
from clew.ir.node import Node
from clew.ir.source import SourceLine

_HOLDERS = "clew.runtime.parts"
"""The file of the classes that merely hold parts for a captured module."""
ProgramT = TypeVar("ProgramT")
"""A graph or a captured program: what a pass is given is what it gives back."""


def graph_in(program: Any) -> Graph:
    """The graph of a program."""
    graph = program if isinstance(program, Graph) else getattr(program, "graph", None)
    if not isinstance(graph, Graph):
        raise GraphError(
            f"{a_or_an(program)} is no graph",
            why="a pass works on a Graph, or on what clew.trace and clew.symbolic_trace return",
            fixes=["capture it first: clew.trace(model, args)"],
        )
    return graph


@contextmanager
def opened(program: Any) -> Iterator[list[Graph]]:
    """The graph of a program and those inside of it; all know their root as long as this is open."""
    graph = graph_in(program)
    bodies = list(nested_graphs(graph))
    owners = [body.owning_module for body in bodies]
    for body in bodies:
        body.owning_module = graph.owning_module
    try:
        yield [graph, *bodies]
    finally:
        for body, owner in zip(bodies, owners, strict=True):
            body.owning_module = owner


class Root:
    """The object that the paths of a graph lead to, and what a pass adds to it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.value = graph.owning_module

    def get(self, path: str) -> Any:
        """The attribute or module at a path; None if there is none."""
        return resolve(self.value, path)

    def add(self, name: str, value: Any) -> str:
        """Hold ``value`` as a plain attribute, which ``.to()`` leaves as it is; its path comes out."""
        if self.value is None:
            raise GraphError(
                "a graph on its own has nowhere to keep what the pass computes",
                fixes=["give the captured program, or a graph with an owning module"],
            )
        number, path = 0, f"{name}0"
        while resolve(self.value, path) is not None:
            number += 1
            path = f"{name}{number}"
        vars(self.value)[path] = value
        return path

    def plain(self, path: str) -> Any:
        """A constant that the root holds as a plain attribute; None for all else."""
        return vars(self.value).get(path) if self.value is not None else None

    def set_plain(self, path: str, value: Any) -> None:
        """Exchange such a constant."""
        vars(self.value)[path] = value

    def may_replace(self, path: str) -> bool:
        """Whether the module at a path is held by the captured program alone, and not by a part of the original."""
        if not hasattr(self.value, "add_submodule") or resolve(self.value, path) is None:
            return False
        holders = [path[:place] for place, letter in enumerate(path) if letter == "."]
        return all(type(resolve(self.value, one)).__module__ == _HOLDERS for one in holders)

    def replace_module(self, path: str, module: Any) -> None:
        """Put a module in the place of another."""
        self.value.add_submodule(path, module)

    def forget_module(self, path: str) -> None:
        """Let go of a module that the graph refers to no longer."""
        used = referred_paths(self.graph)
        if not any(f"{one}.".startswith(f"{path}.") for one in used):
            self.value.delete_submodule(path)


def mode_guard(path: str, source: SourceLine | None, reason: str, expected: bool = False) -> Guard:
    """The assumption that a flag of a module, ``bn.training``, is what it is now."""
    return Guard(Attribute(path), "equals", expected, "mode", source, reason)


def add_guards(graph: Graph, guards: list[Guard]) -> None:
    """Let a graph assume these too; one that it has is not added again."""
    known = {(str(one), one.kind) for one in graph.guards.entry}
    new = {(str(one), one.kind): one for one in guards if (str(one), one.kind) not in known}
    if new:
        graph.guards.add(*new.values())


def insert_at_entrance(graph: Graph, wanted: Callable[[Node], bool], make: Callable[[Node], Node]) -> None:
    """Let what ``make`` gives for an input stand for it, for all inputs that are ``wanted`` and used."""
    inputs = graph.find_nodes(op="placeholder")
    with graph.inserting_before(inputs[-1].next if inputs else None):
        for node in inputs:
            if wanted(node) and node.users:
                users = list(node.users)
                made = make(node)
                made.source = node.source
                for user in users:
                    user.replace_input_with(node, made)


def put_in_place(node: Node, value: Any) -> None:
    """Let the users of a node use ``value``, a node or a plain value, and erase the node."""
    if isinstance(value, Node):
        node.replace_all_uses_with(value)
    else:
        for user in list(node.users):
            user.args = _exchanged(user.args, node, value)
            user.kwargs = _exchanged(user.kwargs, node, value)
    node.graph.erase_node(node)


def _exchanged(nest: Any, node: Node, value: Any) -> Any:
    return map_arg(nest, lambda one: value if one is node else one)
