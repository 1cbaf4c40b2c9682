"""A snapshot of all of Python's state that a piece of a program can change, to see and undo its side effects.

From the variables of running frames and those around the program, everything reachable is read: containers, objects,
modules, closures. ``changed`` gives the locations that hold something else now, ``restore`` puts all back.
"""

from __future__ import annotations

import functools
import gc
import itertools
import operator
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

from clew.capture.bytecode.instructions import variables_of
from clew.capture.guards.notes import PROXY_CLASSES
from clew.capture.location import MISSING, Location
from clew.capture.recording.list_proxies import IteratorProxy, StateListProxy, TupleProxy
from clew.capture.state.containers import (
    ATTRIBUTE,
    ITEM,
    SIMPLE,
    ContentsGroup,
    ContentsSnapshot,
    are_same,
    contents,
    dicts_of,
    follows,
    grouped,
    is_flat,
    look_up,
    refill,
    same_part,
)
from clew.ir.source import is_hidden, is_installed_file

_MOST = 50_000
_SIMPLE = frozenset(SIMPLE)
_CONTAINERS = frozenset({list, dict, OrderedDict, tuple})
_EMPTY: tuple[type, ...] = (OrderedDict, dict, list, set)
_ENTRANCE = "_call"
_NUMBER = re.compile(r"_\d+$")
_INERT = (type, ModuleType)
_CACHED = type(functools.lru_cache(maxsize=None)(len))


class Part(Location):
    """A location below a variable: an item or attribute, at the ``place`` that ``contents`` gives it, or a variable of
    a closure, which has none. ``name`` is for people."""

    __slots__ = ("place",)

    def __init__(self, name: str, holder: Any, place: Any) -> None:
        super().__init__(holder, name)
        self.place = place

    @property
    def key(self) -> tuple[int, Any]:
        """What tells locations apart while their holders are alive."""
        return id(self.holder), self.place

    def get(self) -> Any:
        """What is there; ``MISSING`` if nothing is."""
        if self.place is None:
            return super().get()
        return contents(self.holder).get(self.place, MISSING)

    def put(self, value: Any) -> None:
        """Put something there; ``MISSING`` takes it away."""
        if self.place is None:
            super().put(value)
            return
        parts = contents(self.holder) | {self.place: value}
        refill(self.holder, {key: part for key, part in parts.items() if part is not MISSING})


def in_order(places: list[Part]) -> list[Part]:
    """Places by their names, numbers behind these left out: in generated code a variable may have got one.

    Among those of one name these numbers count, and so does the place in a list.
    """
    return sorted(places, key=lambda place: (order_of(place.name), _number_of(place)))


def _number_of(place: Part) -> int:
    found = _NUMBER.search(place.name)
    if found is not None:
        return int(found.group().removeprefix("_"))
    number = place.place[1] if isinstance(place.place, tuple) else None
    return number if type(number) is int else 0


def order_of(name: str) -> str:
    """A name without the number behind it."""
    return _NUMBER.sub("", name)


