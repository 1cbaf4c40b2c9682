"""What a run has changed becomes writes at the end of the graph.

Containers and objects that came in are changed in place, as the program did; slots are set. All values are computed
before the first write, so that no node reads what a write has already changed. What the program changes and puts back
is no write; but an error between would leave it changed, so that such a graph, too, refuses to go on from one.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import operator
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

from clew.capture.bytecode.instructions import Instruction, instructions_of
from clew.capture.guards import notes
from clew.capture.guards.notes import are_distinct, expression_of, require
from clew.capture.location import MISSING
from clew.capture.patches import Patches
from clew.capture.recording.inputs import InputContainer, Inputs
from clew.capture.recording.outputs import Outputs
from clew.capture.state.containers import (
    ATTRIBUTE,
    ITEM,
    MEMBER,
    VALUE,
    Contents,
    attributes_of,
    contents,
    same_contents,
    same_part,
)
from clew.capture.state.slots import ROOT
from clew.capture.state.state import State
from clew.capture.state.surroundings import Surroundings
from clew.errors import ClewError, GuardError, as_cause
from clew.ir.arguments import bodies_of
from clew.ir.effects import FIRST_WRITE
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.source import is_hidden, is_installed


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """Set an attribute of an object whose class would do more than that."""
    setters = (vars(kind).get("__setattr__") for kind in type(owner).__mro__)
    bare: Any = next(one for one in setters if one is not None and not isinstance(one, FunctionType))
    bare(owner, name, value)


class Writes:
    """The writes of one capture."""

    def __init__(self, state: State, graph: Graph) -> None:
        self.state = state
        self.graph = graph
        self._root: Node | None = None

    def finish(self, result: Any, outputs: Outputs | None = None) -> Any:
        """Write all that has changed; the answer is what the output node holds for ``result``."""
        changed = [(container, contents(container.value)) for container in self.state.inputs.containers]
        changed = [(container, now) for container, now in changed if not same_contents(now, container.entered)]
        left = list(self.state.left())
        recorder = self.state.inputs.recorder
        carried = [] if recorder.array_attributes is None else list(recorder.array_attributes.changed())
        self._distinct(dict.fromkeys(type(container.value) for container, _ in changed))
        outputs = Outputs(recorder) if outputs is None else outputs
        for value in (result, *(part for _, now in changed for part in now.values()), *(value for _, value in left)):
            outputs.look_at(value)
        output = outputs.of(result)
        parts = [(container, now, {key: outputs.of(part) for key, part in now.items()}) for container, now in changed]
        values = [(slot, value if value is MISSING else outputs.of(value)) for slot, value in left]
        owners = [recorder.node_of(array) for array, _, _ in carried]
        attributes = [{name: outputs.of(part) for name, part in now.items()} for _, _, now in carried]
        last = self.graph._root._prev
        for container, now, new in parts:
            self._write(container, now, new)
        for slot, value in values:
            slot.write(self.graph, self._root_node, value)
        for owner, (array, before, after), attached in zip(owners, carried, attributes, strict=True):
            self._write_attributes(owner, type(array), before, after, attached)
        if last._next is not self.graph._root:
            last._next.meta[FIRST_WRITE] = True
            self._hand_out_last(last)
        return output

    def _hand_out_last(self, last: Node) -> None:
        """Let iterators that are given back be made behind the writes: these are no changes while they are walked."""
        function = getattr(self.state.inputs.recorder, "hand_out", None)  # of frameworks that give iterators back
        made = itertools.takewhile(lambda node: node is not last._next, self.graph.nodes)
        for node in [one for one in made if function is not None and one.target is function and not one.users]:
            self.graph._root.prepend(node)

    def _distinct(self, kinds: Iterable[type]) -> None:
        """Objects that are changed were different ones in the example, and must be again."""
        recorder = self.state.inputs.recorder
        for kind in kinds:
            alike = [
                recorder.resolve(container.place)
                for container in self.state.inputs.containers
                if type(container.value) is kind
            ]
            if len(alike) > 1:
                names = ", ".join(expression_of(node) for node in alike[:4]) + (", ..." if len(alike) > 4 else "")
                same = recorder.create(are_distinct, tuple(alike))
                recorder.create(require, (same, True, f"{names} are different objects"))

    def _root_node(self) -> Node:
        if self._root is None:
            self._root = self.graph.create_node("get_attr", ROOT, (), {})
        return self._root

    def _write(self, container: InputContainer, now: Contents, new: Contents) -> None:
        owner = self.state.inputs.recorder.resolve(container.place)
        ways = {
            way: (
                {key: part for (kind, key), part in container.entered.items() if kind == way},
                {key: part for (kind, key), part in now.items() if kind == way},
                {key: part for (kind, key), part in new.items() if kind == way},
            )
            for way in (ITEM, MEMBER, ATTRIBUTE)
        }
        value = container.value
        if isinstance(value, dict):
            self._write_items(owner, *ways[ITEM])
        elif isinstance(value, (list, deque)):
            self._write_sequence(owner, isinstance(value, list), *ways[ITEM])
        elif isinstance(value, set) and ways[MEMBER][0].keys() != ways[MEMBER][1].keys():
            self.graph.call_method("clear", (owner,))
            self.graph.call_method("update", (owner, sorted(ways[MEMBER][2].values(), key=repr)))
        elif isinstance(value, ContextVar):
            self.graph.call_method("set", (owner, new[VALUE, ""]))
        self._write_attributes(owner, type(value), *ways[ATTRIBUTE])

    def _write_items(self, owner: Node, before: dict[Any, Any], now: dict[Any, Any], new: dict[Any, Any]) -> None:
        kept = [key for key in before if key in now]
        if [*kept, *(key for key in now if key not in before)] != list(now):  # the order has changed
            self.graph.call_method("clear", (owner,))
            before = {}
        for key in [key for key in before if key not in now]:
            self.graph.call_function(operator.delitem, (owner, key))
        for key, part in now.items():
            if key not in before or not same_part(part, before[key]):
                self.graph.call_function(operator.setitem, (owner, self.state.inputs.recorder.concrete(key), new[key]))

    def _write_sequence(
        self, owner: Node, is_list: bool, before: dict[int, Any], now: dict[int, Any], new: dict[int, Any]
    ) -> None:
        same = [place in now and same_part(now[place], part) for place, part in before.items()]
        if all(same) and len(now) == len(before):
            return
        if all(same):
            self.graph.call_method("extend", (owner, list(new.values())[len(before) :]))
        elif is_list:
            self.graph.call_function(operator.setitem, (owner, slice(None, None, None), list(new.values())))
        else:
            self.graph.call_method("clear", (owner,))
            self.graph.call_method("extend", (owner, list(new.values())))

    def _write_attributes(
        self, owner: Node, kind: type, before: dict[str, Any], now: dict[str, Any], new: dict[str, Any]
    ) -> None:
        setter = setattr if kind.__setattr__ is object.__setattr__ else set_attribute
        for name in [name for name in before if name not in now]:
            self.graph.call_function(delattr, (owner, name))
        for name, part in now.items():
            if name not in before or not same_part(part, before[name]):
                self.graph.call_function(setter, (owner, name, new[name]))


# ---- what is changed and put back ------------------------------------------------------------------------------------

_CONTAINERS = (list, dict, set, deque)
_CHANGING = frozenset(
    "add append appendleft clear discard extend extendleft insert pop popitem popleft remove reverse setdefault sort "
    "update __setitem__ __delitem__ __setattr__ __delattr__".split()
)
"""Methods that change a container."""
_MAKING = frozenset({"BUILD_LIST", "BUILD_MAP", "BUILD_SET", "BUILD_CONST_KEY_MAP", "LIST_EXTEND", "SET_UPDATE"})
"""What makes a container that nobody else has."""
_GLOBAL = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_CELL = frozenset({"STORE_DEREF", "DELETE_DEREF"})
_ATTRIBUTE = frozenset({"STORE_ATTR", "DELETE_ATTR"})
_ITEM = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR"})
_CONSTRUCTORS = ("__init__", "__post_init__", "__new__")


class _Changes(NamedTuple):
    """What the code of a function may change that others hold: variables and attributes by name, and containers."""

    is_global: bool = False
    cells: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    added_to: frozenset[str] = frozenset()
    """Attributes that are only set by ``x.calls += 1``, which leaves an array in its place."""
    containers: bool = False


@functools.lru_cache(maxsize=4096)
def _changes_of(code: CodeType) -> _Changes:
    instructions, own = instructions_of(code), _made_here(code)
    named = {kind: {one.argval for one in instructions if one.opname in kind} for kind in (_GLOBAL, _CELL, _ATTRIBUTE)}
    containers = any(one.opname in _ITEM for one in instructions) or any(
        one.opname == "LOAD_METHOD" and one.argval in _CHANGING and (before.opname, before.argval) not in own
        for before, one in pairwise(instructions)
    )
    cells = frozenset(named[_CELL].intersection(code.co_freevars))
    attributes = frozenset(() if code.co_name in _CONSTRUCTORS else named[_ATTRIBUTE])
    added_to = attributes - _plainly_set(instructions)
    return _Changes(bool(named[_GLOBAL]), cells, attributes - added_to, added_to, containers)


def _plainly_set(instructions: list[Instruction]) -> set[str]:
    """The attributes that are set, or deleted, by other statements than ``x.calls += 1``."""
    found = set()
    for place, one in enumerate(instructions):
        before = instructions[max(place - 2, 0) : place]
        is_added = [step.opname for step in before] == ["BINARY_OP", "SWAP"] and before[0].argrepr.endswith("=")
        if one.opname in _ATTRIBUTE and not is_added:
            found.add(one.argval)
    return found


def _made_here(code: CodeType) -> set[tuple[str, str]]:
    """The local variables of a function that only hold containers which it has made itself, as they are loaded."""
    made: set[str] = set()
    others = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2])
    for before, one in pairwise(instructions_of(code)):
        if one.opname == "STORE_FAST":
            (made if before.opname in _MAKING else others).add(one.argval)
    return {("LOAD_FAST", name) for name in made - others}


def changes_in_passing(state: State, around: Surroundings, module: Any, executed: Iterable[CodeType]) -> bool:
    """Whether code that ran may have changed state and put it back: it sets what can be reached from outside."""
    executed = list(executed)
    ran = dict.fromkeys([*executed, *(function.__code__ for function in around.ran(executed))])
    codes = [code for code in ran if not (is_installed(code) or is_hidden(code))]
    changes = [found for code in codes if any(found := _changes_of(code))]
    if not changes:
        return False
    cells = {name for holder, name in around.cells() if isinstance(holder, CellType)}
    held = [container.value for container in state.inputs.containers]
    held += [value for _, _, value in around.changeable()]
    parts = module.modules() if hasattr(module, "modules") else ()
    places = (vars(part) for part in parts)
    tables = [found for held in places for found in (held, held.get("_parameters"), held.get("_buffers"))]
    tables = [table for table in tables if isinstance(table, dict)]  # what torch.jit has compiled has others
    tables += [*map(attributes_of, held), *map(vars, around.classes())]
    held += [value for table in tables for name, value in table.items() if not name.startswith("_")]
    has_containers = any(type(value) in _CONTAINERS for value in held)
    return any(
        one.is_global
        or not cells.isdisjoint(one.cells)
        or any(name in table for table in tables for name in one.attributes)
        or any(name in table and not _stays(table[name]) for table in tables for name in one.added_to)
        or (has_containers and one.containers)
        for one in changes
    )


def _stays(value: Any) -> bool:
    """Whether ``value += other`` writes to the value, and a node of the graph does so at the same place."""
    return hasattr(type(value), "__iadd__") and hasattr(type(value), "__array__")


def mark_passing_changes(graph: Graph) -> None:
    """Let a graph, whose program changes state and puts it back, refuse to go on from an error of the program's own."""
    if not any(node.meta.get(FIRST_WRITE) for node in graph.nodes):
        graph.output_node().meta[FIRST_WRITE] = True


