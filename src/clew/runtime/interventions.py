"""Interventions: what modules return is changed or kept while a captured program runs, and its graph is not edited.

``patch`` and ``record`` give contexts; single values are addressed by their nodes. Calls made inside of one, in the
same thread, run a copy of the graph in which what is meant goes through a function that asks the contexts; such copies
are kept until the graph is edited, so that the next context for the same values costs nothing.
Always holds: a program that no context is open for is called as if there were none; when the last one is left, however
that happens, all is as it was before.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from clew.errors import GraphError, a_or_an
from clew.ir.graph import Graph
from clew.ir.module_calls import (
    ModuleCall,
    Record,
    all_calls,
    as_returned,
    call_named,
    calls_at,
    mapped,
    path_pattern,
    value_at,
    value_named,
)
from clew.ir.node import Node
from clew.ir.shared_memory import SharedMemory
from clew.runtime.surgery import calls_to_change, check_separable, redirect

_ACTIVE: ContextVar[tuple[Intervention, ...]] = ContextVar("clew_interventions", default=())
_RUNNING: ContextVar[dict[str, list[Intervention]]] = ContextVar("clew_intervened_run", default={})  # noqa: B039
_LOCK = threading.RLock()
_MOST_VARIANTS = 64

Address = str | tuple[str, int] | Node
"""A path of modules or a pattern of such, (path, number of the call), a node, or the name of a node or variable."""


# ---- contexts --------------------------------------------------------------------------------------------------------


class Intervention:
    """A context in which what some modules of a captured program return is changed or kept."""

    def __init__(self, owner: Any, addresses: tuple[Address, ...], call: int | None) -> None:
        self.owner = owner
        self.addresses = addresses
        self.call = call
        self._opened: list[Any] = []

    def __enter__(self) -> Any:
        if self._opened or self in _ACTIVE.get():
            raise GraphError("a context of patch() or record() is open and entered again", fixes=["make another one"])
        try:
            with _LOCK:
                for captured in self.owner._captures_to_watch():
                    self.watch(captured)
                self.owner._watch_captures(self, True)
        except BaseException:
            self.__exit__()
            raise
        _ACTIVE.set((*_ACTIVE.get(), self))
        return self.entered()

    def __exit__(self, *error: object) -> None:
        _ACTIVE.set(tuple(one for one in _ACTIVE.get() if one is not self))
        self.owner._watch_captures(self, False)
        with _LOCK:
            while self._opened:
                self._opened.pop()._leave_intervention()

    def watch(self, captured: Any) -> None:
        """From now on the calls of a captured program ask for this context."""
        if not isinstance(captured, Intervening):
            raise GraphError(f"{a_or_an(captured)} runs outside of Clew, where no value can be patched or recorded")
        self.keys_in(captured)
        captured._enter_intervention()
        self._opened.append(captured)

    def keys_in(self, captured: Any) -> dict[str, Address]:
        """What is meant in a program, with the names by which users know it."""
        found: dict[str, Address] = {}
        for address in self.addresses:
            for one in self._meant(captured.graph, address):
                found[one.key] = address if one.is_value else one.path if one.number == 1 else (one.path, one.number)
        return found

    def _meant(self, graph: Graph, address: Address) -> list[ModuleCall]:
        """The calls of modules, or the value, that an address means in a graph."""
        if isinstance(address, Node):
            return [value_at(graph, address)]
        path, call = address if isinstance(address, tuple) and len(address) == 2 else (address, self.call)
        if path is address and isinstance(path, str):
            wanted = path_pattern(path)
            is_module = any(wanted.fullmatch(one.path) for one in all_calls(graph))
            value = None if is_module else value_named(graph, path)
            if value is not None:
                return [value_at(graph, value)]
        return self.calls_in(graph, path, call)

    def calls_in(self, graph: Graph, path: str, call: int | None) -> list[ModuleCall]:
        """The calls of a graph that fit a path."""
        return calls_at(graph, path, call)

    def entered(self) -> Any:
        """What ``with ... as`` gives."""
        return self

    def begin(self, keys: dict[str, Address]) -> None:
        """A run begins in which the calls ``keys`` are asked for."""

    def seen(self, call: ModuleCall, value: Any) -> Any:
        """What others see instead of the value that a call returned."""
        raise NotImplementedError


class Patch(Intervention):
    """Changes what modules return: to a value, or to what a function makes of it."""

    def __init__(self, owner: Any, address: Address, change: Any, call: int | None) -> None:
        super().__init__(owner, (address,), call)
        self.change = change if callable(change) else lambda value: change

    def calls_in(self, graph: Graph, path: str, call: int | None) -> list[ModuleCall]:
        return calls_to_change(graph, path, call)

    def seen(self, call: ModuleCall, value: Any) -> Any:
        return self.change(value)


class Recorded(dict[Any, Any]):
    """What modules returned in the latest run, by their paths; for the second call of one the key is (path, 2). What
    is addressed by a node has that as its key."""


class Recording(Intervention):
    """Keeps what modules return."""

    def __init__(self, owner: Any, addresses: tuple[Address, ...], call: int | None) -> None:
        super().__init__(owner, addresses, call)
        self.values = Recorded()
        self._names: dict[str, Address] = {}

    def entered(self) -> Recorded:
        return self.values

    def begin(self, keys: dict[str, Address]) -> None:
        self.values.clear()
        self._names = keys

    def seen(self, call: ModuleCall, value: Any) -> Any:
        self.values[self._names[call.key]] = value
        return value


class Intervening:
    """What captured functions and modules have for interventions."""

    __slots__ = ()
    graph: Graph
    _intervened = 0
    """How many contexts are open for this program, in all threads."""

    def patch(self, path: Address, change: Any, call: int | None = None) -> Intervention:
        """A context in which what the module at ``path`` returns is another value, or what a function makes of it.

        ``path`` may be a pattern (``transformer.h.*.mlp``); ``call``, or ``(path, 2)``, chooses one call of a module
        that is called several times. The function gets the value as the module returned it, a tuple for a tuple. A
        node, the name of one, or of a variable of the user's, is a single value, whoever computes it.
        """
        return Patch(self, path, change, call)

    def record(self, *paths: Address, call: int | None = None) -> Intervention:
        """A context that gives a dict: what the modules at these paths returned in the latest run inside of it. Nodes,
        and names of such, are single values."""
        if not paths:
            raise GraphError("record() needs the path of a module", fixes=["captured.record('encoder.layer.*')"])
        return Recording(self, paths, call)

    def _captures_to_watch(self) -> list[Any]:
        """The programs that calls of this object run."""
        return [self]

    def _watch_captures(self, one: Intervention, begins: bool) -> None:
        """Let programs that are captured later be watched too."""

    def _enter_intervention(self) -> None:
        self.__dict__["_intervened"] = self._intervened + 1
        if self._intervened == 1:
            self._ask_interventions(True)

    def _leave_intervention(self) -> None:
        self.__dict__["_intervened"] = self._intervened - 1
        if not self._intervened:
            self._ask_interventions(False)
            self.__dict__.pop("_intervened", None)

    def _ask_interventions(self, asks: bool) -> None:
        """Let calls ask for interventions, or no more."""
        raise NotImplementedError

    def _with_graph(self, graph: Graph) -> Callable[..., Any]:
        """Another graph as a function over what this program works on."""
        raise NotImplementedError


def is_active(contexts: tuple[Intervention, ...]) -> bool:
    """Whether one of these contexts is open here."""
    return bool(contexts) and any(one in contexts for one in _ACTIVE.get())


def active_for(captured: Any) -> list[Intervention]:
    """The contexts that are open here for a captured program, in the order in which they were entered."""
    return [one for one in _ACTIVE.get() if any(known is captured for known in one._opened)]


def run_intervened(captured: Any, active: list[Intervention], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a captured program with these interventions."""
    asked: dict[str, list[Intervention]] = {}
    changed: dict[str, None] = {}
    for one in active:
        keys = one.keys_in(captured)
        one.begin(keys)
        changed.update(dict.fromkeys(keys) if isinstance(one, Patch) else {})
        for key in keys:
            asked.setdefault(key, []).append(one)
    variant = _variant(captured, tuple((key, key in changed) for key in sorted(asked)))
    token = _RUNNING.set(asked)
    try:
        return variant(*args, **kwargs)
    finally:
        _RUNNING.reset(token)


