"""Graphs within graphs: the bodies that a node hands to the function it calls.

A node or a graph comes in; out come the graphs among its arguments, or the nodes of all of them. A body belongs to
itself: its arguments are its own nodes, and only its attributes are those of the outermost graph's root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Any

from clew.ir.arguments import Body, Reference, leaves

FLAT: set[type] = {int, float, bool, str, type(None)}
"""Classes of arguments that hold no graph for certain; the class of nodes is added where it is defined."""


def bodies_of(node: Any) -> list[Any]:
    """The graphs among the arguments of a node, each once, in order."""
    args, kwargs = node.args, node.kwargs
    if FLAT.issuperset(map(type, args)) and not kwargs:
        return []
    found: list[Any] = []
    for argument in (*args, *kwargs.values()):
        if isinstance(argument, Reference) or type(argument) in FLAT:
            continue
        for leaf in leaves(argument):
            if isinstance(leaf, Body) and not any(leaf is body for body in found):
                found.append(leaf)
    return found


def with_bodies(nodes: Iterable[Any]) -> list[tuple[Any, list[Any]]]:
    """The nodes that have graphs among their arguments, in order, and these graphs; a quick walk, as they are few."""
    nodes = nodes if isinstance(nodes, list) else list(nodes)
    is_flat = FLAT.issuperset
    arguments = chain.from_iterable([node.args for node in nodes])
    if is_flat(map(type, arguments)) and not any(map(attrgetter("kwargs"), nodes)):
        return []
    candidates = [node for node in nodes if node.kwargs or not is_flat(map(type, node.args))]
    found = [(node, bodies_of(node)) for node in candidates]
    return [(node, bodies) for node, bodies in found if bodies]


def nested_graphs(graph: Any) -> Iterator[Any]:
    """All graphs inside a graph, at any depth, each once."""
    seen: set[int] = set()
    waiting = [graph]
    while waiting:
        around = waiting.pop()
        for _, bodies in with_bodies(around.nodes) if around._may_nest else ():
            for body in bodies:
                if id(body) not in seen:
                    seen.add(id(body))
                    waiting.append(body)
                    yield body


def all_with_bodies(graph: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The nodes of a graph, and of those inside it, that have graphs among their arguments, and these graphs."""
    if graph._may_nest:
        for around in (graph, *nested_graphs(graph)):
            yield from with_bodies(around.nodes)


def all_nodes(graph: Any) -> Iterator[Any]:
    """The nodes of a graph, then those of the graphs inside it."""
    yield from graph.nodes
    for body in nested_graphs(graph):
        yield from body.nodes
