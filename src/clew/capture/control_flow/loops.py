"""Loops whose number of rounds depends on data or on sizes: the rounds become the body of one node.

What a round changes is carried: variables, and all other locations that a round was seen to change. A variable that
each round sets before it reads it is the round's own. ``break`` and ``return`` end the loop with a flag. A variable of
a ``for`` that is None or a number until some round sets an array is carried as an optional: each round asks.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from clew.capture.bytecode.instructions import instructions_of
from clew.capture.control_flow.body_recorder import (
    Abandon,
    ConstructSite,
    End,
    Piece,
    PieceRecorder,
    is_leaf,
    leaves_of,
    with_leaves,
)
from clew.capture.control_flow.branches import Tying
from clew.capture.control_flow.node_comparison import arrange
from clew.capture.control_flow.paths import Paths
from clew.capture.control_flow.runtime import RUNTIME, Outcome, Returned
from clew.capture.guards.notes import require
from clew.capture.location import MISSING
from clew.capture.recording.example_recorder import ExampleRecorder
from clew.capture.recording.list_proxies import ListProxy, StateListProxy
from clew.capture.recording.recorder import Scalar
from clew.capture.state.snapshot import Part, Snapshot, cells_of, in_order, order_of
from clew.ir.arguments import all_nodes, bodies_of
from clew.ir.control_flow import Branch, control_of, for_loop, inputs_of, while_loop
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.types import ScalarType

_BROKE = "broke"
_MOST_COMPARED = 8
"""How many rounds are recorded to see whether all rely on the same."""

Sets = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The variables that a loop sets, those that are read after it, those that are read after it or in a next round, and
those that nobody can read once the function has returned."""


class Iteration:
    """What a ``for`` walks: the node of it, and its items in the example.

    One that is walked only because loops over sizes are opened has a way to do without: ``plainly``.
    """

    def __init__(
        self,
        place: Any,
        items: list[Any],
        example: Any = None,
        arrays: Sequence[Any] = (),
        plainly: Callable[[], Any] | None = None,
    ) -> None:
        self.place = place
        self.plainly = plainly
        self.arrays = arrays
        """The arrays that are walked."""
        self.items = items
        self.example = items[0] if items else example


class Optional:
    """A variable that is a constant until some round sets an array; ``example`` is such an array. If it ``counts``, any
    number of the constant's type may stand there before."""

    def __init__(self, place: Part, constant: Any, example: Any) -> None:
        self.place = place
        self.constant = constant
        self.example = example
        self.counts = False
        self.input: Any = None
        """Its proxy in the round that is being recorded."""

    def fits(self, pieces: PieceRecorder, value: Any) -> bool:
        """Whether the variable may hold a value: the constant, or an array like the example."""
        if pieces.support.is_array(value):
            return bool(pieces.support.kind(value) == pieces.support.kind(self.example))
        if self.is_another_number(pieces, value):
            return self.counts
        return type(value) is type(self.constant) and repr(value) == repr(self.constant)

    def is_another_number(self, pieces: PieceRecorder, value: Any) -> bool:
        """Whether a value is a number of the constant's type, and perhaps not the constant."""
        plain = pieces.recorder.concrete(value)
        is_number = type(self.constant) in (int, float) and type(plain) is type(self.constant)
        return is_number and (type(value) is not type(plain) or repr(plain) != repr(self.constant))

    def put(self, pieces: PieceRecorder, node: Node, is_constant: bool) -> None:
        """Let the variable be what a node gives: a question, which the example answers with ``is_constant``."""
        recorder = pieces.recorder
        is_none = self.constant is None
        asked = recorder.create(operator.is_, (node, None)) if is_none else recorder.create(is_plain_number, (node,))
        if recorder.truth(asked, is_constant, is_data=True, is_fixed=True):
            now = self.place.get()
            number = recorder.concrete(now) if type(recorder.concrete(now)) is type(self.constant) else self.constant
            self.place.put(pieces.tied(number, node) if self.counts else self.constant)
        else:
            now = self.place.get()
            self.place.put(pieces.tied(now if pieces.support.is_array(now) else self.example, node))


