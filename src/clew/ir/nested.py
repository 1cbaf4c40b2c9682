"""Graphs within graphs: the bodies that a node hands to the function it calls.

A node or a graph comes in; out come the graphs among its arguments, or the nodes of all of them. A body belongs to
itself: its arguments are its own nodes, and only its attributes are those of the outermost graph's root.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.ir.arguments import Body, Reference, leaves

_FLAT = frozenset({int, float, bool, str, type(None)})


def bodies_of(node: Any) -> list[Any]:
    """The graphs among the arguments of a node, each once, in order."""
    found: list[Any] = []
    args, kwargs = node.args, node.kwargs
    for argument in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(argument, Reference) or type(argument) in _FLAT:
            continue
        for leaf in leaves(argument):
            if isinstance(leaf, Body) and not any(leaf is body for body in found):
                found.append(leaf)
    return found


def nested_graphs(graph: Any) -> Iterator[Any]:
    """All graphs inside a graph, at any depth, each once."""
    seen: set[int] = set()
    waiting = [graph]
    while waiting:
        for node in waiting.pop().nodes:
            for body in bodies_of(node):
                if id(body) not in seen:
                    seen.add(id(body))
                    waiting.append(body)
                    yield body


def all_nodes(graph: Any) -> Iterator[Any]:
    """The nodes of a graph, then those of the graphs inside it."""
    yield from graph.nodes
    for body in nested_graphs(graph):
        yield from body.nodes
