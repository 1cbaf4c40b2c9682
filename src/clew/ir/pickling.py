"""Graphs as a flat table for pickle: no recursion over nodes, no source code run on loading.

A node becomes a row of a table that is kept by columns. Arguments are written with holes where nodes stand, and the
numbers of these nodes, in order, are a column of their own; so equal arguments are one object, and a large graph makes
few objects for pickle. What most nodes do not have (keywords, annotations, notes) is kept by the number of the row.
Functions and classes travel by name (``portable``), those that bear no name of their own by the one that users know.
Notes in ``meta`` that pickle refuses (fake tensors) stay behind, and classes there are names; the program is whole.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from clew.ir.arguments import Reference, map_aggregate
from clew.ir.collector import CollectorPaused
from clew.ir.lookup import NotFound, find, name_for
from clew.ir.nested import FLAT, all_nodes
from clew.ir.node import Node, set_source, set_type
from clew.ir.portable import Missing, dumps, is_record_class, is_sure, loads, missing

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


class Hole:
    """What stands in arguments for a node; there is only one, which pickle finds by its name."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "HOLE"


HOLE = Hole()
_SHARED = frozenset({Hole, int, bool, str, type(None)})
"""Classes whose values are the same if they are equal, which 0.0 and -0.0 are not."""
_FLAT = _SHARED | {float}


@dataclass
class Table:
    """The nodes of a graph, by columns."""

    ops: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    targets: list[Any] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    keywords: dict[int, Any] = field(default_factory=dict)
    uses: list[int] = field(default_factory=list)
    """The numbers of the nodes that go into the holes of arguments and keywords, row by row."""
    annotations: dict[int, Any] = field(default_factory=dict)
    value_types: dict[int, Any] = field(default_factory=dict)
    sources: dict[int, Any] = field(default_factory=dict)
    metas: dict[int, Any] = field(default_factory=dict)


