"""Recordings of several paths become one graph.

A segment is what happens between two questions; a question has a segment for each answer. Questions of a library that
lead to the same two paths are combined: ``a or (b and c)``. What follows is then written once, with a small branch for
what differs; behind a guard where only one path was recorded; behind an ``if`` that raises where the other is an error.
A common prefix of calls, and what both ask of values known there, moves before the question. Always holds: each path
makes the calls of its run in their order; what only asks may be asked earlier.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from clew.capture.control_flow.alignment import STACK, Alignment, common_stack, inline
from clew.capture.control_flow.node_comparison import (
    TOLD,
    arrange,
    identity,
    is_calculated,
    is_check,
    is_fact,
    is_size,
    may_write,
    only_asks,
    same_argument,
)
from clew.capture.control_flow.raising import raise_error
from clew.capture.guards.lifting import is_context
from clew.capture.guards.notes import describe, require
from clew.capture.recording.nested_programs import OpenBody
from clew.errors import CaptureError
from clew.ir.arguments import bodies_of, leaves, map_arg
from clew.ir.control_flow import cond, output_of
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node, set_meta, set_type
from clew.ir.source import SourceLine
from clew.ir.types import ScalarType

TOO_MUCH = "it asks for more than can be recorded"


class TooMuch(CaptureError):
    """A path that asks more questions than can be recorded."""


IN_LIBRARY = "a library asks for data in a large program"
MOST_PATHS = 64
_BOOL = ScalarType("bool")
_MANY = 8
"""So many calls after a question of the user's own are better not written twice."""


class Segment:
    """What happens between two questions; ``body`` is where its nodes go, None for the program's own graph."""

    def __init__(self, body: OpenBody | None) -> None:
        self.body = body
        self.nodes: list[Node] = []
        self.question: Question | None = None
        self.is_complete = False
        self.ends = False

    def first_way(self) -> list[Segment]:
        """The segment, and those that followed it on the first run that came here."""
        way = [self]
        while way[-1].question is not None and way[-1].question.sides:
            way.append(next(iter(way[-1].question.sides.values())))
        return way

    def inside(self, node: Node) -> Node:
        """A node as it is known here: itself if it was made here, a parameter otherwise."""
        is_here = self.body is None or node.graph is self.body.graph
        return node if is_here else self.body.parameter(node)  # type: ignore[union-attr]

    def let_in(self, body: OpenBody) -> None:
        """Let a body that follows the segment take its values from here alone: what it has asked for after a question
        of its own may be of a graph further out."""
        for node in [node for node in body.free if self.inside(node) is not node]:
            parameter, here = body.free.pop(node), self.inside(node)
            known = body.free.setdefault(here, parameter)
            if known is not parameter:
                parameter.replace_all_uses_with(known)
                body.graph.erase_node(parameter)


class Question:
    """A value whose truth the program asks for, and what follows each answer."""

    def __init__(self, node: Node, answer: bool, source: SourceLine | None) -> None:
        self.node = node
        self.answer = answer
        self.source = source
        self.sides: dict[bool, Segment] = {}
        self.why = ""
        """Why the branch or loop that asks is not recorded as a piece of the program, if that was tried."""
        self.refused: dict[bool, str] = {}
        """Why there is nothing for an answer."""
        self.place: Any = None
        self.aligns = False
        """Whether what follows must not be written twice, since a library asks in a large program."""
        self.is_of_modes = False
        self.is_of_tracers = False
        self.is_at_entrance = False
        """Whether it is about the kind of an argument, and asked before the program runs."""

    def recorded(self) -> dict[bool, OpenBody]:
        """The bodies of the paths that were recorded, by their answers."""
        known = {answer: side for answer, side in self.sides.items() if side.ends or side.question is not None}
        return {answer: side.body for answer, side in known.items() if side.body is not None}

    def assumed(self, value: Any, answer: bool) -> tuple[Any, ...]:
        """The arguments of a guard by which ``value`` must be the ``answer``; and why there is no other path."""
        where = "" if self.source is None else self.source.describe()
        why = self.refused.get(not answer, "")
        if not why or TOO_MUCH in why:
            many = f"the program has more than {MOST_PATHS} ways"
            why = self.why or why or (IN_LIBRARY if self.aligns else many)
        return value, answer, describe(self.node, answer), where, why


