"""Two recordings that differ in little become one: optional values are data, and what follows is no copy.

In come the two bodies that follow a question, each the whole rest of the program. Calls that both make are written
once, in the graph around; an argument in which they differ comes out of a small branch (a mask or None), and so does
what only one does. Branches inside with the same calls are merged, with pairs of operands. Always holds: with one
answer the result does what its recording did, call by call; what only asks may be asked earlier, and with
``shares_checks`` sizes that only the other one relied on are checked too. If too little is alike, nothing is written.
"""

from __future__ import annotations

import itertools
import operator
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any

from clew.capture.control_flow.node_comparison import (
    PLAIN,
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
    same_body,
)
from clew.capture.guards.notes import Variable
from clew.capture.recording.nested_programs import OpenBody
from clew.ir.arguments import all_nodes, bodies_of, leaves, map_aggregate, map_arg, rebuilt_tuple
from clew.ir.control_flow import Branch, cond, control_of, inputs_of, returned
from clew.ir.graph import Graph
from clew.ir.node import Node, set_meta, set_type
from clew.ir.source import SourceLine
from clew.ir.types import ArrayType, ScalarType, Type, type_of

_FEW_BRANCHES = 8
_FEW_VALUES = 24
_LAYER = 20
"""Besides these few, there may be a branch, and a value that it gives, for so many calls: one in each layer, say."""
_FEW_NODES = 64
"""So many calls that only one of the two makes are always few; of more, they are at most a quarter of all."""
_MOST_COMPARISONS = 1_000_000
"""Two long recordings of calls that all look alike take too long to compare."""
STACK = "nn_module_stack"
_SILENT = frozenset({"placeholder", "get_attr", "output"})


class _Unalike(Exception):
    """Two arguments that cannot be one, whatever a branch gives."""


class _Shared:
    """A call that is written once: its ``twins`` in the recordings, its arguments, its ``place`` in what is written.

    What only asks may be made earlier than it was; ``row`` is then the call of both that it stands before.
    """

    __slots__ = ("args", "kwargs", "place", "row", "twins")

    def __init__(self, twins: tuple[Node, Node], args: Any, kwargs: Any, row: int) -> None:
        self.twins = twins
        self.args = args
        self.kwargs = kwargs
        self.row = row
        self.place = 0


class _Choice:
    """A value that is another with each answer: nodes, shared calls or constants; the branch in ``gap`` gives it.

    ``user`` is the shared call that needs it first; None is the end.
    """

    __slots__ = ("gap", "hint", "sides", "user")

    def __init__(self, sides: tuple[Any, Any], hint: str) -> None:
        self.sides = sides
        self.hint = hint
        self.user: _Shared | None = None
        self.gap = 0


class _Recording:
    """One of the two bodies: its own nodes, and what its parameters stand for."""

    def __init__(self, body: OpenBody, root: Any) -> None:
        self.graph = body.graph
        self.outer = {parameter: node for node, parameter in body.free.items()}
        self.nodes = [node for node in body.graph.nodes if node.op not in ("placeholder", "output")]
        self.shared: dict[Node, _Shared] = {}
        self.gaps: dict[Node, int] = {}
        """For each node that only this body has, the place of the call that it stands before."""
        self._root = root
        self._positions = {node: position for position, node in enumerate(self.nodes)}
        self._cuts: list[int] = []
        """Where the calls stand that both make, in their order."""

    def value(self, argument: Any) -> Any:
        """What an argument stands for: a node around, a shared call, a node of its own, or a constant."""
        if not isinstance(argument, Node):
            return argument
        return self.outer.get(argument) or self.shared.get(argument) or argument

    def is_own(self, value: Any) -> bool:
        """Whether a value is a node that only this body has."""
        return isinstance(value, Node) and value.graph is self.graph and value not in self.shared

    def share(self, node: Node, shared: _Shared) -> None:
        """A node is a call that both make, the latest so far."""
        self.shared[node] = shared
        self._cuts.append(self._positions[node])

    def row(self, node: Node) -> int:
        """How many of the calls that both make stand before a node."""
        return bisect_left(self._cuts, self._positions[node])

    def can_be_read(self, node: Node, row: int) -> bool:
        """Whether a read could as well be made right after the calls of both before a ``row``."""
        start = self._cuts[row - 1] + 1 if row else 0
        return not any(may_write(one, self._root) for one in self.nodes[start : self._positions[node]])

    def looks(self) -> Iterator[Any]:
        """For each node, what it has in common with one of the other body that may be the same call."""
        return (_key(node, self.outer) for node in self.nodes)

    def in_gap(self, gap: int) -> list[Node]:
        """The nodes that stand in a gap."""
        return [node for node, place in self.gaps.items() if place == gap]


