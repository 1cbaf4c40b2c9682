"""Guards on variables around a program: what was read of them, as finely as it was read.

A plain value must be equal, a function the very same. Of a container the items that the run asked for are guarded, if a
recording proxy has told which (``variable_reads``), of an object the attributes that code reads, otherwise all that the
user's own variables hold. What libraries keep for themselves (objects, locks, caches) is not looked into. Guards come
in the order in which the variables were found.
"""

from __future__ import annotations

import contextvars
import functools
import logging
import operator
import threading
import weakref
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any, Generic, TypeVar

from clew.capture.guards.function_equality import ClassWithout, FunctionState, PartialState
from clew.capture.guards.notes import Variable, are_distinct, expression_of, require, require_variable
from clew.capture.guards.variable_reads import ATTRIBUTE, ITEM, WHOLE, Item, ProgramUses, Reads
from clew.capture.location import MISSING
from clew.capture.recording.inputs import Inputs
from clew.capture.recording.recorder import Recorder
from clew.capture.state.containers import (
    CODE,
    LOGGERS,
    SIMPLE,
    follows,
    is_followed,
    is_namespace,
    is_of_library,
    is_plain_object,
)
from clew.capture.state.memory import Memory, below
from clew.capture.state.slots import Slot
from clew.capture.state.state import State
from clew.capture.state.surroundings import Surroundings
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.ir.guards import Guard
from clew.ir.node import Node
from clew.ir.source import is_installed

NEVER = (*LOGGERS, type(threading.Lock()), type(threading.RLock()))
"""Classes of values on which no result depends."""
_OF_LIBRARIES = (
    contextvars.ContextVar, threading.local, weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet,
    type(functools.lru_cache(lambda: None)), weakref.ref, threading.Thread, logging.Handler,
)  # fmt: skip
"""Classes of values that libraries keep for themselves."""


RecorderT = TypeVar("RecorderT", bound=Recorder)


class GuardsOfRun(Generic[RecorderT]):
    """Whoever writes the guards at the entrance of one capture: what was recorded, the arguments taken apart, and what
    is around the program."""

    def __init__(
        self,
        recorder: RecorderT,
        inputs: Inputs,
        surroundings: Surroundings,
        state: State,
        reads: Reads | None = None,
        watches_variables: bool = True,
    ) -> None:
        self.recorder = recorder
        self.graph = recorder.graph
        self.inputs = inputs
        self.surroundings = surroundings
        self.state = state
        given = given_classes(inputs)
        self.variables = VariableGuards(recorder.graph, surroundings, state, recorder.is_end, reads, given)
        self.watches_variables = watches_variables

    def _require(self, node: Node, expected: Any, text: str) -> None:
        """Guard a value."""
        self.graph.call_function(require, (node, expected, text))

    def _variable(self, holder: Any, name: str, value: Any, label: str = "") -> None:
        """A variable must be what it was, and hold what it held."""
        self.variables.whole(Variable(holder, name), value, label or name)

    def _classes(self, ran: Container[FunctionType], names: Collection[str], is_array: Callable[[Any], bool]) -> None:
        """Attributes of these names that the program's own classes hold for all their instances."""
        for kind in filter(self.surroundings.may_vary, self.surroundings.classes_of(ran)):
            for name in sorted(vars(kind).keys() & names):
                value = vars(kind)[name]
                counts = is_array(value) or not (hasattr(type(value), "__get__") or isinstance(value, NEVER))
                if counts and not name.startswith("__") and (id(kind), name) not in self.variables.skipped:
                    self._variable(kind, name, value, f"{kind.__name__}.{name}")

    def _same_objects(self, arrays: Iterable[tuple[Any, Any]]) -> None:
        """Arguments that are one array under two names must be one again."""
        homes: dict[int, Any] = {}
        for array, place in arrays:
            node = self.recorder.resolve(place)
            home = homes.setdefault(id(array), node)
            if home is not node:
                same = self.graph.call_function(operator.is_, (home, node))
                self._require(same, True, f"{expression_of(home)} is {expression_of(node)}")

    def _different_objects(self, arrays: Iterable[tuple[Any, Any]], what: str = "arrays among the arguments") -> None:
        """A program that compares objects was shown different ones, and must be again."""
        nodes = {id(array): self.recorder.resolve(place) for array, place in arrays}
        if len(nodes) > 1:
            different = self.graph.call_function(are_distinct, tuple(nodes.values()))
            self._require(different, True, f"the {what} are different objects")


