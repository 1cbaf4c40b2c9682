"""The contents of mutable containers and plain objects, read and restored in one way for all kinds of them.

``contents`` gives the parts of a list, dict, deque, set or object under keys that say how each is reached; ``refill``
makes the container hold such parts again, in place. A ``ContentsSnapshot`` is a shallow copy of one, cheap to make and
to compare, for a capture takes thousands of them. No code of a user's class runs for any of this.
"""

from __future__ import annotations

import array
import contextlib
import contextvars
import enum
import functools
import io
import itertools
import logging
import math
import operator
import random
import sys
import threading
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Sequence
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from clew.errors import CaptureError, a_or_an
from clew.ir.effects import pure
from clew.ir.guests import FRAMEWORK_PACKAGES, guest
from clew.ir.source import is_installed_file

ITEM, ATTRIBUTE, MEMBER, VALUE = "item", "attribute", "member", "value"
Key = tuple[str, Any]
Contents = dict[Key, Any]

SIMPLE = (int, float, bool, str, complex, bytes, type(None))
_CONTAINERS = (list, dict, set, deque, OrderedDict, defaultdict)
_DICTS = (dict, OrderedDict)
_ROWS = (list, set)
CODE = (type, ModuleType, FunctionType, BuiltinFunctionType)
HOLDING_NOTHING = frozenset({*SIMPLE, *CODE})
"""Classes of values in which nothing can be changed that would be looked at."""
_FOREIGN = FRAMEWORK_PACKAGES | frozenset(
    "builtins functools logging threading weakref re inspect enum clew "
    "optree typing ast dis io contextlib contextvars pathlib os sys concurrent asyncio multiprocessing loguru".split()
)
AMBIENT = (contextvars.ContextVar, threading.local)
"""What holds other values in other contexts or threads, and cannot be copied."""
TEXTS = (io.StringIO, io.BytesIO)
_WEAK = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
FILES = (io.TextIOWrapper, io.BufferedIOBase, io.RawIOBase)
ACTING: set[Any] = set()
"""Functions that act on the world outside; whoever refuses them puts them here."""
CHANGING: set[Any] = set()
"""Functions that tell something else of it at each call; whoever records or refuses them puts them here."""
LOGGERS = (logging.Logger, logging.LoggerAdapter)
_MOST = 20_000
UNSET: Any = type("Unset", (), {"__repr__": lambda self: "<unset>"})()
"""What a context variable holds that has no value."""


@pure
def value_of(variable: contextvars.ContextVar[Any]) -> Any:
    """What a context variable holds here."""
    try:
        return variable.get()
    except LookupError:
        return UNSET


def look_up(value: Any, name: str, default: Any = None) -> Any:
    """An attribute, read without running a ``__getattr__`` of the user's."""
    look: Any = type.__getattribute__ if issubclass(type(value), type) else object.__getattribute__
    try:
        return look(value, name)
    except AttributeError:
        return default


def is_of_library(holder: Any) -> bool:
    """Whether a variable's holder, the dict of a Python module, a class or a function, is of an installed package."""
    if isinstance(holder, (type, FunctionType)):
        holder = getattr(sys.modules.get(holder.__module__), "__dict__", {})
    return type(holder) is dict and is_installed_file(str(holder.get("__file__", "")))


def is_namespace(holder: Any) -> bool:
    """Whether a dict holds the variables of a Python module, or of code that ``exec`` ran in it."""
    return isinstance(holder, dict) and ("__name__" in holder or "__builtins__" in holder)


def follows(value: Any) -> bool:
    """Whether the parts of a value are looked at: those of containers, and of plain objects of users' classes."""
    kind: Any = type(value)
    return is_followed(kind)


