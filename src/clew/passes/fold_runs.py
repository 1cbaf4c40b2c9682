"""Runs of calls of equal modules become loops.

A graph comes in, with a function that tells which calls mean the same; out comes a copy in which the calls
``h = self.layers[0](h, mask)``, ``h = self.layers[1](h, mask)`` and so on are one ``for_loop`` over ``self.layers``.
Always holds: each round does what one of the calls did. Each argument is the same in all calls, or what the call before
gave; what is used of a call is handed to the next one, or is an item of a list of all of them. Other calls stay.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import add, getitem
from typing import Any, NamedTuple

from clew.ir.arguments import leaves, map_arg
from clew.ir.control_flow import for_loop
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.passes.nest import note_like


class Called(NamedTuple):
    """What is called at a path: up to equality, in a list of how many modules, and the names of its parameters."""

    meaning: Any
    length: int
    parameters: tuple[str, ...]


Callee = Callable[[str], "Called | None"]
"""What is called at a path; None if it is no piece."""


@dataclass
class _Run:
    """Calls of the modules ``first``, ``first + 1`` and so on of a list."""

    container: str
    first: int
    called: Called
    calls: list[Node]


def folded(graph: Graph, callee: Callee) -> Graph:
    """A copy of the graph with loops in the place of runs, whose values are numbered anew."""
    twin = copy.deepcopy(graph)
    for run in _runs(twin, callee):
        _Fold(twin, run).apply()
    return _renumbered(twin)


def _renumbered(graph: Graph) -> Graph:
    """A copy in which names that several values share have numbers in the order of the values."""
    twin = Graph()
    twin._chosen_codegen = graph._chosen_codegen
    twins: dict[Node, Node] = {}
    twin._names.reserve_all(node.name for node in graph.nodes if node.op == "placeholder")
    for node in graph.nodes:
        name = node.name if node.op == "placeholder" else twin._names.create_name(_stem(node.name))
        args, kwargs = map_arg(node.args, twins.__getitem__), map_arg(node.kwargs, twins.__getitem__)
        twins[node] = twin._append_exact(node.op, name, node.target, args, kwargs, node.type)
        note_like(node, twins[node])
    return twin


def _stem(name: str) -> str:
    return re.sub(r"_\d+$", "", name) or name


def _runs(graph: Graph, callee: Callee) -> list[_Run]:
    found: list[_Run] = []
    key: Any = None
    for node in graph.nodes:
        meaning = callee(node.target) if node.op == "call_module" else None
        container, _, name = str(node.target).rpartition(".")
        if meaning is not None and name.isdigit() and container and not node.kwargs:
            run = found[-1] if found and key == (container, meaning) else None
            if run is not None and int(name) == run.first + len(run.calls):
                run.calls.append(node)
            else:
                found.append(_Run(container, int(name), meaning, [node]))
            key = (container, meaning)
        elif node.op != "get_attr" and not (key is not None and is_item(node)):
            key = None
    return [run for run in found if len(run.calls) > 1]


def is_item(node: Node) -> bool:
    """Whether a node takes one of several values that a call gave."""
    is_getitem = node.op == "call_function" and node.target is getitem and isinstance(node.args[0], Node)
    is_call = is_getitem and (node.args[0].op == "call_module" or node.args[0].target == "__call__")
    return is_call and type(node.args[1]) is int


class _Fold:
    """Puts one loop in the place of one run, if that does the same."""

    def __init__(self, graph: Graph, run: _Run) -> None:
        self.graph = graph
        self.run = run
        self.outputs: list[dict[int | None, Node]] = [self._outputs(call) for call in run.calls]
        self.own = {value: place for place, some in enumerate(self.outputs) for value in some.values()}
        self.carried: dict[int, int | None] = {}
        """Which output of the call before an argument is, by its place."""
        self.collected: dict[int | None, list[tuple[Node, Any]]] = {}

    def _outputs(self, call: Node) -> dict[int | None, Node]:
        if call.users and all(is_item(user) for user in call.users):
            items: dict[int | None, Node] = {}
            for user in call.users:
                if user.args[1] in items:
                    user.replace_all_uses_with(items[user.args[1]])
                else:
                    items[user.args[1]] = user
            return items
        return {None: call}

    def apply(self) -> None:
        """Fold the run; the graph stays as it is where that cannot be."""
        if self._finds_carried() and self._finds_lists():
            self._write()

    def _finds_carried(self) -> bool:
        calls = self.run.calls
        if len({len(call.args) for call in calls}) > 1:
            return False
        for place, values in enumerate(zip(*(call.args for call in calls), strict=True)):
            if all(value is values[0] for value in values) and values[0] not in self.own:
                continue
            keys = [next((key for key, one in self.outputs[number].items() if one is value), -1)
                    for number, value in enumerate(values[1:])]  # fmt: skip
            if not isinstance(values[0], Node) or values[0] in self.own or keys[0] == -1 or len(set(keys)) > 1:
                return False
            self.carried[place] = keys[0]
        return True

    def _finds_lists(self) -> bool:
        """Values of calls are handed on to the next call, or collected; the last call's may be used by anybody."""
        calls = self.run.calls
        for number, some in enumerate(self.outputs):
            for key, value in some.items():
                handed = number + 1 < len(calls) and key in self.carried.values()
                others = [user for user in value.users if not (handed and user is calls[number + 1])]
                if number + 1 == len(calls) and key in self.carried.values():
                    continue
                if any(not self._is_in_list(user, key) for user in others) or (handed and others):
                    return False
        return True

    def _is_in_list(self, user: Node, key: int | None) -> bool:
        """Whether a node uses an output of the calls only in a list of that output of all of them."""
        wanted = [some.get(key) for some in self.outputs]
        found = [one for one in _lists(user.args) + _lists(user.kwargs) if _place_in(one, wanted) is not None]
        count = sum(leaf is wanted[0] for leaf in leaves((user.args, user.kwargs)))
        if None in wanted or len(found) != 1 or count != 1:
            return False
        self.collected.setdefault(key, []).append((user, wanted))
        return True

    def _write(self) -> None:
        first, last = self.run.calls[0], self.run.calls[-1]
        operands = [place for place in range(len(first.args)) if place not in self.carried]
        nodes = [place for place in operands if isinstance(first.args[place], Node)]
        lists = list(self.collected)
        keys = list(self.carried.values())
        with self.graph.inserting_before(last.next):
            items: Any = self.graph.create_node("get_attr", self.run.container, name=self._name())
            if (self.run.first, len(self.run.calls)) != (0, self.run.called.length):
                chosen = slice(self.run.first, self.run.first + len(self.run.calls))
                items = self.graph.call_function(getitem, (items, chosen))
            start = tuple(first.args[place] for place in self.carried)
            given = tuple(first.args[place] for place in nodes)
            body = self._body(nodes, lists)
            loop = self.graph.call_function(for_loop, (items, body, start, given, len(lists)))
            after = len(keys)
            names = [self.run.called.parameters[place] for place in self.carried]
            results = {key: self._result(loop, place, names[place]) for place, key in enumerate(keys)}
            made = {key: self._result(loop, after + place, self._plural(key)) for place, key in enumerate(lists)}
        for key, result in results.items():
            self.outputs[-1][key].replace_all_uses_with(result)
        for key, uses in self.collected.items():
            for user, wanted in uses:
                _use_list(user, wanted, made[key])
        for node in sorted((*self.own, *self.run.calls), reverse=True):
            if not node._erased and not node.users:
                self.graph.erase_node(node)

    def _result(self, loop: Node, place: int, name: str) -> Node:
        return self.graph.call_function(getitem, (loop, place), name=name)

    def _plural(self, key: int | None) -> str:
        name = _stem(self.outputs[0][key].name)
        return name if name.endswith("s") else f"{name}s"

    def _name(self) -> str:
        return self.run.container.rpartition(".")[2]

    def _body(self, operands: list[int], lists: list[int | None]) -> Graph:
        """One round: the module is called with what is carried and given."""
        first = self.run.calls[0]
        body = Graph()
        names = self.run.called.parameters
        values: dict[int, Any] = {place: body.placeholder(names[place]) for place in self.carried}
        name = self._name()
        module = body.placeholder(name[:-1] if name.endswith("s") and len(name) > 2 else f"{name}_module")
        values |= {place: body.placeholder(_stem(first.args[place].name)) for place in operands}
        args = tuple(values.get(place, value) for place, value in enumerate(first.args))
        call = body.create_node("call_method", "__call__", (module, *args), name=_stem(first.name))
        found: dict[int | None, Node] = {None: call}
        for key, like in self.outputs[-1].items():
            if key is not None:
                found[key] = body.call_function(getitem, (call, key), name=_stem(like.name))
        body.output((*(found[key] for key in self.carried.values()), *(found[key] for key in lists)))
        return body


