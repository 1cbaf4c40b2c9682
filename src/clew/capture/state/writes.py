"""What a run has changed becomes writes at the end of the graph.

Containers and objects that came in are changed in place, as the program did; slots are set. All values are computed
before the first write, so that no node reads what a write has already changed.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from clew.capture.guards.notes import MISSING, are_distinct, expression_of, require
from clew.capture.recording.inputs import InputContainer
from clew.capture.recording.outputs import Outputs
from clew.capture.state.containers import ATTRIBUTE, ITEM, MEMBER, VALUE, Contents, contents, same_contents, same_part
from clew.capture.state.slots import ROOT
from clew.capture.state.state import State
from clew.errors import ClewError, GuardError
from clew.ir.graph import Graph
from clew.ir.node import Node

FIRST_WRITE = "first_write"
"""Marks, in the meta of a node, where a graph begins to write the state."""


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
        return output

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


@contextmanager
def refused_when_raising() -> Iterator[None]:
    """An error of the program's own means that the state was not written: only the program itself gets that right."""
    try:
        yield
    except ClewError:
        raise
    except Exception as error:
        raise refused(error) from error


def refused(error: Exception) -> GuardError:
    """What a graph that writes state at its end says when the program raises an error of its own before."""
    return GuardError(
        f"the program raised {type(error).__name__}: {error}",
        why="a graph sets the program's state at its end; the program may have changed it before the error",
        fixes=("call the original with these inputs", "clew.trace(fn) without an example does so by itself"),
    )