@functools.lru_cache(maxsize=4096)
def is_followed(kind: Any) -> bool:
    """Whether the parts of a class's values are looked at."""
    if kind in _CONTAINERS or issubclass(kind, (*AMBIENT, contextlib.ExitStack)):
        return True
    is_foreign = kind.__module__.partition(".")[0] in _FOREIGN
    if is_foreign or issubclass(kind, (*CODE, MethodType, *SIMPLE, tuple, enum.Enum)) or _array_class(kind) is not None:
        return False
    return issubclass(kind, (list, dict, set, deque)) or bool(kind.__dictoffset__) or bool(slots_of(kind))


@functools.lru_cache(maxsize=4096)
def slots_of(kind: Any) -> tuple[str, ...]:
    """The attributes that a user's class keeps in slots."""
    if kind.__module__.partition(".")[0] in _FOREIGN:
        return ()
    found = [name for base in reversed(kind.__mro__) if "__slots__" in vars(base) for name in vars(base)]
    return tuple(name for name in dict.fromkeys(found) if isinstance(getattr(kind, name, None), MemberDescriptorType))


def attributes_of(value: Any) -> dict[str, Any]:
    """The attributes of an object by name: those in its dict, then those in slots."""
    held = dict(vars(value)) if hasattr(value, "__dict__") else {}
    kind: Any = type(value)
    for name in slots_of(kind):
        try:
            held[name] = object.__getattribute__(value, name)
        except AttributeError:  # a slot that is not filled
            continue
    return held


def set_attributes(value: Any, attributes: dict[str, Any]) -> None:
    """Let an object have these attributes and no others, past what its class does when one is set."""
    kind: Any = type(value)
    slots = slots_of(kind)
    if hasattr(value, "__dict__"):
        held = vars(value)
        held.clear()
        held.update({name: part for name, part in attributes.items() if name not in slots})
    for name in slots:
        if name in attributes:
            object.__setattr__(value, name, attributes[name])
        elif name in attributes_of(value):
            object.__delattr__(value, name)


def is_flat(value: Any) -> bool:
    """Whether a value is a mutable one whose parts are no objects: bytes, or an array of numbers outside of torch."""
    kind: Any = type(value)
    if not may_be_flat(kind):
        return False
    return _array_class(kind) is None or not value.dtype.hasobject


@functools.lru_cache(maxsize=4096)
def may_be_flat(kind: Any) -> bool:
    """Whether values of a class are flat, arrays of NumPy if they hold no objects."""
    return issubclass(kind, (bytearray, array.array, *_WEAK, *TEXTS)) or _array_class(kind) is not None


@functools.lru_cache(maxsize=4096)
def _array_class(kind: Any) -> Any:
    """The class of NumPy's arrays, if a class is this one or made of it, as ``numpy.memmap`` is; else None."""
    found = (base for base in kind.__mro__ if base.__module__ == "numpy" and base.__name__ == "ndarray")
    return next(found, None)


def _flat_contents(value: Any) -> Any:
    if isinstance(value, (weakref.WeakKeyDictionary, weakref.WeakValueDictionary)):
        return tuple(value.items())
    if isinstance(value, weakref.WeakSet):
        return tuple(value)
    if isinstance(value, TEXTS):
        return None if value.closed else (value.getvalue(), value.tell())
    kind: Any = type(value)
    if _array_class(kind) not in (None, kind):
        return _bytes_of(value)
    return bytes(value) if isinstance(value, bytearray) else value.tobytes()


_MOST_BYTES = 1 << 26


def _bytes_of(value: Any) -> tuple[bytes, ...]:
    """What an array of a class of its own holds, and the arrays in its attributes: a mask, say."""
    kind: Any = type(value)
    base = _array_class(kind)
    if value.nbytes > _MOST_BYTES:
        raise CaptureError(
            f"{a_or_an(value)} of {value.nbytes >> 20} MB is kept around the program",
            why="what is read of it has no node, so that all of it would be compared at each call",
            fixes=("pass the part that is used as an argument: numpy.array(part)",),
        )
    return tuple([base.tobytes(part) for part in (value, *_arrays_in(value, base))])