class VariableGuards:
    """Writes the guards on variables of one capture into its graph."""

    def __init__(
        self,
        graph: Graph,
        around: Surroundings,
        state: State,
        is_end: Callable[[Any], bool],
        reads: Reads | None,
        given: list[type],
    ) -> None:
        self.graph = graph
        self.around = around
        self.is_end = is_end
        self.reads = reads
        self._given = given
        self.skipped = {entry.slot.key for entry in state.entries} | state.own
        self._written: set[tuple[int, str, str]] = set()
        self._program = around.derived(ProgramUses)

    def write(self, executed: Iterable[CodeType], leave_out: Callable[[Any], bool] | None = None) -> None:
        """Guard what the run has read; values for which ``leave_out`` says yes are guarded by other means."""
        executed = list(executed)
        for holder, name, value in self.around.variables(executed):
            if (id(holder), name) in self.skipped or (leave_out is not None and leave_out(value)):
                continue
            if self.reads is None:
                self.whole(Variable(holder, name), value, _label(holder, name))
            elif (id(holder), name) not in self.reads.watched and not isinstance(value, NEVER):
                self._variable(holder, name, value, executed)
        for item in () if self.reads is None else self.reads.items():
            if (id(item.root.holder), item.root.name) not in self.skipped and item.key not in self.skipped:
                self._item(item)
        self._code(executed)

    def _code(self, executed: list[CodeType]) -> None:
        """The user's own functions, methods and classes, which she may replace; the program itself is what it is."""
        around = self.around
        methods = around.named_methods(executed, self._given)
        for one in [*around.code(executed), *around.own_classes(executed), *methods]:
            is_own = is_namespace(one.holder) or isinstance(one.holder, (CellType, type))
            if is_own and one.expected not in around.program[0] and not around.is_of_library(one.holder, one.name):
                one.held = FunctionState.of(one.expected)
                self._write(one, repr(one))

    def _variable(self, holder: Any, name: str, value: Any, executed: list[CodeType]) -> None:
        """A variable of which nobody has told what was read."""
        label = _label(holder, name)
        if self.around.is_of_library(holder, name):
            is_fixed = isinstance(holder, CellType) and isinstance(value, (*CODE, *SIMPLE))
            if not is_fixed and not isinstance(value, _OF_LIBRARIES) and not _is_field(holder, name):
                self._write(Variable(holder, name, value), label)
                self._plain_attributes(Variable(holder, name), value, executed)
            return
        fields = self._fields(holder, name, value)
        if fields is None:
            self.whole(Variable(holder, name), value, label)
            return
        for item in (Item(Variable(holder, name), ATTRIBUTE, field) for field in fields):
            if item.key not in self.skipped:
                self._item(item)

    def _fields(self, holder: Any, name: str, value: Any) -> list[str] | None:
        """The attributes that the program reads of an object, if all it does with the object is to read them."""
        kind: Any = type(value)
        if not _is_plain_object(kind) or not isinstance(holder, dict):
            return None
        fields = self._program.fields_of(name)
        if not fields or any(field not in vars(value) for field in fields):
            return None
        return sorted(set(fields))

    def _plain_attributes(self, base: Variable, value: Any, executed: list[CodeType]) -> None:
        """The plain values among the attributes of a library's object that code which ran names."""
        if isinstance(value, (*SIMPLE, *CODE)) or not follows(value) or not hasattr(value, "__dict__"):
            return
        for name in sorted(self.around.names(executed) & vars(value).keys()):
            if type(vars(value)[name]) in SIMPLE:
                self._item(Item(base, ATTRIBUTE, name))

    def _item(self, item: Item) -> None:
        """One thing that was read of a container or an object."""
        if item.way == WHOLE and not item.is_library:
            self.whole(item.base, item.base.get(), repr(item.base))
            return
        item.expected = item.get()
        if item.expected is not MISSING and not item.is_library:
            item.held = below(item.expected, self.is_end)
        self._write(item, repr(item))

    def whole(self, variable: Variable, value: Any, label: str) -> None:
        """A variable must be what it was, and hold what it held."""
        variable.expected, variable.held = value, below(value, self.is_end)
        self._write(variable, label)

    def _write(self, variable: Variable, label: str) -> None:
        key = _place(variable)
        if key in self._written:
            return
        self._written.add(key)
        name = variable.name if isinstance(variable.name, str) else repr(variable)
        self.graph.call_function(require_variable, (variable, name, f"{label} is unchanged"))


