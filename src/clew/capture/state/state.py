"""The state of a program: attributes and variables that it can change, and that a graph must then change too.

All of it is snapshotted before the run and compared after it. A slot that the run changed is *lifted*: the capture
restarts, and the slot enters it like an argument, so that numbers in it are traced and the rest is guarded; what the
program leaves there is written at the end of the graph. A slot that is set before it is ever read needs no guard.
"""

from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, MutableMapping, Set
from contextlib import contextmanager
from types import CellType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from clew.capture.current_capture import current
from clew.capture.guards.notes import Variable, behind_proxy, expression_of, require, require_length, require_type
from clew.capture.location import MISSING
from clew.capture.patches import Patches
from clew.capture.recording.inputs import Inputs
from clew.capture.recording.list_proxies import StateListProxy
from clew.capture.state.containers import (
    HOLDING_NOTHING,
    SIMPLE,
    Contents,
    ContentsSnapshot,
    contents,
    is_namespace,
    refill,
    same_contents,
    same_part,
)
from clew.capture.state.memory import Memory
from clew.capture.state.slots import Slot
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.ir.node import Node
from clew.ir.source import is_of_framework

_HOLDERS = 6  # of a list of the state: its place; the group, the memory, two names while it is lifted, and who counts
_HEAP_TYPE = 1 << 9  # the flag of classes whose attributes can be set
_NONE: frozenset[str] = frozenset()
_NOTHING = (0, 0)
_WHOLE = frozenset({"__dict__", "_buffers", "_parameters"})
"""Attributes through which all others can be read."""


def _may_be_other(inputs: Inputs, slot: Slot, before: Any) -> bool:
    """Whether a place that is None, or not there, may hold something else at a later call, which is asked for at the
    entrance."""
    return inputs.choices is not None and inputs.choices.kind_left(slot.key, slot.label, before) is not None


def arrays_of(module: Any) -> Iterator[Any]:
    """The parameters and buffers of a module; of an array none."""
    for name in ("parameters", "buffers"):
        if hasattr(module, name):
            yield from getattr(module, name)()


def _key(variable: Variable) -> tuple[int, str]:
    return id(variable.holder), variable.name


def _behind_proxies(held: Contents) -> Contents:
    """What a container or object holds, with the containers themselves where proxies note what is read of them."""
    return {key: behind_proxy(part) for key, part in held.items()}


class _Group(NamedTuple):
    """The attributes of one object, as they were; ``below`` says what was remembered under each, ``skipped`` are those
    that are left out."""

    owner: Any
    holder: MutableMapping[str, Any]
    before: dict[str, Any]
    below: dict[str, tuple[int, int]]
    path: str | None
    skip: frozenset[str]
    skipped: frozenset[str]
    is_inner: bool = False

    def is_as_before(self) -> bool:
        """Whether the attributes are the very same objects, what is below them aside."""
        holder, before = self.holder, self.before
        return (
            len(holder) == len(before) + len(self.skipped)
            and all(map(operator.is_, map(holder.get, before), before.values()))
            and (not self.skipped or holder.keys() >= self.skipped)
        )

    def key(self, name: str) -> tuple[int, str]:
        """The key of the place of one attribute."""
        return id(self.holder if self.path is not None or self.owner is None else self.owner), name

    def slot(self, name: str) -> Slot:
        """The place of one attribute."""
        if self.path is None and self.owner is None:
            return Slot(Variable(self.holder, name))
        if self.path is None:
            return Slot(Variable(self.owner, name), self.owner)
        return Slot(Variable(self.holder, name), self.owner, f"{self.path}.{name}" if self.path else name)


class _Entry(NamedTuple):
    """A lifted place: what was there, what the program found there, and the guards on it."""

    slot: Slot
    before: Any
    entered: Any
    arrays: list[Any]
    checks: list[Node]