def _arrays_in(value: Any, base: Any) -> list[Any]:
    return [part for _, part in sorted(getattr(value, "__dict__", {}).items()) if isinstance(part, base)]


def _refill_array(value: Any, held: Any) -> None:
    kind: Any = type(value)
    base = _array_class(kind)
    parts = held if isinstance(held, tuple) else (held,)
    for part, before in zip((value, *_arrays_in(value, base)), parts, strict=False):
        if part.flags.writeable:
            part.view(base)[...] = base(part.shape, part.dtype, before)


def _refill_flat(value: Any, held: Any) -> None:
    if isinstance(value, _WEAK):
        value.clear()
        value.update(held)
    elif isinstance(value, TEXTS):
        _refill_text(value, held)
    elif isinstance(value, bytearray):
        value[:] = held
    elif isinstance(value, array.array):
        del value[:]
        value.frombytes(held)
    else:
        _refill_array(value, held)


def _refill_text(value: Any, held: Any) -> None:
    """Let a text in memory be as it was; one that was closed since cannot be opened again."""
    if held is not None and not value.closed:
        value.seek(0)
        value.truncate()
        value.write(held[0])
        value.seek(held[1])


@functools.lru_cache(maxsize=4096)
def is_stream(kind: Any) -> bool:
    """Whether a class hands out another value at each use: Python's own iterators, generators of random numbers."""
    if hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools"):
        return True
    if issubclass(kind, random.Random):  # one of the user's too
        return True
    found = guest(kind.__module__.partition(".")[0])
    return found is not None and kind in found.stream_classes


def contents(value: Any) -> Contents:
    """The parts of a container or object, in its own order."""
    found: Contents
    kind = type(value)
    if kind is dict:
        return {(ITEM, key): part for key, part in value.items()}
    if kind is list:
        return {(ITEM, place): part for place, part in enumerate(value)}
    if isinstance(value, OrderedDict):
        found = {(ITEM, key): part for key, part in OrderedDict.items(value)}
    elif isinstance(value, dict):
        found = {(ITEM, key): part for key, part in dict.items(value)}
    elif isinstance(value, list):
        found = {(ITEM, place): part for place, part in enumerate(list.__getitem__(value, slice(None)))}
    elif isinstance(value, deque):
        found = {(ITEM, place): part for place, part in enumerate(value)}
    elif isinstance(value, set):
        found = {(MEMBER, id(part)): part for part in value}
    elif isinstance(value, contextvars.ContextVar):
        found = {(VALUE, ""): value_of(value)}
    elif is_flat(value):
        return {(ITEM, "value"): _flat_contents(value)}
    else:
        found = {}
    if has_attributes(value):
        found |= {(ATTRIBUTE, key): part for key, part in attributes_of(value).items()}
    return found


def refill(value: Any, parts: Contents) -> None:
    """Let a container hold these parts, in this order; its identity stays."""
    if isinstance(value, dict):
        _refill_dict(value, {key: part for (way, key), part in parts.items() if way == ITEM})
    elif isinstance(value, list):
        list.__setitem__(value, slice(None), _items(parts))
        if hasattr(value, "clew_refilled"):
            value.clew_refilled()
    elif isinstance(value, deque):
        deque.clear(value)
        deque.extend(value, _items(parts))
    elif isinstance(value, set):
        set.clear(value)
        set.update(value, [part for (way, _), part in parts.items() if way == MEMBER])
    elif isinstance(value, contextvars.ContextVar):
        held = parts[VALUE, ""]
        if held is not UNSET and value_of(value) is not held:  # nothing can take a value away again
            value.set(held)
    elif is_flat(value):
        _refill_flat(value, parts[ITEM, "value"])
        return
    if has_attributes(value):
        set_attributes(value, {key: part for (way, key), part in parts.items() if way == ATTRIBUTE})