_CONSTANTS = (type(None), bool, int, float)


@pure
def is_plain_number(value: Any) -> bool:
    """Whether a variable holds a number, and no array yet."""
    return type(value) in _CONSTANTS


class ListUses(NamedTuple):
    """What is known of the lists in variables of a loop."""

    local: tuple[str, ...] = ()
    """The variables whose lists nobody but the function sees."""
    seen: set[str] | None = None
    """If given, the only variables whose lists may be filled."""
    chains: tuple[str, ...] = ()
    """Variables whose lists of numbers are carried whole."""


NO_USES = ListUses()


class FilledLists:
    """The variables that hold lists to which rounds of a loop only append: the node gives what they append."""

    def __init__(self, pieces: PieceRecorder, site: ConstructSite, uses: ListUses) -> None:
        self.pieces = pieces
        self.site = site
        self.uses = uses
        self.places: list[Part] = []
        self.measured: list[Part] = []
        """Those of them whose length a round or the test asks for: it is carried as a number."""
        self.befores: dict[Any, Any] = {}
        self.counts: dict[Any, int] = {}
        """How many values each round gives for a list."""
        self.ragged: set[Any] = set()
        """Lists to which some paths of a round append more than others: each round gives a tuple."""

    def start(self) -> None:
        """A round is about to be recorded."""
        self.befores = {place.key: place.get() for place in self.places}
        self.counts.clear()
        self.ragged.clear()

    def enter(self, graph: Graph) -> Iterator[Node]:
        """Let a round find proxies of the lists; the inputs of the graph that stand for their lengths."""
        for place in self.places:
            before = self.befores[place.key]
            place.put(StateListProxy(before, list(before)))
            if place in self.measured:
                length = graph.create_node("placeholder", "length")
                place.get().size = self.pieces.tied(len(before), length)
                yield length

    def grow(self, ends: list[End], body: Callable[..., Any], snapshot: Snapshot) -> set[Any]:
        """The keys of variables of the loop whose lists a round appends to, as was not known before."""
        known = {place.key for place in self.places}
        grown = {id(place.holder): place.holder for end in ends for place in end.places.values() if _has_grown(place)}
        for name, cell in cells_of(body).items():
            place = Part(name, cell, None)
            if id(place.get()) in grown and place.key not in known and snapshot.is_held_once(place.get()):
                if not _HEAPS.isdisjoint(body.__code__.co_names):  # type: ignore[attr-defined]
                    raise Abandon(self.site, f"{name} is kept in an order that its items decide")
                if self.uses.seen is not None and name not in self.uses.seen:
                    raise Abandon(self.site, f"the length of {name} may be asked for after the loop")
                self.places.append(place)
        return {place.key for place in self.places} - known

    def ask_for_length(self, ends: list[End]) -> bool:
        """Whether a round or the test looks at a list that rounds append to: its length may be all that it asks for."""
        looked = [place for place in self.places if any(end.values[place.key].seen for end in ends)]
        if any(place in self.measured for place in looked):
            raise Abandon(self.site, "a list that each round appends to is looked at in a round")
        self.measured = [place for place in self.places if place in self.measured or place in looked]
        return bool(looked)

    def lengths(self, end: End) -> list[Any]:
        """The lengths that lists have after one path of a round, as arguments."""
        return [end.left[place.key][0] for place in self.measured]

    def appended(self, end: End) -> tuple[Any, ...]:
        """What one path of a round appends to lists, as arguments of nodes; to a ragged one, all of it as a tuple."""
        given: list[Any] = []
        for place in self.places:
            items = self._added(end, place)
            leaves = list(leaves_of(self.pieces.recorder, tuple(items)))
            arguments = iter(end.left[place.key][-len(leaves) :])
            row = [_like(item, arguments) for item in items]
            given += [tuple(row)] if place.key in self.ragged else row
        return tuple(given)

    def _added(self, end: End, place: Part) -> list[Any]:
        """What one path of a round appends to a list."""
        now, before = end.values[place.key], self.befores[place.key]
        added = list.__len__(now) - len(before) if type(now) is StateListProxy and not now.seen else -1
        items = list(list.__iter__(now))[len(before) :] if added > 0 else []
        if added < 0 or not all(map(self._is_item, items)):
            raise Abandon(self.site, "a list is not simply appended to in each round")
        return items

    def check(self, ends: list[End]) -> None:
        """What rounds append must be of the same kinds on all paths; a list is ragged if it is not equally much."""
        for place in self.places:
            rows = [[self._kind_of(item) for item in self._added(end, place)] for end in ends]
            is_regular = all(len(row) == len(rows[0]) > 0 for row in rows)
            items = [kind for row in rows for kind in row]
            if any(row != rows[0] for row in rows) if is_regular else any(kind != items[0] for kind in items):
                raise Abandon(self.site, "what is appended to a list is of another type on another way")
            self.counts[place.key] = len(rows[0]) if is_regular else 1
            if not is_regular:
                self.ragged.add(place.key)

    def _kind_of(self, item: Any) -> list[Any]:
        parts = [len(item) if type(item) is tuple else 0]
        return parts + [self.pieces.support.kind(leaf) for leaf in leaves_of(self.pieces.recorder, item)]

    def _is_item(self, value: Any) -> bool:
        """Whether a list of the graph may hold a value: an array, a number, or a tuple of some of these."""
        if type(value) is tuple and value:
            return all(is_leaf(self.pieces.recorder, part) for part in value)
        return is_leaf(self.pieces.recorder, value)

    def keep(self) -> None:
        """Remember what the lists hold before the loop runs."""
        self.befores = {place.key: list(place.get()) for place in self.places}

    def collect(self, node: Node, index: int) -> None:
        """Let variables hold the lists that the loop has filled: what the node gives from this place on."""
        recorder = self.pieces.recorder
        for place in self.places:
            before, now = self.befores[place.key], place.get()
            count = self.counts[place.key]
            found = [recorder.create(operator.getitem, (node, index + one)) for one in range(count)]
            index += count
            whole = found[0] if count == 1 else recorder.create(interleaved, tuple(found))
            if place.key in self.ragged:
                whole = recorder.create(flattened, (whole,))
            if before:
                whole = recorder.create(operator.add, (recorder.argument(before), whole))
            place.put(ListProxy(now, whole, recorder, place.name in self.uses.local))