class State:
    """The places around one run, as they were before it."""

    def __init__(self, inputs: Inputs, histories: dict[Any, bool] | None = None) -> None:
        self.inputs = inputs
        self.histories = {} if histories is None else histories
        self.memory = Memory(inputs.recorder.is_end)
        self.entries: list[_Entry] = []
        self._inner: list[tuple[StateListProxy, Any, list[Node], list[Any]]] = []
        """Lists below lifted places that the program may only append to, with their guards and arrays."""
        self._groups: list[_Group] = []
        self._variables: list[tuple[Variable, Any, tuple[int, int]]] = []
        self._names: dict[int, dict[str, tuple[int, str]]] = {}
        self._classes: list[tuple[type, frozenset[str]]] = []
        self._read: set[tuple[int, str]] = set()
        self._set: set[tuple[int, str]] = set()
        self._stored: dict[int, dict[str, _Group]] = {}
        """Attributes that code of the program sets, by the identity of their owners: reported, be they set to what they
        are."""
        self._set_again: set[tuple[int, str]] = set()
        self._is_clean = False
        self._wanted: dict[tuple[int, str], Slot] = {}
        self._homes: dict[int, tuple[Any, Slot]] | None = None
        self.streams: list[tuple[str, Any]] = []
        """Iterators and generators of random numbers below attributes and variables, with the names of these."""
        self.own: frozenset[tuple[int, str]] = frozenset()
        """Variables that calls which stay one node read and set, and nobody else."""
        self._plain: set[Any] = set()
        """The places and containers that hold no proxies at the moment, though they have entered."""
        self.data: frozenset[tuple[int, str]] = frozenset()
        """Places that the graph reads whenever it runs, so that nothing is relied on."""

    # ---- before the run ------------------------------------------------------------------------------------------

    def watch(
        self,
        owner: Any,
        holder: MutableMapping[str, Any],
        path: str | None = None,
        skip: frozenset[str] = _NONE,
        is_inner: bool = False,
    ) -> None:
        """Remember the attributes in ``holder``, a dict of an object; ``path`` leads there from the module.

        What is inner belongs to something that stays one call: it is put back, but its changes are the call's own.
        """
        before = {name: value for name, value in holder.items() if name not in skip} if skip else dict(holder)
        below = {}
        for name, value in before.items():
            if type(value) not in HOLDING_NOTHING:
                added = self._remember(name, value)
                if added[0] != added[1]:
                    below[name] = added
        skipped = frozenset(holder.keys() - before.keys()) if skip else _NONE
        self._groups.append(_Group(owner, holder, before, below, path, skip, skipped, is_inner))

    def watch_variable(self, variable: Variable) -> None:
        """Remember one variable, unless it has entered the capture: then it is remembered already."""
        key = (id(variable.holder), variable.name)
        if self.entries and any(entry.slot.key == key for entry in self.entries):
            return
        value = variable.get()
        below = _NOTHING if type(value) in HOLDING_NOTHING else self._remember(variable.name, value)
        self._variables.append((variable, value, below))

    def watch_variables(self, found: Iterable[tuple[Any, str, Any]]) -> None:
        """Remember many variables, whose values are known."""
        if self.entries:
            for holder, name, _ in found:
                self.watch_variable(Variable(holder, name))
            return
        remember, nothing = self._remember, HOLDING_NOTHING
        self._variables += [
            (Variable(holder, name), value, _NOTHING if type(value) in nothing else remember(name, value))
            for holder, name, value in found
        ]

    def _remember(self, name: str, value: Any) -> tuple[int, int]:
        if name == "_clear_cache" and isinstance(getattr(value, "__self__", None), WeakKeyDictionary):
            return _NOTHING  # what functools.singledispatch remembers of earlier calls
        known = len(self.memory.streams)
        added = self.memory.remember(value)
        self.streams += [(name, found) for found in self.memory.streams[known:]]
        return added

    def watch_class(self, kind: type, names: frozenset[str] | None = None) -> None:
        """Remember which attributes a class has: these, if they are known already."""
        self._classes.append((kind, frozenset(vars(kind)) if names is None else names))

    def _new_class_attributes(self) -> Iterator[tuple[type, str]]:
        for kind, known in self._classes:
            if len(vars(kind)) > len(known):
                yield from ((kind, name) for name in vars(kind).keys() - known if not name.startswith("__"))

    def lift(self, slots: Iterable[Slot]) -> None:
        """Let these places enter the capture; they are put back with everything else."""
        inputs = self.inputs
        inputs.histories.is_one = self._is_held_in_one
        for slot in slots:
            before = entered = slot.variable.get()
            slot.existed = before is not MISSING
            first = len(inputs.arrays)
            # Counted here: what hands a list on to another function may hold it too, as a compiler has it done.
            if type(before) is list and self._is_history(slot, sys.getrefcount(before)):
                entered = inputs.history(before, slot.read(inputs.recorder.graph), slot.label)
            elif before is not MISSING and (before is not None or not _may_be_other(inputs, slot, before)):
                entered = inputs.enter(before, slot.read(inputs.recorder.graph), slot.label)
            if entered is not before:
                slot.variable.put(entered)
                self._settle(slot)
            arrays, found, checks = list(inputs.arrays), list(inputs.histories.found), inputs.write_checks()
            inputs.histories.found.clear()
            self.entries.append(_Entry(slot, before, entered, arrays[first:], checks))
            self._inner += [(one, place, checks[own], arrays[held]) for one, place, own, held in found]
            if slot.owner is not None and type(slot.owner).__flags__ & _HEAP_TYPE:
                self._names.setdefault(id(slot.owner), {})[slot.variable.name] = slot.key

    def _settle(self, slot: Slot) -> None:
        """What was put into a container for the run is no change of it."""
        if slot.variable.root is not slot.variable:
            self.memory.renew(slot.variable.base.get())

    def _is_history(self, slot: Slot, holders: int) -> bool:
        """Whether nobody but its place holds a list: what the first run has found is true for those that follow."""
        known = self.histories.get(slot.key)
        if known is None:
            known = self.histories[slot.key] = holders <= _HOLDERS or self._is_held_once(slot)
        return known

    def _is_held_once(self, slot: Slot) -> bool:
        """Whether a variable is the only way on which the program can come to the list in it."""
        holder, value = slot.variable.holder, slot.variable.get()
        around = getattr(self.inputs.recorder, "surroundings", None)
        is_variable = isinstance(holder, (CellType, type)) or is_namespace(holder)
        if not is_variable or slot.variable.root is not slot.variable or around is None:
            return False
        named = {(id(place), name) for place, name, held in around.found if held is value}
        return named == {slot.key} and self.memory.met[id(value)] == 1

    def _is_held_in_one(self, value: list[Any]) -> bool:
        """Whether a container is the only way on which the program can come to a list in it."""
        known = self.histories.get(id(value))
        if known is None:
            around = getattr(self.inputs.recorder, "surroundings", None)
            is_named = around is None or any(held is value for _, _, held in around.found)
            known = self.histories[id(value)] = not is_named and self.memory.met[id(value)] == 1
        return known

    def changes(self, owners: Iterable[Any]) -> bool:
        """Whether the program changes attributes of one of these objects, as far as earlier runs have found out."""
        return bool(self._names) and any(id(owner) in self._names for owner in owners)

    def install(self, patches: Patches, stored: Set[str]) -> None:
        """Let objects with lifted attributes report when these are read and set, and those with attributes of names
        that the program has ``stored`` when they are set."""
        kinds = {type(entry.slot.owner) for entry in self.entries if id(entry.slot.owner) in self._names}
        for kind in kinds:
            patches.on_class(kind, "__getattribute__", _reporting_reads, inherited=True)
        for group in self._groups:
            names = group.before.keys() & stored if not group.is_inner and group.owner is not None else ()
            if names and type(group.owner).__flags__ & _HEAP_TYPE:
                self._stored.setdefault(id(group.owner), {}).update(dict.fromkeys(names, group))
                kinds.add(type(group.owner))
        for kind in kinds:
            patches.on_class(kind, "__setattr__", _reporting_writes, inherited=True)

    def note_read(self, owner: Any, name: str) -> None:
        """An attribute is read: if it was not set before, what was there before the run matters."""
        names = self._names.get(id(owner))
        if names is None:
            return
        if name in names:
            self._read.update({names[name]} - self._set)
        elif name in _WHOLE and not is_of_framework(sys._getframe(2).f_code):
            self._read.update(set(names.values()) - self._set)

    def note_set(self, owner: Any, name: str, value: Any) -> None:
        """An attribute is set. Inside of a branch or loop that does not show if it is set to what it was, so that this
        is relied on then."""
        key = self._names.get(id(owner), {}).get(name)
        if key is None:
            group = self._stored.get(id(owner), {}).get(name)
            if group is not None and type(value) in SIMPLE:  # an array that is there is put back by `self.total += x`
                self._set_again.add(group.key(name))
        elif key not in self._read:
            before = [entry.entered for entry in self.entries if entry.slot.key == key]
            hooks = self.inputs.recorder.hooks
            is_in_piece = hooks.check_piece is not type(hooks).check_piece
            is_hidden = is_in_piece and any(same_part(one, value) for one in before)
            (self._read if is_hidden else self._set).add(key)

    # ---- after the run -------------------------------------------------------------------------------------------

    def changed(self) -> list[Slot]:
        """The places that the run has changed, without those that were lifted."""
        lifted = {entry.slot.key for entry in self.entries}
        inside = self.memory.has_changed()
        found = {slot.key: slot for slot in (*self._changed_attributes(inside), *self._changed_variables(inside))}
        is_unseen = bool(self.own) or any(group.is_inner for group in self._groups)
        is_over = not self.inputs.recorder.running  # asked before, it says nothing about what is still to come
        self._is_clean = is_over and not found and not self.entries and not is_unseen
        return [slot for key, slot in (found | self._wanted).items() if key not in lifted]

    def wanted(self) -> list[Slot]:
        """The places that must be lifted because the result holds something that is kept there."""
        lifted = {entry.slot.key for entry in self.entries}
        return [slot for key, slot in self._wanted.items() if key not in lifted]

    def _changed_attributes(self, inside: bool) -> Iterator[Slot]:
        """The attributes that are others; if containers have changed ``inside``, those that lead to one too."""
        for group in self._groups:
            holder, before = group.holder, group.before
            is_plain = not (inside and group.below) and not self._set_again
            if group.is_inner or (is_plain and group.is_as_before()):
                continue
            for name in {**before, **holder}:
                if name in group.skip:
                    continue
                now, known = holder.get(name, MISSING), before.get(name, MISSING)
                same = now is known or same_part(now, known)
                same = same and (not self._set_again or group.key(name) not in self._set_again)
                if not same or (name in group.below and self.memory.changed(group.below[name])):
                    yield group.slot(name)

    def _changed_variables(self, inside: bool) -> Iterator[Slot]:
        yield from (Slot(Variable(kind, name)) for kind, name in self._new_class_attributes())
        for variable, before, below in self._variables:
            if self.own and _key(variable) in self.own:
                continue
            holder = variable.holder
            now = holder.get(variable.name, MISSING) if type(holder) is dict else variable.get()
            if (now is not before and not same_part(now, before)) or (inside and self.memory.changed(below)):
                yield Slot(variable)

    def is_touched(self, values: Iterable[Any], variables: Iterable[Variable]) -> bool:
        """Whether the run has changed one of these containers and objects, or set one of these variables, by now."""
        entered = {id(held.value): held for held in self.inputs.containers}
        for value in values:
            held = entered.get(id(value))
            before = self.memory.of(value) if held is None else held.entered
            if held is not None and id(value) in self._plain:
                before = held.before
            if before is not None and not same_contents(_behind_proxies(contents(value)), _behind_proxies(before)):
                return True
        found = list(variables)
        known = {_key(one): before for one, before, _ in self._variables} if found else {}
        for group in self._groups if found else ():
            known |= {(id(group.holder), name): before for name, before in group.before.items()}
        plain = self._plain
        known |= {one.slot.key: one.before if one.slot.key in plain else one.entered for one in self.entries}
        now = [(known[_key(one)], one.get()) for one in found if _key(one) in known]
        return any(after is not before and not same_part(after, before) for before, after in now)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Inside of this, what is as the program found it is what it was before the run, with no proxies in it."""
        entries = [one for one in self.entries if one.before is not MISSING and one.entered is not one.before]
        entries = [one for one in entries if one.slot.variable.get() is one.entered]
        held = [one for one in self.inputs.containers if not isinstance(one.value, StateListProxy)]
        held = [one for one in held if same_contents(contents(one.value), one.entered)]
        for entry in entries:
            entry.slot.variable.put(entry.before)
        for container in held:
            refill(container.value, container.before)
        known, self._plain = self._plain, {one.slot.key for one in entries} | {id(one.value) for one in held}
        try:
            yield
        finally:
            self._plain = known
            for container in held:
                if same_contents(contents(container.value), container.before):
                    refill(container.value, container.entered)
            for entry in entries:
                if entry.slot.variable.get() is entry.before:
                    entry.slot.variable.put(entry.entered)

    def check_entered(self) -> None:
        """Raise if something below a lifted place has changed that did not enter: nobody would write it."""
        other = self.memory.other_class()
        if other is not None:
            raise CaptureError(
                f"the program gives an object another class, {type(other).__name__}",
                why="the graph would leave the object as it is",
                fixes=("keep what differs in an attribute",),
            )
        entered = {id(held.value) for held in self.inputs.containers}
        for entry in self.entries:
            for value in (reading.value for reading in self.memory.changes(self._below(entry.slot))):
                if id(value) not in entered:
                    raise CaptureError(
                        f"the program changes a {type(value).__name__} below {entry.slot.label}",
                        why="the capture cannot follow it there",
                        fixes=("keep the state in a buffer, a list or a dict",),
                    )

    def _below(self, slot: Slot) -> tuple[int, int]:
        for group in self._groups:
            if group.key(slot.variable.name) == slot.key:
                return group.below.get(slot.variable.name, _NOTHING)
        return next((below for known, _, below in self._variables if Slot(known).key == slot.key), _NOTHING)

    def want(self, part: Any) -> bool:
        """Whether ``part`` lies in some container of the state; if so that place will be lifted in another run."""
        if self._homes is None:
            self._homes = {id(found): (found, slot) for slot, found in self._parts()}
        found = self._homes.get(id(part))
        if found is not None and found[0] is part:
            self._wanted[found[1].key] = found[1]
        return found is not None

    def want_slot(self, slot: Slot) -> None:
        """Let a place be lifted in another run, whether or not it has changed."""
        self._wanted[slot.key] = slot

    def is_in_module(self, array: Any) -> bool:
        """Whether an array belongs to a module that lies in some container of the state."""
        return any(array is held for end in self.memory.ends.values() for held in arrays_of(end))

    def hidden_ends(self) -> list[Any]:
        """The ends in attributes and containers: what is no more than the value of a variable is not among them."""
        plain = Counter(id(value) for _, value, _ in self._variables)
        memory = self.memory
        return [end for key, end in memory.ends.items() if memory.met[key] > plain[key]]

    def watches(self, owner: Any) -> bool:
        """Whether the attributes of an object were remembered before the run."""
        return any(group.owner is owner for group in self._groups)

    def had(self, part: Any) -> bool:
        """Whether some place, or a container below one, held this very object before the run."""
        values = [value for group in self._groups for value in group.before.values()]
        values += [before for _, before, _ in self._variables]
        return any(value is part for value in values) or self.memory.holds(part)

    def _parts(self) -> Iterator[tuple[Slot, Any]]:
        """All that containers below attributes hold."""
        for group in self._groups:
            for name, below in group.below.items():
                for reading in self.memory.kept(below):
                    yield from ((group.slot(name), part) for part in reading.parts)

    def learn_from(self, other: State) -> None:
        """What another run of the same program has read counts too."""
        self._read |= other._read
        for entry, twin in zip(self.entries, other.entries, strict=True):
            if type(entry.entered) is StateListProxy and type(twin.entered) is StateListProxy:
                entry.entered.seen = entry.entered.seen or twin.entered.seen
        for (own, *_), (found, *_) in zip(self._inner, other._inner, strict=True):
            own.seen = own.seen or found.seen

    def drop_unread(self) -> None:
        """Take away the guards on places that were set before they were read; guard the absence that was seen."""
        graph = self.inputs.recorder.graph
        for entry in self.entries:
            unread = self._is_tracked(entry.slot) and entry.slot.key not in self._read
            if type(entry.entered) is StateListProxy:
                unread = not entry.entered.seen
                self._check_history(entry.slot, entry.entered)
            if unread:
                self._drop(entry.arrays, entry.checks)
            elif entry.before is MISSING and not (
                entry.slot.path is None and _may_be_other(self.inputs, entry.slot, MISSING)
            ):
                text = f"there is no {entry.slot.label}"
                graph.call_function(require, (entry.slot.exists(graph), False, text))

        for history, place, checks, arrays in self._inner:
            if not history.seen:
                self._drop(arrays, checks)
            elif history.place is not None:
                count, node = list.__len__(history.original), self.inputs.recorder.resolve(place)
                graph.call_function(require_length, (node, count, f"len({expression_of(node)}) == {count}"))

    def _drop(self, arrays: list[Any], checks: list[Node]) -> None:
        """Take away guards, those on arrays among them."""
        dropped = {id(array) for array, _ in arrays}
        self.inputs.arrays = [pair for pair in self.inputs.arrays if id(pair[0]) not in dropped]
        for node in checks:
            if node.graph is not None and not node._erased:
                node.graph.erase_node(node)

    def _check_history(self, slot: Slot, history: StateListProxy) -> None:
        """Guard that a list is one, and how long it is if the program looked at it."""
        graph = self.inputs.recorder.graph
        graph.call_function(require_type, (slot.read(graph), list, f"type({slot.label}) is list"))
        if history.seen:
            count = list.__len__(history.original)
            graph.call_function(require_length, (slot.read(graph), count, f"len({slot.label}) == {count}"))

    def _is_tracked(self, slot: Slot) -> bool:
        return slot.owner is not None and id(slot.owner) in self._names

    def left(self) -> Iterator[tuple[Slot, Any]]:
        """The lifted places that hold something else now, or were set to what was there, and what."""
        for entry in self.entries:
            now = entry.slot.variable.get()
            if now is not entry.entered or entry.slot.key in self._set:
                yield entry.slot, now

    def put_back(self) -> None:
        """Let everything be as it was before the run."""
        if self._is_clean:
            return
        for entry in self.entries:
            entry.slot.variable.put(entry.before)
        for group in self._groups:
            self._put_back(group)
        for variable, before, _ in self._variables:
            if variable.get() is not before:
                variable.put(before)
        for kind, name in list(self._new_class_attributes()):
            delattr(kind, name)
        self.memory.put_back()
        if self.memory.has_changed():  # by what was let go of: a generator in the middle of a `with` comes to its end
            self.memory.put_back()
        for variable, before in [(entry.slot.variable, entry.before) for entry in self.entries]:
            if variable.root is not variable:  # in a container, which was put back as it was when the run began
                variable.put(before)

    @staticmethod
    def _put_back(group: _Group) -> None:
        holder, before = group.holder, group.before
        for name in [name for name in holder if name not in before and name not in group.skip]:
            del holder[name]
        if list(holder) != list(before) and not group.skip and group.path is None:
            holder.clear()
        for name, value in before.items():
            if holder.get(name, MISSING) is not value:
                holder[name] = value

    def forget(self) -> None:
        """Let go of everything that was remembered: how many hold a list tells the next run something."""
        self._groups, self._variables, self.entries, self._classes, self._stored = [], [], [], [], {}
        self.memory = Memory(self.inputs.recorder.is_end)
        self.inputs.containers, self.inputs.recorder.objects = [], {}

    def commit(self, plain: Callable[[Any], Any]) -> None:
        """Let everything be as the run has left it, with plain numbers."""
        for slot in [entry.slot for entry in self.entries] + self.changed():
            now = slot.variable.get()
            if now is not MISSING:
                value = plain(now)
                if value is not now:
                    slot.variable.put(value)

    def pins(self) -> list[tuple[MutableMapping[str, Any], str, Any]]:
        """What else the run may have relied on: attributes that were not lifted, each with its dict and its value."""
        free = {entry.slot.key for entry in self.entries} | self.data
        return [
            (group.holder, name, value)
            for group in self._groups
            for name, value in group.before.items()
            if not group.is_inner and (not free or group.key(name) not in free)
        ]

    def shadowed(self, around: Surroundings, names: Set[str]) -> Iterator[tuple[MutableMapping[str, Any], str]]:
        """The attributes of these names that owners find in their classes, each with the dict that does not hold it."""
        free = {entry.slot.key for entry in self.entries} | self.data
        for group in self._groups:
            if not group.is_inner and group.holder is getattr(group.owner, "__dict__", None):
                for name in around.shadowed(group.owner, names):
                    if group.key(name) not in free:
                        yield group.holder, name

    def held_by_pins(self, names: Container[str]) -> list[ContentsSnapshot]:
        """What containers and objects held before the run that pinned attributes of these names lead to."""
        lifted = {entry.slot.key for entry in self.entries}
        changed = {id(held.value) for held in self.inputs.containers}
        anything = any(name in names for name in ("getattr", "__dict__", "vars", "attrgetter"))
        return [
            reading
            for group in self._groups
            for name, added in group.below.items()
            if not group.is_inner and (anything or name in names) and group.key(name) not in lifted
            for reading in self.memory.kept(added)
            if id(reading.value) not in changed
        ]


def _reporting_reads(original: Any) -> Any:
    def __getattribute__(self: Any, name: str) -> Any:
        state = current.get()
        if state is not None:
            state.note_read(self, name)
        return original(self, name)

    return __getattribute__


def _reporting_writes(original: Any) -> Any:
    def __setattr__(self: Any, name: str, value: Any) -> None:
        state = current.get()
        if state is not None:
            state.note_set(self, name, value)
        original(self, name, value)

    return __setattr__
