"""The result of a run, and the values that it wrote, as arguments of nodes.

In come values of the finished run; out come nodes, plain values and nested containers of these. A list or dict that
two places hold is built once; objects are rebuilt without their constructors; what holds itself, or is a function over
values of this run, is refused. An iterator that the program returns is drained: the graph computes all items at the
call and checks, with each item handed out, that nothing has changed which the original would see.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from types import BuiltinFunctionType, FunctionType, GeneratorType, SimpleNamespace
from typing import Any

from clew.capture.recording.list_proxies import ListProxy, StateListProxy, TupleProxy
from clew.capture.recording.recorder import Recorder, Scalar
from clew.capture.state.containers import (
    CODE,
    attributes_of,
    contents,
    follows,
    has_attributes,
    same_contents,
    set_attributes,
)
from clew.codegen.scope import Scope
from clew.codegen.statements import SHOWN
from clew.errors import CaptureError, GuardError, a_or_an
from clew.ir.effects import pure
from clew.ir.guests import FRAMEWORK_PACKAGES, is_plain_value
from clew.ir.names import snake_case

_CONSTANTS = (str, bytes, complex, int, float, bool, type(None), type(...), enum.Enum, range)


@pure
def rebuild(kind: type, state: dict[str, Any]) -> Any:
    """An object of a class with these attributes, made without its constructor."""
    made: Any = kind.__new__(kind) if issubclass(kind, SimpleNamespace) else object.__new__(kind)
    set_attributes(made, state)
    return made


@pure
def rebuild_mapping(kind: type, items: dict[Any, Any], state: dict[str, Any]) -> Any:
    """A dict of a class of its own with these items and attributes."""
    made: Any = (OrderedDict if issubclass(kind, OrderedDict) else dict).__new__(kind)
    put = OrderedDict.__setitem__ if isinstance(made, OrderedDict) else dict.__setitem__
    for key, value in items.items():
        put(made, key, value)
    for name, value in state.items():  # one by one, as compilers that read this understand it
        object.__setattr__(made, name, value)
    return made


def _shown(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    """An object that is made anew, for people: its class with what it holds; what is None is left out."""
    kind, *parts = args
    held: dict[Any, Any] = {}
    for part in parts:
        held |= part if isinstance(part, dict) else {}
    if not all(isinstance(name, str) and name.isidentifier() for name in held):
        return None
    fields = ", ".join(f"{name}={scope.spell(value)}" for name, value in held.items() if value is not None)
    return f"{scope.spell(kind)}({fields})"


SHOWN[rebuild] = SHOWN[rebuild_mapping] = _shown


WHOLE = {"builtins", "numpy"}
"""Packages whose objects are never looked into; frameworks add theirs."""


def plain(recorder: Recorder, value: Any) -> Any:
    """A result of the recorded run as the program itself would give it: plain numbers, original objects."""
    kind = type(value)
    if issubclass(kind, Scalar):
        return value.plain
    if recorder.is_array(value):
        return recorder.original(value)
    if kind is StateListProxy:
        return value.original
    if kind is DrainedIterator:
        items = [plain(recorder, item) for item in value.items]
        return recorder.hand_out(value.kind, items, plain(recorder, value.value), value.watched)
    if id(value) in recorder.objects:
        return value  # it came in, and is put in order with all that came in
    if _is_traced_range(value):
        return range(*(plain(recorder, part) for part in (value.start, value.stop, value.step)))
    if kind is tuple:
        return tuple(plain(recorder, item) for item in value)
    if kind is list:
        value[:] = [plain(recorder, item) for item in value]
        return value
    if isinstance(value, dict) and kind.__module__.partition(".")[0] not in FRAMEWORK_PACKAGES:
        return _plain_mapping(recorder, value)
    if isinstance(value, tuple):
        items = [plain(recorder, item) for item in value]
        return kind(*items) if hasattr(value, "_fields") else value.__class__(items)
    if kind in (set, frozenset):
        return kind(plain(recorder, item) for item in value)
    if isinstance(value, deque):
        items = [plain(recorder, item) for item in value]
        value.clear()
        value.extend(items)
    if kind.__module__.partition(".")[0] not in WHOLE and _has_state(value):
        set_attributes(value, {name: plain(recorder, part) for name, part in attributes_of(value).items()})
    return value


def _plain_mapping(recorder: Recorder, value: Any) -> Any:
    """The same dict with plain values: it may be held in two places."""
    put = OrderedDict.__setitem__ if isinstance(value, OrderedDict) else dict.__setitem__
    items = [(recorder.concrete(key), plain(recorder, part)) for key, part in value.items()]
    if any(key is not known for (key, _), known in zip(items, value, strict=True)):
        value.clear()
    for key, part in items:
        put(value, key, part)
    if type(value).__module__ not in ("builtins", "collections") and hasattr(value, "__dict__"):
        vars(value).update({name: plain(recorder, part) for name, part in vars(value).items()})
    return value


def _is_traced_range(value: Any) -> bool:
    """Whether something stands for a range of traced numbers."""
    return value.__class__ is range and type(value) is not range


def held_by_function(function: FunctionType) -> Iterator[Any]:
    """What a function holds in its closure and as default values."""
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # one that is not filled
            yield cell.cell_contents
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()


def _can_be_made(kind: type) -> bool:
    """Whether ``rebuild`` can make an object of a class: one that has its memory laid out by C cannot be."""
    try:
        rebuild(kind, {})
    except TypeError:
        return False
    return True


def _has_state(value: Any) -> bool:
    return not isinstance(value, CODE) and has_attributes(value)


def _is_fixed(value: Any) -> bool:
    """Whether a value is a plain one of a framework's; a shape put together by the program may hold traced numbers."""
    if not is_plain_value(value):
        return False
    return not isinstance(value, tuple) or not any(issubclass(type(item), Scalar) for item in value)