class ReachableState:
    """Everything that can be reached from some values, as it was when it was read.

    What is of one kind is compared together, by functions of Python's that run no Python for each value.
    """

    def __init__(self, is_array: Callable[[Any], bool]) -> None:
        self._is_array = is_array
        self.roots: list[Any] = []
        self.groups: list[ContentsGroup] = []
        self._read_now: list[ContentsSnapshot] = []
        self.empty: list[Any] = []
        """Containers that held nothing, which most of those in modules of torch do: a look at each is enough."""
        self.cells = _Cells()
        self.seen: dict[int, Any] = {}
        self.holders: dict[int, int] = {}
        self.classes: dict[type, dict[str, Any]] = {}
        self.arrays = _Arrays()
        self._code = _Code()
        self.stream: Any = None

    def copy(self) -> ReachableState:
        """The same, to be walked on from."""
        made = ReachableState(self._is_array)
        made.groups, made.empty, made.cells = self.groups.copy(), self.empty.copy(), self.cells.copy()
        made.seen, made.holders, made.classes = self.seen.copy(), self.holders.copy(), self.classes.copy()
        made.arrays, made._code, made.stream = self.arrays.copy(), self._code.copy(), self.stream
        return made

    def different(self) -> list[ContentsSnapshot]:
        """The containers that hold something else now."""
        return [one for group in self.groups for one in group.different()]

    def renew(self) -> bool:
        """Read again what holds other arrays or plain values now; False if anything else differs, so that there may be
        more to be reached than before."""
        if any(self.empty) or self.cells.moved() or not self._code.is_as_before() or self.changes_class():
            return False
        different = self.different()
        if not all(map(self._differs_in_leaves, different)):
            return False
        self._read_again({id(one) for one in different})
        return True

    def _differs_in_leaves(self, snapshot: ContentsSnapshot) -> bool:
        """Whether only arrays and plain values have left a container or object, or come to it."""
        if not snapshot.is_plain or type(snapshot.value) is not snapshot.kind:
            return False
        return self._inner_parts(snapshot) == self._inner_parts(ContentsSnapshot(snapshot.value))

    def _inner_parts(self, snapshot: ContentsSnapshot) -> list[int]:
        return sorted(id(part) for part in snapshot.parts if not self._is_end(part))

    def _is_end(self, part: Any) -> bool:
        kind = type(part)
        return kind in _SIMPLE or (kind not in PROXY_CLASSES and kind not in _CONTAINERS and self._is_array(part))

    def _read_again(self, chosen: set[int]) -> None:
        """Read some containers again, into new groups: snapshots of before have the earlier ones."""
        for place, group in enumerate(self.groups if chosen else ()):
            if any(id(one) in chosen for one in group.snapshots):
                again = [ContentsSnapshot(one.value) if id(one) in chosen else one for one in group.snapshots]
                self.groups[place] = ContentsGroup(again)
                self._walk_ends(part for one in again for part in one.parts)

    def _walk_ends(self, parts: Iterable[Any]) -> None:
        for part in parts:
            if id(part) not in self.seen and type(part) not in _SIMPLE:
                self.seen[id(part)] = part
                self.arrays.add(part)

    def changes_class(self) -> bool:
        """Whether a class or an array has other attributes than it had."""
        return any(not _has(kind, before) for kind, before in self.classes.items()) or not self.arrays.are_as_before()

    def walk(self, roots: list[Any]) -> None:
        """Read all that these values lead to."""
        self.roots += roots
        waiting = roots.copy()
        while waiting and len(self.seen) < _MOST:
            value = waiting.pop()
            if type(value) in PROXY_CLASSES:  # it stands in the variable of what it hands all changes on to
                value = value._original
            kind = type(value)
            if kind is list or kind is dict:
                self.holders[id(value)] = self.holders.get(id(value), 0) + 1
            if kind in _SIMPLE or id(value) in self.seen:
                continue
            if kind in _EMPTY and not value:
                self.seen[id(value)] = value
                self.empty.append(value)
                continue
            if kind in _CONTAINERS:  # most are of these kinds, which need no further question
                self.seen[id(value)] = value
                parts = value if kind is tuple else self._read(value)
                waiting += [part for part in parts if type(part) not in _SIMPLE]
                continue
            if self._is_array(value):
                self.seen[id(value)] = value
                self.arrays.add(value)
                continue
            if isinstance(value, type) and _is_own(value):
                waiting += self._of_class(value)
            if isinstance(value, _INERT):
                continue
            self.seen[id(value)] = value
            waiting += self._parts(value)
        self.groups += grouped(self._read_now)
        self._read_now = []

    def _parts(self, value: Any) -> Iterable[Any]:
        if isinstance(value, CellType):
            return (self.cells.add(value),)
        if isinstance(value, TupleProxy):
            return value.plain
        if isinstance(value, IteratorProxy):
            return (value.state, value.values)
        if isinstance(value, (MethodType, tuple, frozenset)):
            return (value.__self__,) if isinstance(value, MethodType) else tuple(value)
        kind: Any = type(value)
        is_code = isinstance(value, (FunctionType, functools.partial))
        if not is_code and (follows(value) or is_flat(value) or isinstance(value, StateListProxy)):
            parts = self._read(value)
            of_class = self._of_class(kind) if _is_own(kind) else ()
            if kind not in self.classes:
                self.classes[kind] = dict(vars(kind))
            return () if is_flat(value) else (*parts, *of_class)
        held = self._code.add(value)
        if not is_code and hasattr(value, "_modules"):
            return (*held, *(self._of_class(kind) if _is_own(kind) else ()))
        if not is_code and hasattr(value, "__next__"):
            self.stream = value
        return held

    def _read(self, value: Any) -> Iterable[Any]:
        """Keep what a container or object holds."""
        reading = ContentsSnapshot(value)
        self._read_now.append(reading)
        return reading.parts

    def _of_class(self, kind: type) -> Iterable[Any]:
        """What a class of the user's and those it comes from hold."""
        found: list[Any] = []
        for one in kind.__mro__:
            if one not in self.classes and _is_own(one):
                self.classes[one] = dict(vars(one))
                found += [part for name, part in vars(one).items() if not name.startswith("__")]
        return found


