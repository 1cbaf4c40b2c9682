"""Graphs as flat rows for pickle: no recursion over nodes, no source code run on loading.

A node becomes a row in which other nodes stand as indices; the graph is rebuilt from its rows with the same names.
Functions travel by reference like everywhere in pickle; those that pickle cannot name travel by their dotted name.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import TYPE_CHECKING, Any

from clew.errors import TextError
from clew.ir.arguments import Reference, map_aggregate
from clew.ir.format import qualified_name

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


def pack(graph: Graph) -> tuple[Any, ...]:
    """The arguments from which ``unpack`` makes an equal graph."""
    places: dict[Any, Index] = {node: Index(place) for place, node in enumerate(graph.nodes)}

    def encode(leaf: Any) -> Any:
        return places.get(leaf) if isinstance(leaf, Reference) else _portable(leaf)

    rows = [
        (
            node.op,
            node.name,
            _portable(node.target),
            map_aggregate(node.args, encode),
            map_aggregate(node.kwargs, encode),
            node.type,
            node.value_type,
            node.source,
            map_aggregate(node._meta, encode) if node._meta else None,
        )
        for node in graph.nodes
    ]
    tracer = graph._tracer_cls
    if tracer is not None and not _is_importable(tracer):
        tracer = None
    return type(graph), rows, tracer, graph._tracer_extras, graph._chosen_codegen


def unpack(kind: type[Graph], rows: list[Any], tracer: type | None, extras: Any, codegen: Any) -> Graph:
    """A graph from the rows that ``pack`` made."""
    graph = kind(tracer_cls=tracer, tracer_extras=extras)
    nodes: list[Any] = []

    def decode(leaf: Any) -> Any:
        if type(leaf) is Index:
            return nodes[leaf]
        return resolve_name(leaf.name) if type(leaf) is Named else leaf

    metas = []
    for op, name, target, args, kwargs, annotation, value_type, source, meta in rows:
        node = graph.create_node(
            op, decode(target), map_aggregate(args, decode), map_aggregate(kwargs, decode), name, annotation
        )
        node.value_type = value_type
        node.source = source
        nodes.append(node)
        metas.append(meta)
    for node, meta in zip(nodes, metas, strict=True):
        if meta:
            node.meta.update(map_aggregate(meta, decode))
    graph._chosen_codegen = codegen
    return graph


def _portable(value: Any) -> Any:
    """The value itself, or its name where pickle would fail on it (overloads of torch.ops are such)."""
    if not callable(value) or isinstance(value, type) or not type(value).__module__.startswith("torch._ops"):
        return value
    return Named(qualified_name(value))


def _is_importable(kind: type) -> bool:
    try:
        pickle.dumps(kind)
    except (pickle.PicklingError, AttributeError):
        return False
    return True


def resolve_name(name: str) -> Any:
    """The object behind a dotted name: the longest importable prefix, then attributes."""
    atoms = name.split(".")
    for cut in range(len(atoms), 0, -1):
        module_name = ".".join(atoms[:cut])
        module = sys.modules.get(module_name)
        if module is None and cut == 1:
            module = importlib.import_module(module_name)
        if module is None:
            continue
        found: Any = module
        for atom in atoms[cut:]:
            if not hasattr(found, atom):
                raise TextError(f"{name} cannot be found: {'.'.join(atoms[:cut])} has no attribute {atom!r}")
            found = getattr(found, atom)
        return found
    raise TextError(f"{name!r} is not a dotted name")