# ---- facts that each run has read for itself ------------------------------------------------------------------------


def share_facts(segment: Segment, graph: Graph, renamed: dict[Node, Node] | None = None) -> None:
    """Let all paths use one node for parameters of the program, and for facts that they have read about a value that
    was there before the question, and numbers computed of these: each run has made its own. ``renamed`` is what stands
    for nodes of the graph."""
    question = segment.question
    if question is None:
        return
    same = {**_same_facts(graph, segment), **(renamed or {})}
    for node, first in same.items():
        node.replace_all_uses_with(first)
    for side in question.sides.values():
        assert side.body is not None
        inner, free = {}, side.body.free
        for node in [node for node in free if node in same]:
            parameter = free.pop(node)
            inner[parameter] = side.body.parameter(same[node])
        share_facts(side, side.body.graph, inner)
        for parameter, first in inner.items():
            parameter.replace_all_uses_with(first)
            side.body.graph.erase_node(parameter)
    for node in same.keys() - (renamed or {}).keys():
        graph.erase_node(node)


def _same_facts(graph: Graph, segment: Segment) -> dict[Node, Node]:
    """Reads that another one has made before; among facts that were read before the question there may be writes."""
    asked = {question.node for question in questions(segment)}
    before = asked.union(node for node in segment.nodes if node.op != "get_attr")
    first: dict[Any, Node] = {}
    same: dict[Node, Node] = {}
    for node in graph.nodes:
        if (node.op == "get_attr" or (is_fact(node) and not node.kwargs) or _is_number(node)) and node not in before:
            args = tuple(map(identity, leaves(map_arg(node.args, lambda used: same.get(used, used)))))
            found = first.setdefault((node.op, node.target, args), node)
            if found is not node:
                same[node] = found
    return same


def _is_number(node: Node) -> bool:
    """Whether a node computes a number of others."""
    return is_calculated(node) and only_asks(node)


def questions(segment: Segment) -> Iterator[Question]:
    """All questions that were asked from a segment on."""
    if segment.question is not None:
        yield segment.question
        for side in segment.question.sides.values():
            yield from questions(side)


# ---- one question instead of several -----------------------------------------------------------------------------


def combine(segment: Segment, graph: Graph, root: Any, is_of_tracers: bool = False) -> None:
    """Make one question of two, wherever an answer to the second leads to the same as an answer to the first.

    Those for tracers, of which one is before the segment if it ``is_of_tracers``, become one before any other.
    """
    question = segment.question
    for side in () if question is None else question.sides.values():
        assert side.body is not None
        combine(side, side.body.graph, root, question is not None and question.is_of_tracers)
    while question is not None and question.aligns and len(question.recorded()) == 2:
        if not any(_combined(segment, graph, question, answer, root, is_of_tracers) for answer in (True, False)):
            can_wait = question.is_of_tracers and not is_of_tracers
            if not can_wait or not _ask_later(segment, graph, question, root):
                return
        question = segment.question


def _ask_later(segment: Segment, graph: Graph, question: Question, root: Any) -> bool:
    """Write what both paths begin with before the question, whose answer stays the same; whether there was anything."""
    sides = [question.sides[answer] for answer in (question.answer, not question.answer)]
    left, right = (side.body for side in sides)
    assert left is not None and right is not None
    start = CommonStart((left, right), root)
    if not start.pairs:
        return False
    outer = {parameter: segment.inside(node) for body in (left, right) for node, parameter in body.free.items()}
    written: list[dict[Node, Node]] = [{}, {}]
    for twins in start.shared((sides[0].question is not None, sides[1].question is not None)):
        node = (twins.left or twins.right)[0]
        copy = graph.node_copy(node, outer.__getitem__)
        for place, nodes in enumerate(twins):
            written[place] |= dict.fromkeys(nodes, copy)
            outer |= dict.fromkeys(nodes, copy)
    for side, taken in zip(sides, written, strict=True):
        _take_from_outside(side, taken)
    return True


