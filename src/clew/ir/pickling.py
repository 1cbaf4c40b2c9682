"""Graphs and values as data for pickle that loads where the code they were made with is not.

Values: functions and classes are saved by name; arrays and modules of frameworks are handed back, for whoever saves the
whole to save by its own means. On loading, a class that is gone becomes a record of the same name, a function that is
gone something that says so when it is called. Graphs: a flat table, a column for each field and no recursion over
nodes; arguments have holes where nodes stand, so that equal arguments are one object. Notes in ``meta`` that pickle
refuses (fake tensors) stay behind. Always holds: loading runs no source code.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib
import io
import pickle
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from clew.errors import GraphError
from clew.ir.arguments import FLAT, Reference, all_nodes, map_aggregate
from clew.ir.gc_pause import CollectorPaused
from clew.ir.guests import FRAMEWORK_PACKAGES
from clew.ir.names import OPEN_PACKAGES, NotFound, find, name_for
from clew.ir.node import Node, set_source, set_type

if TYPE_CHECKING:
    from clew.ir.graph import Graph


_SURE = OPEN_PACKAGES | frozenset(sys.stdlib_module_names)
"""Packages that are there wherever a graph is loaded, or whose absence nothing helps."""
_namedtuple: Any = collections.namedtuple
_HOLDING = ("__array__", "state_dict")
"""What arrays, modules and optimizers have."""


# ---- values ----------------------------------------------------------------------------------------------------------


class Missing:
    """Stands for a function that is not there; ``fix`` is what to do about it, if more is known than its name."""

    __slots__ = ("__name__", "fix", "name")

    def __init__(self, name: str, fix: str = "") -> None:
        self.name = name
        self.fix = fix
        self.__name__ = name.rpartition(".")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise missing([self.name], self.fix)

    def __reduce__(self) -> tuple[Any, ...]:
        return Missing, (self.name, self.fix)


def missing(names: list[str], fix: str = "") -> GraphError:
    """The error for functions that a graph calls and that are not there."""
    return GraphError(
        f"the graph calls what cannot be found here: {', '.join(names)}",
        why="a saved graph holds the names of functions and of classes of modules, not their code",
        fixes=(fix or "make importable what has them, under the same name",),
    )


class Record:
    """What an object held whose class is not there, by attribute, and by name or number as an item."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        fields = getattr(type(self), "_record_fields", ())
        vars(self).update({**dict(zip(fields, args, strict=False)), **kwargs})

    def __getitem__(self, key: Any) -> Any:
        return vars(self)[key] if isinstance(key, str) else tuple(vars(self).values())[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return record_of, (*_record_name(type(self)), "object", vars(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class MappingRecord(OrderedDict[Any, Any]):
    """The same for a class of dicts; a number as a key asks for one of the values in their order."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, slice)) and key not in self:
            return tuple(self.values())[key]
        return super().__getitem__(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return record_of, (*_record_name(type(self)), "mapping", dict(self))

    def to_tuple(self) -> tuple[Any, ...]:
        """The values in their order."""
        return tuple(self.values())


def dumps(value: Any) -> tuple[bytes, list[Any]]:
    """A value as bytes, and the arrays and modules in it, which are saved beside."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    return file.getvalue(), pickler.beside


def loads(data: bytes, beside: list[Any]) -> Any:
    """The value that was saved."""
    return _Unpickler(io.BytesIO(data), beside).load()


class Kept:
    """A value that pickle saves in this way, and that comes back as itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return loads, dumps(self.value)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=4)
        self.beside: list[Any] = []
        self._places: dict[int, int] = {}

    def reducer_override(self, value: Any) -> Any:
        """Code by its name, what frameworks hold by its number; all else as pickle does it."""
        if isinstance(value, type):
            return NotImplemented if is_sure(value) else (class_at, (*_name_of(value), shape_of_class(value)))
        if isinstance(value, FunctionType):
            is_named = not is_sure(value) and _found(*_name_of(value)) is value
            return (function_at, _name_of(value)) if is_named else NotImplemented
        kind: Any = type(value)
        if not _is_of_framework(kind):
            place = None if not callable(value) or _can_be_pickled(value) else home_of(value)
            return NotImplemented if place is None else (function_at, place)
        if id(value) not in self._places:
            self._places[id(value)] = len(self.beside)
            self.beside.append(value)
        return beside, (self._places[id(value)],)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, held: list[Any]) -> None:
        super().__init__(file)
        self._held = held

    def find_class(self, module: str, name: str) -> Any:
        """What pickle looks for by name; what lies beside the bytes is found here."""
        if module == __name__ and name == "beside":
            return self._held.__getitem__
        return super().find_class(module, name)


def beside(place: int) -> Any:
    """What lies beside the bytes; only the loading itself knows it."""
    raise pickle.UnpicklingError("an array or module of a saved graph is looked for outside of it")


def function_at(module: str, name: str) -> Any:
    """A function by its name, or what says that it is missing."""
    found = _found(module, name, imports=True)
    return Missing(f"{module}.{name}") if found is None else found


def class_at(module: str, name: str, shape: tuple[str, tuple[str, ...]]) -> Any:
    """A class by its name, or one of records."""
    found = _found(module, name, imports=True)
    return found if isinstance(found, type) else record_class(module, name, *shape)


@functools.lru_cache(maxsize=1024)
def record_class(module: str, name: str, kind: str, fields: tuple[str, ...]) -> Any:
    """A class of records that bears the name of one that is not there."""
    last = name.rpartition(".")[2]
    base: Any = {"mapping": MappingRecord, "tuple": tuple}.get(kind, Record)
    made: Any = type(last, (base,), {"_record_fields": fields})
    if base is tuple and fields:
        made = _namedtuple(last, fields)
    made.__module__, made.__qualname__ = module, name
    return made


def _record_name(kind: Any) -> tuple[str, str, tuple[str, ...]]:
    return kind.__module__, kind.__qualname__, kind._record_fields


def record_of(module: str, name: str, fields: tuple[str, ...], kind: str, held: dict[str, Any]) -> Any:
    """What a record held, as an object of the class whose name it bears, if that is there."""
    return class_at(module, name, (kind, fields))(**held)


def is_record_class(value: Any) -> bool:
    """Whether a class was made because the one of its name is not there."""
    return isinstance(value, type) and "_record_fields" in vars(value) and not issubclass(value, tuple)


def is_sure(code: Any) -> bool:
    """Whether a function or class is found wherever a graph is loaded."""
    is_of_framework = str(code.__module__).partition(".")[0] in _SURE
    is_known = any(code is one for one in _NAMELESS)
    return is_of_framework and (not isinstance(code, type) or is_known or _found(*_name_of(code)) is code)


_NAMELESS = (type(None), type(...), type(NotImplemented))
"""Classes that pickle knows by themselves, since no module has their names."""


def _name_of(code: Any) -> tuple[str, str]:
    return code.__module__, code.__qualname__


def shape_of_class(kind: Any) -> tuple[str, tuple[str, ...]]:
    """What a record needs to know of a class."""
    if issubclass(kind, tuple):
        return "tuple", tuple(getattr(kind, "_fields", ()))
    names = tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
    return ("mapping" if issubclass(kind, dict) else "object"), names


@functools.lru_cache(maxsize=4096)
def _is_of_framework(kind: Any) -> bool:
    is_theirs = kind.__module__.partition(".")[0] in FRAMEWORK_PACKAGES
    return is_theirs and any(hasattr(kind, name) for name in _HOLDING)


def _can_be_pickled(value: Any) -> bool:
    """Whether an object knows how it is saved."""
    try:
        value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    except (pickle.PickleError, TypeError):
        return False
    return True


def home_of(value: Any) -> tuple[str, str] | None:
    """The loaded module and the name under which it holds an object, a compiled function say; None if none does."""
    for module, loaded in list(sys.modules.items()):
        for name, held in list(getattr(loaded, "__dict__", {}).items()):
            if held is value:
                return module, name
    return None


def _found(module: str, name: str, imports: bool = False) -> Any:
    """What stands under a name in a module; None if the module or the name is not there."""
    found = sys.modules.get(module)
    if found is None and imports:
        try:
            found = importlib.import_module(module)
        except ImportError:
            return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


# ---- graphs ----------------------------------------------------------------------------------------------------------


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
