"""State that a program sets at its first call and finds so ever after: an inferred problem type, a hidden state.

A capture sees it as it was before the first call. Of a constant that changes, the program is captured once more with
the value that the first call leaves: if both graphs do the same and differ only in guards on it, the graph holds for
both. With several such changes nothing is widened, because no guard on one of them could tell that all or none had been
made. What was None and holds an array or a number afterwards is a question at the entrance. Both answers are paths of
the graph, and what a run has left there is what the other path is recorded with.
"""

from __future__ import annotations

import functools
import operator
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple

from clew.capture.guards.notes import CHECKS, require, require_either
from clew.capture.location import MISSING, Location
from clew.capture.recording.alternatives import NONE, Choice, Choices, Kind
from clew.capture.recording.inputs import InputContainer
from clew.capture.recording.recorder import Pending
from clew.capture.state.containers import ATTRIBUTE, ITEM, contents, refill
from clew.capture.state.state import State
from clew.capture.state.writes import set_attribute
from clew.ir.arguments import bodies_of, map_aggregate
from clew.ir.graph import Graph
from clew.ir.node import Node

_WRITES = (setattr, set_attribute, operator.setitem)
_PLAIN = (str, bool, type(None))


class FirstCallChange(NamedTuple):
    """A part of an object or dict that a run has set, and what it was before."""

    owner: Any
    key: Any
    before: Any
    now: Any

    def put(self, value: Any) -> None:
        """Set it past everything that the class does when an attribute is set."""
        Location(self.owner if isinstance(self.owner, dict) else vars(self.owner), self.key).put(value)


def first_call_change(state: State) -> FirstCallChange | None:
    """What a run has set to another constant in the objects and dicts that entered it, if it is one place."""
    found = []
    for container in state.inputs.containers:
        way = ITEM if isinstance(container.value, dict) else ATTRIBUTE
        for (kind, key), now in contents(container.value).items():
            before = container.before.get((kind, key), container)
            is_plain = type(now) in _PLAIN and type(before) in _PLAIN
            if kind == way and is_plain and now != before and (way == ITEM or hasattr(container.value, "__dict__")):
                found.append(FirstCallChange(container.value, key, before, now))
    return found[0] if len(found) == 1 else None


def choose_first_call(state: State, choices: Choices | None) -> None:
    """Ask whether places that came in without a guard are still None; all are, or none is. In a run of a later call
    what an earlier one has left there enters."""
    if choices is None or not choices.tried.left:
        return
    found = [*_lifted(state, choices), *_inside(state, choices)]
    if not found:
        return
    recorder = choices.recorder
    is_first = recorder.paths.choose(recorder.create(operator.is_, (found[0].node, found[0].before)), True)
    for place in found:
        one = Choice(place.label, place.node, [NONE, place.kind], 0 if is_first else 1)
        choices.made.append(one)
        if not is_first:
            one.marker = choices.required(place.kind, place.node)
            place.put(choices.kinds.entered(place.kind.value, one.node))
        elif place is not found[0]:
            choices.required(NONE._replace(arguments=(place.before,)), place.node)


class _Place(NamedTuple):
    """A place that is None at the first call, or not there, as ``before`` says: its name, the kind of what is there
    later, and how that is put there."""

    label: str
    before: Any
    kind: Kind
    node: Node
    put: Callable[[Any], None]


def _lifted(state: State, choices: Choices) -> Iterator[_Place]:
    """Such variables and attributes."""
    for index, entry in enumerate(state.entries):
        before, label = entry.before, entry.slot.label
        is_nothing = before is None or (before is MISSING and entry.slot.path is None)
        kind = choices.kind_left(entry.slot.key, label, before) if is_nothing else None
        if kind is not None:
            node = entry.slot.read(choices.recorder.graph)
            yield _Place(label, before, kind, node, functools.partial(_put_lifted, state, index))


def _put_lifted(state: State, index: int, entered: Any) -> None:
    entry = state.entries[index]
    entry.slot.variable.put(entered)
    state.entries[index] = entry._replace(entered=entered)


def _inside(state: State, choices: Choices) -> Iterator[_Place]:
    """Such attributes of objects, and items of dicts, that have entered."""
    for container, key in state.inputs.first_call_places:
        way, name = key
        kind = choices.kind_left((id(container.value), name), name)
        assert kind is not None
        reader = getattr if way == ATTRIBUTE else operator.getitem
        node = choices.recorder.resolve(Pending(reader, (container.place, name)))
        yield _Place(name, None, kind, node, functools.partial(_put_inside, container, key))