class Alignment:
    """The plan by which two bodies become one; ``fits`` tells whether it is worth it, ``write`` does it."""

    def __init__(
        self, graph: Graph, bodies: tuple[OpenBody, OpenBody], root: Any, shares_checks: bool = True, asked: Any = None
    ) -> None:
        self.graph = graph
        self._is_plain = isinstance(asked, Node) and asked.value_type == ScalarType("bool")
        self.recordings = tuple(_Recording(body, root) for body in bodies)
        self.shared: list[_Shared] = []
        self._early: list[_Shared] = []
        self.choices: dict[Any, _Choice] = {}
        self.gaps: set[int] = set()
        self.fits = self._pair()
        if self.fits and shares_checks:
            self._share_checks()
        if self.fits and self._is_short():
            self._arrange()
        self.fits = self.fits and self._is_short()

    # ---- what is shared ------------------------------------------------------------------------------------------

    def _pair(self) -> bool:
        """Find the calls that both make, in their order; whether the ends fit together, too."""
        rows = [recording.nodes for recording in self.recordings]
        keys: dict[Any, int] = {}
        left, right = ([keys.setdefault(key, len(keys)) for key in recording.looks()] for recording in self.recordings)
        if _comparisons(left, right) > _MOST_COMPARISONS:
            return False
        blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
        for start, other, length in blocks:
            for twins in zip(rows[0][start : start + length], rows[1][other : other + length], strict=True):
                self._share(*twins)
        try:
            one, another = (returned(recording.graph) for recording in self.recordings)
            self.result = self._joined(one, another, "result")
        except _Unalike:
            return False
        return True

    def _share(self, left: Node, right: Node) -> None:
        before = set(self.choices)
        try:
            told = TOLD if is_check(left) else None  # what follows tells people of the check, by names of this way
            joined = self._joined_bodies(left, right) or self._joined(left.args[:told], right.args[:told], "")
            args = (*joined, *(left.args[told:] if told else ()))
            kwargs = {name: self._joined(left.kwargs[name], right.kwargs[name], name) for name in left.kwargs}
            has_choice = any(isinstance(leaf, _Choice) for leaf in leaves(args))
            if has_choice and _is_read(left):
                raise _Unalike
        except _Unalike:
            for key in self.choices.keys() - before:
                del self.choices[key]
            return
        row = len(self.shared)
        shared = _Shared((left, right), args, kwargs, row)
        for key in self.choices.keys() - before:
            self.choices[key].user = shared
        pairs = list(zip(self.recordings, (left, right), strict=True))
        can_be_early = only_asks(left) and not has_choice  # the branch that gives the choice stands right before
        if can_be_early and all(recording.can_be_read(node, row) for recording, node in pairs):
            self._early.append(shared)
            for recording, node in pairs:
                recording.shared[node] = shared
            return
        self.shared.append(shared)
        for recording, node in pairs:
            recording.share(node, shared)

    def _joined_bodies(self, left: Node, right: Node) -> tuple[Any, ...] | None:
        """The arguments of two branches that differ in what their bodies are given; None for any others."""
        one, other = control_of(left), control_of(right)
        if not isinstance(one, Branch) or not isinstance(other, Branch):
            return None
        if all(map(same_body, one.bodies, other.bodies)):
            return None
        try:
            merged = Merged(one, other)
        except Unmergeable:
            raise _Unalike from None
        operands = tuple(self._joined(*pair, "") for pair in merged.pairs)
        return (self._joined(one.predicate, other.predicate, ""), *merged.bodies, operands)

    def _joined(self, left: Any, right: Any, hint: str) -> Any:
        """Two arguments as one nest, with choices where they differ."""
        if isinstance(left, Node) or isinstance(right, Node):
            values = self.recordings[0].value(left), self.recordings[1].value(right)
            if values[0] is values[1]:
                return values[0]
            return self._read_early(*values) or self._choice(values, hint)
        if isinstance(left, tuple) and type(left) is type(right) and len(left) == len(right):
            items = [self._joined(*pair, hint) for pair in zip(left, right, strict=True)]
            return rebuilt_tuple(left, items)
        if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
            return [self._joined(*pair, hint) for pair in zip(left, right, strict=True)]
        if isinstance(left, dict) and isinstance(right, dict) and list(left) == list(right):
            return {key: self._joined(left[key], right[key], str(key)) for key in left}
        if isinstance(left, slice) and isinstance(right, slice):
            ends = zip((left.start, left.stop, left.step), (right.start, right.stop, right.step), strict=True)
            return slice(*(self._joined(*pair, hint) for pair in ends))
        if _is_same(left, right):
            return left
        return self._choice((left, right), hint)

    def _choice(self, sides: tuple[Any, Any], hint: str) -> _Choice:
        if not all(map(_can_be_chosen, sides)) or not _go_together(*map(_type_of, sides)):
            raise _Unalike
        key = tuple(map(identity, sides))
        found = self.choices.get(key)
        if found is None:
            own = [one.name for one, recording in zip(sides, self.recordings, strict=True) if recording.is_own(one)]
            found = self.choices[key] = _Choice(sides, own[0] if own else hint)
        return found

    def _read_early(self, left: Any, right: Any) -> _Shared | None:
        """One node for a size that both have read, each where it needed it first; None if it is anything else."""
        own = [one.is_own(value) for one, value in zip(self.recordings, (left, right), strict=True)]
        if not all(own) or not is_size(left) or not is_size(right) or left.target is not right.target:
            return None
        bases = self.recordings[0].value(left.args[0]), self.recordings[1].value(right.args[0])
        base = bases[0] if bases[0] is bases[1] else self._read_early(*bases)
        twins = (left, right)
        row = min(one.row(node) for one, node in zip(self.recordings, twins, strict=True))
        can_be = all(one.can_be_read(node, row) for one, node in zip(self.recordings, twins, strict=True))
        if base is None or left.args[1] != right.args[1] or not can_be:
            return None
        shared = _Shared(twins, (base, left.args[1]), {}, row)
        self._early.append(shared)
        for recording, node in zip(self.recordings, twins, strict=True):
            recording.shared[node] = shared
        return shared

    def _share_checks(self) -> None:
        """Let what only one recording has asked of sizes be checked for both: a refusal more, and a branch less.

        What the two have answered differently stays where it is: no input could pass both checks.
        """
        checks = [[node for node in one.nodes if is_check(node)] for one in self.recordings]
        answers = [{_asked_where(node): node.args[1] for node in nodes} for nodes in checks]
        opposed = {key for key, answer in answers[0].items() if key in answers[1] and answers[1][key] != answer}
        for recording in self.recordings:
            wanted = {node for node in _checks_of_sizes(recording) if _asked_where(node) not in opposed}
            for node in [node for node in recording.nodes if node in wanted]:
                shared = _Shared((node, node), map_arg(node.args, recording.value), {}, recording.row(node))
                recording.shared[node] = shared
                self._early.append(shared)

    def _order(self) -> None:
        """Put all that is written once in order; what only one recording has stands right before a call of both."""
        rows: list[list[_Shared]] = [[] for _ in range(len(self.shared) + 1)]
        for shared in (*self._early, *self.shared):
            rows[shared.row].append(shared)
        self.shared = [shared for row in rows for shared in row]
        for place, shared in enumerate(self.shared):
            shared.place = place
        ends = list(itertools.accumulate(map(len, rows)))
        self._starts = [*(end - 1 for end in ends[:-1]), ends[-1]]
        for recording in self.recordings:
            own = [node for node in recording.nodes if node not in recording.shared]
            recording.gaps = {node: self._starts[recording.row(node)] for node in own}

    # ---- where the rest goes -------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        """Choose for each value the branch that gives it, and let values leave a branch that a later one needs."""
        self._order()
        self.gaps = {gap for recording in self.recordings for gap in recording.gaps.values()}
        for choice in self.choices.values():
            left, right = (one.value(side) for one, side in zip(self.recordings, choice.sides, strict=True))
            choice.sides = (left, right)
            latest = len(self.shared) if choice.user is None else choice.user.place
            earliest = max(self._known_from(*pair) for pair in zip(self.recordings, choice.sides, strict=True))
            choice.gap = min((gap for gap in self.gaps if earliest <= gap <= latest), default=earliest)
            self.gaps.add(choice.gap)
        for number, recording in enumerate(self.recordings):
            for node, gap in recording.gaps.items():
                for used in map(recording.value, node.all_input_nodes):
                    self._let_out(number, used, gap)
            for choice in list(self.choices.values()):
                self._let_out(number, choice.sides[number], choice.gap)
        used = [
            *(choice.gap for choice in self.choices.values()),
            *(gap for one in self.recordings for gap in one.gaps.values()),
        ]
        self.gaps.intersection_update(used)
        if len(self.gaps) > 1 and not self._is_plain:  # what was asked may be written to meanwhile: the answer is not
            self._choice((True, False), "answer").gap = min(self.gaps)

    def _known_from(self, recording: _Recording, value: Any) -> int:
        """The first gap in which a value of a recording can be used."""
        if isinstance(value, _Shared):
            return self._starts[bisect_left(self._starts, value.place + 1)]
        return recording.gaps[value] if recording.is_own(value) else self._starts[0]

    def _let_out(self, number: int, value: Any, gap: int) -> None:
        """Let a branch give a value that only one recording has, if it is needed in a later one."""
        recording = self.recordings[number]
        if not recording.is_own(value) or recording.gaps[value] == gap:
            return
        if self._carrier(number, value) is None:
            sides = (value, None) if number == 0 else (None, value)
            self._choice(sides, value.name).gap = recording.gaps[value]

    def _carrier(self, number: int, value: Any) -> _Choice | None:
        """The choice that brings a value out of the branch that makes it."""
        gap = self.recordings[number].gaps[value]
        return next((one for one in self.choices.values() if one.sides[number] is value and one.gap == gap), None)

    def _is_short(self) -> bool:
        """Whether the two differ in little."""
        length = max(len(recording.nodes) for recording in self.recordings)
        is_little = len(self.choices) <= _FEW_VALUES + length // _LAYER and self._own <= _few_nodes(length)
        return is_little and len(self.gaps) <= _FEW_BRANCHES + length // _LAYER

    @property
    def _own(self) -> int:
        """How many nodes only one of the two has."""
        return sum(node not in recording.shared for recording in self.recordings for node in recording.nodes)

    @property
    def is_same(self) -> bool:
        """Whether the two do the same."""
        return self.fits and not self.gaps

    @property
    def saved(self) -> int:
        """How many nodes are written once instead of twice, less those that only one of the two has."""
        return len(self.shared) - self._own

    # ---- writing -------------------------------------------------------------------------------------------------

    def write(self, predicate: Node, source: SourceLine | None, answer: bool) -> None:
        """Write what both do into the graph, with the branches; ``answer`` is the one that the example gave."""
        self._written: dict[Any, Node] = {}
        self._predicate, self._source, self._example = predicate, source, 0 if answer else 1
        for gap in range(len(self.shared) + 1):
            if gap in self.gaps:
                self._write_branch(gap)
            if gap < len(self.shared):
                self._write_shared(self.shared[gap])
        self.graph.output(self._filled(self.result))

    def _write_shared(self, shared: _Shared) -> None:
        node = shared.twins[self._example]
        args, kwargs = self._filled(shared.args), self._filled(shared.kwargs)
        written = self.graph.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        self._written[shared] = written
        written.source = node.source
        if node._meta:
            set_meta(written, dict(node._meta))
        _note_type(written, [twin.value_type for twin in shared.twins], self._example)

    def _filled(self, nest: Any) -> Any:
        return map_aggregate(nest, lambda leaf: self._written[leaf] if isinstance(leaf, (_Shared, _Choice)) else leaf)

    def _write_branch(self, gap: int) -> None:
        """The branch that stands in a gap, and the values that it gives."""
        choices = [choice for choice in self.choices.values() if choice.gap == gap]
        within = [node for recording in self.recordings for node in recording.in_gap(gap)]
        stack = common_stack(within or [twin for shared in self.shared[gap : gap + 1] for twin in shared.twins])
        bodies = self._body(0, gap, choices), self._body(1, gap, choices)
        branch = self._noted(self._branch(self._predicate, bodies), stack)
        for place, choice in enumerate(choices):
            hint = choice.hint or "value"
            item = self.graph.create_node("call_function", operator.getitem, (branch, place), {}, hint)
            _note_type(self._noted(item, stack), [*map(_type_of, choice.sides)], self._example)
            self._written[choice] = item
        if gap == min(self.gaps) and len(self.gaps) > 1 and not self._is_plain:
            self._predicate = self._written[self._choice((True, False), "answer")]

    def _branch(self, predicate: Node, bodies: tuple[OpenBody, OpenBody]) -> Node:
        """The node that chooses between two bodies."""
        outer = list(dict.fromkeys(node for body in bodies for node in body.free))
        for body in bodies:
            arrange(body, outer)
        args = (predicate, *(body.graph for body in bodies), tuple(outer))
        return self.graph.create_node("call_function", cond, args)

    def _noted(self, node: Node, stack: dict[str, Any]) -> Node:
        node.source = self._source
        if stack:
            set_meta(node, {STACK: stack})
        return node

    def _body(self, number: int, gap: int, choices: list[_Choice]) -> OpenBody:
        """What one recording does in a gap, giving what the choices are on its side."""
        recording, body = self.recordings[number], OpenBody(Graph(), is_branch=True)
        own: dict[Node, Node] = {}

        def local(value: Any) -> Any:
            if value in own:
                return own[value]
            if recording.is_own(value):
                value = self._carrier(number, value)
            return body.parameter(self._written.get(value, value))

        for node in recording.in_gap(gap):
            own[node] = body.graph.node_copy(node, lambda used: local(recording.value(used)))
        given = (choice.sides[number] for choice in choices)
        body.graph.output(tuple(local(one) if isinstance(one, (Node, _Shared)) else one for one in given))
        return body


