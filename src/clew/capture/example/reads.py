"""Containers of Python modules that tell what a program reads of them, for the time of a run.

A stand-in takes the place of a dict, list or set in its variable: it is one, hands everything on to the original,
changes too, and notes which item was asked for. It stands only where the program's code looks into the container and
does not hand it on (``uses``), so that nobody meets it who asks for its class or keeps it. What was read is guarded
item by item; the variable itself needs no guard then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from types import CellType, FunctionType
from typing import Any

from clew.capture.example.contents import follows
from clew.capture.example.guards import STANDING, Variable
from clew.capture.example.items import ATTRIBUTE, CONTAINS, ITEM, KEYS, LENGTH, WHOLE, Item, current, is_plain_key
from clew.capture.example.surroundings import Surroundings
from clew.capture.example.uses import ANY_KEY, LOOKING, uses_of
from clew.capture.symbolic.patches import Patches

Key = tuple[int, str]
_KINDS = (dict, list, set)
_BY_TEXT = frozenset({"globals", "__globals__", "exec", "eval", "vars", "__dict__", "getattr", "attrgetter"})
"""Ways to a variable whose name the code does not tell."""


class Reads:
    """What one run has read of the containers that stand-ins were put in place of."""

    def __init__(self) -> None:
        self.watched: set[Key] = set()
        """The variables whose reads are noted one by one."""
        self._found: dict[Any, Item] = {}

    def note(self, base: Variable, way: str, key: Any = None) -> None:
        """Something is read of a container."""
        if not is_plain_key(key):
            way, key = WHOLE, None
        place = (id(base.root.holder), base.root.name, repr(base), way, type(key), key)
        if place not in self._found:
            self._found[place] = Item(base, way, key)

    def add(self, other: Reads) -> None:
        """What another run of the same program has read counts too."""
        self.watched |= other.watched
        self._found = {**other._found, **self._found}

    def items(self) -> list[Item]:
        """What was read, each once; an item says that its key is there."""
        known = {(key[:3], key[4:]) for key in self._found if key[3] == ITEM}
        return [item for key, item in self._found.items() if key[3] != CONTAINS or (key[:3], key[4:]) not in known]

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Let stand-ins that are met in this context note here what is read."""
        token = current.set(self)
        try:
            yield
        finally:
            current.reset(token)

    def install(self, patches: Patches, around: Surroundings, lifted: Container[Key]) -> None:
        """Put stand-ins in place of the containers among the variables around a program, and of those that objects of
        libraries hold; what is ``lifted`` enters the capture by other means."""
        program, found = around.derived(Program), around.found
        for holder, name, value in found:
            if (id(holder), name) in lifted:
                continue
            is_library = around.is_of_library(holder, name)
            if type(value) in _KINDS and Variable(holder, name).get() is value:
                names = [name for _, name, other in found if other is value]
                if all(program.looks_into(one, is_library) for one in names):
                    self._put(patches, Variable(holder, name), program.items_handed_on(names))
            elif is_library and follows(value) and hasattr(value, "__dict__"):
                self._inside(patches, Variable(holder, name), value, program)

    def _inside(self, patches: Patches, base: Variable, value: Any, program: Program) -> None:
        """The containers that an object holds, and its class for all such objects."""
        for name, held in vars(value).items():
            if type(held) in _KINDS and program.looks_into(name, True):
                patches.in_dict(vars(value), name, partial(_standing, base=Item(base, ATTRIBUTE, name)))
        for kind in type(value).__mro__:
            for name, held in vars(kind).items():
                if type(held) in _KINDS and not name.startswith("__") and program.looks_into(name, True):
                    patches.on_class(kind, name, partial(_standing, base=Variable(kind, name)))

    def _put(self, patches: Patches, variable: Variable, handed_on: frozenset[Any]) -> None:
        holder, make = variable.holder, partial(_standing, base=variable, handed_on=handed_on)
        if isinstance(holder, CellType):
            patches.in_cell(holder, make)
        elif isinstance(holder, type):
            patches.on_class(holder, variable.name, make)
        else:
            patches.in_dict(holder, variable.name, make)
        self.watched.add((id(holder), variable.name))


