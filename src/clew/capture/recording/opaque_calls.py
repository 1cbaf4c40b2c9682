"""Opaque calls: parts of a program that a capture cannot follow, and that stay one call of the graph.

An ``OpaqueCall`` gives the node's arguments, and guards that the call changes none of the variables and objects that
it shares with the rest of the program (``CallVariables``): the graph writes state at its end and would not know. What
it alone reads and sets is its own. Anything else raises ``CannotFollow``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from clew.capture.guards.notes import CallSnapshot, Variable, remember, require_untouched
from clew.capture.recording.recorder import Scalar
from clew.capture.state.containers import CODE, contents, follows, look_up
from clew.capture.state.memory import Memory
from clew.capture.state.reachable import (
    ReachableFunctions,
    attribute_names,
    is_of_class,
    methods_of,
    package_of,
    variables,
)
from clew.errors import CaptureError
from clew.ir.effects import pure
from clew.ir.source import is_installed

if TYPE_CHECKING:
    from clew.capture.recording.example_recorder import ExampleRecorder


class CannotFollow(CaptureError):
    """Something that a run of a program cannot record; the function that does it may still stay one call."""

    island: Any = None
    """That function, where it is known."""


class Unseen(CannotFollow):
    """An array that was made by means that nobody saw."""


_MOST, _DEPTH = 500, 4


@pure
def as_given(value: Any) -> Any:
    """A list or dict that is handed to a call: an object of its own, so that a change of it can be seen."""
    return value


class OpaqueCall:
    """One call that stays one node, as it is recorded: its arguments, and the guard on what it shares."""

    def __init__(
        self, recorder: ExampleRecorder, target: Any, ends: tuple[type, ...], owners: Iterable[Any] = ()
    ) -> None:
        self.recorder = recorder
        self.name = getattr(target, "__qualname__", type(target).__name__)
        self._objects: list[Any] = []
        self._nodes: list[Any] = []
        self.variables = CallVariables((), frozenset(), ends)
        self._add(target, owners)

    def argument(self, value: Any) -> Any:
        """What the node of the call holds for an argument, or for all of them."""
        kind, recorder = type(value), self.recorder
        if kind is tuple:
            return tuple(map(self.argument, value))
        if kind in (FunctionType, MethodType):
            self._add(value)
        if kind not in (list, dict) and (not follows(value) or recorder.is_end(value)):
            return recorder.argument(value)
        known = recorder.objects.get(id(value))
        place = None if known is None or known[0] is not value else known[1]
        if place is not None and not recorder.state.is_touched([value], ()):
            return self._noted(value, recorder.resolve(place))
        if kind is list:
            return self._noted(value, recorder.create(as_given, ([self.argument(item) for item in value],)))
        if kind is dict:
            items = {key: self.argument(item) for key, item in value.items()}
            return self._noted(value, recorder.create(as_given, (items,)))
        if place is not None or holds_traced(recorder, value):
            raise self._refusal(f"is given a {kind.__name__} that the program has changed, or made of its values,")
        return self._noted(value, value)

    def _add(self, target: Any, owners: Iterable[Any] = ()) -> None:
        """A function runs in the call: that itself, or one that it is given."""
        held = () if isinstance(target, FunctionType) else getattr(target, "__dict__", {}).values()
        for inner in [one for one in held if isinstance(one, FunctionType)]:  # an object calls these
            self._add(inner)
        known, ours = self.recorder.call_variables, self.variables
        if target not in known:
            known[target] = variables_of_call(target, self.recorder.surroundings.program, owners, ours.ends)
        found = known[target]
        self.recorder.state.own |= found.own
        self.variables = CallVariables((*ours.shared, *found.shared), ours.own | found.own, ours.ends)

    def keywords(self, values: dict[str, Any]) -> dict[str, Any]:
        """The same for arguments by name."""
        return {name: self.argument(value) for name, value in values.items()}

    def _noted(self, value: Any, node: Any) -> Any:
        self._objects.append(value)
        self._nodes.append(node)
        return node

    def _refusal(self, what: str) -> CannotFollow:
        return CannotFollow(
            f"{self.name}, one call of the graph, {what} which cannot be captured",
            why="the graph writes the program's state at its end, and knows nothing of what the call does to it",
            fixes=("give the call all that it needs as arguments", "let it return what it changes"),
        )

    def begin(self) -> None:
        """Right before the call: what it shares must be as the graph will find it."""
        if not self.variables.shared and not self._nodes:
            self._before = None
            return
        self._before = CallSnapshot(self.variables, tuple(self._objects))
        known = [value for value in self._before.memory.everything() if type(value) not in (list, dict)]
        if self.recorder.state.is_touched(known, self.variables.shared):
            raise self._refusal("uses state that the program has changed before,")
        self._node = self.recorder.create(remember, (self.variables, *self._nodes))

    def end(self) -> None:
        """Right after the call: what it shares must be as it was."""
        if self._before is None:
            return
        changed = self._before.changed()
        if changed:
            raise self._refusal(f"changes {changed},")
        text = f"that {self.name} changes none of the objects that it shares with the program"
        self.recorder.create(require_untouched, (self._node, self.name, text))


def _items_of(value: Any) -> Iterator[Any]:
    """A value, or the items of a tuple, a size say."""
    for item in value if isinstance(value, tuple) else ():
        yield from _items_of(item)
    if not isinstance(value, tuple):
        yield value


def holds_traced(recorder: ExampleRecorder, value: Any) -> bool:
    """Whether an object holds arrays or numbers that this run has computed."""
    held = Memory(recorder.is_end, most=_MOST)
    held.remember(value, _DEPTH)
    parts = [leaf for one in held.everything() for part in contents(one).values() for leaf in _items_of(part)]
    state = recorder.state
    is_new = not (state.watches(value) or state.had(value) or recorder.surroundings.holds(value))
    return any(issubclass(type(part), Scalar) for part in parts) or (is_new and any(map(recorder.is_array, parts)))


# ---- the variables that a call shares with the program ---------------------------------------------------------------

Key = tuple[int, str]


class CallVariables(NamedTuple):
    """The variables that a call shares with the rest of the program, and the keys of those that are its own."""

    shared: tuple[Variable, ...]
    own: frozenset[Key]
    ends: tuple[type, ...]
    """Classes of values that are followed by other means."""

    def __repr__(self) -> str:
        return f"({', '.join(variable.name for variable in self.shared)})"


def functions_in(target: Any) -> list[FunctionType]:
    """The Python functions that run when a target is called: itself, what it wraps, or those of its class."""
    if isinstance(target, MethodType) or is_of_class(target):
        owner: Any = target.__self__
        return _methods(owner if isinstance(owner, type) else type(owner))
    if isinstance(target, FunctionType):
        return [target, *functions_in(look_up(target, "__wrapped__"))]
    wrapped = look_up(target, "__wrapped__")
    if wrapped is not None:
        return functions_in(wrapped)
    if target is None or isinstance(target, CODE):
        return []
    return _methods(type(target))


def _methods(kind: Any) -> list[FunctionType]:
    return [function for _, functions in methods_of(kind) for function in functions]


def variables_of_call(
    target: Any, program: tuple[Iterable[FunctionType], Iterable[type]], owners: Iterable[Any], ends: tuple[type, ...]
) -> CallVariables:
    """What a call of ``target`` can reach, in a program of these functions and classes; attributes of ``owners`` that
    the rest of the program names are shared too."""
    packages = {package_of(part) for parts in program for part in parts}
    functions = [one for one in functions_in(target) if package_of(one) in packages or not is_installed(one.__code__)]
    owners = list(owners)
    if not functions and not owners:
        return CallVariables((), frozenset(), ends)
    inner = _around(ReachableFunctions(), functions, ())
    rest = ReachableFunctions(without=functions)
    outer = _around(rest, *program)
    named = {name for function in rest.functions for name in attribute_names(function.__code__)}
    attributes = [(vars(function), name) for function in functions for name in vars(function)]
    attributes += [(vars(owner), name) for owner in owners for name in sorted(named & vars(owner).keys())]
    held = {id(value) for _, _, value in outer.values()}
    common = {key for key, (_, _, value) in inner.items() if key in outer or (follows(value) and id(value) in held)}
    shared = [(holder, name) for key, (holder, name, _) in inner.items() if key in common and _may_change(holder, name)]
    shared += [one for one in attributes if one[1] != "__wrapped__" and _may_change(*one)]
    own = frozenset(key for key in inner if key not in common)
    return CallVariables(tuple(Variable(holder, name) for holder, name in shared), own, ends)


def state_behind(target: Any, given: tuple[Any, ...], ends: tuple[type, ...]) -> CallSnapshot:
    """All that a call of ``target`` with these arguments may change, as it is now."""
    around = _around(ReachableFunctions(), [one for one in functions_in(target) if not is_installed(one.__code__)], ())
    found = tuple(Variable(*one) for *one, _ in around.values() if _may_change(*one))
    return CallSnapshot(CallVariables(found, frozenset(), ends), given)


def _around(
    reach: ReachableFunctions, functions: Iterable[FunctionType], kinds: Iterable[type]
) -> dict[Key, tuple[Any, str, Any]]:
    for kind in kinds:
        reach.add_own_class(kind)
    for function in functions:
        reach.add(function)
    found = [one for function in reach.functions for one in variables(function)]
    return {(id(holder), name): (holder, name, value) for holder, name, value in found}


def _may_change(holder: Any, name: str) -> bool:
    value = Variable(holder, name).get()
    return not isinstance(value, CODE) and not callable(value)


# ---- lists and dicts among the arguments -----------------------------------------------------------------------------

_Copies = list[tuple[Any, Any]]


def copies_of(nest: Any) -> _Copies:
    """The lists and dicts in a nest of arguments, each with a copy of it."""
    return [(part, part.copy()) for part in _containers(nest)]


def changed_one(containers: _Copies) -> str:
    """The type of one that is not what it was; an empty text if all are."""
    for now, before in containers:
        keys = list(now) == list(before) if type(now) is dict else True
        items, known = (list(part.values()) if type(part) is dict else part for part in (now, before))
        if not keys or len(items) != len(known) or not all(map(operator.is_, items, known)):
            return type(now).__name__
    return ""


def _containers(nest: Any) -> Iterator[Any]:
    for part in nest.values() if type(nest) is dict else nest:
        if type(part) in (list, dict):
            yield part
        if type(part) in (list, dict) or isinstance(part, tuple):
            yield from _containers(part)