class Loop:
    """One loop that is being recorded; it has a test, or items that it walks."""

    def __init__(
        self,
        pieces: PieceRecorder,
        site: ConstructSite,
        test: Callable[[], Any] | None,
        body: Callable[..., Any],
        names: Sets,
        items: Iteration | None = None,
        uses: ListUses = NO_USES,
    ) -> None:
        self.pieces = pieces
        self.site = site
        self.test = test
        self.body = body
        self.items = items
        self.live, again, ending = map(frozenset, names[1:])
        cells = cells_of(body) | ({} if test is None else cells_of(test))
        self.places = [Part(name, cells[name], None) for name in names[0] if name in cells]
        self.ending = {place.key for place in self.places if place.name in ending}
        self.own = {place.key for place in self.places if place.name not in again}
        self.carried: list[Part] = []
        self.lists = FilledLists(pieces, site, uses)
        self.chains = [Part(name, cells[name], None) for name in uses.chains if name in cells and name not in names[0]]
        """Variables that hold lists of numbers, which are carried whole."""
        self.optional: list[Optional] = []
        """Variables that are a constant until a round makes an array of them."""
        self.returned: Any = MISSING
        """What a ``return`` inside gives."""

    @property
    def recorder(self) -> ExampleRecorder:
        """The recorder of the program."""
        return self.pieces.recorder

    def record(self, wants_broke: bool, may_peel: bool, snapshot: Snapshot) -> Outcome:
        """Make the node, and run the loop plainly."""
        self.wants_broke, self.may_peel, self.snapshot = wants_broke, may_peel, snapshot
        self._check_items()
        empty = [place.get() for place in self.chains if type(place.get()) is list and not place.get()]
        if may_peel and any(map(snapshot.is_held_once, empty)):
            raise Abandon(self.site, "a list that rounds look at is empty before the first one", peel=True)
        self.chains = [place for place in self.chains if _is_chain(place.get()) and snapshot.is_held_once(place.get())]
        rounds, tests = self._pieces()
        ends, tested = rounds[1], [] if tests is None else tests[1]
        self._check(ends, rounds[0])
        self.lists.check(ends)
        self.breaks = any(end.value is not None for end in ends)
        node = self._node(rounds, tests, ends, tested)
        self.lists.keep()
        outcome = self._plainly()
        return self._left(node, outcome)

    # ---- recording -----------------------------------------------------------------------------------------------

    def _pieces(self) -> Any:
        """The rounds and the test as pieces, recorded until nothing else is found that they change."""
        while True:
            self._start()
            rounds = self._recorded(self.body, is_round=True)
            tests = None if self.test is None else self._recorded(self._tested, is_round=False)
            ends = [*rounds[1], *(() if tests is None else tests[1])]
            if self._filled(ends) or self._become_arrays(ends) or self._count(ends) or self.lists.ask_for_length(ends):
                continue
            found = self._further(ends)
            if found:
                self.places += found
            elif tests is not None and any(self._changes(end, tests[0]) for end in tests[1]):
                self._join_test()
            else:
                return rounds, tests

    def _check_items(self) -> None:
        """All items must be like the one that the round is recorded with."""
        items = [] if self.items is None else self.items.items
        for item in items:
            self.pieces.check_fit(self.site, [items[0], item])

    def _start(self) -> None:
        """What is there before the loop is carried from round to round."""
        missing = [place for place in self.places if place.get() is MISSING and place.name in self.live]
        if missing:
            raise Abandon(self.site, f"{missing[0].name} is set in the loop and read after it", self.may_peel)
        known = [place for place in self.places if place.get() is not MISSING]
        self.carried = in_order([place for place in known if place.key not in self.own])
        self.befores = {place.key: place.get() for place in self.carried}
        self.lists.start()

    def _recorded(self, function: Any, is_round: bool) -> tuple[Piece, list[End]]:
        paths = Paths(self.recorder.bodies)
        befores = [place.get() for place in self.carried]

        def bind() -> tuple[Any, ...]:
            inputs: list[Node] = []

            def entering(name: str) -> Callable[[Any], Any]:
                def enter(leaf: Any) -> Any:
                    inputs.append(paths.graph.create_node("placeholder", name))
                    return self.pieces.tied(leaf, inputs[-1])

                return enter

            for place, before in zip(self.carried, befores, strict=True):
                place.put(with_leaves(self.recorder, before, entering(place.name)))
            for place in self.chains:
                inputs.append(paths.graph.create_node("placeholder", place.name))
                place.put(ListProxy(list(place.get()), inputs[-1], self.recorder, True))
            for one in self.optional:
                one.input = paths.graph.create_node("placeholder", one.place.name)
                inputs.append(one.input)
            for place in self.places:
                if place not in self.carried:
                    place.put(MISSING)
            inputs.extend(self.lists.enter(paths.graph))
            piece.inputs = inputs
            return (self._item(piece),) if is_round and self.items is not None else ()

        held = [*self.carried, *self.chains, *self.lists.places, *(one.place for one in self.optional)]
        piece = Piece(self.site, self._asking(function), paths, self.snapshot, bind, held)
        ends = self.pieces.ends(piece)
        piece.raising = [end for end in ends if end.raised]
        return piece, [end for end in ends if not end.raised]

    def _item(self, piece: Piece) -> Any:
        """An item of what is walked, as the parameter of the body that stands for it."""
        assert self.items is not None
        node = piece.paths.graph.create_node("placeholder", _target_of(self.body))
        piece.inputs.append(node)
        return self.recorder.result(self.recorder.apart(self.items.example), node)

    def _asking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A round that asks first what the variables hold that may be a constant or an array."""

        def asking(*args: Any) -> Any:
            for one in self.optional:
                one.put(self.pieces, one.input, is_constant=True)
            return function(*args)

        return asking if self.optional else function

    def _tested(self) -> Any:
        """What the test gives; of a container its truth, which is not that of the first array in it."""
        assert self.test is not None
        value = self.test()
        is_counted = type(value) is StateListProxy and value.size is not None
        is_container = isinstance(value, (tuple, list, dict)) and not is_leaf(self.recorder, value)
        return bool(value) if is_container and not is_counted else value

    def _become_arrays(self, ends: list[End]) -> bool:
        """Whether a round sets a variable to an array only on some paths, which was not known: on the others it stays
        None, or the number that it was."""
        going_on = [end for end in ends if not isinstance(end.value, Returned)]
        for place in self.carried if self.items is not None and self.test is None else ():
            values = [end.values[place.key] for end in going_on]
            arrays = [value for value in values if self.pieces.support.is_array(value)]
            is_constant = type(place.get()) in _CONSTANTS and place.name in cells_of(self.body)
            if is_constant and arrays and len(arrays) < len(values):
                self.optional.append(Optional(place, place.get(), arrays[0]))
                self.places = [one for one in self.places if one.key != place.key]
                return True
        return False

    def _count(self, ends: list[End]) -> bool:
        """Whether a variable that may become an array holds another number before that, which was not known."""
        found = [
            one
            for one in self.optional
            if not one.counts and any(one.is_another_number(self.pieces, end.values.get(one.place.key)) for end in ends)
        ]
        for one in found:
            one.counts = True
        return bool(found)

    def _filled(self, ends: list[End]) -> bool:
        """Whether a round appends to a list that only a variable of the loop holds, which was not known before."""
        found = self.lists.grow(ends, self.body, self.snapshot)
        self.places = [one for one in self.places if one.key not in found]
        return bool(found)

    def _further(self, ends: list[End]) -> list[Part]:
        """Places that some round changes and that were not known to be changed."""
        known = {place.key for place in [*self.places, *self.chains, *self.lists.places, *self._optional_places]}
        found = {key: place for end in ends for key, place in end.places.items() if key not in known}
        if any(place.get() is MISSING for place in found.values()):
            raise Abandon(self.site, "a round adds to a container or an object")
        return list(found.values())

    @property
    def _optional_places(self) -> list[Part]:
        return [one.place for one in self.optional]

    def _changes(self, end: End, piece: Piece) -> bool:
        """Whether the test sets something."""
        left = itertools.chain(*(end.left[place.key] for place in self.carried))
        return [*left, *self._chained(end), *self.lists.lengths(end)] != piece.inputs

    def _join_test(self) -> None:
        """Let the test be a part of the round, since it changes something."""
        test, body = self.test, self.body
        assert test is not None
        if test is _always:
            raise Abandon(self.site, "the test of the loop changes something in each round")
        self.test = _always
        self.body = lambda: body() if test() else RUNTIME.BREAK

    def _varies(self, node: Node, paths: Paths) -> bool:
        """Whether a value may be another in each round: what was there before the loop is the same in all of them."""
        if paths.is_from_outside(node) or not self.pieces.support.is_node_of_data(node):
            return False
        is_number = isinstance(node.value_type, ScalarType) and bool(node.all_input_nodes)
        return not is_number or any(self._varies(used, paths) for used in node.all_input_nodes)

    def _check(self, ends: list[End], rounds: Piece) -> None:
        """What is carried must be of one kind in all rounds, and no round may rely on a value of the first one."""
        nodes = list(rounds.paths.nodes())
        relied = [node.args[0] for node in nodes if node.target is require]
        relied += [found for node in nodes for found in _relied_in_branches(node)]
        varies = any(isinstance(node, Node) and self._varies(node, rounds.paths) for node in relied)
        if varies and not self._are_alike(rounds):
            raise Abandon(self.site, "a round relies on a value that may be another in the next one")
        if any(isinstance(node, Node) and self._may_vary(node, rounds, ends) for node in relied):
            raise Abandon(self.site, "a round relies on a size that is another in the next one")
        for place in self.carried:
            values = [place.get(), *(end.values[place.key] for end in ends if self._leaves(end, place))]
            self.pieces.check_fit(self.site, values, self.may_peel)
            self.pieces.check_containers(rounds, place.get(), values)
        for one in self.optional:
            if not all(one.fits(self.pieces, end.values[one.place.key]) for end in ends):
                raise Abandon(self.site, "a variable holds different things on different ways")
        for end in ends:
            left = (end.values[one.key] for one in self.carried if self._leaves(end, one))
            self.pieces.check_alone(self.site, [end.returned, *left])
        returned = [end.returned for end in ends if isinstance(end.value, Returned)]
        if returned:
            self.pieces.check_fit(self.site, returned)
            self.pieces.check_containers(rounds, None, returned)
        self.returned = returned[0] if returned else MISSING

    @property
    def _nothing(self) -> tuple[None, ...]:
        """What is carried for the value of a ``return`` while there was none."""
        return () if self.returned is MISSING else tuple(None for _ in leaves_of(self.recorder, self.returned))

    def _are_alike(self, rounds: Piece) -> bool:
        """Whether a round relies on the same with each item of the example: then each round may check it."""
        if self.items is None or not 0 < len(self.items.items) <= _MOST_COMPARED:
            return False
        first, example = _relied(rounds), self.items.example
        try:
            for item in self.items.items[1:]:
                self.items.example = item
                if _relied(self._recorded(self.body, is_round=True)[0]) != first:
                    return False
        finally:
            self.items.example = example
        return True

    def _leaves(self, end: End, place: Part) -> bool:
        """Whether it matters what a path leaves in a place: not in a variable that ends with the function."""
        return not isinstance(end.value, Returned) or place.key not in self.ending

    def _may_vary(self, node: Node, rounds: Piece, ends: list[End]) -> bool:
        """Whether a number depends on something whose shape is another from round to round."""
        inputs = rounds.inputs
        sizes = [self._shapes(place.get()) for place in self.carried]
        going_on = [end for end in ends if not isinstance(end.value, Returned)]
        after = [[self._shapes(end.values[place.key]) for place in self.carried] for end in going_on]
        items = [] if self.items is None else [self._shapes(item) for item in self.items.items]
        if all(one == sizes for one in after) and all(one == items[0] for one in items):
            return False
        waiting, seen = [node], set()
        while waiting:
            found = waiting.pop()
            if found in inputs:
                return True
            if found not in seen:
                seen.add(found)
                waiting += found.all_input_nodes
        return False

    def _shapes(self, value: Any) -> list[Any]:
        return [self.pieces.support.shape(leaf) for leaf in leaves_of(self.recorder, value)]

    # ---- the node ------------------------------------------------------------------------------------------------

    def _node(self, rounds: Any, tests: Any, ends: list[End], tested: list[End]) -> Node:
        initial = self._row([self.pieces.arguments(place.get()) for place in self.carried], False)
        initial += [self.recorder.create(list, (self.recorder.argument(place.get()),)) for place in self.chains]
        initial += [one.constant for one in self.optional]
        initial += [len(self.lists.befores[place.key]) for place in self.lists.measured]
        initial += self._returning(False, self._nothing)
        for end in ends:
            rounds[0].paths.write_end(end.levels, self._given(end, rounds[0].inputs))
        outputs = sum(self.lists.counts.values())
        rounds[0].paths.missing = (None,) * (len(initial) + outputs) + ((True,) if self.breaks else ())
        for end in rounds[0].raising:
            rounds[0].paths.write_end(end.levels, rounds[0].paths.missing)
        for end in [] if tests is None else tests[0].raising:
            tests[0].paths.write_end(end.levels, False)
        for end in tested:
            tests[0].paths.write_end(end.levels, end.arguments[0] if end.arguments else bool(end.value))
        pieces = [piece for piece, _ in (tests, rounds) if piece is not None] if tests is not None else [rounds[0]]
        for piece in pieces:
            piece.paths.finish()
            self._pad(piece, len(initial), piece is rounds[0])
        outer = list(dict.fromkeys(node for piece in pieces for node in piece.body.free))
        for piece in pieces:
            arrange(piece.body, outer, piece.inputs)
        head = [piece.body.graph for piece in pieces]
        if self.items is not None:
            head.insert(0, self.recorder.resolve(self.items.place))
        target = while_loop if self.items is None else for_loop
        kwargs = ({"outputs": outputs} if outputs else {}) | ({"breaks": True} if self.breaks else {})
        return self.recorder.create(target, (*head, tuple(initial), tuple(outer)), kwargs)  # type: ignore[no-any-return]

    def _given(self, end: End, inputs: list[Node]) -> tuple[Any, ...]:
        """What one path of a round gives to the next; a variable that ends with a return is unchanged."""
        broke, is_return = end.value is not None, isinstance(end.value, Returned)
        entered = iter(inputs)
        parts: list[tuple[Any, ...]] = []
        for place in self.carried:
            before = tuple([next(entered) for _ in leaves_of(self.recorder, self.befores[place.key])])
            parts.append(end.left[place.key] if self._leaves(end, place) else before)
        carried = self._row(parts, broke)
        returned = self._returning(is_return, end.arguments if is_return else self._nothing)
        carried += self._chained(end)
        carried += [(*end.left[one.place.key], one.constant)[0] for one in self.optional]
        carried += self.lists.lengths(end)
        return (*carried, *returned, *self.lists.appended(end), *((broke,) if self.breaks else ()))

    def _chained(self, end: End) -> list[Any]:
        """The lists that one path has made longer, as arguments."""
        chains = [end.values[place.key] for place in self.chains]
        if not all(type(one) is ListProxy and one.is_whole for one in chains):
            raise Abandon(self.site, "a list is looked at as a whole in a round")
        return [self.recorder.argument(one) for one in chains]

    @property
    def _flag(self) -> int | None:
        """The number of places before the flag that says whether the loop broke; None if nobody asks for it.

        It stands where a variable of that name does, which it is in generated code.
        """
        if not self.wants_broke or not self.breaks:
            return None
        return sum(order_of(place.name) < _BROKE for place in self.carried)

    def _row(self, parts: list[tuple[Any, ...]], broke: bool) -> list[Any]:
        """What is carried, and among it the flag."""
        if self._flag is not None:
            parts = [*parts[: self._flag], (broke,), *parts[self._flag :]]
        return list(itertools.chain(*parts))

    def _returning(self, is_return: bool, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """What is carried for a ``return`` inside: whether there was one, and what it gives."""
        return () if self.returned is MISSING else (is_return, *value)

    def _pad(self, piece: Piece, count: int, is_round: bool) -> None:
        """Let a body have as many inputs as values are carried; the item of a ``for`` comes after them."""
        inputs = piece.inputs
        item = [inputs.pop()] if is_round and self.items is not None else []
        flags = [Graph.create_node(piece.body.graph, "placeholder", "flag") for _ in range(count - len(inputs))]
        if self._flag is not None:
            before = [self.befores[place.key] for place in self.carried[: self._flag]]
            inputs.insert(sum(1 for _ in leaves_of(self.recorder, before)), flags.pop(0))
        inputs += flags + item

    # ---- afterwards ----------------------------------------------------------------------------------------------

    def _plainly(self) -> Outcome:
        outcome = Outcome()
        with self.pieces.plainly(self.site):
            for place in self.carried:
                place.put(with_leaves(self.recorder, place.get(), self.recorder.concrete))
            if self.items is not None:
                for item in self.items.items:
                    if outcome.take(self.body(item)):
                        break
            else:
                assert self.test is not None
                for rounds in itertools.count():
                    self.pieces.check_rounds(rounds)
                    if not self.test() or outcome.take(self.body()):
                        break
        known = {place.key for place in [*self.places, *self._optional_places]}
        filled = {id(place.get()) for place in [*self.chains, *self.lists.places]}
        changed = [place for place, _, _ in self.snapshot.changed() if id(place.holder) not in filled]
        if any(place.key not in known for place in changed):
            raise Abandon(self.site, "a later round changes something that the recorded one does not")
        return outcome

    def _left(self, node: Node, outcome: Outcome) -> Outcome:
        """Let the program see what came out of the loop."""
        tie = Tying(self.pieces, node)
        broke: Any = outcome.broke
        for index in range(len(self.carried) + 1):
            if index == self._flag:
                broke = tie.named(_BROKE)(bool(outcome.broke))
            for place in self.carried[index : index + 1]:
                if outcome.returned and place.key in self.ending:
                    place.put(self.befores[place.key])
                self.pieces.check_fit(self.site, [self.befores[place.key], place.get()], self.may_peel)
                place.put(with_leaves(self.recorder, place.get(), tie.named(place.name)))
        for place in self.chains:
            if not _is_chain(place.get()):
                raise Abandon(self.site, f"{place.name} holds numbers of different types")
            place.put(ListProxy(place.get(), tie.next(place.name), self.recorder, True))
        for one in self.optional:
            is_constant = not self.pieces.support.is_array(one.place.get())
            one.put(self.pieces, self.recorder.resolve(tie.next(one.place.name)), is_constant)
        for _ in self.lists.measured:
            tie.next("length")
        for place in self.places:
            if place not in self.carried:
                place.put(MISSING)
        self.lists.collect(node, len(node.args[-2]))  # type: ignore[arg-type]
        if self.returned is MISSING:
            return Outcome(broke)
        returned = tie.named("returned")(bool(outcome.returned))
        value = outcome.value if outcome.returned else self.returned
        return Outcome(broke, returned, with_leaves(self.recorder, value, tie.named("result")))


@pure
def flattened(rows: list[tuple[Any, ...]]) -> list[Any]:
    """What all rounds of a loop have appended, one after the other."""
    return [item for row in rows for item in row]


@pure
def interleaved(*lists: list[Any]) -> list[Any]:
    """The first items of all lists, then their second ones, and so on."""
    return [item for row in zip(*lists, strict=True) for item in row]


def _relied(piece: Piece) -> list[tuple[Any, ...]]:
    """What a piece relies on, in its branches too: each guard by its value and what is said about it."""
    own = piece.paths.nodes()
    nodes = [inner for node in own for inner in (node, *(one for body in bodies_of(node) for one in all_nodes(body)))]
    return [node.args[1:4] for node in nodes if node.target is require]


def _like(item: Any, arguments: Iterator[Any]) -> Any:
    """The arguments that stand for an array or number, or for a tuple of these."""
    return tuple([next(arguments) for _ in item]) if type(item) is tuple else next(arguments)


def _always() -> bool:
    """The test of a loop whose own test is a part of the round."""
    return True


def _is_chain(value: Any) -> bool:
    """Whether a value is a plain list of numbers of one type."""
    if type(value) is not list:
        return False
    kinds = {type(item.plain) if issubclass(type(item), Scalar) else type(item) for item in value}
    return len(kinds) == 1 and kinds <= {int, float}


_HEAPS = frozenset({"heapify", "heappop", "heappush", "heappushpop", "heapreplace"})
"""Functions that read and change lists without asking them."""


def _has_grown(place: Part) -> bool:
    """Whether a place is an item of a list that was not there before."""
    return type(place.holder) is list and place.get() is MISSING


def _target_of(body: Callable[..., Any]) -> str:
    """The name of the variable that a round's item goes into, if it is one."""
    code: Any = body.__code__  # type: ignore[attr-defined]
    steps = [one for one in instructions_of(code) if one.opname not in ("RESUME", "COPY_FREE_VARS", "CACHE")]
    is_set = len(steps) > 1 and steps[0].opname.startswith("LOAD_FAST") and steps[1].opname in _SETTING
    return str(steps[1].argval) if is_set else "item"


_SETTING = ("STORE_DEREF", "STORE_FAST")


def _relied_in_branches(node: Node) -> Iterator[Any]:
    """The operands of a branch that a guard inside one of its sides, or of further branches there, is about."""
    branch = control_of(node)
    for body in branch.bodies if isinstance(branch, Branch) else ():
        outer = dict(zip(inputs_of(body), branch.operands, strict=True))  # type: ignore[union-attr]
        for inner in body.nodes:
            found = [*_relied_in_branches(inner), *(inner.args[:1] if inner.target is require else ())]
            yield from (outer[one] for one in found if isinstance(one, Node) and one in outer)