class Program:
    """What is known of the code that may run: how it uses names."""

    def __init__(self, functions: Iterable[FunctionType]) -> None:
        functions = list(functions)
        own = [one for one in functions if "-packages" not in one.__code__.co_filename]
        self._handed_on = frozenset[str]().union(*(uses_of(one.__code__).handed_on for one in functions))
        self._fields = frozenset[Any]().union(*(uses_of(one.__code__).fields for one in functions))
        items = [uses_of(one.__code__).items_handed_on for one in functions]
        self._items = frozenset[Any]().union(*items)
        self._is_open = any(not _BY_TEXT.isdisjoint(one.__code__.co_names) for one in own)
        self._is_open = self._is_open or any(not LOOKING.isdisjoint(one.__globals__) for one in own)

    def looks_into(self, name: str, in_library: bool = False) -> bool:
        """Whether all code only looks into what it finds under a name."""
        return name not in self._handed_on and (in_library or not self._is_open)

    def items_handed_on(self, names: list[str]) -> frozenset[Any]:
        """The keys of items, of what is found under some names, that some code hands on."""
        return frozenset(key for owner, key in self._items if owner in names)

    def fields_of(self, name: str) -> list[str] | None:
        """The attributes that are read of what is found under a name; None if something else is done with it."""
        return [field for owner, field in self._fields if owner == name] if self.looks_into(name) else None


_ALL = frozenset({ANY_KEY})


def _standing(original: Any, base: Variable, handed_on: frozenset[Any] = _ALL) -> Any:
    made = next(kind for kind in _KINDS_OF if issubclass(kind, type(original)))(original)
    made._original, made._base, made._handed_on = original, base, handed_on
    return made


_KINDS_OF: list[Any] = []
"""The classes of stand-ins."""
_HELD = ("_base", "_handed_on", "_original")


class _Standing:
    """What stand-ins have in common."""

    __slots__ = ()
    _base: Variable
    _original: Any
    _handed_on: frozenset[Any]

    def _note(self, way: str, key: Any = None) -> None:
        reads = current.get()
        if reads is not None:
            reads.note(self._base, way, key)

    def _item(self, key: Any) -> Any:
        """An item; a container that the program only looks into tells what is read of it by itself."""
        held = self._original[key]
        if type(held) in _KINDS and is_plain_key(key) and self._handed_on.isdisjoint((key, ANY_KEY)):
            return _standing(held, Item(self._base, ITEM, key))
        self._note(ITEM, key)
        return held


class RecordingDict(_Standing, dict):  # type: ignore[type-arg]
    """A dict that notes what is read of it."""

    __slots__ = _HELD

    def __getitem__(self, key: Any) -> Any:
        if key not in self._original:
            self._note(ITEM, key)
        return self._item(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """An item, or the default."""
        self._note(ITEM, key)
        return self._original.get(key, default)

    def __contains__(self, key: Any) -> bool:
        self._note(CONTAINS, key)
        return key in self._original

    def __len__(self) -> int:
        self._note(LENGTH)
        return len(self._original)

    def __iter__(self) -> Iterator[Any]:
        self._note(KEYS)
        return iter(self._original)

    def keys(self) -> Any:
        """The keys."""
        self._note(KEYS)
        return self._original.keys()


class RecordingList(_Standing, list):  # type: ignore[type-arg]
    """A list that notes what is read of it."""

    __slots__ = _HELD

    def __getitem__(self, key: Any) -> Any:
        if type(key) is not int or not -len(self._original) <= key < len(self._original):
            self._note(WHOLE)
            return self._original[key]
        return self._item(key)

    def __len__(self) -> int:
        self._note(LENGTH)
        return len(self._original)


class RecordingSet(_Standing, set):  # type: ignore[type-arg]
    """A set that notes what is read of it."""

    __slots__ = _HELD

    def __contains__(self, key: Any) -> bool:
        self._note(CONTAINS, key)
        return key in self._original


_LEFT = frozenset(
    "__new__ __init__ __getattribute__ __doc__ __class_getitem__ __hash__ __sizeof__ __reduce__ __reduce_ex__".split()
)


def _handing_on(kind: Any, name: str) -> Callable[..., Any]:
    """A method that reads, or changes, the whole of the original."""
    method = getattr(kind, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._note(WHOLE)
        result = method(self._original, *args, **kwargs)
        return self if result is self._original else result

    call.__name__ = name
    return call


for _kind, _builtin in ((RecordingDict, dict), (RecordingList, list), (RecordingSet, set)):
    STANDING.add(_kind)
    _KINDS_OF.append(_kind)
    for _name in vars(_builtin).keys() - vars(_kind).keys() - _LEFT:
        setattr(_kind, _name, _handing_on(_builtin, _name))
