"""Branches on data whose sides meet again: both sides become bodies of one ``cond``.

The sides are recorded as pieces; what they leave in variables must fit together, and comes out of the node. Where both
sides only read a number (``a if test else b``), nothing runs twice: one node chooses between the two.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from clew.capture.bytecode.instructions import instructions_of
from clew.capture.control_flow.body_recorder import Abandon, ConstructSite, End, Piece, PieceRecorder, with_leaves
from clew.capture.control_flow.node_comparison import arrange
from clew.capture.control_flow.paths import Paths
from clew.capture.location import MISSING
from clew.capture.recording.recorder import Pending, Scalar
from clew.capture.state.snapshot import Part, Snapshot, cells_of, in_order
from clew.ir.control_flow import choose, cond
from clew.ir.node import Node
from clew.ir.types import ScalarType

if TYPE_CHECKING:
    from clew.capture.recording.example_recorder import ExampleRecorder


class Branch:
    """One branch that is being recorded."""

    def __init__(
        self, pieces: PieceRecorder, site: ConstructSite, test: Any, then: Any, other: Any, snapshot: Snapshot
    ) -> None:
        self.pieces = pieces
        self.recorder = pieces.recorder
        self.site = site
        self.test = test
        self.is_turned = False
        self.sides = [Piece(site, side, Paths(self.recorder.bodies), snapshot) for side in (then, other)]

    def record(self, names: Iterable[str], live: Iterable[str], turns: bool = False) -> Any:
        """Make the node; the answer is the value that the side taken gives.

        If it ``turns``, the sides change places where the question is ``not`` something.
        """
        predicate, answer = self.recorder.argument(self.test), self.pieces.support.truth(self.test)
        if turns and isinstance(predicate, Node) and predicate.target is operator.not_:
            predicate, answer, self.is_turned = predicate.args[0], not answer, True
            self.sides.reverse()
        around = self.recorder.paths
        if isinstance(predicate, Node) and around is not None:
            for side, held in zip(self.sides, (True, False), strict=True):
                side.paths.assume(around, predicate, held)
        self.sides[answer].is_untaken = True
        ends = [self._ends(place, predicate) for place in range(2)]
        unused = set(names) - set(live)
        going_on = [end for side in ends for end in side if not end.raised]
        places = self._places(going_on, unused)
        numbers = [] if places else self._numbers(ends)
        if numbers:
            return chosen(self.recorder, predicate, (numbers[0], numbers[1]), answer)
        self._gives_constant = _is_settled([end.value for end in going_on], self.recorder.leaf_kinds)
        missing = (None,) * len(self._given(going_on[0], places))
        for side, found in zip(self.sides, ends, strict=True):
            for end in found:
                side.paths.write_end(end.levels, missing if end.raised else self._given(end, places))
            side.paths.missing = missing
            side.paths.finish()
        node = self._node(predicate)
        with self.pieces.plainly(self.site):
            result = self.sides[not answer].function()
        self._check_changed(going_on, unused)
        for side in self.sides:  # what nobody reads any more is no value of the graph
            for name, cell in cells_of(side.function).items():
                if name in unused:
                    Part(name, cell, None).put(MISSING)
        return self._left(node, result, places)

    def _ends(self, place: int, predicate: Any) -> list[End]:
        """The ends of a side; one that fails with the number of the example is run with one that leads there."""
        side = self.sides[place]
        try:
            return self.pieces.ends(side)
        except Abandon as found:
            other = leading_number(predicate, place == 0) if side.is_untaken and found.site == self.site else None
            numbers = [] if other is None else self._numbers_of(other[0], side)
            if other is None or not numbers or found.__cause__ is None:
                raise
        again = Piece(side.site, side.function, Paths(self.recorder.bodies), side.snapshot)
        again.paths.assumed, again.is_untaken = side.paths.assumed, True
        again.function = functools.partial(_run_with, numbers, other[1], side.function)
        found_ends = self.pieces.ends(again)
        again.function, self.sides[place] = side.function, again
        return found_ends

    def _numbers_of(self, node: Node, side: Piece) -> list[Any]:
        """The variables that a side sees and that hold the number which a node gives."""
        found = [Part(name, cell, None).get() for name, cell in cells_of(side.function).items()]
        scalars = [one for one in found if issubclass(type(one), Scalar)]
        return [one for one in scalars if self._home(self.recorder.argument(one)) is self._home(node)]

    def _home(self, node: Any) -> Any:
        """What a parameter of the bodies that are open stands for in the end."""
        outer = self.recorder.bodies.outer(node)
        return node if outer is None else self._home(outer)

    def _check_changed(self, ends: list[End], unused: set[str]) -> None:
        """Raise if the side taken changes something, on plain values, that no recorded path of it changes."""
        if self.pieces.is_off_example:
            names = self._names()
            changed = [place for place, _, _ in self.sides[0].snapshot.changed()]
            used = {place.key for place in changed if names.get(id(place.holder)) not in unused}
            if not used <= {key for end in ends for key in end.places}:
                raise Abandon(self.site, "on the example it changes something that the recorded path does not")

    def _names(self) -> dict[int, str]:
        """The names of the variables that the sides share, by the identity of their cells."""
        return {id(cell): name for side in self.sides for name, cell in cells_of(side.function).items()}

    def _numbers(self, ends: list[list[End]]) -> list[Any]:
        """The plain numbers of one kind that the two sides give, if that is all that they do."""
        sides = zip((True, False), ends, strict=True)
        values = [self._held(side[0].value, held) for held, side in sides if len(side) == 1 and not side[0].raised]
        kinds = {type(value) for value in values}
        is_plain = len(values) == 2 and len(kinds) == 1 and kinds <= {bool, int, float}
        empty = all(node.op == "placeholder" for side in self.sides for node in side.body.graph.nodes)
        return values if is_plain and empty else []

    def _held(self, value: Any, held: bool) -> Any:
        """What a side gives that runs where the question has this answer: that, if it gives what was asked."""
        is_asked = value is self.test and type(self.recorder.concrete(value)) is bool
        return (held is not self.is_turned) if is_asked else value

    def _places(self, ends: list[End], unused: set[str]) -> list[Part]:
        """The places that the two sides leave different things in, after a check that these fit together."""
        names = self._names()
        found = {key: place for end in ends for key, place in end.places.items()}
        found = {key: place for key, place in found.items() if names.get(id(place.holder)) not in unused}
        for place in found.values():
            place.name = names.get(id(place.holder), place.name)
        self.pieces.check_fit(self.site, [end.value for end in ends])
        self.pieces.check_containers(self.sides[0], None, [end.value for end in ends])
        kept = []
        for key, place in found.items():
            values = [end.values.get(key, place.get()) for end in ends]
            self.pieces.check_fit(self.site, values)
            self.pieces.check_containers(self.sides[0], place.get(), values)
            if not _is_settled(values, self.recorder.leaf_kinds):
                kept.append(place)
        for end in ends:
            self.pieces.check_alone(self.site, [end.value, *(end.values.get(place.key) for place in kept)])
        return in_order(kept)

    def _given(self, end: End, places: list[Part]) -> tuple[Any, ...]:
        """What one path gives: its value, then what it left in each place, or what was there before."""
        left = (end.left.get(place.key) for place in places)
        befores = (self.pieces.arguments(place.get()) for place in places)
        parts = (before if now is None else now for now, before in zip(left, befores, strict=True))
        return (*(() if self._gives_constant else end.arguments), *itertools.chain(*parts))

    def _node(self, predicate: Any) -> Node:
        bodies = [side.body for side in self.sides]
        outer = list(dict.fromkeys(node for body in bodies for node in body.free))
        for body in bodies:
            arrange(body, outer)
        graphs = [body.graph for body in bodies]
        return self.recorder.create(cond, (predicate, *graphs, tuple(outer)))  # type: ignore[no-any-return]

    def _left(self, node: Node, result: Any, places: list[Part]) -> Any:
        """Let the program see what came out of the node."""
        tie = Tying(self.pieces, node)
        if not self._gives_constant:
            result = with_leaves(self.recorder, result, tie.named(None))
        for place in places:
            place.put(with_leaves(self.recorder, place.get(), tie.named(place.name)))
        return result


class Tying:
    """Ties leaves to the values that a node gives, one after the other."""

    def __init__(self, pieces: PieceRecorder, node: Node) -> None:
        self._pieces = pieces
        self._node = node
        self._places = itertools.count()

    def named(self, name: str | None) -> Callable[[Any], Any]:
        """A function that does so, under the name of a variable."""
        return lambda leaf: self._pieces.tied(leaf, self.next(name))

    def next(self, name: str | None) -> Pending:
        """The place of the next value."""
        return Pending(operator.getitem, (self._node, next(self._places)), name)


def _is_settled(values: list[Any], kinds: frozenset[type]) -> bool:
    """Whether a place holds the same plain value, whichever path was taken; a zero has a sign."""
    first = values[0]
    plain = not issubclass(type(first), Scalar) and type(first) in {bool, int, float, *kinds}
    return plain and all(type(value) is type(first) and repr(value) == repr(first) for value in values)


_COMPARING = frozenset({operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne})


def _run_with(numbers: list[Any], value: int, side: Callable[[], Any]) -> Any:
    """Run a side while traced numbers have another value than in the example."""
    befores = [number.plain for number in numbers]
    try:
        for number in numbers:
            number.plain = value
        return side()
    finally:
        for number, before in zip(numbers, befores, strict=True):
            number.plain = before


def leading_number(predicate: Any, answer: bool) -> tuple[Node, int] | None:
    """The node of a whole number that is compared with a literal, and a value of it that gets this answer."""
    if not isinstance(predicate, Node) or predicate.target not in _COMPARING:
        return None
    nodes = [one for one in predicate.args if isinstance(one, Node)]
    literals = [one for one in predicate.args if type(one) is int]
    if len(nodes) != 1 or len(literals) != 1:
        return None
    compare: Any = predicate.target
    for value in (literals[0], literals[0] + 1, literals[0] - 1):
        if compare(*(value if isinstance(one, Node) else one for one in predicate.args)) is answer:
            return nodes[0], value
    return None


# ---- a choice between two numbers that are only read -----------------------------------------------------------------

_BOOL = ScalarType("bool")
_NUMBERS = (bool, int, float)
_NO_VALUE = frozenset({"RESUME", "COPY_FREE_VARS", "RETURN_VALUE", "NOP", "CACHE", "PUSH_NULL"})


def number_read_by(side: Any, attribute: Callable[[Any, str], Any]) -> Any:
    """The number that one side reads without running any code; ``MISSING`` if it does anything else.

    ``attribute`` gives what an object holds under a name.
    """
    value: Any = MISSING
    if type(side) is not FunctionType:
        return MISSING
    for step in instructions_of(side.__code__):
        if step.opname == "LOAD_CONST":
            value = step.argval
        elif step.opname == "LOAD_DEREF":
            value = _contents(cells_of(side).get(step.argval))
        elif step.opname == "LOAD_ATTR" and value is not MISSING:
            value = attribute(value, step.argval)
        elif step.opname not in _NO_VALUE:
            return MISSING
    return value if type(value) in _NUMBERS else MISSING


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except (AttributeError, ValueError):  # there is none, or it is not filled
        return MISSING


def chosen(recorder: ExampleRecorder, predicate: Node, numbers: tuple[Any, Any], answer: bool) -> Any:
    """The first number where the predicate, which is ``answer`` now, is true, else the second: what a node gives."""
    if repr(numbers[0]) == repr(numbers[1]):  # a zero has a sign
        return numbers[0]
    if type(numbers[0]) is bool:  # one is True, the other False
        return _truth(recorder, predicate, numbers[0], answer)
    if predicate.target is operator.not_:
        predicate, numbers, answer = predicate.args[0], numbers[::-1], not answer  # type: ignore[assignment]
    node = recorder.create(choose, (predicate, *numbers), is_result=True)
    return recorder.result(numbers[not answer], node)


def _truth(recorder: ExampleRecorder, predicate: Node, held: bool, answer: bool) -> Any:
    """What a node gives that is ``held`` where the predicate, which is ``answer`` now, is true."""
    if held and predicate.value_type == _BOOL:
        return recorder.result(answer, predicate)
    function = bool if held else operator.not_
    return recorder.result(answer is held, recorder.create(function, (predicate,), is_result=True))
