"""The ways that a program can go: where it asks for the truth of its data, both answers are recorded.

The program is run once for each way. A run that is told to go the other way at its last question repeats, up to there,
what was recorded before: the same nodes come back instead of new ones, and a program that does something else when it
is run again is found out. What follows a question goes into a body of its own, one for each answer; in the end these
bodies are the two sides of a branch. So a branch may return early, change state, or raise: each way is a whole program.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from clew.capture.control.runtime import current
from clew.capture.example.bodies import Bodies, OpenBody
from clew.capture.example.expressions import describe
from clew.capture.example.guards import Variable, require_way
from clew.errors import CaptureError
from clew.ir.control import cond, ends_of, output_of
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.source import SourceLine, user_frame, user_source

MOST_PATHS = 64
_MOST_QUESTIONS = 40
_MOST_AT_ONE_PLACE = 8
_MOST_TOO_LONG = 6
"""So many ways, one after the other, that ask for too much: the program sorts by value, say, and the rest do too."""
_MOST_MODES = 3
"""So many questions about modes are recorded as ways of the whole program, if it is small: each may double it."""
_TOO_MUCH = "it asks for more than can be recorded"
_MOST_NODES_IN_LIBRARIES = 100
"""In a program that is longer, a question of code that is not the user's is guarded: each way is a run of all of it."""

_MOST_IN_LIBRARIES = 3
"""In a program of more nodes than that, libraries may ask so often: each question may double the runs."""


class Diverged(CaptureError):
    """A program that does something else when it is run again in the same way."""


class PathGraph(Graph):
    """A graph that several runs write: each gives back what an earlier one has recorded, as far as they agree."""

    paths: Paths

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node, or give back the one that an earlier run has added here."""
        paths = self.paths
        if paths.bodies.is_used:
            args, kwargs = paths.bodies.localized((args or (), kwargs or {}), self)
        segment = paths._segment
        paths._count += 1
        if segment.is_complete:
            return paths.repeated(op, target, args or (), kwargs or {})
        node = Graph.create_node(self, op, target, args, kwargs, name, type_expr)
        segment.nodes.append(node)
        return node


class _Segment:
    """What happens between two questions; ``body`` is where its nodes go, None for the program's own graph."""

    def __init__(self, body: OpenBody | None) -> None:
        self.body = body
        self.nodes: list[Node] = []
        self.question: _Question | None = None
        self.is_complete = False
        self.ends = False


class _Question:
    """A value whose truth the program asks for, and what follows each answer."""

    def __init__(self, node: Node, answer: bool, source: SourceLine | None) -> None:
        self.node = node
        self.answer = answer
        self.source = source
        self.sides: dict[bool, _Segment] = {}
        self.why = ""
        """Why the branch or loop that asks is not recorded as a piece of the program, if that was tried."""
        self.refused: dict[bool, str] = {}
        """Why there is nothing for an answer."""


