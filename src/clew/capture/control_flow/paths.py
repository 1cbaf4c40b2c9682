"""The paths of a program: where it asks for the truth of its data, both answers are recorded.

The program runs once for each path. A run that is told to answer its last question the other way repeats what was
recorded up to there: the same nodes come back, and a program that does something else then is found out (``Diverged``).
What follows a question goes into a body for each answer, and these bodies become the sides of a branch; so a branch may
return early, change state or raise. ``Provenance`` tells what a question is about, and whether it was asked before.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

from clew.capture.control_flow.alignment import are_unalike
from clew.capture.control_flow.node_comparison import identity, may_write, same_argument
from clew.capture.control_flow.recordings import (
    IN_LIBRARY,
    MOST_PATHS,
    TOO_MUCH,
    Question,
    Segment,
    TooMuch,
    combine,
    do_the_same,
    move_reads,
    questions,
    raises,
    share_facts,
    write_branch,
    write_once,
)
from clew.capture.control_flow.runtime import current
from clew.capture.guards.notes import require_way
from clew.capture.recording.nested_programs import Bodies, OpenBody
from clew.capture.restart import Diverged
from clew.errors import CaptureError
from clew.ir.arguments import bodies_of, leaves
from clew.ir.control_flow import cond, ends_of, output_of
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.source import SourceLine, is_installed, user_frame, user_source

_MOST_QUESTIONS = 40
_MOST_AT_ONE_PLACE = 8
_MOST_TOO_LONG = 6
"""So many paths, one after the other, that ask for too much: the program sorts by value, say, and the rest do too."""
_MOST_MODES = 3
"""So many questions about modes are recorded as paths of the whole program, if it is small: each may double it."""
_MOST_NODES_IN_LIBRARIES = 100
"""In a longer program, a question of code that is not the user's is guarded: each path is a run of all of it."""

_MOST_IN_LIBRARIES = 3
"""In a program of more nodes than that, libraries may ask so often: each question may double the runs."""

_MOST_ALIGNED = 4
"""In a large program, libraries may ask so often on one path if the recordings of both answers become one."""
_MOST_RUNS_ALIGNED = 16


class Unaligned(Exception):
    """Both answers to a question of a library were recorded, and have too little in common; ``args`` has the places.
    If it ``is_of_modes``, these are questions for modes of training."""

    def __init__(self, *places: Any, is_of_modes: bool) -> None:
        super().__init__(*places)
        self.is_of_modes = is_of_modes


def _holds(comparison: Node, size: int) -> bool:
    """What a comparison of a size with a literal says of one size."""
    target: Any = comparison.target
    return bool(target(*(size if isinstance(arg, Node) else arg for arg in comparison.args)))


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
        segment = paths.way.segment
        paths.way.count += 1
        if segment.is_complete:
            return paths.repeated(op, target, args or (), kwargs or {})
        node = Graph.create_node(self, op, target, args, kwargs, name, type_expr)
        segment.nodes.append(node)
        return node


class Way:
    """The path that one run takes: the answers that it has given, and the segments through which it has come."""

    __slots__ = (
        *("count", "cursor", "expressions", "given", "in_libraries", "is_to_align", "known", "latest", "modes"),
        *("place", "places", "segment", "told", "trail"),
    )

    def __init__(self, first: Segment, assumed: dict[Node, bool]) -> None:
        self.segment = first
        self.cursor = 0
        """How many nodes of the segment the run has come past."""
        self.trail = [first]
        self.latest: tuple[Question, bool] | None = None
        self.given: list[bool] = []
        self.known = dict(assumed)
        self.told: list[tuple[Any, bool, int | None]] = []
        """Answers to questions of libraries, each with where it was given, if a write after that counts."""
        self.expressions: dict[tuple[Node, int], Any] = {}
        """What nodes compute, as far as it was asked: each question may hang on all that was computed before."""
        self.count = 0
        self.modes = 0
        self.in_libraries = 0
        self.places: Counter[Any] = Counter()
        """How often the run has asked at each place."""
        self.place: Any = None
        """Where the question comes from that is being looked at."""
        self.is_to_align = False
        """Whether what follows it is to be written once."""