def _take_from_outside(side: Segment, outside: dict[Node, Node]) -> None:
    """Let a path use nodes of the graph around instead of its own."""
    assert side.body is not None
    own = {node: side.body.parameter(outer) for node, outer in outside.items() if not is_check(node)}
    for node, parameter in own.items():
        node.replace_all_uses_with(parameter)
    for question in questions(side):
        question.node = own.get(question.node, question.node)
    share_facts(side, side.body.graph, own)
    side.nodes = [node for node in side.nodes if node not in outside]
    for node in reversed(outside):
        side.body.graph.erase_node(node)


def _combined(
    segment: Segment, graph: Graph, first: Question, answer: bool, root: Any, only_tracers: bool = False
) -> bool:
    """Combine with the question that follows an ``answer``, if one of its paths is that of the other answer."""
    between, other = first.sides[answer], first.sides[not answer]
    second = between.question
    if second is None or not second.aligns or len(second.recorded()) < 2 or other.question is not None:
        return False
    if only_tracers and first.is_of_tracers and not second.is_of_tracers:
        return False
    ways = {final: _seen_from_outside(side, between) for final, side in second.sides.items()}
    for final, way in ways.items():
        rest = ways[not final]
        if way is None or rest is None or way.question is not None or _asks_in(rest, between):
            continue
        assert way.body is not None and other.body is not None
        if Alignment(graph, (way.body, other.body), root, shares_checks=False).is_same:
            turns = first.is_of_tracers and not final  # what is done under a tool comes first: traced or not all
            flag = _flag(segment, graph, first, answer, final, turns)
            given = second.answer if first.answer is answer else final
            asked = Question(flag, given is not turns, first.source)
            asked.place, asked.aligns = first.place, True
            asked.is_of_tracers = first.is_of_tracers and second.is_of_tracers
            asked.sides = {final is not turns: other, final is turns: rest}
            segment.question = asked
            return True
    return False


def _seen_from_outside(side: Segment, between: Segment) -> Segment | None:
    """A path as if it followed the first question: None if it uses what is computed before the second one."""
    assert side.body is not None and between.body is not None
    between.let_in(side.body)
    outer = {parameter: node for node, parameter in between.body.free.items()}
    if not outer.keys() >= side.body.free.keys():
        return None
    moved = Segment(OpenBody(side.body.graph, is_branch=True))
    assert moved.body is not None
    moved.body.free = {outer[node]: parameter for node, parameter in side.body.free.items()}
    moved.nodes, moved.question, moved.ends = side.nodes, side.question, side.ends
    return moved


def _asks_in(way: Segment, between: Segment) -> bool:
    """Whether a question of a path is about what is computed before it, which is then inside of a branch."""
    assert between.body is not None
    return any(question.node.graph is between.body.graph for question in questions(way))


def _flag(segment: Segment, graph: Graph, first: Question, answer: bool, final: bool, turns: bool) -> Node:
    """The answer to both questions: that to the second, which is asked only after ``answer``, or else ``final``; the
    opposite if it ``turns``."""
    between = first.sides[answer]
    assert between.body is not None and between.question is not None
    if first.is_of_tracers and between.question.is_of_tracers and not answer and final:
        return _either(segment, graph, first, between)
    body, other = between.body, OpenBody(Graph(), is_branch=True)
    asked = between.inside(between.question.node)
    if turns or asked.value_type != _BOOL:
        asked = body.graph.call_function(operator.not_ if turns else bool, (asked,))
        asked.source = between.question.source
    body.graph.output((asked,))
    for node in [node for node, parameter in body.free.items() if not parameter.users]:  # that the ways behind it use
        body.graph.erase_node(body.free.pop(node))
    other.graph.output((final is not turns,))
    sides = {answer: body, not answer: other}
    branch = write_branch(graph, segment, first, sides)
    flag = graph.create_node("call_function", operator.getitem, (branch, 0), {}, "answer")
    flag.source = first.source
    set_type(flag, _BOOL)
    return flag