# ---- errors of the program's own -------------------------------------------------------------------------------------


@contextmanager
def refused_when_raising() -> Iterator[None]:
    """An error of the program's own means that the state was not written: only the program itself gets that right."""
    try:
        yield
    except ClewError:
        raise
    except Exception as error:
        raise refused(error) from as_cause(error)


def refused(error: Exception) -> GuardError:
    """What a graph that writes state at its end says when the program raises an error of its own before."""
    return GuardError(
        f"the program raised {type(error).__name__}: {error}",
        why="a graph sets the program's state at its end; the program may have changed it before the error",
        fixes=("call the original with these inputs", "clew.trace(fn) without an example does so by itself"),
    )


# ---- stateful arguments ----------------------------------------------------------------------------------------------
#
# Stateful arguments: objects that a program may be given again after it has set attributes of them.
#
# Their attributes report whether they are read or set first. One that is set before it is read may be there or not, and
# hold anything: guards on it are loosened. Where a program looks at all attributes at once, nothing is.


_HEAP_TYPE = 1 << 9  # the flag of classes whose attributes can be set


class Accesses:
    """The first accesses to the attributes of some objects during one run."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self._objects = {id(value): value for value in objects if type(value).__flags__ & _HEAP_TYPE}
        self._read: set[tuple[int, str]] = set()
        self._set: set[tuple[int, str]] = set()

    @contextmanager
    def watched(self, patches: Patches) -> Iterator[None]:
        """Let the objects report meanwhile. Where their class reports to somebody else already, nothing is learned."""
        for kind in {type(value) for value in self._objects.values()}:
            patches.on_class(kind, "__getattribute__", _reporting_reads, inherited=True)
            patches.on_class(kind, "__setattr__", _reporting_writes, inherited=True)
        token = current.set(self)
        try:
            yield
        finally:
            current.reset(token)

    def note_read(self, owner: Any, name: str) -> None:
        """An attribute is read, or asked for."""
        if id(owner) in self._objects and (id(owner), name) not in self._set:
            self._read.add((id(owner), name))

    def note_set(self, owner: Any, name: str) -> None:
        """An attribute is set."""
        if id(owner) in self._objects and (id(owner), name) not in self._read:
            self._set.add((id(owner), name))

    def loosen(self, inputs: Inputs, graph: Graph) -> None:
        """Let guards no longer ask for what the program set before it read it, on the only path that it can take."""
        if not self._set or any(bodies_of(node) for node in graph.nodes):
            return
        for container in inputs.containers:
            owner = id(container.value)
            place = inputs.recorder.resolve(container.place)
            fresh = sorted(_written(place) & {name for known, name in self._set if known == owner})
            if fresh and (owner, "__dict__") not in self._read:
                _loosen(graph, place, fresh)


def _written(owner: Node) -> set[str]:
    """The attributes that the graph sets whatever they were."""
    setters = [node for node in owner.users if node.target in (setattr, set_attribute) and node.args[0] is owner]
    return {str(node.args[1]) for node in setters}


def _loosen(graph: Graph, owner: Node, fresh: list[str]) -> None:
    for node in list(owner.users):
        if node.target is notes.require_attributes:
            names = tuple(name for name in node.args[1] if name not in fresh)  # type: ignore[union-attr]
            text = f"the attributes {names} and no others but {tuple(fresh)}"
            node.target, node.args = notes.require_other_attributes, (owner, (names, tuple(fresh)), text)
        elif node.target is getattr and node.args[1] in fresh:
            for check in [user for user in node.users if user.target in (notes.require, notes.require_type)]:
                graph.erase_node(check)


current: contextvars.ContextVar[Accesses | None] = contextvars.ContextVar("clew_accesses", default=None)


def _reporting_reads(original: Any) -> Any:
    def __getattribute__(self: Any, name: str) -> Any:
        accesses = current.get()
        if accesses is not None:
            accesses.note_read(self, name)
        return original(self, name)

    return __getattribute__


def _reporting_writes(original: Any) -> Any:
    def __setattr__(self: Any, name: str, value: Any) -> None:
        accesses = current.get()
        if accesses is not None:
            accesses.note_set(self, name)
        original(self, name, value)

    return __setattr__