def common_stack(nodes: Iterable[Node]) -> dict[str, Any]:
    """The modules inside of which all of these were recorded, as a branch over them notes it."""
    noted = [node._meta[STACK] for node in nodes if node.op not in _SILENT and node._meta and STACK in node._meta]
    steps = zip(*(stack.items() for stack in noted), strict=False)
    return dict(step[0] for step in itertools.takewhile(lambda step: all(one == step[0] for one in step), steps))


def _few_nodes(length: int) -> int:
    """How many nodes only one of two recordings may have, of which the longer one has so many."""
    return max(_FEW_NODES, length // 4)


def are_unalike(rows: tuple[list[Node], list[Node]]) -> bool:
    """Whether so many calls of two paths have no twin on the other that they will not become one.

    What they ask of values that were there before may become one fact for both, and counts for nothing.
    """
    own = [[node for node in row if _is_own_call(node, known)] for row, known in zip(rows, map(set, rows), strict=True)]
    left, right = (Counter(_key(node, {}) for node in nodes) for nodes in own)
    return ((left - right) + (right - left)).total() > _few_nodes(max(map(len, rows)))


def _is_own_call(node: Node, row: set[Node]) -> bool:
    is_own = not only_asks(node) or any(used in row for used in node.all_input_nodes)
    return is_own and node.op.startswith("call") and not is_check(node)


def inline(graph: Graph, body: OpenBody) -> None:
    """Write a body at the end of the graph around it, whose result it becomes."""
    known = {parameter: outer for outer, parameter in body.free.items()}
    graph.output(graph.graph_copy(body.graph, known))


def _asked_where(node: Node) -> Any:
    """The place of the program that a check stands for; nothing for any other node."""
    return (node.source, tuple((node._meta or {}).get(STACK, ()))) if is_check(node) else None


def _checks_of_sizes(recording: _Recording) -> set[Node]:
    """The guards that only one recording has, on sizes of what both have, with the nodes that compute these.

    Where there is a branch anyway, they stay in it.
    """
    own = [node for node in recording.nodes if node not in recording.shared]
    branches = {recording.row(node) for node in own if not only_asks(node)}
    found: set[Node] = set()
    for check in [node for node in own if is_check(node) and recording.row(node) not in branches]:
        needed, waiting = {check}, list(check.all_input_nodes)
        while waiting:
            node = waiting.pop()
            if recording.is_own(recording.value(node)) and node not in needed:
                needed.add(node)
                waiting += node.all_input_nodes
        is_of_sizes = all(is_size(node) or is_calculated(node) for node in needed - {check})
        if is_of_sizes and all(recording.can_be_read(node, recording.row(node)) for node in needed):
            found |= needed
    return found


# ---- what is alike -----------------------------------------------------------------------------------------------


def _comparisons(left: list[int], right: list[int]) -> int:
    """How many pairs of calls look alike."""
    counts = Counter(right)
    return sum(counts[key] for key in left)


def _key(node: Node, outer: dict[Node, Node]) -> Any:
    """What two calls have in common that may be one; facts about a value are read wherever they are first needed.

    ``outer`` has the nodes that parameters stand for.
    """
    kind = node.value_type
    shown: Any = (kind.dtype, len(kind.shape), kind.device) if isinstance(kind, ArrayType) else kind
    parts = (node.op, identity(node.target), len(node.args), tuple(node.kwargs), shown)
    if is_fact(node):
        return (*parts, *(_constant(leaf, outer) for leaf in leaves(node.args)))
    stack = tuple((node._meta or {}).get(STACK, ()))
    if is_check(node):
        return (*parts, node.source, stack, *(_constant(leaf, outer) for leaf in leaves(node.args[:TOLD])))
    if bodies_of(node):
        inner = [one for body in bodies_of(node) for one in all_nodes(body) if one.op != "placeholder"]
        return (*parts, node.source, stack, *((one.op, identity(one.target)) for one in inner))
    return (*parts, node.source, stack)


def _is_read(node: Node) -> bool:
    """Whether a call only asks: then it is one of both recordings only if both ask of the same value."""
    return is_fact(node) or is_check(node)


def _constant(value: Any, outer: dict[Node, Node]) -> Any:
    """What an argument adds to what a call is known by."""
    if isinstance(value, Node):
        return id(outer[value]) if value in outer else _key(value, outer)
    return identity(value)


def _is_same(left: Any, right: Any) -> bool:
    """Whether two constants are one: graphs that are the same program, equal plain values, or the very same object."""
    if isinstance(left, Graph) and isinstance(right, Graph):
        return same_body(left, right)
    is_plain = isinstance(left, Variable) or type(left).__eq__ is not object.__eq__
    return left is right or (is_plain and same_argument(left, right))


def _can_be_chosen(value: Any) -> bool:
    return isinstance(value, (Node, _Shared)) or type(value) in PLAIN


def _type_of(value: Any) -> Type | None:
    if isinstance(value, _Shared):
        return _common_type([twin.value_type for twin in value.twins])
    return value.value_type if isinstance(value, Node) else type_of(value)


def _go_together(left: Type | None, right: Type | None) -> bool:
    """Whether one variable may hold both: arrays of one dtype and rank, or anything else."""
    if not isinstance(left, ArrayType) or not isinstance(right, ArrayType):
        return True
    return left.dtype == right.dtype and len(left.shape) == len(right.shape)


def _common_type(kinds: list[Type | None], example: int = 0) -> Type | None:
    """The type of a value that has one of two types; sizes of arrays may differ, and are those of the example."""
    left, right = kinds
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        return kinds[example] if _go_together(left, right) and left.device == right.device else None
    return left if left == right else None


def _note_type(node: Node, kinds: list[Type | None], example: int) -> None:
    found = _common_type(kinds, example)
    if found is not None:
        set_type(node, found)


# ---- two branches with the same calls become one ---------------------------------------------------------------------

Pair = tuple[Any, Any]
"""What is handed to the one and to the other: a node of the graph around, or a constant."""


class Unmergeable(Exception):
    """The bodies of two branches do not make the same calls."""


class Merged:
    """The bodies of one branch that stands for two."""

    def __init__(self, left: Branch, right: Branch) -> None:
        self._pairs: dict[Any, Pair] = {}
        self._sides: list[_Side] = []
        for bodies in zip(left.bodies, right.bodies, strict=True):
            side = _Side(self, bodies, (left, right))
            self._sides.append(side)
        for side in self._sides:
            side.add_missing()
        self.bodies = [side.graph for side in self._sides]

    @property
    def pairs(self) -> list[Pair]:
        """What the branch is given, in the order of the parameters of its bodies."""
        return list(self._pairs.values())

    def place_of(self, pair: Pair) -> Any:
        """The key of a pair, which is one operand however often it is used."""
        key = tuple((type(one), repr(one)) if type(one) in PLAIN else id(one) for one in pair)
        self._pairs.setdefault(key, pair)
        return key

    def keys(self) -> list[Any]:
        """The keys of all pairs."""
        return list(self._pairs)


class _Side:
    """One body for two that are on the same side of the branches."""

    def __init__(self, merged: Merged, bodies: tuple[Graph, Graph], branches: tuple[Branch, Branch]) -> None:
        self._merged = merged
        self.graph = Graph()
        self._outer = [
            dict(zip(inputs_of(body), branch.operands, strict=True))
            for body, branch in zip(bodies, branches, strict=True)
        ]
        self._twins: dict[Node, Node] = {}
        self._made: dict[Node, Node] = {}
        self._parameters: dict[Any, Node] = {}
        rows = [[node for node in body.nodes if node.op != "placeholder"] for body in bodies]
        if len(rows[0]) != len(rows[1]):
            raise Unmergeable
        for left, right in zip(*rows, strict=True):
            self._write(left, right)

    def _write(self, left: Node, right: Node) -> None:
        if left.op != right.op or not same_argument(left.target, right.target) or left.source != right.source:
            raise Unmergeable
        one, other = control_of(left), control_of(right)
        if isinstance(one, Branch) and isinstance(other, Branch):
            args, kwargs = self._branch(one, other), {}
        else:
            told = 2 if is_check(left) else None
            args = (*self._joined(left.args[:told], right.args[:told]), *(left.args[told:] if told else ()))
            kwargs = self._joined(left.kwargs, right.kwargs)
        made = self.graph.create_node(left.op, left.target, args, kwargs, left.name, left.type)
        made.source = left.source
        made.meta = dict(left._meta or {})
        if left.value_type == right.value_type and left.value_type is not None:
            set_type(made, left.value_type)
        self._twins[left], self._made[left] = right, made

    def _branch(self, left: Branch, right: Branch) -> tuple[Any, ...]:
        inner = Merged(left, right)
        operands = tuple(self._joined(*pair) for pair in inner.pairs)
        return (self._joined(left.predicate, right.predicate), *inner.bodies, operands)

    def _joined(self, left: Any, right: Any) -> Any:
        """Two arguments as one of the new body."""
        if isinstance(left, Node) or isinstance(right, Node):
            if isinstance(left, Node) and left in self._made:
                if self._twins[left] is not right:
                    raise Unmergeable
                return self._made[left]
            return self._parameter(self._outside(0, left), self._outside(1, right))
        if isinstance(left, tuple) and type(left) is type(right) and len(left) == len(right):
            return rebuilt_tuple(left, [self._joined(*pair) for pair in zip(left, right, strict=True)])
        if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
            return [self._joined(*pair) for pair in zip(left, right, strict=True)]
        if isinstance(left, dict) and isinstance(right, dict) and list(left) == list(right):
            return {key: self._joined(left[key], right[key]) for key in left}
        if isinstance(left, Graph) and isinstance(right, Graph):
            if same_body(left, right):
                return left
            raise Unmergeable
        if same_argument(left, right):
            return left
        return self._parameter(self._outside(0, left), self._outside(1, right))

    def _outside(self, number: int, value: Any) -> Any:
        """What stands for a value in the graph around: what was handed in, or a constant."""
        if not isinstance(value, Node):
            if type(value) not in PLAIN:
                raise Unmergeable
            return value
        if value not in self._outer[number]:
            raise Unmergeable
        return self._outer[number][value]

    def _parameter(self, left: Any, right: Any) -> Node:
        key = self._merged.place_of((left, right))
        known = self._parameters.get(key)
        if known is None:
            known = self._parameters[key] = self._add(key)
        return known

    def _add(self, key: Any) -> Node:
        pair = self._merged._pairs[key]
        name = next((one.name for one in pair if isinstance(one, Node)), "value")
        latest = next(reversed(self._parameters.values()), self.graph._root)
        with self.graph.inserting_before(latest._next):
            made = Graph.create_node(self.graph, "placeholder", name)
        types = [one.value_type if isinstance(one, Node) else None for one in pair]
        if types[0] is not None and types[0] == types[1]:
            set_type(made, types[0])
        return made

    def add_missing(self) -> None:
        """Give the body parameters for what only the other body uses, all in the same order."""
        wanted = self._merged.keys()
        for key in wanted:
            if key not in self._parameters:
                self._parameters[key] = self._add(key)
        before: Node = self.graph._root
        for key in wanted:
            before.append(self._parameters[key])
            before = self._parameters[key]
