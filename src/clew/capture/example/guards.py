"""Guards: the assumptions of a capture, as data that print as Python.

A guard says which value of the graph was asked for, what the answer was in the example, and on which line of the user
it was asked. In the graph it is a call of ``require``; where the answer is another, the call raises ``GuardError``. In
generated code the call stands behind a cheap test.
"""

from __future__ import annotations

import copy
import math
import sys
from dataclasses import dataclass
from types import CellType
from typing import Any

from clew.capture.example import inline
from clew.capture.example.contents import SIMPLE, attributes_of, is_of_library, same_part
from clew.capture.example.elsewhere import ABSENT, Place, Saved, place_of, saved
from clew.capture.example.likeness import require_alike
from clew.capture.example.memory import Memory, below
from clew.codegen.checks import written_as_test
from clew.errors import GuardError
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.ir.nested import all_nodes
from clew.ir.node import Node
from clew.ir.source import SourceLine

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
"""Stands where a variable or an attribute has no value."""
STANDING: set[type] = set()
"""Classes of what stands in a variable for its value while a program is captured."""


@dataclass(frozen=True)
class Guard:
    """One assumption: ``expression`` in Python's notation, and where it was made."""

    expression: str
    source: SourceLine | None
    node: Node

    def __str__(self) -> str:
        return self.expression


def guards_of(graph: Graph) -> list[Guard]:
    """The guards of a graph, in the order in which they are checked."""
    return [
        Guard(str(node.args[2]), node.source, node)
        for node in all_nodes(graph)
        if node.op == "call_function" and node.target in CHECKS
    ]


def require(value: Any, expected: Any, assumption: str, place: str = "", why: str = "") -> None:
    """Raise unless ``value`` is what it was during the capture; ``why`` no other way was captured, if that is known."""
    if not same_answer(value, expected):
        raise GuardError(
            f"the graph assumed {assumption}, but the value is {value!r}",
            where=place,
            why=why or "the captured program took a way that depends on it",
            fixes=("capture again with this input", "clew.trace(fn) without an example captures again by itself"),
        )


def require_either(value: Any, expected: tuple[Any, ...], assumption: str, place: str = "", why: str = "") -> None:
    """Raise unless ``value`` is one of several that the program does the same with."""
    if not any(same_answer(value, one) for one in expected):
        require(value, expected[0], assumption, place, why)


def require_way(value: bool, expected: bool, assumption: str, place: str = "", why: str = "") -> None:
    """Raise, in the place of a way that was not captured: there ``value`` is the truth that is not ``expected``."""
    require(value, expected, assumption, place, why)


def same_answer(value: Any, expected: Any) -> bool:
    """Equality of kinds as well as values, in which nan equals nan."""
    if type(value) is not type(expected):
        return False
    if isinstance(value, float):
        if math.isnan(value):
            return math.isnan(expected)
        return value == expected and math.copysign(1.0, value) == math.copysign(1.0, expected)
    if type(value) is tuple:
        return len(value) == len(expected) and all(map(same_answer, value, expected))
    return bool(value == expected)


def require_same(value: Any, expected: Any, assumption: str, place: str = "") -> None:
    """Raise unless ``value`` is the very object that it was during the capture."""
    if value is not expected:
        raise GuardError(
            f"the graph assumed {assumption}, but it is another object of type {type(value).__name__}",
            where=place,
            fixes=("pass the same object", "capture again with this input"),
        )


def require_length(value: Any, expected: int, assumption: str, place: str = "") -> None:
    """Raise unless a container has as many items as during the capture."""
    require(len(value), expected, assumption, place)


def require_keys(value: Any, expected: tuple[Any, ...], assumption: str, place: str = "") -> None:
    """Raise unless a dict has the same keys in the same order."""
    require(tuple(value), expected, assumption, place)


def require_attributes(value: Any, expected: tuple[str, ...], assumption: str, place: str = "") -> None:
    """Raise unless an object has the same attributes in the same order."""
    require(tuple(attributes_of(value)), expected, assumption, place)