def has_attributes(value: Any) -> bool:
    """Whether a container or object holds attributes besides its items."""
    kind: Any = type(value)
    return kind not in _CONTAINERS and (hasattr(value, "__dict__") or bool(slots_of(kind)))


def _items(parts: Contents) -> list[Any]:
    return [part for (way, _), part in parts.items() if way == ITEM]


def _refill_dict(value: dict[Any, Any], items: dict[Any, Any]) -> None:
    kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict
    if not _same_keys(list(kind.keys(value)), list(items)):
        kind.clear(value)
    for key, part in items.items():
        kind.__setitem__(value, key, part)


def _same_keys(now: list[Any], wanted: list[Any]) -> bool:
    """Whether keys are the same; a traced number is not the number that it equals, and must not be asked."""
    return len(now) == len(wanted) and all(
        one is other or (type(one) is type(other) and type(one) in SIMPLE and one == other)
        for one, other in zip(now, wanted, strict=True)
    )


def same_part(now: Any, before: Any) -> bool:
    """The same object, or an equal plain value of the same kind."""
    if now is before:
        return True
    if type(now) is tuple and type(before) is tuple and len(now) == len(before):
        return all(map(same_part, now, before))
    if type(now) is not type(before) or type(now) not in SIMPLE:
        return False
    if isinstance(now, float) and math.isnan(now):
        return math.isnan(before)
    if isinstance(now, (float, complex)):  # a zero has a sign
        return repr(now) == repr(before)
    return bool(now == before)


def same_contents(now: Contents, before: Contents) -> bool:
    """Whether two readings of a container agree, the order included."""
    if len(now) != len(before):
        return False
    for (now_key, now_part), (key, part) in zip(now.items(), before.items(), strict=True):
        if now_key[0] is not key[0]:
            return False
        if now_key[1] is not key[1] and not same_part(now_key[1], key[1]):
            return False
        if now_part is not part and not same_part(now_part, part):
            return False
    return True


@functools.lru_cache(maxsize=4096)
def is_plain_object(kind: Any) -> bool:
    """Whether all that objects of a class hold is in their dict."""
    holding = (list, dict, set, deque, contextvars.ContextVar, *AMBIENT)
    return bool(kind.__dictoffset__) and not issubclass(kind, holding) and not slots_of(kind) and not may_be_flat(kind)


def _are_same(now: dict[Any, Any], before: dict[Any, Any]) -> bool:
    """Whether two dicts hold the very same, in one order."""
    return all(map(operator.is_, now, before)) and all(map(operator.is_, now.values(), before.values()))


class ContentsSnapshot:
    """What a container or object holds now, to be compared with what it holds later."""

    __slots__ = ("held", "kind", "value")

    def __init__(self, value: Any) -> None:
        kind: Any = type(value)
        self.value = value
        self.kind = kind
        if kind is dict:
            self.held = value.copy()
        elif kind in _ROWS:
            self.held = list(value)
        elif kind is OrderedDict:  # the modules of torch have a dozen of them each, almost all empty
            self.held = dict(value) if value else {}
        else:
            self.held = dict(vars(value)) if is_plain_object(kind) else contents(value)

    @property
    def is_plain(self) -> bool:
        """Whether what is held was read without a key for each part: from a list, a dict or the dict of an object."""
        return self.kind in _ROWS or self.kind in _DICTS or is_plain_object(self.kind)

    @property
    def parts(self) -> Iterable[Any]:
        """All that was held."""
        return self.held if self.kind in _ROWS else self.held.values()

    def contents(self) -> Contents:
        """What was held, under the keys that ``contents`` gives."""
        if self.kind is list:
            return {(ITEM, place): part for place, part in enumerate(self.held)}
        if self.kind is set:
            return {(MEMBER, id(part)): part for part in self.held}
        if self.kind in _DICTS or is_plain_object(self.kind):
            way = ITEM if self.kind in _DICTS else ATTRIBUTE
            return {(way, key): part for key, part in self.held.items()}
        found: Contents = self.held
        return found

    def is_as_before(self) -> bool:
        """Whether the same is held now; most hold the very same objects."""
        value, kind, held = self.value, self.kind, self.held
        if kind in _ROWS:
            if len(value) == len(held) and all(map(operator.is_, value, held)):
                return True
        elif kind in _DICTS or (is_plain_object(kind) and type(value) is kind):
            now = value if kind in _DICTS else vars(value)
            if len(now) == len(held) and (not held or _are_same(now, held)):
                return True
        before = self.contents()
        if issubclass(kind, dict) and dict.__len__(value) != sum(way == ITEM for way, _ in before):
            return False  # a traced number may be a key beside the number that it equals: a reading would hold one
        return same_contents(contents(value), before)

    def put_back(self) -> None:
        """Let the same be held again."""
        refill(self.value, self.contents())