# ---- graphs that ask -------------------------------------------------------------------------------------------------


def _variant(captured: Any, keys: tuple[tuple[str, bool], ...]) -> Callable[..., Any]:
    """The program with questions behind these calls; whether their values are changed as well as looked at."""
    with _LOCK:
        variants: dict[Any, Callable[..., Any]]
        graph, variants = captured.__dict__.get("_variants") or (None, {})
        if graph is not captured.graph:
            variants = {}
            captured.__dict__["_variants"] = (captured.graph, variants)
        if not variants:
            captured.graph.on_change(variants.clear)
        if keys not in variants:
            if len(variants) >= _MOST_VARIANTS:
                variants.clear()
            variants[keys] = captured._with_graph(_asking(captured, dict(keys)))
        return variants[keys]


def _asking(captured: Any, keys: dict[str, bool]) -> Graph:
    """A copy of the graph in which what these calls return goes through questions."""
    graph = copy.deepcopy(captured.graph)
    graph.owning_module = captured.graph.owning_module
    memory: dict[int, SharedMemory] = {}
    fates = []
    for key in keys:
        for call in call_named(graph, key):
            place = id(call.graph)
            if place not in memory:
                memory[place] = SharedMemory(call.graph, graph.owning_module, inputs_apart=True)
            fates.append(_fates(call, memory[place]))
    waiting = iter(fates)
    for key, is_changed in keys.items():
        for call in call_named(graph, key):
            _insert_question(call, is_changed, next(waiting))
    return graph


