"""Guards as a recorder notes them while a program runs, and the variables around a program.

A guard is a call of one of the ``require`` functions in the growing graph: the value that was asked for, the answer,
the assumption as text, the user's line and the reason. ``lifting`` turns them into data (``clew.ir.guards``) when the
graph is complete. A ``Variable`` is a global, a variable of a closure or an attribute, with the value that the capture
found; it is saved by the path to its holder. Tests that only captures need are registered here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from clew.capture.guards.function_equality import FunctionFingerprint, has_fingerprint
from clew.capture.guards.saved_variables import ABSENT, HolderPath, SavedValue, path_of_holder, saved
from clew.capture.location import MISSING, Location
from clew.capture.state.containers import SIMPLE, attributes_of, is_of_library, same_part
from clew.capture.state.memory import Memory, below
from clew.codegen.guards import WRITERS, Condition, Subject, type_test
from clew.codegen.scope import Scope, is_plain_identifier
from clew.codegen.statements import SHOWN
from clew.errors import GuardError, a_or_an
from clew.ir.effects import pure
from clew.ir.guards import EQUALS, TYPE, Guard, Test, guard, register, same_answer, spelled
from clew.ir.guests import guest_of
from clew.ir.node import Node

expression_of = spelled


def describe(node: Node, answer: Any) -> str:
    """A guard in Python's notation: an expression, or ``not`` of it."""
    return EQUALS.text(expression_of(node), answer)


# ---- guards noted by a recorder --------------------------------------------------------------------------------------

PROXY_CLASSES: set[type] = set()
"""Classes of what stands in a variable for its value while a program is captured."""


def behind_proxy(value: Any) -> Any:
    """The container whose reads a proxy notes; any other value itself."""
    return value._original if type(value) in PROXY_CLASSES else value


def require(value: Any, expected: Any, assumption: str, place: str = "", why: str = "") -> None:
    """The program relied on ``value`` being this; ``why`` no other path was captured, if that is known."""
    _require("equals", value, expected, assumption)


def require_either(value: Any, expected: tuple[Any, ...], assumption: str, place: str = "", why: str = "") -> None:
    """On ``value`` being one of several that the program does the same with."""
    _require("either", value, expected, assumption)


def require_way(value: bool, expected: bool, assumption: str, place: str = "", why: str = "") -> None:
    """On the path that was captured: in the place of another one, ``value`` is the truth that is not ``expected``."""
    _require("equals", value, expected, assumption)


def require_same(value: Any, expected: Any, assumption: str, place: str = "") -> None:
    """On ``value`` being the very object."""
    _require("is", value, expected, assumption)


def require_length(value: Any, expected: int, assumption: str, place: str = "") -> None:
    """On a container having as many items."""
    _require("length", value, expected, assumption)


def require_keys(value: Any, expected: tuple[Any, ...], assumption: str, place: str = "") -> None:
    """On a dict having the same keys in the same order."""
    _require("keys", value, expected, assumption)


def require_attributes(value: Any, expected: tuple[str, ...], assumption: str, place: str = "") -> None:
    """On an object having the same attributes in the same order."""
    _require("attributes", value, expected, assumption)


def require_other_attributes(value: Any, expected: Any, assumption: str, place: str = "") -> None:
    """On an object having the same attributes, apart from those that the program sets by itself."""
    _require("other_attributes", value, expected, assumption)


def require_type(value: Any, expected: type, assumption: str, place: str = "") -> None:
    """On a value being of the same class."""
    _require("type", value, expected, assumption)


def require_array(value: Any, expected: type, assumption: str, place: str = "") -> None:
    """On an array being of the same class."""
    _require("array", value, expected, assumption)


def _require(test: str, value: Any, expected: Any, assumption: str) -> None:
    Guard("the value", test, expected, "computed", label=assumption).require(value)


def _is_array_of(value: Any, expected: type) -> bool:
    """Whether an array is of this class. Arrays without memory, which a framework's own tracer passes through the
    code, stand for arrays of that class."""
    kind = type(value)
    if kind is expected:
        return True
    found = guest_of(kind) if issubclass(kind, expected) else None
    return found is not None and found.is_without_memory(kind)


def _has_other_attributes(value: Any, expected: tuple[tuple[str, ...], tuple[str, ...]]) -> bool:
    names, fresh = expected
    return tuple(name for name in attributes_of(value) if name not in fresh) == tuple(names)


def _attributes_told(value: Any) -> str:
    return f"it has {tuple(attributes_of(value))}"


register(Test("array", _is_array_of, lambda subject, expected: f"type({subject}) is {expected.__name__}", TYPE.told))
register(
    Test(
        "attributes",
        lambda value, expected: same_answer(tuple(attributes_of(value)), expected),
        lambda subject, expected: f"tuple(vars({subject})) == {expected!r}",
        _attributes_told,
    )
)
register(Test("other_attributes", _has_other_attributes, lambda subject, expected: subject, _attributes_told))
register(
    Test(
        "alike",
        lambda value, expected: has_fingerprint(value) and expected.of(value) == expected.fingerprint,
        lambda subject, expected: f"{subject} does what was done by {expected!r}",
        lambda value: "it is another one",
    )
)


# ---- variables around a program --------------------------------------------------------------------------------------


class Held(Protocol):
    """What can be changed below the value of a variable, as it was."""

    def has_changed(self) -> bool:
        """Whether it is something else now."""