def require_other_attributes(value: Any, expected: Any, assumption: str, place: str = "") -> None:
    """Raise unless an object has the same attributes, apart from those that the program sets by itself."""
    names, fresh = expected
    found = tuple(name for name in attributes_of(value) if name not in fresh)
    if found != tuple(names):
        raise GuardError(
            f"the graph assumed {assumption}, but it has {found}",
            where=place,
            fixes=("pass an object with the same attributes", "capture again with this input"),
        )


def require_type(value: Any, expected: type, assumption: str, place: str = "") -> None:
    """Raise unless a value is of the same class."""
    if type(value) is not expected:
        raise GuardError(
            f"the graph assumed {assumption}, but it is of type {type(value).__name__}",
            where=place,
            why="the captured program was run on a value of that type",
            fixes=("pass the same type", "capture again with this input"),
        )


_WITHOUT_MEMORY = "torch._subclasses."


def require_array(value: Any, expected: type, assumption: str, place: str = "") -> None:
    """Raise unless an array is of the same class.

    Arrays without memory, which a framework's own tracer passes through the code, stand for arrays of that class.
    """
    if issubclass(type(value), expected) and type(value).__module__.startswith(_WITHOUT_MEMORY):
        return
    require_type(value, expected, assumption, place)


class Variable:
    """A variable outside of the program: in a dict of globals, a cell of a closure, or an attribute of an object."""

    __slots__ = ("expected", "held", "holder", "name")

    def __init__(self, holder: Any, name: str, expected: Any = None, held: Memory | None = None) -> None:
        self.holder = holder
        self.name = name
        self.expected = expected
        self.held = held

    @property
    def root(self) -> Variable:
        """The variable in whose value this one is found: itself, unless it is an item."""
        return self

    @property
    def is_library(self) -> bool:
        """Whether the variable is one of an installed package."""
        return is_of_library(self.holder)

    def get(self) -> Any:
        """The value now; ``MISSING`` if there is none, ``ABSENT`` if its place does not exist in this process."""
        value = self._value()
        return value._original if type(value) in STANDING else value

    def _value(self) -> Any:
        holder = self.holder
        if type(holder) is Place:
            holder = holder.find()
            if holder is None:
                return ABSENT
            self.holder = holder
        if isinstance(holder, dict):
            return holder.get(self.name, MISSING)
        if not isinstance(holder, CellType):
            return vars(holder).get(self.name, MISSING)
        try:
            return holder.cell_contents
        except ValueError:  # a cell that is not filled yet
            return MISSING

    def put(self, value: Any) -> None:
        """Set the variable; ``MISSING`` takes it away."""
        if self._value() is ABSENT:
            raise GuardError(f"the graph sets the variable {self.name}, which does not exist in this process")
        if isinstance(self.holder, dict):
            self.holder.update({self.name: value}) if value is not MISSING else self.holder.pop(self.name, None)
        elif isinstance(self.holder, CellType):
            if value is MISSING:
                del self.holder.cell_contents
            else:
                self.holder.cell_contents = value
        elif value is not MISSING:
            setattr(self.holder, self.name, value)
        elif self.name in vars(self.holder):
            delattr(self.holder, self.name)

    def __repr__(self) -> str:
        return f"{self.holder.__name__}.{self.name}" if isinstance(self.holder, type) else self.name

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        holder, expected, held = (copy.deepcopy(part, memo) for part in (self.holder, self.expected, self.held))
        return Variable(holder, self.name, expected, held)

    def __reduce__(self) -> tuple[Any, ...]:
        """Saved are the way to the variable, and what its value is like: in another process it is another object."""
        expected = self.expected if type(self.expected) in (*SIMPLE, Saved) else saved(self.expected, self.is_library)
        return Variable, (place_of(self.holder, self.name), self.name, expected)

    def is_as_before(self) -> bool:
        """True when the variable still has this value: the same object, or an equal plain one."""
        now = self.get()
        if now is ABSENT:
            return True
        if type(self.expected) is Saved:
            return self._is_like(now)
        if now is not self.expected:
            return type(now) in SIMPLE and same_answer(now, self.expected)
        return self.held is None or is_read_by_compiler() or not self.held.has_changed()

    def _is_like(self, now: Any) -> bool:
        """Whether a value is like the one that was saved; if so, it is the one that must stay."""
        if now is MISSING or saved(now, self.expected.is_shallow) != self.expected:
            return False
        if not self.expected.has_arrays:  # the graph has copies of them, so what they hold is looked at each time
            self.held = None if self.expected.is_shallow else below(now, _is_no_end)
            self.expected = now
        return True