class _Packer:
    """Fills the table of one graph; what was found out about a function or a note is remembered."""

    def __init__(self, graph: Graph) -> None:
        self.places: dict[Any, Index] = {node: Index(place) for place, node in enumerate(graph.nodes)}
        self.table = Table()
        self.uses = self.table.uses
        self.seen: dict[int, tuple[Any, Any]] = {}
        self.taken: dict[int, tuple[bool, Any]] = {}
        self.known: dict[Any, tuple[Any, ...]] = {}

    def row(self, place: int, node: Any) -> None:
        """Add a node to the table."""
        table = self.table
        table.ops.append(node.op)
        table.names.append(node.name)
        table.targets.append(self.target(node.target))
        table.arguments.append(self.arguments(node.args))
        if node.kwargs:
            table.keywords[place] = map_aggregate(node.kwargs, self.with_hole)
        if node.type is not None:
            table.annotations[place] = node.type
        if node.value_type is not None:
            table.value_types[place] = node.value_type
        if node.source is not None:
            table.sources[place] = node.source
        meta = self.meta(node._meta) if node._meta else None
        if meta:
            table.metas[place] = meta

    def arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments with holes; those that are flat and alike are one object."""
        if FLAT.issuperset(map(type, args)):
            holed = tuple([self.with_hole(item) if type(item) is Node else item for item in args])
        else:
            holed = map_aggregate(args, self.with_hole)
        kinds = tuple(map(type, holed))  # because 1 and True are equal
        return self.known.setdefault((holed, kinds), holed) if _SHARED.issuperset(kinds) else holed

    def with_hole(self, leaf: Any) -> Any:
        """A leaf of an argument; the number of a node is noted, a node of another graph is nothing."""
        if not isinstance(leaf, Reference):
            return self.encode(leaf)
        place = self.places.get(leaf)
        if place is None:
            return None
        self.uses.append(int(place))
        return HOLE

    def encode(self, leaf: Any) -> Any:
        """A leaf of a note: nodes as numbers, functions by a way that pickle can go."""
        if isinstance(leaf, Reference):
            return self.places.get(leaf)
        return self.target(leaf) if callable(leaf) and not isinstance(leaf, type) else leaf

    def note(self, leaf: Any) -> Any:
        """A leaf of a note; classes that need not be there where the graph is loaded are names."""
        if isinstance(leaf, type) and not is_sure(leaf):
            return f"{leaf.__module__}.{leaf.__qualname__}"
        return self.encode(leaf)

    def target(self, target: Any) -> Any:
        """A function as it is if pickle finds it, otherwise by name."""
        if isinstance(target, str):
            return target
        known = self.seen.get(id(target))
        if known is None:
            known = self.seen[id(target)] = (_portable(target), target)
        return known[0]

    def meta(self, meta: dict[str, Any]) -> dict[str, Any]:
        """The notes that pickle takes."""
        return {key: map_aggregate(value, self.note) for key, value in meta.items() if self._is_portable(value)}

    def _is_portable(self, value: Any) -> bool:
        if isinstance(value, (str, int, float, bool, Reference)):
            return True
        known = self.taken.get(id(value))
        if known is None:
            known = self.taken[id(value)] = (_can_pickle(map_aggregate(value, self.note)), value)
        return known[0]


def pack(graph: Graph) -> tuple[Any, ...]:
    """The arguments from which ``unpack`` makes an equal graph."""
    with CollectorPaused():
        packer = _Packer(graph)
        for place, node in enumerate(graph.nodes):
            packer.row(place, node)
    tracer = graph._tracer_cls
    if tracer is not None and not _can_pickle(tracer):
        tracer = None
    columns = tuple(vars(packer.table).values())
    guards = tuple(one.translated(packer.encode) for one in graph._guards)
    return type(graph), *dumps((columns, tracer, graph._tracer_extras, graph._chosen_codegen, guards))


def unpack(kind: type[Graph], data: bytes, beside: list[Any]) -> Graph:
    """A graph from the columns that ``pack`` made."""
    columns, tracer, extras, codegen, guards = loads(data, beside)
    graph = kind(tracer_cls=None if is_record_class(tracer) else tracer, tracer_extras=extras)
    with CollectorPaused():
        unpacker = _Unpacker(graph, Table(*columns))
        unpacker.fill()
    graph._chosen_codegen = codegen
    graph._guards = tuple(one.translated(unpacker.decode) for one in guards)
    return graph


class _Unpacker:
    """Makes the nodes of a graph from its table."""

    def __init__(self, graph: Graph, table: Table) -> None:
        self.graph = graph
        self.table = table
        self.nodes: list[Any] = []
        self.uses = iter(table.uses)
        self.found: dict[str, Any] = {}

    def fill(self) -> None:
        """Add all nodes, then what is known of them besides."""
        table = self.table
        append = self.graph._append_exact
        for place, row in enumerate(zip(table.ops, table.names, table.targets, table.arguments, strict=True)):
            op, name, target, args = row
            target = self.decode(target)
            args = self.arguments(args)
            keywords = map_aggregate(table.keywords[place], self.filled) if place in table.keywords else None
            self.nodes.append(append(op, name, target, args, keywords, table.annotations.get(place)))
        for place, value_type in table.value_types.items():
            set_type(self.nodes[place], value_type)
        for place, source in table.sources.items():
            set_source(self.nodes[place], source)
        for place, meta in table.metas.items():
            self.nodes[place].meta.update({key: map_aggregate(value, self.decode) for key, value in meta.items()})

    def arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments with nodes in the holes."""
        if not _FLAT.issuperset(map(type, args)):
            return map_aggregate(args, self.filled)  # type: ignore[no-any-return]
        nodes, uses = self.nodes, self.uses
        return tuple([nodes[next(uses)] if item is HOLE else item for item in args])

    def filled(self, leaf: Any) -> Any:
        """A leaf of an argument as it was."""
        return self.nodes[next(self.uses)] if leaf is HOLE else self.decode(leaf)

    def decode(self, leaf: Any) -> Any:
        """A function, or a leaf of a note, as it was."""
        kind = type(leaf)
        if kind is Index:
            return self.nodes[leaf]
        if kind is not Named:
            return leaf
        if leaf.name not in self.found:
            try:
                self.found[leaf.name] = find(leaf.name)
            except NotFound:
                self.found[leaf.name] = Missing(leaf.name)
        return self.found[leaf.name]


def check_found(graph: Graph) -> None:
    """Raise if a graph that was loaded calls functions that are not there: one error for all of them."""
    targets = [node.target for node in all_nodes(graph) if node.op == "call_function"]
    names = [target.name for target in targets if type(target) is Missing]
    names += [f"{target.__module__}.{target.__qualname__}" for target in targets if is_record_class(target)]
    if names:
        raise missing(list(dict.fromkeys(names)))


def _portable(value: Any) -> Any:
    """The value itself where pickle finds it by its own name, otherwise the name under which users find it."""
    if isinstance(value, type) or (isinstance(value, (FunctionType, BuiltinFunctionType)) and _is_where_it_says(value)):
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