def take_over_guards(graph: Graph, variables: Iterable[Variable]) -> None:
    """Guard what graphs rely on that the program has called, where the graph inserts nodes now."""
    known = {_place(node.args[0]) for node in graph.nodes if node.target is require_variable}
    for variable in variables:
        if _place(variable) not in known:
            known.add(_place(variable))
            name = variable.name if isinstance(variable.name, str) else repr(variable)
            graph.call_function(require_variable, (variable, name, f"{variable!r} is unchanged"))


def _place(variable: Variable) -> tuple[int, str, str]:
    """What tells the places of variables apart."""
    return id(variable.root.holder), variable.root.name, repr(variable)


def _bases(variable: Variable) -> Iterator[Variable]:
    """The variables in whose values one is found."""
    while variable.base is not variable:
        variable = variable.base
        yield variable


def own_code(
    around: Surroundings, inputs: Inputs, state: State, executed: list[CodeType], modules: Iterable[type]
) -> tuple[Guard, ...]:
    """Guards on the functions of the program itself, whose code and defaults can be set anew; those among the methods
    that ran are looked up in their classes at each call. On what its classes, those of its arguments too, do not have:
    an attribute that comes later would be found before that of an instance or of a base. And on the ``forward`` of
    ``modules`` whose inside is in the graph, installed ones too."""
    functions = [one for one in around.program[0] if type(one) is FunctionType and not is_installed(one.__code__)]
    found = [one for one in around.methods(executed) if one.expected in functions]
    held = [one.expected for one in found]
    found += [Variable({one.__name__: one}, one.__name__, one) for one in functions if one not in held]
    for one in found:
        one.held = FunctionState.of(one.expected)
    skipped = {entry.slot.key for entry in state.entries} | state.own
    for kind, missing in around.missing(executed, given_classes(inputs)):
        names = missing.difference(name for holder, name in skipped if holder == id(kind))
        found.append(Variable({kind.__name__: kind}, kind.__name__, kind, ClassWithout(kind, names)))
    known = {id(one.expected) for one in found}
    bases = dict.fromkeys(base for kind in modules for base in kind.__mro__ if "forward" in vars(base))
    for one in [Variable(base, "forward", vars(base)["forward"]) for base in bases]:
        if type(one.expected) is FunctionType and id(one.expected) not in known:
            one.held = FunctionState(one.expected)
            found.append(one)
    return tuple(Guard(one, "variable", None, "code", label=f"{one!r} is unchanged") for one in found)


def own_partials(found: list[functools.partial[Any]]) -> tuple[Guard, ...]:
    """Guards on the partials that a program is, whose arguments can be set anew."""
    names = [f"partial({getattr(one.func, '__qualname__', one.func)})" for one in found]
    held = [Variable({name: one}, name, one, PartialState(one)) for name, one in zip(names, found, strict=True)]
    return tuple(Guard(one, "variable", None, "code", label=f"{one!r} is unchanged") for one in held)


def given_classes(inputs: Inputs) -> list[type]:
    """The classes of the objects among the arguments."""
    found: dict[type, None] = dict.fromkeys(type(container.value) for container in inputs.containers)
    return [kind for kind in found if is_plain_object(kind)]