class Snapshot:
    """Everything that can be reached from the program's variables, as it was when this was made.

    What is ``around`` the functions that are running, and was read for an ``earlier`` snapshot, is read again only if
    it has changed.
    """

    def __init__(
        self,
        is_array: Callable[[Any], bool],
        variables: Iterable[tuple[Any, str]],
        earlier: ReachableState | None = None,
    ) -> None:
        self._different: list[ContentsSnapshot] = []
        named = [(holder, name) for holder, name in variables if type(holder) is dict]
        holders, names = [holder for holder, _ in named], [name for _, name in named]
        self._globals = (holders, names, list(map(dict.get, holders, names, itertools.repeat(MISSING))))
        outside = [holder for holder, _ in variables if isinstance(holder, (CellType, type))]
        self._outside = set(map(id, outside))
        around, inner = _locals()
        roots = [*self._globals[2], *outside, *around]
        if earlier is None or not _same_objects(earlier.roots, roots) or not earlier.renew():
            earlier = ReachableState(is_array)
            earlier.walk(roots)
        self.around = earlier
        self._reached = earlier.copy()
        self._reached.walk(inner)
        self._reached.walk([value for value in _shared_locals() if id(value) not in self._reached.seen])

    @property
    def is_whole(self) -> bool:
        """Whether everything was seen that could change."""
        return self._reached.stream is None and len(self._reached.seen) < _MOST

    def changes_class(self) -> bool:
        """Whether a class or an array has other attributes than it had, which no location tells of."""
        return self._reached.changes_class()

    def reorders(self) -> bool:
        """Whether what a dict held is in another order where ``changed`` has looked, which no location tells of."""
        for reading in self._different:
            if issubclass(reading.kind, dict):
                parts, held = reading.contents(), contents(reading.value)
                if [key for key in held if key in parts] != [key for key in parts if key in held]:
                    return True
        return False

    def changed(self) -> Iterator[tuple[Part, Any, Any]]:
        """The places that hold something else than they did, with what they held and what they hold."""
        for cell, before, now in self._reached.cells.moved():
            if not same_part(now, before):
                yield Part("variable", cell, None), before, now
        for holder, name, before, now in self._moved_globals():
            if not same_part(now, before):
                yield Part(name, holder, (ITEM, name)), before, now
        self._different = self._reached.different()
        for filled in filter(None, self._reached.empty):
            yield from ((Part(_name_of(key), filled, key), MISSING, now) for key, now in contents(filled).items())
        for reading in self._different:
            parts, held = reading.contents(), contents(reading.value)
            for key in {**parts, **held}:
                before, now = parts.get(key, MISSING), held.get(key, MISSING)
                if not same_part(now, before):
                    yield Part(_name_of(key), reading.value, key), before, now

    def _moved_globals(self) -> list[tuple[dict[str, Any], str, Any, Any]]:
        """The variables around the program that hold another object: dict, name, what it held and what it holds."""
        holders, names, befores = self._globals
        now = list(map(dict.get, holders, names, itertools.repeat(MISSING)))
        rows = zip(holders, names, befores, now, strict=True)
        return list(itertools.compress(rows, map(operator.is_not, now, befores)))

    def changes_only_locals(self) -> bool:
        """Whether nothing has changed but variables of functions that are running."""
        places = [place for place, _, _ in self.changed()]
        return all(isinstance(place.holder, CellType) and id(place.holder) not in self._outside for place in places)

    def is_held_once(self, value: Any) -> bool:
        """Whether only one place holds this very object."""
        return self._reached.holders.get(id(value)) == 1

    def is_shared(self, value: Any) -> bool:
        """Whether a list or dict was there before, and more than one place holds it."""
        return self._reached.holders.get(id(value), 0) > 1

    def knows(self, value: Any) -> bool:
        """Whether this very object was there before."""
        return id(value) in self._reached.seen

    def restore(self, was_looked_at: bool = False) -> None:
        """Let everything be as it was; what has ``changed`` is known if that ``was_looked_at`` last of all."""
        for cell, before, _ in self._reached.cells.moved():
            Location(cell, "").put(before)
        for holder, name, before, _ in self._moved_globals():
            if before is MISSING:
                holder.pop(name, None)
            else:
                holder[name] = before
        for reading in self._different if was_looked_at else self._reached.different():
            if not reading.is_as_before():
                reading.put_back()
        for filled in filter(None, self._reached.empty):
            filled.clear()
        for kind, attributes in self._reached.classes.items():
            if not _has(kind, attributes):
                _put_back(kind, attributes)
        self._reached.arrays.put_back()