def dicts_of(values: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """The dicts in which objects keep their attributes; no ``__getattribute__`` of the user's runs for it."""
    return map(object.__getattribute__, values, itertools.repeat("__dict__"))


def are_same(now: Iterable[Any], before: Iterable[Any]) -> bool:
    """Whether the very same objects come one after the other, as many of them as there are in both."""
    return all(map(operator.is_, now, before))


def _is_in_plain_dict(snapshot: ContentsSnapshot) -> bool:
    """Whether all that an object holds is in a dict, and that is no dict of a class of the user's."""
    return is_plain_object(snapshot.kind) and type(look_up(snapshot.value, "__dict__")) is dict


_LARGEST_GROUP = 64


class ContentsGroup:
    """Snapshots of several containers, compared together: Python runs for each of them only if something differs."""

    __slots__ = ("_containers", "_dicts", "_lengths", "_objects", "_others", "_parts", "_values", "snapshots")

    def __init__(self, snapshots: Sequence[ContentsSnapshot]) -> None:
        self.snapshots = snapshots
        plain = [one for one in snapshots if one.kind is dict]
        held_by_objects = [one for one in snapshots if one.kind is not dict and _is_in_plain_dict(one)]
        rows = [one for one in snapshots if one.kind in _ROWS]
        together = {*map(id, plain), *map(id, held_by_objects), *map(id, rows)}
        self._others = [one for one in snapshots if id(one) not in together]
        objects = [one.value for one in held_by_objects]
        self._objects = (objects, [one.kind for one in held_by_objects], list(dicts_of(objects)))
        self._dicts = [*(one.value for one in plain), *self._objects[2]]
        self._containers = [*self._dicts, *(one.value for one in rows)]
        read = [*plain, *held_by_objects, *rows]
        self._lengths = [len(one.held) for one in read]
        self._parts = list(itertools.chain.from_iterable(one.held for one in read))
        self._values = [part for one in (*plain, *held_by_objects) for part in one.held.values()]

    def different(self) -> Sequence[ContentsSnapshot]:
        """Those whose containers hold something else now."""
        return () if self._holds_the_same() else [one for one in self.snapshots if not one.is_as_before()]

    def _holds_the_same(self) -> bool:
        objects, kinds, dicts = self._objects
        return (
            are_same(map(type, objects), kinds)
            and are_same(dicts_of(objects), dicts)
            and list(map(len, self._containers)) == self._lengths
            and are_same(itertools.chain.from_iterable(self._containers), self._parts)
            and are_same(itertools.chain.from_iterable(map(dict.values, self._dicts)), self._values)
            and all(one.is_as_before() for one in self._others)
        )


def grouped(snapshots: Sequence[ContentsSnapshot]) -> list[ContentsGroup]:
    """Snapshots in groups, small enough that one that differs costs little."""
    starts = range(0, len(snapshots), _LARGEST_GROUP)
    return [ContentsGroup(snapshots[start : start + _LARGEST_GROUP]) for start in starts]