def _lists(value: Any) -> list[Any]:
    """The lists in a nest."""
    if isinstance(value, dict):
        return [found for part in value.values() for found in _lists(part)]
    if not isinstance(value, (list, tuple)):
        return []
    inner = [found for part in value for found in _lists(part)]
    return [value, *inner] if isinstance(value, list) else inner


def _place_in(found: Any, wanted: list[Node | None]) -> int | None:
    """Where in a list these values stand, one after the other."""
    place = next((place for place, one in enumerate(found) if one is wanted[0]), None)
    if place is None or len(found) < place + len(wanted):
        return None
    return place if all(found[place + number] is one for number, one in enumerate(wanted)) else None


def _use_list(user: Node, wanted: list[Node | None], made: Node) -> None:
    """Let a node use a list that a loop made, with what stands around it in the list that the node used."""

    def translate(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: translate(part) for key, part in value.items()}
        if type(value) is tuple:
            return tuple(map(translate, value))
        if not isinstance(value, list):
            return value
        place = _place_in(value, wanted)
        if place is None:
            return [translate(part) for part in value]
        before, after = list(value[:place]), list(value[place + len(wanted) :])
        with user.graph.inserting_before(user):
            whole = made if not before else user.graph.call_function(add, (before, made), name=made.name)
            return whole if not after else user.graph.call_function(add, (whole, after), name=made.name)

    user.args, user.kwargs = translate(tuple(user.args)), translate(dict(user.kwargs))