def _either(segment: Segment, graph: Graph, first: Question, between: Segment) -> Node:
    """Whether one of several tracers is at work: all may be asked at once."""
    assert between.body is not None
    flag = segment.inside(first.node)
    called = [node for node in between.body.graph.nodes if node.op == "call_function"]
    asked = [node for node in called if node.target is not operator.or_]
    for node in asked:
        name = "is_traced" if node is asked[-1] else None
        flag = graph.create_node("call_function", operator.or_, (flag, graph.node_copy(node)), {}, name)
        set_type(flag, _BOOL)
    return flag


# ---- paths that do the same -------------------------------------------------------------------------------------


def do_the_same(first: Segment, ways: list[Segment], ignores_order: Callable[[Node], bool]) -> bool:
    """Whether the same is done and asked on all of these ways, and all that follows each answer is the same; they come
    after the ``first`` segment. ``ignores_order`` tells of a call that the order of keys in dicts makes no difference
    to it."""
    bodies = [side.body for question in questions(first) for side in question.sides.values() if side.body is not None]
    outer = {parameter: node for body in bodies for node, parameter in body.free.items()}
    return all(_Twins(outer, ignores_order).are_same(ways[0], way) for way in ways[1:])


class _Twins:
    """The nodes of two paths that correspond to each other; ``outer`` is what parameters stand for."""

    def __init__(self, outer: dict[Node, Node], ignores_order: Callable[[Node], bool]) -> None:
        self._outer = outer
        self._ignores_order = ignores_order
        self._twin: dict[Node, Node] = {}

    def are_same(self, one: Segment, other: Segment) -> bool:
        """Whether all that follows from two segments on is the same."""
        if one.ends is not other.ends or len(one.nodes) != len(other.nodes):
            return False
        if not all(map(self._is_same_call, one.nodes, other.nodes)):
            return False
        first, second = one.question, other.question
        if first is None or second is None:
            return first is second
        if self._translated(first.node) is not self._home(second.node) or first.sides.keys() != second.sides.keys():
            return False
        return all(self.are_same(side, second.sides[answer]) for answer, side in first.sides.items())

    def _is_same_call(self, left: Node, right: Node) -> bool:
        if left.op != right.op or not same_argument(left.target, right.target):
            return False
        told = TOLD if is_check(left) else None
        given = map_arg((left.args[:told], left.kwargs), self._translated)
        others = map_arg((right.args[:told], right.kwargs), self._home)
        if self._ignores_order(left):
            given, others = _in_one_order(given), _in_one_order(others)
        self._twin[left] = right
        return same_argument(given, others)

    def _home(self, node: Node) -> Node:
        """The node that a parameter stands for."""
        while node in self._outer:
            node = self._outer[node]
        return node

    def _translated(self, node: Node) -> Node:
        found = self._home(node)
        return self._twin.get(found, found)


def _in_one_order(nest: Any) -> Any:
    """A nest in which the keys of dicts are sorted."""
    if isinstance(nest, dict):
        return {key: _in_one_order(nest[key]) for key in sorted(nest, key=repr)}
    if isinstance(nest, (tuple, list)):
        return [_in_one_order(one) for one in nest]
    return nest


# ---- writing -----------------------------------------------------------------------------------------------------


def write_branch(graph: Graph, segment: Segment, question: Question, sides: dict[bool, OpenBody]) -> Node:
    """The node that chooses between two bodies."""
    outer = list(dict.fromkeys(node for answer in (True, False) for node in sides[answer].free))
    for body in sides.values():
        arrange(body, outer)
    operands = tuple(map(segment.inside, outer))
    args = (segment.inside(question.node), sides[True].graph, sides[False].graph, operands)
    node = graph.create_node("call_function", cond, args)
    node.source = question.source
    stack = common_stack(one for body in sides.values() for one in body.graph.nodes)
    if stack:
        set_meta(node, {STACK: stack})
    return node