def values_only_read(
    graph: Graph, around: Surroundings, state: State, dynamic: bool, is_array: Callable[[Any], bool]
) -> list[Slot]:
    """The places of numbers around the user's own code that a graph is guarded on, and of arrays in attributes and
    items, which are set anew as a model learns: it can read them at each call.

    A container that counts as a whole is one such place if it holds fractions, as the attribute of an object, or
    anywhere if sizes are ``dynamic``: in another process a variable may not be there, nor can a container be made up.
    """
    owned = [group for group in state._groups if group.owner is not None and not group.is_inner]
    owners = {(id(group.owner), name): group for group in owned for name in group.before}
    found = []
    guarded: list[Variable] = [node.args[0] for node in graph.nodes if node.target is require_variable]
    whole = set(map(_place, guarded))
    for variable in guarded:
        root = variable.root
        if any(_place(base) in whole for base in _bases(variable)):
            continue  # it enters with what holds it, or nothing there may change
        group = owners.get((id(variable.holder), variable.name)) if variable is root else None
        is_number = type(variable.expected) in (int, float)
        if around.is_of_library(root.holder, root.name) or (group is not None and is_of_library(type(group.owner))):
            continue
        if is_number and (not isinstance(variable, Item) or variable.way in (ATTRIBUTE, ITEM)):
            is_whole = type(variable.expected) is int  # such are mostly sizes and numbers of rounds
            takes = not is_whole or (dynamic and group is None)
        elif is_array(variable.expected):
            takes = group is not None or variable is not root
        else:
            takes = variable is root and (dynamic or group is not None) and _holds_values(variable, is_array)
        if takes:
            slot = Slot(variable) if group is None else group.slot(variable.name)
            slot.is_only_read, slot.variable.expected = is_number, variable.expected
            found.append(slot)
    return found


def _holds_values(variable: Variable, is_array: Callable[[Any], bool]) -> bool:
    """Whether a variable holds a few values, and fractions or arrays among them."""
    held = variable.held
    if not isinstance(held, Memory) or not all(map(is_array, held.ends.values())):
        return False
    kept = held.kept((0, _MOST_HELD + 1))
    is_one = any(type(part) is float or is_array(part) for reading in kept for part in reading.parts)
    return 0 < len(kept) <= _MOST_HELD and is_one


_MOST_HELD = 16


def may_count(in_library: bool, value: Any) -> bool:
    """Whether what a program does may depend on a variable: on no logger or lock, nor on what a library keeps."""
    if isinstance(value, NEVER) or (in_library and isinstance(value, _OF_LIBRARIES)):
        return False
    return not in_library or isinstance(value, (*SIMPLE, *CODE))


def _label(holder: Any, name: str) -> str:
    return f"{holder.__name__}.{name}" if isinstance(holder, type) else name


def _is_field(holder: Any, name: str) -> bool:
    """Whether a class attribute is the default of a dataclass's field, which objects have for themselves."""
    return isinstance(holder, type) and name in getattr(holder, "__dataclass_fields__", ())


@functools.lru_cache(maxsize=4096)
def _is_plain_object(kind: Any) -> bool:
    """Whether reading an attribute of a class's objects that is in their dict runs no code of the class."""
    if not is_followed(kind) or not is_plain_object(kind) or kind.__getattribute__ is not object.__getattribute__:
        return False
    held = [(name, value) for base in kind.__mro__[:-1] for name, value in vars(base).items()]
    return not any(hasattr(type(value), "__set__") and not name.startswith("__") for name, value in held)


# ---- variables that a framework's own tracer has read ----------------------------------------------------------------


class WatchedVariables:
    """Some variables as they were."""

    def __init__(self, is_end: Any = None) -> None:
        self._is_end = is_end
        self._variables: list[tuple[str, Variable]] = []

    def add(self, label: str, holder: Any, name: str, value: Any) -> None:
        """Watch one variable and what it holds."""
        self._variables.append((label, Variable(holder, name, value, below(value, self._is_end))))

    def changed(self) -> str | None:
        """The first variable that is not what it was; None if all are."""
        return next((label for label, variable in self._variables if not variable.is_as_before()), None)

    def __len__(self) -> int:
        return len(self._variables)

    def __reduce__(self) -> tuple[Any, ...]:
        return WatchedVariables, ()

    def __repr__(self) -> str:
        return f"WatchedVariables({', '.join(label for label, _ in self._variables[:4])})"


@pure
def changed(watched: WatchedVariables) -> str | None:
    """The first of some variables that is not what it was during the capture."""
    return watched.changed()