class Variable(Location):
    """A variable outside of the program: in a dict of globals, a cell of a closure, or an attribute of an object; with
    the value that it is expected to have. In another process its holder is found again by its path."""

    __slots__ = ("expected", "held")

    def __init__(self, holder: Any, name: str, expected: Any = None, held: Held | None = None) -> None:
        super().__init__(holder, name)
        self.expected = expected
        self.held = held

    @property
    def base(self) -> Variable:
        """The variable whose value holds this one: itself, unless it is an item."""
        return self

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
        return behind_proxy(value)

    def _value(self) -> Any:
        if type(self.holder) is HolderPath:
            holder = self.holder.find()
            if holder is None:
                return ABSENT
            self.holder = holder
        return super().get()

    def put(self, value: Any) -> None:
        """Set the variable; ``MISSING`` takes it away."""
        if self._value() is ABSENT:
            raise GuardError(f"the graph sets the variable {self.name}, which does not exist in this process")
        super().put(value)

    def __repr__(self) -> str:
        return f"{self.holder.__name__}.{self.name}" if isinstance(self.holder, type) else self.name

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        holder, expected, held = (copy.deepcopy(part, memo) for part in (self.holder, self.expected, self.held))
        return Variable(holder, self.name, expected, held)

    def __reduce__(self) -> tuple[Any, ...]:
        """Saved are the path to the variable, and what its value is like: in another process it is another object."""
        expected = (
            self.expected if type(self.expected) in (*SIMPLE, SavedValue) else saved(self.expected, self.is_library)
        )
        return Variable, (path_of_holder(self.holder, self.name), self.name, expected)

    def is_as_before(self) -> bool:
        """True when the variable still has this value: the same object, or an equal plain one."""
        now = self.get()
        if now is ABSENT:
            return True
        if type(self.expected) is SavedValue:
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


COMPILERS: list[Callable[[], bool]] = []
"""Questions whether a compiler reads the code that runs; frameworks add theirs."""


def is_read_by_compiler() -> bool:
    """Whether a framework's compiler reads this code, for which contents are looked at by a call of their own."""
    return any(is_reading() for is_reading in COMPILERS)


def require_variable(variable: Variable, name: str, assumption: str) -> None:
    """On a variable outside of the program being what it was."""
    _require("variable", variable, None, assumption)


register(
    Test(
        "variable",
        lambda variable, expected: bool(variable.is_as_before()),
        lambda subject, expected: f"{subject} is unchanged",
        lambda variable: "the variable has changed",
    )
)


def _variable_condition(subject: Subject, expected: Any) -> Condition:
    """For a variable outside of the program, which knows by itself whether it is unchanged."""
    return Condition(f"not {subject.text}.is_as_before()")


WRITERS["array"] = type_test
WRITERS["variable"] = _variable_condition


# ---- what a call shares with the program -----------------------------------------------------------------------------


class CallSnapshot:
    """What a call shares with the program, as it is before the call."""

    def __init__(self, variables: Any, objects: tuple[Any, ...]) -> None:
        ends = variables.ends
        self.values = [(variable, variable.get()) for variable in variables.shared]
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
        if touched is None:
            return ""
        named = (variable.name for variable, before in self.values if before is touched)
        return next(named, f"a {type(touched).__name__}")

    def put_back(self) -> None:
        """Let all of it be as it was."""
        for variable, before in self.values:
            if variable.get() is not before:
                variable.put(before)
        self.memory.put_back()


_MOST_OBJECTS, _DEPTH = 500, 4


def remember(variables: Any, *objects: Any) -> CallSnapshot:
    """Note what a call that follows shares with the program."""
    return CallSnapshot(variables, objects)


def require_untouched(before: CallSnapshot, name: str, assumption: str, place: str = "") -> None:
    """On a call not changing what it shares with the program; what it has changed is taken back."""
    _require("untouched", before, name, assumption)


def _untouched_told(before: CallSnapshot) -> str:
    changed = before.changed()
    before.put_back()
    return f"it changes {changed}"


register(
    Test(
        "untouched",
        lambda before, name: not before.changed(),
        lambda subject, name: f"that {name} changes none of the objects that it shares with the program",
        _untouched_told,
        is_shown=False,
    )
)


# ---- functions of the graph ------------------------------------------------------------------------------------------


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


@pure
def current_number(variable: Variable) -> Any:
    """The number that a variable around the program holds at this call; where there is no such place, in another
    process, the number that it held."""
    value = variable.get()
    if callable(value) or isinstance(value, ModuleType):
        raise GuardError(f"the variable {variable.name} held a number, and now it holds {a_or_an(value)}")
    return variable.expected if value is ABSENT else value


def _shown_number(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    """The read of a number, for people: the name of the variable."""
    (variable,) = args
    is_named = type(variable) is Variable and is_plain_identifier(variable.name)
    return scope.name_value(variable, variable.name, variable.expected) if is_named else None


SHOWN[current_number] = _shown_number


def write_variable(variable: Variable, value: Any) -> None:
    """Set a variable outside of the program."""
    variable.put(value)


def require_alike(value: Any, expected: FunctionFingerprint, assumption: str, place: str = "") -> None:
    """On a function doing what the one of the capture did."""
    _require("alike", value, expected, assumption)


CHECKS = (
    guard, require, require_same, require_type, require_length, require_keys, require_attributes,
    require_other_attributes, require_array, require_alike, require_variable, require_untouched, require_way,
    require_either,
)  # fmt: skip
"""The functions that a guard may be in a graph: ``guard``, and those by which a recorder notes one until the capture
is complete (see ``lifting``)."""