def _put_inside(container: InputContainer, key: tuple[str, Any], entered: Any) -> None:
    container.entered[key] = entered
    refill(container.value, container.entered)


def left_inside(state: State) -> Iterator[tuple[tuple[int, str], Any]]:
    """Places in objects and dicts that were None and are something else now: their keys, and what is there."""
    for container in state.inputs.containers:
        for (way, name), now in contents(container.value).items():
            if now is not None and type(name) is str and container.before.get((way, name), now) is None:
                yield (id(container.value), name), now


@contextmanager
def after_first_call(place: FirstCallChange) -> Iterator[None]:
    """Let a place be as the first call leaves it."""
    place.put(place.now)
    try:
        yield
    finally:
        place.put(place.before)


def widen(graph: Graph, twin: Graph, place: FirstCallChange) -> None:
    """Let the guards of a graph hold for a settled place too, if ``twin``, captured with that, does the same.

    The graph may ask more, and writes what the twin finds written.
    """
    found: list[tuple[Node, Any]] = []
    names: dict[Node, str] = {}
    waiting = deque(twin.nodes)
    passed: list[Node] = []
    for node in graph.nodes:
        names[node] = f"%{node.name}"
        _match_earlier(waiting, passed, names)
        other = waiting[0] if waiting else None
        if other is not None and _is_the_same(node, other, names):
            names[waiting.popleft()] = names[node]
        elif other is not None and _differ_in_answer(node, other, names, place):
            found.append((node, other.args[1]))
            names[waiting.popleft()] = names[node]
        elif node.target not in CHECKS and node.is_impure() and not _repeats_change(node, place):
            return
        else:
            passed.append(node)
    for node, answer in () if waiting else found:
        value, expected, text = node.args[:3]
        node.target = require_either
        node.args = (value, (expected, answer), f"{text}, or what a first call makes of it", *node.args[3:])


def _match_earlier(waiting: deque[Node], passed: list[Node], names: dict[Node, str]) -> None:
    """What only reads or computes may stand further up in the graph, which has asked for it before."""
    while waiting and not waiting[0].is_impure():
        known = next((node for node in passed if _is_the_same(node, waiting[0], names)), None)
        if known is None:
            return
        names[waiting.popleft()] = names[known]


def _repeats_change(node: Node, place: FirstCallChange) -> bool:
    """Whether a node writes what the place is settled to, which may be written again: whoever has set it to something
    else since meets a guard."""
    return node.target in _WRITES and node.args[1:] == (place.key, place.now)


def _is_the_same(node: Node, other: Node, names: dict[Node, str]) -> bool:
    same = node.op == other.op and (node.target == other.target or node.op == "placeholder")
    counts = slice(3) if node.target in CHECKS else slice(None)  # which line asked first is no matter
    ours, theirs = (node.args[counts], node.kwargs), (other.args[counts], other.kwargs)
    if not same or _spelled(ours, names) != _spelled(theirs, names):
        return False
    return all(map(_same_bodies, bodies_of(node), bodies_of(other)))


def _same_bodies(left: Graph, right: Graph) -> bool:
    """Whether two graphs of branches or loops do the same, however their nodes are named."""
    names: dict[Node, str] = {}
    for place, (node, other) in enumerate(zip_longest(left.nodes, right.nodes)):
        if node is None or other is None or not _is_the_same(node, other, names):
            return False
        names[node] = names[other] = f"%{place}"
    return True


def _spelled(nest: Any, names: dict[Node, str]) -> str:
    """A nest in words; graphs inside of it are told apart by whoever asks."""

    def spelled(leaf: Any) -> Any:
        return names.get(leaf, "?") if isinstance(leaf, Node) else "graph" if isinstance(leaf, Graph) else leaf

    return repr(map_aggregate(nest, spelled))


def _differ_in_answer(node: Node, other: Node, names: dict[Node, str], place: FirstCallChange) -> bool:
    """Whether two guards ask the same, of a place that settles."""
    if node.target is not require or other.target is not require:
        return False
    same = _spelled(node.args[0], names) == _spelled(other.args[0], names)
    return same and (repr(node.args[1]), repr(other.args[1])) == (repr(place.before), repr(place.now))
