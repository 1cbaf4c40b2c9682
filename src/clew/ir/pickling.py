"""Graphs as flat rows for pickle: no recursion over nodes, no source code run on loading.

A node becomes a row in which other nodes stand as indices; the graph is rebuilt from its rows with the same names.
Functions travel by reference like everywhere in pickle; those that pickle cannot reach travel by their dotted name.
Notes in ``meta`` that pickle refuses (fake tensors, local classes) stay behind; the program itself is always whole.
"""

from __future__ import annotations

import pickle
import sys
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from clew.ir.arguments import Reference, map_aggregate
from clew.ir.lookup import find, name_for

if TYPE_CHECKING:
    from clew.ir.graph import Graph


class Index(int):
    """The place of a node in the list of rows."""

    __slots__ = ()


class Named:
    """A function or object that is fetched by its dotted name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class _Packer:
    """Encodes the values of one graph; what was found out about a function or a note is remembered."""

    def __init__(self, graph: Graph) -> None:
        self.places: dict[Any, Index] = {node: Index(place) for place, node in enumerate(graph.nodes)}
        self.seen: dict[int, tuple[Any, Any]] = {}
        self.taken: dict[int, tuple[bool, Any]] = {}

    def encode(self, leaf: Any) -> Any:
        """A leaf of an argument: nodes as indices, functions by a way that pickle can go."""
        if isinstance(leaf, Reference):
            return self.places.get(leaf)
        return self.target(leaf) if callable(leaf) and not isinstance(leaf, type) else leaf

    def target(self, target: Any) -> Any:
        """A function as it is if pickle finds it, otherwise by name."""
        if isinstance(target, str):
            return target
        known = self.seen.get(id(target))
        if known is None:
            known = self.seen[id(target)] = (_portable(target), target)
        return known[0]

    def meta(self, meta: dict[str, Any] | None) -> dict[str, Any] | None:
        """The notes that pickle takes."""
        if not meta:
            return None
        encoded = {key: map_aggregate(value, self.encode) for key, value in meta.items() if self._is_portable(value)}
        return encoded or None

    def _is_portable(self, value: Any) -> bool:
        if isinstance(value, (str, int, float, bool, Reference)):
            return True
        known = self.taken.get(id(value))
        if known is None:
            known = self.taken[id(value)] = (_can_pickle(map_aggregate(value, self.encode)), value)
        return known[0]


def pack(graph: Graph) -> tuple[Any, ...]:
    """The arguments from which ``unpack`` makes an equal graph."""
    packer = _Packer(graph)
    rows = [
        (
            node.op,
            node.name,
            packer.target(node.target),
            map_aggregate(node.args, packer.encode),
            map_aggregate(node.kwargs, packer.encode),
            node.type,
            node.value_type,
            node.source,
            packer.meta(node._meta),
        )
        for node in graph.nodes
    ]
    tracer = graph._tracer_cls
    if tracer is not None and not _can_pickle(tracer):
        tracer = None
    return type(graph), rows, tracer, graph._tracer_extras, graph._chosen_codegen


def unpack(kind: type[Graph], rows: list[Any], tracer: type | None, extras: Any, codegen: Any) -> Graph:
    """A graph from the rows that ``pack`` made."""
    graph = kind(tracer_cls=tracer, tracer_extras=extras)
    nodes: list[Any] = []

    def decode(leaf: Any) -> Any:
        if type(leaf) is Index:
            return nodes[leaf]
        return find(leaf.name) if type(leaf) is Named else leaf

    for op, name, target, args, kwargs, annotation, value_type, source, _ in rows:
        args, kwargs = map_aggregate(args, decode), map_aggregate(kwargs, decode)
        node = graph._append_exact(op, name, decode(target), args, kwargs, annotation)
        node.value_type = value_type
        node.source = source
        nodes.append(node)
    for node, (*_, meta) in zip(nodes, rows, strict=True):
        if meta:
            node.meta.update({key: map_aggregate(value, decode) for key, value in meta.items()})
    graph._chosen_codegen = codegen
    return graph


def _portable(value: Any) -> Any:
    """The value itself where pickle finds it by its own name, otherwise the name under which users find it."""
    if isinstance(value, (FunctionType, BuiltinFunctionType)) and _is_where_it_says(value):
        return value
    name = name_for(value)
    return value if name is None else Named(name)


def _is_where_it_says(function: Any) -> bool:
    found: Any = sys.modules.get(function.__module__ or "")
    for atom in function.__qualname__.split("."):
        found = getattr(found, atom, None)
    return found is function


def _can_pickle(value: Any) -> bool:
    """Whether pickle takes the value. It may fail in any way that the classes of users choose."""
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True