def write_once(graph: Graph, segment: Segment, question: Question, sides: dict[bool, OpenBody], root: Any) -> bool:
    """Write what follows a question so that no call stands there twice; False if the paths have too little in common.

    What a library asks is written so that there is no branch around the whole rest; what the user's own program asks
    stays a branch, unless most of what follows both answers is the same.
    """
    raising = [answer for answer, body in sides.items() if raises(body.graph)]
    if question.is_at_entrance:
        return False
    if question.aligns and len(sides) == 1:
        _write_guarded(graph, segment, question, sides)
    elif question.aligns and len(raising) == 1:
        _write_raise(graph, segment, question, sides, raising[0])
    elif len(sides) == 1 or raising or not (question.aligns or all(map(_is_long, sides.values()))):
        return False
    else:
        alignment = Alignment(graph, (sides[True], sides[False]), root, question.aligns, question.node)
        if not alignment.fits or not (question.aligns or alignment.saved > _MANY):
            return False
        alignment.write(segment.inside(question.node), question.source, question.answer)
    return True


def _write_guarded(graph: Graph, segment: Segment, question: Question, sides: dict[bool, OpenBody]) -> None:
    """The only path that was recorded, behind a guard."""
    ((answer, body),) = sides.items()
    asked = graph.call_function(bool, (segment.inside(question.node),))
    graph.call_function(require, question.assumed(asked, answer)).source = question.source
    inline(graph, body)


def _write_raise(
    graph: Graph, segment: Segment, question: Question, sides: dict[bool, OpenBody], raising: bool
) -> None:
    """A branch that raises, and the other path behind it."""
    nothing = OpenBody(Graph(), is_branch=True)
    nothing.graph.output(None)
    write_branch(graph, segment, question, {raising: sides[raising], not raising: nothing})
    inline(graph, sides[not raising])


def raises(graph: Graph) -> bool:
    """Whether a body ends with an error."""
    output = output_of(graph)
    return output is not None and output._prev.target is raise_error


def _is_long(body: OpenBody) -> bool:
    return len(body.graph.nodes) - len(body.free) > _MANY


def move_reads(graph: Graph, segment: Segment) -> None:
    """Let parameters, numbers, and what branches give, stand where they are first used, as in a program without
    questions, and facts that were read for what follows the question before it: so it stands in the head of its branch.
    """
    before = set(segment.nodes)
    reads = [node for node in graph.nodes if node not in before and node.users]
    for node in reversed([node for node in reads if _is_of_attribute(node) or _is_result(node) or _is_number(node)]):
        min(node.users).prepend(node)
    asked = segment.nodes[-1] if segment.nodes else None
    if asked is None or asked.graph is not graph or effect_of(asked) is not Effect.NONE:
        return
    for node in [node for node in reads if is_fact(node) and not _is_result(node) and not _is_of_attribute(node)]:
        if all(used < asked or used.op == "get_attr" for used in node.all_input_nodes):
            for used in [used for used in node.all_input_nodes if used > asked]:
                asked.prepend(used)
            asked.prepend(node)


def _is_of_attribute(node: Node) -> bool:
    """Whether a node reads an attribute of the root, or a fact about one."""
    if node.op == "get_attr":
        return True
    return is_fact(node) and isinstance(node.args[0], Node) and _is_of_attribute(node.args[0])


def _is_result(node: Node) -> bool:
    return is_fact(node) and isinstance(node.args[0], Node) and node.args[0].target is cond


# ---- calls with which both paths of a question begin -----------------------------------------------------------------


class CallPair(NamedTuple):
    """The nodes of both bodies that are one call, or ask the same; a guard may be of one of them alone."""

    left: list[Node]
    right: list[Node]