class _Fate(NamedTuple):
    """What becomes of a value that a call returned: it is overwritten; the program may go on with a copy."""

    is_overwritten: bool
    may_part: bool


def _fates(call: ModuleCall, memory: SharedMemory) -> list[_Fate]:
    known = [node for node in call.results if node in memory.places]
    last = max((memory.places[node] for node in known), default=0)
    is_separable = True
    try:
        check_separable(call)
    except GraphError:
        is_separable = False
    lost = [any(memory.places[one] > last for one in memory.writers_of(node)) for node in call.results]
    pairs = zip(call.results, lost, strict=True)
    return [_Fate(one, one and is_separable and _is_alone(node, last, memory)) for node, one in pairs]


def _insert_question(call: ModuleCall, is_changed: bool, fates: list[_Fate]) -> None:
    question = Question(call, fates)
    graph = call.graph

    def make(nodes: list[Node]) -> list[Any]:
        asked = graph.call_function(question, tuple(nodes))
        if not is_changed and not any(fate.may_part for fate in fates):
            return list(nodes)
        return [graph.call_function(_item, (asked, place)) for place in range(len(nodes))]

    redirect(call, make)


def _is_alone(node: Node, last: int, memory: SharedMemory) -> bool:
    """Whether nothing that is used behind a call may share memory with what it returned, but through that."""
    group = memory.find(node)
    for other, place in memory.places.items():
        if place <= last and other is not node and memory.find(other) is group:
            is_outside = other.op in ("placeholder", "get_attr")
            if is_outside or any(memory.places.get(user, place) > last for user in other.users):
                return False
    return True


def _item(values: tuple[Any, ...], place: int) -> Any:
    return values[place]


class Question:
    """Called behind a call of a module, with the values that it returned: asks the contexts of this run."""

    __name__ = "intervene"

    def __init__(self, call: ModuleCall, fates: list[_Fate]) -> None:
        numbers = {node: place for place, node in enumerate(call.results)}
        self._call = ModuleCall(call.key, call.path, Graph(), (), {}, None)
        self._shape = mapped(call.result, lambda leaf: _Place(numbers[leaf]) if isinstance(leaf, Node) else leaf)
        self._fates = fates

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        for one in _RUNNING.get().get(self._call.key, ()):
            is_kept = isinstance(one, Recording)
            given = values
            if is_kept:
                given, values = self._kept(values)
            whole = as_returned(mapped(self._shape, functools.partial(_value, given)))
            seen = one.seen(self._call, whole)
            if not is_kept:
                found = dict(self._taken(self._shape, seen, values))
                values = tuple(found[place] for place in range(len(values)))
        return values

    def _kept(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The values to keep, and those to go on with: other objects where a value is overwritten later."""
        kept, further = [], []
        for value, fate in zip(values, self._fates, strict=True):
            copied = value.clone() if fate.is_overwritten and hasattr(value, "clone") else value
            kept.append(value if fate.may_part else copied)
            further.append(copied if fate.may_part else value)
        return tuple(kept), tuple(further)

    def _taken(self, shape: Any, value: Any, before: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
        """The values of the places in a nest, out of what a function gave for it."""
        if isinstance(shape, _Place):
            yield shape.number, value
        elif isinstance(shape, (tuple, list)):
            if not isinstance(value, (tuple, list)) or len(value) != len(shape):
                raise self._mismatch(shape, value)
            for one, item in zip(shape, value, strict=True):
                yield from self._taken(one, item, before)
        elif isinstance(shape, (dict, Record)):
            items = shape.items if isinstance(shape, Record) else shape
            held = {key for key, one in items.items() if one is not None}
            if not isinstance(value, Mapping) or not held <= set(value):
                raise self._mismatch(shape, value)
            for key in items:
                yield from self._taken(items[key], value.get(key), before)
        elif value is not shape and value != shape:
            raise self._mismatch(shape, value)

    def _mismatch(self, shape: Any, value: Any) -> GraphError:
        whole = _told(self._shape)
        part = "" if shape is self._shape else f" in the place of {_told(shape)}"
        return GraphError(
            f"a patch of {self._call.path!r} gave {a_or_an(value)}{part}, and the module returns {whole}",
            fixes=["give all that the module returns, in the same order; what is no array stays as it is"],
        )


class _Place:
    """The place of a value in what a module returned."""

    def __init__(self, number: int) -> None:
        self.number = number


def _value(values: tuple[Any, ...], leaf: Any) -> Any:
    return values[leaf.number] if isinstance(leaf, _Place) else leaf


def _told(shape: Any) -> str:
    """What a module returns, in words."""
    if isinstance(shape, _Place):
        return "a value"
    if isinstance(shape, (tuple, list)):
        inner = ", ".join(map(_told, shape))
        return f"({inner})" if isinstance(shape, tuple) else f"[{inner}]"
    if isinstance(shape, (dict, Record)):
        items = shape.items if isinstance(shape, Record) else shape
        return "{" + ", ".join(f"{key!r}: {_told(item)}" for key, item in items.items()) + "}"
    return repr(shape)