class Outputs:
    """Turns values of the finished run into arguments of nodes."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._made: dict[int, tuple[Any, Any]] = {}
        self._times: dict[int, int] = {}
        self._open: set[int] = set()

    def look_at(self, value: Any) -> None:
        """Count in how many places each list and dict stands, before any is built."""
        if type(value) in (list, dict) and id(value) not in self.recorder.objects:
            self._times[id(value)] = self._times.get(id(value), 0) + 1
            if self._times[id(value)] > 1:
                return
        if isinstance(value, (list, tuple)):
            items = list.__iter__(value) if type(value) is StateListProxy else value  # which is no look of the program
            for item in () if issubclass(type(value), (ListProxy, TupleProxy)) else items:
                self.look_at(item)
        elif isinstance(value, dict):
            for item in value.values():
                self.look_at(item)

    def of(self, value: Any) -> Any:
        """What a node holds for a value."""
        recorder = self.recorder
        if issubclass(type(value), Scalar):
            return recorder.argument(value)
        if recorder.is_array(value):
            return self._array(value)
        if type(value) is ListProxy:
            return recorder.argument(value) if value.is_whole else self._nest(value)
        if issubclass(type(value), TupleProxy):
            return recorder.argument(value)
        if _is_traced_range(value):
            return self._node(value, range, tuple(map(self.of, (value.start, value.stop, value.step))))
        if isinstance(value, _CONSTANTS) or recorder.is_end(value) or _is_fixed(value):
            return value
        known = recorder.objects.get(id(value)) or self._made.get(id(value))
        if known is not None and known[0] is value:
            return recorder.resolve(known[1])
        if id(value) in self._open:
            raise CaptureError(f"the result holds {a_or_an(value)} that holds itself", fixes=("return what is in it",))
        self._open.add(id(value))
        try:
            return self._build(value)
        finally:
            self._open.discard(id(value))

    def _build(self, value: Any) -> Any:
        kind = type(value)
        if kind in (dict, list):
            return self._nest(value)
        if kind is tuple:
            return tuple(map(self.of, value))
        if isinstance(value, tuple):
            items = tuple(map(self.of, value))
            return self._node(value, value.__class__, items if hasattr(value, "_fields") else (items,))
        if isinstance(value, dict):
            entries = {key: self.of(item) for key, item in value.items()}
            if isinstance(value, defaultdict):
                return self._node(value, defaultdict, (value.default_factory, entries))
            return self._node(value, rebuild_mapping, (kind, entries, self._state(value)))
        if kind in (set, frozenset):
            return self._node(value, kind, ([self.of(item) for item in sorted(value, key=repr)],))
        if kind is deque:
            return self._node(value, deque, ([self.of(item) for item in value], value.maxlen))
        if kind is DrainedIterator:
            parts = (
                [self.of(item) for item in value.items],
                self.of(value.value),
                [self.of(one) for one in value.watched],
            )
            return self._node(value, self.recorder.hand_out, (value.kind, *parts))
        if isinstance(value, CODE):
            self._check_code(value)
            return value
        if (follows(value) or dataclasses.is_dataclass(value) or has_attributes(value)) and _can_be_made(kind):
            self._check_code(kind)
            return self._node(value, rebuild, (kind, self._state(value)))
        raise CaptureError(
            f"the result holds a {kind.__name__}, which cannot be built again",
            fixes=("return arrays, numbers, or nests of these",),
        )

    def _check_code(self, value: Any) -> None:
        """Raise for a function or class that holds what this run has made: the graph would give that of the example."""
        parts = [getattr(value, "__self__", None)] if isinstance(value, BuiltinFunctionType) else []
        parts += list(held_by_function(value)) if isinstance(value, FunctionType) else []
        parts += list(vars(value).values()) if isinstance(value, type) and "__module__" in vars(value) else []
        if any(map(self._is_of_run, parts)):
            raise CaptureError(
                f"the result holds {value.__qualname__}, which uses values of this run",
                why="the graph would give the one of the example back",
                fixes=("return the values, and make the function outside",),
            )

    def _is_of_run(self, value: Any, depth: int = 3) -> bool:
        recorder = self.recorder
        if issubclass(type(value), Scalar):
            return True
        if recorder.is_array(value):
            known = recorder.known(value)
            return known is not None and known.op != "get_attr"
        if isinstance(value, FunctionType):
            return depth > 0 and any(self._is_of_run(part, depth - 1) for part in held_by_function(value))
        parts = value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else ()
        return depth > 0 and any(self._is_of_run(part, depth - 1) for part in parts)

    def _array(self, value: Any) -> Any:
        """The node of an array; attributes that the program has put on it are put on it there."""
        node = self.recorder.argument(value)
        known = self._made.get(id(value))
        if self.recorder.array_attributes is not None and (known is None or known[0] is not value):
            self._made[id(value)] = (value, node)
            for name, part in self.recorder.array_attributes.put_on(value).items():
                self.recorder.create(setattr, (node, name, self.of(part)))
        return node

    def _nest(self, value: Any) -> Any:
        kind = type(value)
        concrete = self.recorder.concrete  # a key was hashed, so what it is has been guarded
        made: Any = None if kind is dict else [self.of(item) for item in value]
        made = {concrete(key): self.of(item) for key, item in value.items()} if kind is dict else made
        kind = list if kind is ListProxy else kind
        return self._node(value, kind, (made,)) if self._times.get(id(value), 0) > 1 else made

    def _node(self, value: Any, target: Any, args: tuple[Any, ...]) -> Any:
        name = snake_case(type(value).__name__) if target in (rebuild, rebuild_mapping) else None
        node = self.recorder.create_node("call_function", target, args, {}, name=name)
        self._made[id(value)] = (value, node)
        return node

    def _state(self, value: Any) -> dict[str, Any]:
        return {name: self.of(item) for name, item in attributes_of(value).items()}


# ---- iterators that a program returns --------------------------------------------------------------------------------

_MOST = 10_000
KINDS: dict[str, type] = {"generator": GeneratorType, "map": map, "filter": filter}


class DrainedIterator:
    """What an iterator gave to the capture; ``watched`` are the arrays and containers that it may read again."""

    def __init__(self, kind: str, items: list[Any], value: Any, watched: list[Any]) -> None:
        self.kind, self.items, self.value, self.watched = kind, items, value, watched


def drain(result: Any) -> DrainedIterator | None:
    """Walk an iterator that a program gave to its end; None for any other result."""
    kind = next((name for name, kind in KINDS.items() if type(result) is kind), None)
    if kind is None:
        return None
    returned: list[Any] = []
    items = list(islice(_walk(result, returned), _MOST))
    if len(items) == _MOST:
        raise CaptureError(
            f"the program gives a {kind} of very many values",
            why="the graph would compute all of them at once",
            fixes=("give a part of them",),
        )
    return DrainedIterator(kind, items, returned[0], [])


def _walk(iterator: Any, returned: list[Any]) -> Iterator[Any]:
    while True:
        try:
            item = next(iterator)
        except StopIteration as end:
            returned.append(end.value)
            return
        yield item


def hand_out(kind: str, items: list[Any], value: Any, watched: list[Any], world: Callable[[], Any]) -> Any:
    """An iterator of this kind over the items."""
    walking = _checked(kind, items, value, _state_of(watched, world), watched, world)
    if kind == "map":
        return map(_itself, walking)
    return filter(_always, walking) if kind == "filter" else walking


def _checked(
    kind: str, items: list[Any], value: Any, before: Any, watched: list[Any], world: Callable[[], Any]
) -> Generator[Any, Any, Any]:
    for item in items:
        _check(kind, before, watched, world)
        if (yield item) is not None:
            raise GuardError("the graph assumed that nothing is sent into its generator", fixes=("call the original",))
    _check(kind, before, watched, world)
    return value


def _check(kind: str, before: Any, watched: list[Any], world: Callable[[], Any]) -> None:
    versions, held, around = _state_of(watched, world)
    same = versions == before[0] and around == before[2]
    if not same or not all(map(same_contents, held, before[1])):
        raise GuardError(
            f"the graph assumed that nothing changes while its {kind} is walked",
            why="the original would see the change: it computes each value when it is asked for",
            fixes=("walk it at once: list(...)", "call the original"),
        )


def _state_of(watched: list[Any], world: Callable[[], Any]) -> tuple[list[Any], list[Any], Any]:
    arrays = [value for value in watched if hasattr(type(value), "_version")]
    others = [value for value in watched if not hasattr(type(value), "_version")]
    return [None if array.is_inference() else array._version for array in arrays], list(map(contents, others)), world()


def _itself(value: Any) -> Any:
    return value


def _always(value: Any) -> bool:
    return True