class CommonStart:
    """What two bodies begin with; ``pairs`` are the nodes of the first, in order, with those of the second."""

    def __init__(self, bodies: tuple[OpenBody, OpenBody], root: Any) -> None:
        self._bodies, self._root = bodies, root
        self._outer = [{parameter: node for node, parameter in body.free.items()} for body in bodies]
        self.pairs: dict[Node, Node] = {}
        left, right = ([node for node in body.graph.nodes if _is_call(node)] for body in bodies)
        for twins in zip(left, right, strict=False):
            is_plain = not may_write(twins[0], root) and not is_context(twins[0]) and not bodies_of(twins[0])
            if not is_plain or not self._is_same(*twins):
                return

    def _is_same(self, left: Node, right: Node) -> bool:
        """Whether two nodes are the same call; the pair is noted, after those that it needs."""
        if left.op != right.op or identity(left.target) != identity(right.target):
            return False
        if left.source != right.source or left._meta != right._meta:
            return False
        used = left.all_input_nodes, right.all_input_nodes
        if len(used[0]) != len(used[1]) or not all(map(self._is_known, *used)):
            return False
        given, wanted = map_arg((left.args, left.kwargs), self._twin), (right.args, right.kwargs)
        if not same_argument(given, wanted) or [*map(identity, leaves(given))] != [*map(identity, leaves(wanted))]:
            return False
        self.pairs[left] = right
        return True

    def _is_known(self, left: Node, right: Node) -> bool:
        """Whether two arguments are one value: from around, or of the start."""
        if left in self._outer[0]:
            return self._outer[0][left] is self._outer[1].get(right)
        if left in self.pairs:
            return self.pairs[left] is right
        return not _is_call(left) and not is_check(left) and self._is_same(left, right)

    def _twin(self, node: Node) -> Node:
        return self.pairs[node] if node in self.pairs else self._bodies[1].free[self._outer[0][node]]

    # ---- what is asked of it -------------------------------------------------------------------------------------

    def shared(self, asks_on: tuple[bool, bool]) -> list[CallPair]:
        """All that can stand before the question, in order; ``asks_on`` tells which paths have another question."""
        start = {left: left for left in self.pairs}, {right: left for left, right in self.pairs.items()}
        facts = [_Facts(*given, self._root) for given in zip(self._bodies, start, strict=True)]
        found: dict[Any, CallPair] = {}
        for left, right in self.pairs.items():
            key = facts[0].names[left]
            found[key] = CallPair(facts[0].asked.get(key, [left]), facts[1].asked.get(key, [right]))
        for place, one in enumerate(facts):
            for key, nodes in one.asked.items():
                is_alone = key not in facts[1 - place].asked
                needed = [key] if not is_alone else one.needed(nodes[0]) if asks_on[place] else []
                for name in needed:
                    found.setdefault(name, CallPair(*(each.asked.get(name, []) for each in facts)))
        return list(found.values())


class _Facts:
    """What a body asks of values from around, and of its ``start``, before it may write to any.

    ``names`` are by what each value is known, ``asked`` all nodes that ask the same.
    """

    def __init__(self, body: OpenBody, start: dict[Node, Node], root: Any) -> None:
        self.names: dict[Node, Any] = {parameter: node for node, parameter in body.free.items()}
        self.asked: dict[Any, list[Node]] = {}
        for node in body.graph.nodes:
            if node.op not in ("placeholder", "output"):
                if may_write(node, root):
                    return
                self._add(node, start)

    def _add(self, node: Node, start: dict[Node, Node]) -> None:
        if only_asks(node) and all(one in self.names for one in node.all_input_nodes):
            asked = node.args[:TOLD] if is_check(node) else node.args
            key = node.target, *(self.names[one] if isinstance(one, Node) else identity(one) for one in leaves(asked))
            self.names[node] = key
            self.asked.setdefault(key, []).append(node)
        elif node in start:
            self.names[node] = start[node]

    def needed(self, check: Node) -> list[Any]:
        """What a guard on sizes asks, after all that it needs; nothing for any other node."""
        found: list[Any] = []
        return found if is_check(check) and self._note(check, found) else []

    def _note(self, node: Node, found: list[Any]) -> bool:
        for one in node.all_input_nodes:
            name = self.names[one]
            known = name if isinstance(name, Node) else one
            if node.target is not getattr and not is_size(known) and not is_calculated(known):
                return False
            if name in self.asked and not self._note(one, found):
                return False
        found.append(self.names[node])
        return True


def _is_call(node: Node) -> bool:
    """Whether a node does more than ask."""
    return node.op not in ("placeholder", "get_attr", "output") and not only_asks(node)