class Paths:
    """All paths of one program, or of a piece of it, as far as they have been recorded.

    A piece is recorded into the body of its own, inside those that are open.
    """

    def __init__(self, bodies: Bodies | None = None) -> None:
        self._graphs: list[Graph] = []
        self.graph = self._new_graph()
        self.body = None if bodies is None else OpenBody(self.graph, is_branch=True)
        self._first = Segment(self.body)
        self.runs = 0
        self._too_long = 0
        self.looks_into_libraries = True
        """Whether questions of code that is not the user's are recorded, which a large model has no use for."""
        self.most_paths = MOST_PATHS
        self.limited: Set[Any] = frozenset()
        """Lines of the user's that decide about too many paths: what they ask is guarded."""
        self.guarded: set[Any] = set()
        """Places in libraries where both answers were tried, and had too little in common."""
        self.sizes_asked: set[Node] = set()
        """Questions of libraries about sizes of which both answers are tried: what follows has to be written once."""
        self.declined = ""
        """Why the latest question was not recorded."""
        self.assumed: dict[Node, bool] = {}
        """Questions that are answered before a piece begins: it is one side of a branch on them."""
        self.missing: Any = None
        """What a path returns that was not recorded, after it has raised."""
        self.root: Any = None
        """What has the modules that the program calls."""
        self._aligns = False
        self._unaligned: list[Question] = []
        self.bodies = Bodies(self.graph) if bodies is None else bodies

    def _new_graph(self) -> PathGraph:
        graph = PathGraph()
        graph.paths = self
        self._graphs.append(graph)
        return graph

    @property
    def has_questions(self) -> bool:
        """Whether the program has asked for anything."""
        return self._first.question is not None

    def asked(self) -> set[Node]:
        """The values whose truth the program has asked for."""
        return {question.node for question in questions(self._first)}

    @property
    def are_aligned(self) -> bool:
        """Whether all that was asked is about optional values of libraries: what follows is written once."""
        return all(question.aligns for question in questions(self._first))

    # ---- one run -------------------------------------------------------------------------------------------------

    def begin(self, bodies: Bodies, answers: tuple[bool, ...]) -> None:
        """Start a run that gives these answers to its first questions, and takes its own path then."""
        self.bodies = bodies
        self.answers = answers
        self.runs += 1
        if self.body is not None:
            bodies.enter(self.body)
        self.way = Way(self._first, self.assumed)

    def repeated(self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        """The node that an earlier run has made here."""
        segment = self.way.segment
        if self.way.cursor >= len(segment.nodes):
            raise Diverged
        node = segment.nodes[self.way.cursor]
        self.way.cursor += 1
        if node.op != op or not same_argument((node.target, node.args, node.kwargs), (target, args, kwargs)):
            raise Diverged
        return node

    def ask(
        self, node: Node, answer: bool, is_fixed: bool, is_of_modes: bool = False, is_of_tracers: bool = False
    ) -> bool | None:
        """The answer that this run goes on with; None if the question is not to be recorded but guarded.

        What a library asks of tracers, which ``is_of_tracers``, is always recorded, and aligned.
        """
        known = self._known_answer(node) if is_fixed else None
        if known is None and node in self.sizes_asked:
            known = self._implied(node)
        if known is not None:
            return known
        told = self._told_before(node) if self.way.told else None
        if told is not None:
            return told
        segment, regions = self.way.segment, current.get()
        if is_of_modes and not is_of_tracers and regions is not None:
            regions.before_question(is_of_modes)
        if segment.question is None:
            if segment.is_complete:
                raise Diverged
            if not self._is_worth_it(node, is_of_modes, is_of_tracers):
                return None
            source = None if is_of_tracers else user_source(3)  # the run asks, before the program does
            if regions is not None and not is_of_modes and not self.way.is_to_align:
                regions.before_question()
            segment.question = Question(node, answer, source)
            segment.question.place, segment.question.aligns = self.way.place, self.way.is_to_align
            segment.question.is_of_modes, segment.question.is_of_tracers = is_of_modes, is_of_tracers
            if regions is not None and source is not None:
                segment.question.why = regions.progress.reason_at(source.filename, source.lineno)
            segment.is_complete = True
        elif segment.question.node is not node:
            if not self._is_worth_it(node, is_of_modes, is_of_tracers):
                return None
            raise Diverged
        elif not self._is_worth_it(node, is_of_modes, is_of_tracers):
            raise Diverged
        return self._enter(segment.question, node, answer)

    def choose(self, node: Node, answer: bool) -> bool:
        """The answer of this run to a question about an argument, which is asked before the program runs."""
        segment = self.way.segment
        if segment.question is None:
            if segment.is_complete:
                raise Diverged
            segment.question = Question(node, answer, None)
            segment.question.is_at_entrance = True
            segment.is_complete = True
        elif segment.question.node is not node:
            raise Diverged
        return self._enter(segment.question, node, answer)

    def knows(self, node: Node) -> bool:
        """Whether the path of this run tells the answer to a question."""
        return self._known_answer(node) is not None

    def _known_answer(self, node: Node) -> bool | None:
        """The answer to a question that the path of this run tells, or tells of its opposite."""
        if node.target is operator.not_ and node not in self.way.known:
            known = self.way.known.get(node.args[0])  # type: ignore[call-overload]
            return None if known is None else not known
        return self.way.known.get(node)

    def is_told(self, node: Node, answer: Any) -> bool:
        """Whether the path of this run has this answer to a question."""
        return type(answer) is bool and self.way.known.get(node) is answer

    def _implied(self, node: Node) -> bool | None:
        """The answer to a question about a size that follows from answers to others about it, of whole numbers."""
        others = [one for one in self.way.known if one in self.sizes_asked and one._inputs == node._inputs]
        literals = [arg for one in (node, *others) for arg in one.args if type(arg) is int]
        values = {max(literal + step, 0) for literal in literals for step in (-1, 0, 1)} if others else set()
        possible = [value for value in values if all(_holds(one, value) is self.way.known[one] for one in others)]
        answers = {_holds(node, value) for value in possible}
        return answers.pop() if len(answers) == 1 else None

    def assume(self, around: Paths, node: Node, answer: bool) -> None:
        """The piece runs only where a node has this answer, on a path of what is around it."""
        self.assumed = {**around.way.known, node: answer}

    def _enter(self, question: Question, node: Node, answer: bool) -> bool:
        """Go on in the body that follows an answer."""
        place = len(self.way.given)
        chosen = self.answers[place] if place < len(self.answers) else answer
        self.way.given.append(chosen)
        self.way.known[node] = chosen
        side = question.sides.get(chosen)
        if side is None:
            body = OpenBody(self._new_graph(), is_branch=True, is_path=self.body is None and question.aligns)
            side = question.sides[chosen] = Segment(body)
        assert side.body is not None
        self.bodies.enter(side.body)
        self.way.segment, self.way.cursor, self.way.latest = side, 0, (question, chosen)
        self.way.trail.append(side)
        if question.aligns:
            expression = Provenance(self.bodies, self.root, self.way.expressions).expression(node)
            since = None if question.is_of_tracers else len(self.way.trail) - 1
            self.way.told.append((expression, chosen, since))
        return chosen

    def _told_before(self, node: Node) -> bool | None:
        """The answer to a question of a library that has asked the same before, if nothing was written since."""
        asked = Provenance(self.bodies, self.root, self.way.expressions)
        expression = asked.expression(node)
        for known, answer, place in self.way.told:
            if known == expression and place is None:  # no write changes who traces the program
                return answer
            if known == expression:
                since = [node for segment in self.way.trail[place:] for node in segment.nodes]
                return None if asked.writes(since) else answer
        return None

    def _is_worth_it(self, node: Node, is_of_modes: bool, is_of_tracers: bool) -> bool:
        """Whether a question of this run is recorded: not too many, and those of libraries only if the program is small
        or if what follows both answers can be written once."""
        if is_of_tracers:
            self.way.place, self.way.is_to_align, self._aligns = None, True, True
            return True
        self.way.modes += is_of_modes
        most = _MOST_MODES if self.looks_into_libraries else 1
        if is_of_modes and self.way.modes > most:
            self.declined = f"the modes of more than {most} parts decide the way"
            return False
        frame = user_frame(3)
        place = None if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        self.way.place, self.way.is_to_align = place, False
        is_own = frame is None or not is_installed(frame.f_code)
        is_small = self.looks_into_libraries and self.way.count <= _MOST_NODES_IN_LIBRARIES
        is_small = is_small and node not in self.sizes_asked
        if not is_own and not is_small and not self._can_be_aligned(node):
            self.declined = IN_LIBRARY
            return False
        if place in self.limited:
            self.declined = f"this line decides about more than {self.most_paths} paths of the program"
            return False
        self.way.places[place] += 1
        if len(self.way.given) >= _MOST_QUESTIONS or self.way.places[place] > _MOST_AT_ONE_PLACE:
            if self.answers:
                raise TooMuch(TOO_MUCH)
            self.declined = f"more than {_MOST_AT_ONE_PLACE} conditions on data are asked in this line"
            return False
        self.way.in_libraries += not is_own and is_small
        self.way.is_to_align = not is_own and not is_small
        self._aligns = self._aligns or self.way.is_to_align
        return True

    def _can_be_aligned(self, node: Node) -> bool:
        """Whether both answers to a question of a library in a large program are tried."""
        count = sum(since is not None for _, _, since in self.way.told)
        can_be = self.body is None and self.way.place not in self.guarded and count < _MOST_ALIGNED
        return can_be and (node in self.sizes_asked or Provenance(self.bodies, self.root).depends_on_data(node))

    @property
    def is_too_much(self) -> bool:
        """Whether libraries ask so often, in a run of so many nodes, that all paths of it would take too long."""
        return self.way.in_libraries > _MOST_IN_LIBRARIES and self.way.count > _MOST_NODES_IN_LIBRARIES

    @property
    def is_too_much_with_tracers(self) -> bool:
        """Whether libraries ask for data or modes so often on this path that those of tracers would not be tried with
        all answers to that."""
        asked = sum(since is not None for _, _, since in self.way.told)
        tracers = len(self.way.told) - asked
        return bool(tracers) and 2**asked + tracers > _MOST_RUNS_ALIGNED

    def end(self) -> None:
        """The run has recorded its path to the end."""
        self.way.segment.is_complete = self.way.segment.ends = True
        self._too_long = 0

    @property
    def count(self) -> int:
        """How many questions the run has asked."""
        return len(self.way.given)

    @property
    def is_ahead(self) -> bool:
        """Whether the run has come past the last question that it was told the answer of."""
        return len(self.way.given) >= len(self.answers)

    def give_up(self, error: BaseException) -> None:
        """The path of this run cannot be recorded because of an error: it will be guarded against."""
        if not self.is_ahead:
            raise Diverged
        self._too_long = self._too_long + 1 if isinstance(error, TooMuch) else 0
        if self.way.latest is not None:
            question, answer = self.way.latest
            question.refused[answer] = f"on the example this way could not be run: {one_line(error)}"
        self.way.segment.is_complete, self.way.segment.ends = True, False
        self.way.segment.question = None

    # ---- all runs ------------------------------------------------------------------------------------------------

    def untried(self) -> Iterator[tuple[bool, ...]]:
        """The answers for one run after another, until all paths are known or there are too many."""
        most = min(self.most_paths, _MOST_RUNS_ALIGNED) if self._aligns else self.most_paths
        while self.runs < most and self._too_long < _MOST_TOO_LONG and self.explodes_at is None:
            answers = next(self.open_paths(), None)
            if answers is None:
                return
            yield answers
            self._check_alike()

    def _check_alike(self) -> None:
        """Raise if what the latest run has recorded behind the last of its answers has too little in common with what
        followed the other answer: the runs that are left are spared. Questions for modes come before all others, and
        those for tracers are known to be given up only when all ways were tried."""
        question, segment = self.way.trail[len(self.answers) - 1].question, self.way.segment
        asked = questions(self._first)
        if question is None or not question.aligns or question.is_of_tracers or not segment.ends:
            return
        if not question.is_of_modes and any(one.is_of_modes or one.is_of_tracers for one in asked):
            return
        sides = [question.sides[answer].first_way() for answer in (True, False)]
        if not any(raises(body.graph) for body in (way[-1].body for way in sides) if body is not None):
            left, right = ([node for one in way for node in one.nodes] for way in sides)
            if are_unalike((left, right)):
                raise Unaligned(question.place, is_of_modes=question.is_of_modes)

    @property
    def explodes_at(self) -> SourceLine | None:
        """The line of the user's that asks most often, if there are more paths than can be tried."""
        known = self.runs + sum(1 for _ in itertools.islice(self.open_paths(), self.most_paths))
        if self._aligns or (known <= self.most_paths and self._too_long < _MOST_TOO_LONG):
            return None
        sources = [question.source for question in questions(self._first)]
        asked = [one for one in sources if one is not None]
        most = Counter(one.place for one in asked).most_common(1)
        return next(one for one in asked if one.place == most[0][0]) if most else None

    def open_paths(self) -> Iterator[tuple[bool, ...]]:
        """The answers that lead to a path that was not tried yet, the shortest first."""
        waiting: list[tuple[Segment, tuple[bool, ...]]] = [(self._first, ())]
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

    @property
    def lacks_path_of_tracer(self) -> bool:
        """Whether a library asks for tracers, and a path that follows was not recorded."""
        asked = [question for question in questions(self._first) if question.is_of_tracers]
        return any(len(question.recorded()) < 2 for question in asked)

    def begins_with(self, asked: Any) -> bool:
        """Whether the program begins with a question of this kind."""
        return self._first.question is not None and self._first.question.node.target is asked

    def agree_on(self, asked: Any, ignores_order: Callable[[Node], bool]) -> bool:
        """Whether the program begins with questions of this kind, and does the same whatever the answers are."""
        waiting, ways = [self._first], []
        while waiting:
            segment = waiting.pop()
            question = segment.question
            if question is None or question.node.target is not asked:
                ways.append(segment)
            elif len(question.sides) < 2:
                return False
            else:
                waiting += question.sides.values()
        return len(ways) > 1 and do_the_same(self._first, ways, ignores_order)

    def is_from_outside(self, node: Node) -> bool:
        """Whether a node is a parameter that stands for a value which was there before the piece."""
        bodies = [self.body, *(side.body for question in questions(self._first) for side in question.sides.values())]
        outer = {parameter: used for body in bodies if body is not None for used, parameter in body.free.items()}
        found = outer.get(node)
        while found in outer:
            found = outer[found]
        return found is not None and found.graph not in self._graphs

    def nodes(self) -> Iterator[Node]:
        """All nodes that were recorded."""
        waiting = [self._first]
        while waiting:
            segment = waiting.pop()
            yield from segment.nodes
            waiting += [] if segment.question is None else segment.question.sides.values()

    def write_end(self, levels: list[OpenBody], result: Any) -> None:
        """Let a path of a piece, which ended with these bodies open, give back this."""
        bodies, graph = self.bodies, levels[-1].graph
        before = list(bodies.open)
        bodies.open[:] = levels
        Graph.create_node(graph, "output", "output", bodies.localized((result,), graph))
        bodies.open[:] = before

    def finish(self) -> None:
        """Make branches of all questions; the graphs are plain ones from now on."""
        for graph in self._graphs:
            vars(graph).pop("paths", None)
            graph.__class__ = Graph
        is_whole = self.body is None and self.has_questions
        if is_whole:
            share_facts(self._first, self.graph)
            combine(self._first, self.graph, self.root)
        self._close(self._first, self.graph)
        if is_whole:
            move_reads(self.graph, self._first)
        if self._unaligned:  # ways of another size or mode may be the only ones that have too little in common
            of_sizes = [question for question in questions(self._first) if question.node in self.sizes_asked]
            asked = [question for question in self._unaligned if not question.is_of_tracers]
            of_modes = [] if of_sizes else [question for question in asked if question.is_of_modes]
            places = [question.place for question in of_sizes or of_modes or asked]
            raise Unaligned(*places, is_of_modes=bool(of_modes))

    def _close(self, segment: Segment, graph: Graph) -> None:
        question = segment.question
        if question is None:
            if self.body is not None:
                _shorten_end(graph)
            return
        sides = question.recorded()
        for answer, body in sides.items():
            self._close(question.sides[answer], body.graph)
            segment.let_in(body)
        if self.body is None and sides and write_once(graph, segment, question, sides, self.root):
            return
        if question.aligns:
            self._unaligned.append(question)
        for answer in {True, False} - sides.keys():
            sides[answer] = _refusing(question, not answer, self.missing)
        graph.output(write_branch(graph, segment, question, sides))


def one_line(error: BaseException) -> str:
    """An error in one line."""
    text = (str(error).splitlines() or [""])[0]
    return text if isinstance(error, (CaptureError, Diverged)) else f"{type(error).__name__}: {text}"


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


def _refusing(question: Question, answer: bool, result: Any) -> OpenBody:
    """A body for a path that was not recorded: it raises that the graph has assumed the other one."""
    body = OpenBody(Graph(), is_branch=True)
    guard = body.graph.call_function(require_way, question.assumed(not answer, answer))
    guard.source = question.source
    body.graph.output(result)
    return body


# ---- what a question is about ----------------------------------------------------------------------------------------

_DEPTH = 12
_SHAPES = frozenset({"shape", "ndim", "dtype", "device"})
_SIZES = frozenset({"size", "dim", "numel", "nelement"})


class Provenance:
    """A look at nodes from inside of the bodies that are open; ``root`` has the modules that nodes call, ``known`` what
    was found out about nodes before."""

    def __init__(self, bodies: Bodies, root: Any, known: dict[tuple[Node, int], Any] | None = None) -> None:
        self._outer = {parameter: node for body in bodies.open for node, parameter in body.free.items()}
        self._root = root
        self._known = {} if known is None else known

    def _home(self, node: Node) -> Node:
        """The node that a parameter stands for."""
        while node in self._outer:
            node = self._outer[node]
        return node

    def depends_on_data(self, node: Node) -> bool:
        """Whether a value comes from what arrays hold, or is drawn, and not from sizes alone."""
        waiting, seen = [node], set()
        while waiting:
            found = self._home(waiting.pop())
            if found in seen or _is_size(found):
                continue
            seen.add(found)
            if found.op in ("placeholder", "get_attr") or effect_of(found, self._root) is not Effect.NONE:
                return True
            waiting += found.all_input_nodes
        return False

    def expression(self, node: Node, depth: int = 0) -> Any:
        """What a node computes, of nodes that both sides of a comparison share."""
        node = self._home(node)
        if (node, depth) not in self._known:
            self._known[node, depth] = self._expression(node, depth)
        return self._known[node, depth]

    def _expression(self, node: Node, depth: int) -> Any:
        is_call = node.op in ("call_function", "call_method") and not bodies_of(node)
        if not is_call or depth > _DEPTH or effect_of(node, self._root) is not Effect.NONE:
            return id(node) if node.op != "get_attr" else (node.op, node.target)
        args = [self._argument(leaf, depth) for leaf in leaves((node.args, node.kwargs))]
        return node.op, node.target, len(node.args), tuple(node.kwargs), *args

    def _argument(self, value: Any, depth: int) -> Any:
        return self.expression(value, depth + 1) if isinstance(value, Node) else identity(value)

    def writes(self, nodes: Iterable[Node]) -> bool:
        """Whether one of the nodes may change a value that is there already."""
        return any(may_write(node, self._root) for node in nodes)


def _is_size(node: Node) -> bool:
    """Whether a node reads what is known of an array without what it holds."""
    if node.op == "call_function" and node.target is getattr:
        return node.args[1] in _SHAPES
    return node.op == "call_method" and node.target in _SIZES