class Paths:
    """All ways of one program, or of a piece of it, as far as they have been recorded.

    A piece is recorded into the body of its own, inside those that are open.
    """

    def __init__(self, bodies: Bodies | None = None) -> None:
        self.graph = self._new_graph()
        self.body = None if bodies is None else OpenBody(self.graph, is_branch=True)
        self._first = _Segment(self.body)
        self.runs = 0
        self._too_long = 0
        self._in_libraries = 0
        self.looks_into_libraries = True
        """Whether questions of code that is not the user's are recorded, which a large model has no use for."""
        self.declined = ""
        """Why the latest question was not recorded."""
        self.assumed: dict[Node, bool] = {}
        """Questions that are answered before a piece begins: it is one side of a branch on them."""
        self.missing: Any = None
        """What a way returns that was not recorded, after it has raised."""
        self.bodies = Bodies(self.graph) if bodies is None else bodies

    def _new_graph(self) -> PathGraph:
        graph = PathGraph()
        graph.paths = self
        return graph

    @property
    def has_questions(self) -> bool:
        """Whether the program has asked for anything."""
        return self._first.question is not None

    # ---- one run -------------------------------------------------------------------------------------------------

    def begin(self, bodies: Bodies, answers: tuple[bool, ...]) -> None:
        """Start a run that gives these answers to its first questions, and goes its own way then."""
        self.bodies = bodies
        self.answers = answers
        self.runs += 1
        if self.body is not None:
            bodies.enter(self.body)
        self._segment = self._first
        self._latest: tuple[_Question, bool] | None = None
        self._cursor = 0
        self._given: list[bool] = []
        self._known = dict(self.assumed)
        self._places: Counter[Any] = Counter()
        self._count = 0
        self._in_libraries = 0
        self._modes = 0

    def repeated(self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        """The node that an earlier run has made here."""
        segment = self._segment
        if self._cursor >= len(segment.nodes):
            raise self._diverged()
        node = segment.nodes[self._cursor]
        self._cursor += 1
        same = node.op == op and _same(node.target, target) and _same(node.args, args) and _same(node.kwargs, kwargs)
        if not same:
            raise self._diverged()
        return node

    def _diverged(self) -> Diverged:
        source = user_source(3)
        return Diverged(
            "the program does something else when it is run again",
            where="" if source is None else source.describe(),
            why="a branch on data is recorded by running the program once for each way",
            fixes=('guard what it branches on instead: clew.trace(..., control_flow="guard")',),
        )

    def ask(self, node: Node, answer: bool, is_fixed: bool, is_of_modes: bool = False) -> bool | None:
        """The answer that this run goes on with; None if the question is not to be recorded but guarded."""
        if is_fixed and node in self._known:
            return self._known[node]
        segment, regions = self._segment, current.get()
        if is_of_modes and regions is not None:
            regions.before_question(is_of_modes)
        if segment.question is None:
            if segment.is_complete:
                raise self._diverged()
            if not self._is_worth_it(is_of_modes):
                return None
            source = user_source(3)
            if regions is not None and not is_of_modes:
                regions.before_question()
            segment.question = _Question(node, answer, source)
            if regions is not None and source is not None:
                segment.question.why = regions.progress.reason_at(source.filename, source.lineno)
            segment.is_complete = True
        elif segment.question.node is not node:
            if not self._is_worth_it(is_of_modes):
                return None
            raise self._diverged()
        elif not self._is_worth_it(is_of_modes):
            raise self._diverged()
        return self._enter(segment.question, node, answer)

    def knows(self, node: Node) -> bool:
        """Whether the way that this run goes tells the answer to a question."""
        return node in self._known

    def assume(self, around: Paths, node: Node, answer: bool) -> None:
        """The piece runs only where a node has this answer, on a way of what is around it."""
        self.assumed = {**around._known, node: answer}

    def _enter(self, question: _Question, node: Node, answer: bool) -> bool:
        """Go on in the body that follows an answer."""
        place = len(self._given)
        chosen = self.answers[place] if place < len(self.answers) else answer
        self._given.append(chosen)
        self._known[node] = chosen
        side = question.sides.get(chosen)
        if side is None:
            side = question.sides[chosen] = _Segment(OpenBody(self._new_graph(), is_branch=True))
        assert side.body is not None
        self.bodies.enter(side.body)
        self._segment, self._cursor, self._latest = side, 0, (question, chosen)
        return chosen

    def _is_worth_it(self, is_of_modes: bool) -> bool:
        """Whether a question of this run is recorded: not too many, and in libraries only if the program is small."""
        self._modes += is_of_modes
        most = _MOST_MODES if self.looks_into_libraries else 1
        if is_of_modes and self._modes > most:
            self.declined = f"the modes of more than {most} parts decide the way"
            return False
        frame = user_frame(3)
        place = None if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        self._places[place] += 1
        if len(self._given) >= _MOST_QUESTIONS or self._places[place] > _MOST_AT_ONE_PLACE:
            if self.answers:
                raise CaptureError(_TOO_MUCH)
            self.declined = f"more than {_MOST_AT_ONE_PLACE} conditions on data are asked in this line"
            return False
        self.declined = "a library asks for data in a large program"
        is_own = frame is None or "-packages" not in frame.f_code.co_filename
        if is_own or not self.looks_into_libraries or self._count > _MOST_NODES_IN_LIBRARIES:
            return is_own
        self._in_libraries += 1
        return True

    @property
    def is_too_much(self) -> bool:
        """Whether libraries ask so often, in a run of so many nodes, that all ways of it would take too long."""
        return self._in_libraries > _MOST_IN_LIBRARIES and self._count > _MOST_NODES_IN_LIBRARIES

    def end(self) -> None:
        """The run has recorded its way to the end."""
        self._segment.is_complete = self._segment.ends = True
        self._too_long = 0

    @property
    def is_ahead(self) -> bool:
        """Whether the run has come past the last question that it was told the answer of."""
        return len(self._given) >= len(self.answers)

    def give_up(self, error: BaseException) -> None:
        """The way of this run cannot be recorded because of an error: it will be guarded against."""
        if not self.is_ahead:
            raise self._diverged()
        self._too_long = self._too_long + 1 if _TOO_MUCH in str(error) else 0
        if self._latest is not None:
            question, answer = self._latest
            question.refused[answer] = f"on the example this way could not be run: {said(error)}"
        self._segment.is_complete, self._segment.ends = True, False
        self._segment.question = None

    # ---- all runs ------------------------------------------------------------------------------------------------

    def ways(self) -> Iterator[tuple[bool, ...]]:
        """The answers for one run after another, until all ways are known or there are too many."""
        while self.runs < MOST_PATHS and self._too_long < _MOST_TOO_LONG:
            answers = next(self.open_ways(), None)
            if answers is None:
                return
            yield answers

    def open_ways(self) -> Iterator[tuple[bool, ...]]:
        """The answers that lead to a way that was not tried yet, the shortest first."""
        waiting: list[tuple[_Segment, tuple[bool, ...]]] = [(self._first, ())]
        while waiting:
            following = []
            for segment, answers in waiting:
                question = segment.question
                for chosen in (True, False) if question is not None else ():
                    assert question is not None
                    if chosen in question.sides:
                        following.append((question.sides[chosen], (*answers, chosen)))
                    else:
                        yield (*answers, chosen)
            waiting = following

    def nodes(self) -> Iterator[Node]:
        """All nodes that were recorded."""
        waiting = [self._first]
        while waiting:
            segment = waiting.pop()
            yield from segment.nodes
            waiting += [] if segment.question is None else segment.question.sides.values()

    def write_end(self, levels: list[OpenBody], result: Any) -> None:
        """Let a way of a piece, which ended with these bodies open, give back this."""
        bodies, graph = self.bodies, levels[-1].graph
        before = list(bodies.open)
        bodies.open[:] = levels
        Graph.create_node(graph, "output", "output", bodies.localized((result,), graph))
        bodies.open[:] = before

    def finish(self) -> None:
        """Make branches of all questions; the graphs are plain ones from now on."""
        self._close(self._first, self.graph)

    def _close(self, segment: _Segment, graph: Graph) -> None:
        question = segment.question
        vars(graph).pop("paths", None)
        graph.__class__ = Graph
        if question is None:
            if self.body is not None:
                _shorten_end(graph)
            return
        sides = {}
        for answer in (True, False):
            side = question.sides.get(answer)
            if side is not None and side.body is not None and (side.ends or side.question is not None):
                self._close(side, side.body.graph)
                sides[answer] = side.body
        for answer in {True, False} - sides.keys():
            sides[answer] = _refusing(question, not answer, self.missing)
        self._branch(question, sides, segment, graph)

    def _branch(self, question: _Question, sides: dict[bool, OpenBody], segment: _Segment, graph: Graph) -> None:
        """The node that chooses between two bodies, and that the graph returns."""
        outer = list(dict.fromkeys(node for body in sides.values() for node in body.free))
        for body in sides.values():
            arrange(body, outer)
        predicate = question.node if segment.body is None else _inside(question.node, segment.body)
        operands = tuple(node if segment.body is None else _inside(node, segment.body) for node in outer)
        node = graph.create_node("call_function", cond, (predicate, sides[True].graph, sides[False].graph, operands))
        node.source = question.source
        graph.output(node)


def said(error: BaseException) -> str:
    """An error in one line."""
    text = (str(error).splitlines() or [""])[0]
    return text if isinstance(error, CaptureError) else f"{type(error).__name__}: {text}"


def _inside(node: Node, body: OpenBody) -> Node:
    """A node as it is known inside a body: itself if it was made there, a parameter otherwise."""
    return node if node.graph is body.graph else body.parameter(node)


def _shorten_end(graph: Graph) -> None:
    """Let a body that takes apart what a branch gives, to give back the same, give back that itself."""
    output = output_of(graph)
    items = None if output is None else output.args[0]
    if output is None or not isinstance(items, tuple) or not items or not all(map(_is_item, items)):
        return
    branch = items[0].args[0]
    if branch.target is not cond or branch.graph is not graph:
        return
    count = next((len(end) for end in ends_of(branch.args[1]) if isinstance(end, tuple)), -1)
    same = all(item.args == (branch, place) and len(item.users) == 1 for place, item in enumerate(items))
    if same and count == len(items) == len(branch.users):
        output.args = (branch,)
        for item in items:
            graph.erase_node(item)


def _is_item(value: Any) -> bool:
    return isinstance(value, Node) and value.target is operator.getitem and isinstance(value.args[0], Node)


def arrange(body: OpenBody, outer: list[Node], own: Sequence[Node] = ()) -> None:
    """Let a body have these parameters of its own, then one for each of these values, in this order."""
    parameters = [*own, *(body.parameter(node) for node in outer)]
    for parameter in reversed(parameters):
        first = body.graph._root._next
        if first is not parameter:
            first.prepend(parameter)


def _refusing(question: _Question, answer: bool, result: Any) -> OpenBody:
    """A body for a way that was not recorded: it raises that the graph has assumed the other one."""
    body = OpenBody(Graph(), is_branch=True)
    where = "" if question.source is None else question.source.describe()
    why = question.refused.get(not answer, "")
    if not why or _TOO_MUCH in why:
        why = question.why or why or f"the program has more than {MOST_PATHS} ways"
    args = (not answer, answer, describe(question.node, answer), where, why)
    guard = body.graph.call_function(require_way, args)
    guard.source = question.source
    body.graph.output(result)
    return body


def _same(one: Any, other: Any) -> bool:
    """Whether two arguments of nodes are the same, as far as it can be told."""
    if one is other:
        return True
    if isinstance(one, Node) or isinstance(other, Node):
        return False
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if type(one) is not type(other):
        return False
    if isinstance(one, slice):
        return _same((one.start, one.stop, one.step), (other.start, other.stop, other.step))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, Graph):
        return str(one) == str(other)
    if isinstance(one, Variable):
        return one.holder is other.holder and one.name == other.name
    return type(one).__eq__ is object.__eq__ or bool(one == other)