class _Cells:
    """Variables of closures, with what they held; those that held nothing stand apart, for a look at them fails."""

    def __init__(self) -> None:
        self._filled: list[CellType] = []
        self._held: list[Any] = []
        self._unfilled: list[tuple[int, CellType]] = []
        """Each with how many filled ones were met before it."""

    def copy(self) -> _Cells:
        """The same, to be added to."""
        made = _Cells()
        made._filled, made._held, made._unfilled = self._filled.copy(), self._held.copy(), self._unfilled.copy()
        return made

    def add(self, cell: CellType) -> Any:
        """Keep what a cell holds, which is the answer."""
        held = Location(cell, "").get()
        if held is MISSING:
            self._unfilled.append((len(self._filled), cell))
        else:
            self._filled.append(cell)
            self._held.append(held)
        return held

    def moved(self) -> list[tuple[CellType, Any, Any]]:
        """The cells that hold another object, as they were met: cell, what it held and what it holds."""
        try:
            now = list(map(_IN_CELL, self._filled))
        except ValueError:  # one of them is empty
            now = [Location(cell, "").get() for cell in self._filled]
        rows = zip(itertools.count(1), self._filled, self._held, now, strict=False)
        found = list(itertools.compress(rows, map(operator.is_not, now, self._held)))
        filled = ((place, cell, MISSING, Location(cell, "").get()) for place, cell in self._unfilled)
        found += [row for row in filled if row[3] is not MISSING]
        return [row[1:] for row in sorted(found, key=operator.itemgetter(0))]


_IN_CELL = operator.attrgetter("cell_contents")


class _Arrays:
    """Arrays of a framework, with the attributes that they had."""

    def __init__(self) -> None:
        self._without: list[Any] = []
        """Those that had none, but could get some."""
        self._with: list[Any] = []
        self._lengths: list[int] = []
        self._names: list[str] = []
        self._parts: list[Any] = []
        """How many attributes each had, and the names and values of all, one array after the other."""
        self._classes: list[tuple[type, dict[str, Any]]] = []
        """Classes that pass for arrays, with what they held."""

    def copy(self) -> _Arrays:
        """The same, to be added to."""
        made = _Arrays()
        made._without, made._with = self._without.copy(), self._with.copy()
        made._lengths, made._names, made._parts = self._lengths.copy(), self._names.copy(), self._parts.copy()
        made._classes = self._classes.copy()
        return made

    def add(self, array: Any) -> None:
        """Keep the attributes of an array; a proxy has none, and that of what it stands for is not asked."""
        attributes = look_up(array, "__dict__")
        if isinstance(array, type):
            self._classes.append((array, dict(attributes)))
        elif attributes:
            self._with.append(array)
            self._lengths.append(len(attributes))
            self._names += attributes
            self._parts += attributes.values()
        elif attributes is not None:
            self._without.append(array)

    def are_as_before(self) -> bool:
        """Whether all have the attributes that they had."""
        is_same = not any(dicts_of(self._without)) and self._hold_the_same()
        return is_same and all(_has(kind, held) for kind, held in self._classes)

    def _hold_the_same(self) -> bool:
        """Whether those with attributes have the very same, in their order."""
        now = list(dicts_of(self._with))
        return (
            list(map(len, now)) == self._lengths
            and are_same(itertools.chain.from_iterable(now), self._names)
            and are_same(itertools.chain.from_iterable(map(dict.values, now)), self._parts)
        )

    def put_back(self) -> None:
        """Let all have the attributes that they had."""
        if self.are_as_before():
            return
        held = zip(self._names, self._parts, strict=True)
        kept = [dict(itertools.islice(held, length)) for length in self._lengths]
        for array, attributes in (*((one, {}) for one in self._without), *zip(self._with, kept, strict=True)):
            now = object.__getattribute__(array, "__dict__")
            now.clear()
            now.update(attributes)
        for kind, attributes in self._classes:
            if not _has(kind, attributes):
                _put_back(kind, attributes)