def _is_no_end(value: Any) -> bool:
    return False


def is_read_by_compiler() -> bool:
    """Whether torch's compiler reads this code, for which contents are looked at by a call of their own."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def require_variable(variable: Variable, name: str, assumption: str) -> None:
    """Raise unless a variable outside of the program is what it was during the capture."""
    if not variable.is_as_before():
        raise GuardError(
            f"the graph assumed {assumption}, but the variable has changed",
            why="the captured program has used its value",
            fixes=("capture again",),
        )


class Remembered:
    """What a call shares with the program, as it is before the call."""

    def __init__(self, territory: Any, objects: tuple[Any, ...]) -> None:
        ends = territory.ends
        self.values = [(variable, variable.get()) for variable in territory.shared]
        self.memory = Memory(lambda value: isinstance(value, ends), most=_MOST_OBJECTS)
        for value in (*(value for _, value in self.values), *objects):
            self.memory.remember(value, _DEPTH)

    def changed(self) -> str:
        """The name of a variable, or the class of an object, that is not what it was; an empty text if all are."""
        for variable, before in self.values:
            now = variable.get()
            if now is not before and not same_part(now, before):
                return variable.name
        touched = next(self.memory.all_changes(), None)
        return "" if touched is None else f"a {type(touched).__name__}"

    def put_back(self) -> None:
        """Let all of it be as it was."""
        for variable, before in self.values:
            if variable.get() is not before:
                variable.put(before)
        self.memory.put_back()


_MOST_OBJECTS, _DEPTH = 500, 4


def remember(territory: Any, *objects: Any) -> Remembered:
    """Note what a call that follows shares with the program."""
    return Remembered(territory, objects)


def require_untouched(before: Remembered, name: str, assumption: str, place: str = "") -> None:
    """Raise if a call has changed what it shares with the program, after taking that back."""
    changed = before.changed()
    if changed:
        before.put_back()
        raise GuardError(
            f"the graph assumed {assumption}, but it changes {changed}",
            where=place,
            why=f"{name} stays one call of the graph, and did not do so in the example",
            fixes=("capture again with this input", "call the original with it"),
        )


@pure
def are_distinct(*values: Any) -> bool:
    """Whether no object is given twice."""
    return len({id(value) for value in values}) == len(values)


@pure
def read_variable(variable: Variable) -> Any:
    """The value of a variable outside of the program, as it is at this call."""
    value = variable.get()
    if value is ABSENT:
        raise GuardError(
            f"the graph reads and sets the variable {variable.name}, which does not exist in this process",
            fixes=("import the Python module that has it",),
        )
    return value


def write_variable(variable: Variable, value: Any) -> None:
    """Set a variable outside of the program."""
    variable.put(value)


CHECKS = (
    require, require_same, require_type, require_length, require_keys, require_attributes, require_other_attributes,
    require_array, require_alike, require_variable, require_untouched, require_way, require_either,
)  # fmt: skip
"""The functions that a guard may be in a graph."""

written_as_test(require, inline.value_test)
written_as_test(require_same, inline.same_test)
written_as_test(require_type, inline.type_test)
written_as_test(require_array, inline.type_test)
written_as_test(require_length, inline.length_test)
written_as_test(require_keys, inline.keys_test)