class _Code:
    """Functions, modules of a framework and the like, with what they led to."""

    def __init__(self) -> None:
        self._functions: list[FunctionType] = []
        self._parts: list[Any] = []
        self._modules: list[Any] = []
        self._dicts: list[Any] = []
        self._others: list[tuple[Any, tuple[Any, ...]]] = []

    def copy(self) -> _Code:
        """The same, to be added to."""
        made = _Code()
        made._functions, made._parts = self._functions.copy(), self._parts.copy()
        made._modules, made._dicts = self._modules.copy(), self._dicts.copy()
        made._others = self._others.copy()
        return made

    def add(self, value: Any) -> tuple[Any, ...]:
        """Keep what something leads to, which is the answer."""
        held = _held_by(value)
        if type(value) is FunctionType and not value.__kwdefaults__:
            self._functions.append(value)
            self._parts += _PARTS_OF_FUNCTION(value)
        elif hasattr(value, "_modules") and not isinstance(value, (FunctionType, functools.partial)):
            self._modules.append(value)
            self._dicts += held
        elif held or isinstance(value, (FunctionType, functools.partial, MappingProxyType, _CACHED)):
            self._others.append((value, held))
        return held

    def is_as_before(self) -> bool:
        """Whether all lead to the same."""
        parts = itertools.chain.from_iterable(map(_PARTS_OF_FUNCTION, self._functions))
        return (
            are_same(parts, self._parts)
            and are_same(dicts_of(self._modules), self._dicts)
            and all(_same_objects(_held_by(value), before) for value, before in self._others)
        )


_PARTS_OF_FUNCTION = operator.attrgetter("__closure__", "__defaults__", "__kwdefaults__", "__dict__")


def _held_by(value: Any) -> tuple[Any, ...]:
    """What a function or a module of a framework holds, and what only the interpreter sees: ``found.append`` holds a
    list."""
    if isinstance(value, FunctionType):
        defaults = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        return (*(value.__closure__ or ()), *defaults, value.__dict__)
    if isinstance(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if hasattr(value, "_modules"):
        return (look_up(value, "__dict__"),)
    if isinstance(value, (BuiltinFunctionType, MethodWrapperType)):
        return (value.__self__,) if type(value.__self__) in (list, dict, set) else ()
    if isinstance(value, MappingProxyType):
        return tuple(value.values())
    is_own = isinstance(value, _CACHED) and _is_own_module(getattr(value, "__module__", None) or "")
    return tuple(gc.get_referents(value)) if is_own else ()


def _same_objects(now: Sequence[Any], before: Sequence[Any]) -> bool:
    return len(now) == len(before) and all(map(operator.is_, now, before))


def _has(kind: type, attributes: dict[str, Any]) -> bool:
    now = vars(kind)
    if len(now) != len(attributes):
        return False
    return are_same(now.values(), attributes.values()) or all(now.get(name) is attributes[name] for name in attributes)


@functools.lru_cache(maxsize=4096)
def _is_own(kind: type) -> bool:
    """Whether a class is the user's: of no library and not of Python."""
    return _is_own_module(kind.__module__)


def _is_own_module(path: str) -> bool:
    name = path.partition(".")[0]
    module = sys.modules.get(path)
    is_python = name in sys.stdlib_module_names and name != "__main__"
    return not (is_python or name == "clew" or is_installed_file(getattr(module, "__file__", None) or ""))


def _put_back(kind: type, attributes: dict[str, Any]) -> None:
    for name in vars(kind).keys() - attributes.keys():
        delattr(kind, name)
    for name, value in attributes.items():
        if vars(kind).get(name) is not value:
            setattr(kind, name, value)


def cells_of(function: Any) -> dict[str, Any]:
    """The cells of the variables that a function shares with the one around it."""
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def _name_of(key: tuple[str, Any]) -> str:
    way, name = key
    return name if way == ATTRIBUTE or (isinstance(name, str) and name.isidentifier()) else "item"


def _locals() -> tuple[list[Any], list[Any]]:
    """The modules of a framework in the outermost of the running functions, which stay there while others come and go,
    and then the other variables that only one of these functions sees, and the arguments of the program."""
    frames = list(_running(sys._getframe(2)))
    staying = [value for value in variables_of(frames[-2]).values() if _is_module(value)] if len(frames) > 1 else []
    known, inner = set(map(id, staying)), list[Any]()
    for frame in frames:
        shared = {*frame.f_code.co_cellvars, *frame.f_code.co_freevars}
        inner += [value for name, value in variables_of(frame).items() if name not in shared and id(value) not in known]
    return staying, inner


def _is_module(value: Any) -> bool:
    return look_up(value, "_modules") is not None


def _shared_locals() -> Iterator[Any]:
    """The variables of running functions that others see too: what is in a cell was mostly found there."""
    for frame in _running(sys._getframe(2)):
        if not is_hidden(frame.f_code):
            yield from variables_of(frame).values()


def _running(frame: Any) -> Iterator[Any]:
    """The frames of the user's functions, and the one in which the capture calls the program."""
    while frame is not None:
        is_entrance = frame.f_code.co_name == _ENTRANCE and "clew" in frame.f_globals.get("__name__", "")
        if is_entrance or not is_hidden(frame.f_code):
            yield frame
        if is_entrance:
            return
        frame = frame.f_back
