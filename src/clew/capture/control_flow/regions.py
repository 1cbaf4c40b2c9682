"""The loops and branches of one run: which become nodes, and which Python runs as they are.

The runtime hands over each construct of a rewritten function. One that asks for data or leaves sizes open is recorded
as a node; one that could not be (``Progress`` knows from earlier runs) is run by Python, with guards or several paths.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from types import FrameType, FunctionType
from typing import Any

from clew.capture.control_flow.body_recorder import Abandon, ConstructSite, Piece, PieceRecorder, Support
from clew.capture.control_flow.branches import Branch, chosen, number_read_by
from clew.capture.control_flow.loops import Iteration, ListUses, Loop, Sets
from clew.capture.control_flow.paths import Paths, one_line
from clew.capture.control_flow.raising import escaped, is_outermost, leaves_program, text
from clew.capture.control_flow.rewrite import Rewrites
from clew.capture.control_flow.runtime import Outcome, is_own
from clew.capture.location import MISSING
from clew.capture.recording.example_recorder import ExampleRecorder
from clew.capture.recording.list_proxies import IteratorProxy, ListProxy, TupleProxy
from clew.capture.recording.numbers import traced_range
from clew.capture.recording.recorder import Scalar
from clew.capture.restart import Restart
from clew.capture.state.snapshot import ReachableState, Snapshot
from clew.capture.state.surroundings import names_stored
from clew.errors import CaptureError
from clew.ir.control_flow import cond
from clew.ir.effects import pure
from clew.ir.node import Node
from clew.ir.source import is_installed_file, user_frame


@pure
def has_items(values: Any) -> bool:
    """Whether there is anything to walk."""
    return next(iter(values), has_items) is not has_items


@pure
def first_item(values: Any) -> Any:
    """What a walk begins with."""
    return next(iter(values))


@pure
def rest_of(values: Any) -> Any:
    """A walk without its first item."""
    return list(itertools.islice(values, 1, None))


@pure
def groups_of(items: Any, place: int) -> list[tuple[Any, list[Any]]]:
    """What ``itertools.groupby`` gives for items that are grouped by one of their parts, each group as a list."""
    return [(key, list(group)) for key, group in itertools.groupby(items, operator.itemgetter(place))]


@pure
def keys_of(groups: list[tuple[Any, list[Any]]]) -> tuple[Any, ...]:
    """The keys of groups, one after the other."""
    return tuple([key for key, _ in groups])


def _function_of(frame: FrameType) -> FunctionType | None:
    """The function or method of a module's that a frame runs, if it is found under its name."""
    first, *rest = frame.f_code.co_qualname.split(".")
    found: Any = frame.f_globals.get(first)
    for name in rest:
        found = vars(found).get(name) if isinstance(found, type) else None
    return found if isinstance(found, FunctionType) and found.__code__ is frame.f_code else None


class Progress:
    """What earlier runs of a program have found out about its loops and branches."""

    def __init__(self) -> None:
        self.rewrites = Rewrites()
        self.abandoned: dict[ConstructSite, str] = {}
        """Pieces that cannot be recorded, and why."""
        self.peeled: set[ConstructSite] = set()
        """Loops whose first round is not one of the node's."""
        self.repeated: set[ConstructSite] = set()
        """Peeled loops that one run meets more than once."""
        self.opened: set[ConstructSite] = set()
        """Loops of which the number of rounds is known, but that ask for data inside."""

        self._lines: dict[ConstructSite, int] = {}

    def site(self, filename: str, function: int, number: int, line: int) -> ConstructSite:
        """The place of a loop or branch, which stands in this line."""
        found = (filename, function, number)
        self._lines[found] = line
        return found

    def reason_at(self, filename: str, line: int) -> str:
        """Why the loop or branch in this line was given up, if one was."""
        found = (why for site, why in self.abandoned.items() if site[0] == filename and self._lines.get(site) == line)
        return next(found, "")

    def give_up(self, found: Abandon) -> None:
        """A piece could not be recorded."""
        if found.peel:
            self.peeled.add(found.site)
        else:
            self.abandoned[found.site] = found.why


_KEYWORDS = {(zip, "strict"): True, (enumerate, "start"): 0}
"""Plain values of the kinds that arguments by name may have in what is walked."""


_MOST_PLACES = 8
"""In a list or dict of so many items, each that data may choose is a path."""


class _Unrolled:
    """A block in which a loop is the innermost one that Python runs."""

    def __init__(self, loops: list[ConstructSite], site: ConstructSite) -> None:
        self.loops = loops
        self.site = site

    def __enter__(self) -> None:
        self.loops.append(self.site)

    def __exit__(self, *error: object) -> None:
        self.loops.pop()


class Regions:
    """What ``RUNTIME`` asks during one run of a program."""

    def __init__(
        self,
        recorder: ExampleRecorder,
        support: Support,
        progress: Progress,
        variables: Callable[[], Iterable[tuple[Any, str]]],
    ) -> None:
        self.recorder = recorder
        self.support = support
        self.progress = progress
        self.rewrites = progress.rewrites
        self.variables = variables
        self._unrolled: list[ConstructSite] = []
        self._begun: set[ConstructSite] = set()
        """Loops of which this run has asked whether there is a first round."""
        self.were_used = False
        self._around: ReachableState | None = None
        """What the latest snapshot has read around the functions that are running."""
        self.raised: BaseException | None = None
        self.pieces = PieceRecorder(recorder, support)
        self.recorder.hooks.reason_at = progress.reason_at

    def before_question(self, is_of_modes: bool = False) -> None:
        """The program asks for data: the function that asks is rewritten first, if it can be and is not yet."""
        frame = user_frame(1)
        if frame is not None and self.rewrites.is_wanted(frame.f_code, is_for_modes=is_of_modes):
            self.start_over()
        if not is_of_modes:
            self._open_loop()

    def before_fact(self) -> None:
        """The program asks for a dtype: a branch on it is one of the graph, as one on a mode is; not in a function that
        sets attributes, whose first call may set what later calls go by."""
        frame = user_frame(1) if self._is_on() else None
        function = None if frame is None else _function_of(frame)
        if function is not None and names_stored([function]):
            return
        if function is not None:
            self.rewrites.meet(function)
        if frame is not None:
            self.before_question(is_of_modes=True)

    def _open_loop(self) -> None:
        """A loop that Python runs asks for data inside: it shall be a node, if it can be."""
        if self._unrolled and self._unrolled[-1] not in self.progress.opened | self.progress.abandoned.keys():
            self.progress.opened.add(self._unrolled[-1])
            self.start_over()

    def before_guard(self, is_on_data: bool) -> None:
        """The program relies on a number that shall be free: the function that does is rewritten first.

        If the number is not on data, that is done only for the sake of a loop.
        """
        if not self._is_on() or not (is_on_data or self.support.opens_loops):
            return
        frame = user_frame(1)
        if frame is not None and frame.f_code.co_name == "<listcomp>":
            frame = frame.f_back
        if frame is not None and self.rewrites.is_wanted(frame.f_code, 0 if is_on_data else frame.f_lineno):
            self.start_over()

    def start_over(self) -> None:
        """End the run: the next one begins with what was found out."""
        self.raised = Restart()
        raise self.raised

    def unrolled(self, number: int, iterable: Any) -> Any:
        """A loop that Python runs round by round; if it is one that could be a node, it is one as soon as it asks."""
        could_be = self._is_on() and (iterable is None or type(iterable) is range)
        return _Unrolled(self._unrolled, self._site(number)) if could_be else nullcontext()

    def check(self) -> None:
        """Raise again what the program may have caught."""
        if self.raised is not None:
            raise self.raised

    def _site(self, number: int) -> ConstructSite:
        frame = user_frame(3)
        if frame is None:
            return ("", 0, number)
        return self.progress.site(frame.f_code.co_filename, frame.f_code.co_firstlineno, number, frame.f_lineno)

    def _is_on(self) -> bool:
        recorder = self.recorder
        return (
            recorder.paths is not None
            and recorder.open
            and not recorder.depth
            and (recorder.branches_in_functions or not recorder.bodies.is_in_function)
            and not recorder.identity.is_asked
        )

    def _snapshot(self, site: ConstructSite) -> Snapshot:
        self.were_used = True
        snapshot = Snapshot(self._is_leaf, list(self.variables()), self._around)
        self._around = snapshot.around
        if not snapshot.is_whole:
            raise Abandon(site, "the program holds an iterator, which cannot be set back")
        return snapshot

    def _is_leaf(self, value: Any) -> bool:
        return issubclass(type(value), Scalar) or bool(self.recorder.is_array(value))

    # ---- branches ------------------------------------------------------------------------------------------------

    def is_branch_on_data(self, number: int, test: Any) -> bool:
        """Whether a branch is one of the graph."""
        if not self._is_on():
            return False
        if self.support.is_of_modes(test):
            return self.is_branch_on_mode(number, test)
        site = self._site(number)
        if not self.support.is_data(test) and (is_installed_file(site[0]) or not self.support.is_measured(test)):
            return False
        is_wanted = not self.rewrites.is_for_modes(site) or self._begins_with_mode(test)
        return is_wanted and site not in self.progress.abandoned

    def _begins_with_mode(self, test: Any) -> bool:
        """Whether data is asked for only if a mode or a dtype says so: what a branch on that gives, which is one of the
        graph already, is asked for."""
        node = self.recorder.argument(test)
        branch = node.args[0] if isinstance(node, Node) and node.target is operator.getitem else None
        asked = branch.args[0] if isinstance(branch, Node) and branch.target is cond else None
        return isinstance(asked, Node) and self.support.is_of_modes(self.recorder.result(True, asked))

    def is_branch_on_mode(self, number: int, test: Any) -> bool:
        """Whether a branch is one of the graph because a mode decides it, and nothing has told which it is."""
        paths = self.recorder.paths
        if paths is None or not self._is_on() or not self.support.is_of_modes(test):
            return False
        is_known = paths.knows(self.recorder.argument(test))
        return not is_known and self._site(number) not in self.progress.abandoned

    def is_branch_inside(self, number: int, test: Any) -> bool:
        """Whether a branch on data is one of a function that was handed to another one, and of the graph."""
        return self.recorder.bodies.is_in_function and self.is_branch_on_data(number, test)

    def branch(
        self,
        number: int,
        test: Any,
        then: Any,
        other: Any,
        names: Iterable[str] = (),
        live: Iterable[str] = (),
        turns: bool = True,
    ) -> Any:
        """A branch on data becomes one node."""
        numbers = () if names else [number_read_by(side, self.support.attribute) for side in (then, other)]
        if len({type(one) for one in numbers}) == 1 and MISSING not in numbers:
            predicate = self.recorder.argument(test)
            return chosen(self.recorder, predicate, tuple(numbers), self.support.truth(test))
        if not self.support.is_of_modes(test):
            self._open_loop()
        site = self._site(number)
        return Branch(self.pieces, site, test, then, other, self._snapshot(site)).record(names, live, turns)

    def is_number(self, value: Any) -> bool:
        """Whether a value is a number that comes from data."""
        return self._is_on() and issubclass(type(value), Scalar) and self.support.is_data(value)

    def _is_asked(self, value: Any) -> bool:
        """Whether the truth of a value is one of the graph."""
        return self._is_on() and (self.support.is_data(value) or self.support.is_of_modes(value))

    def contained(self, value: Any, group: Any) -> Any:
        """Whether a dtype is one of a group, as a number of the graph; None if the value is none."""
        if not self._is_on() or not self.support.is_fact(value):
            return None
        if not all(type(one) is type(value.plain) for one in group):
            return None
        node = self.recorder.create(operator.contains, (tuple(group), self.recorder.argument(value)))
        return self.recorder.result(value.plain in group, node)

    def truth(self, value: Any) -> Any:
        """``bool(value)``, a node if the value comes from data."""
        if not self._is_asked(value) or type(self.recorder.concrete(value)) is bool:
            return value
        node = self.recorder.create(bool, (self.recorder.argument(value),))
        return self.recorder.result(self.support.truth(value), node)

    def negated(self, value: Any) -> Any:
        """``not value``, a node if the value comes from data."""
        if not self._is_asked(value):
            return not value
        node = self.recorder.create(operator.not_, (self.recorder.argument(value),))
        return self.recorder.result(not self.support.truth(value), node)

    def text(self, pieces: tuple[str, ...], values: tuple[Any, ...]) -> str:
        """What an error says that leaves the program: a node makes it of the arrays and numbers in it."""
        if not self._is_on() or not leaves_program():
            return "".join(pieces).format(*values)
        followed = [any(map(self._is_leaf, one if isinstance(one, tuple) else (one,))) for one in values]
        fixed = [
            piece if is_followed else escaped(piece.format(value))
            for piece, value, is_followed in zip(pieces, values, followed, strict=False)
        ]
        shown = list(itertools.compress(values, followed))
        return text(self.recorder, self.support, "".join(fixed) + pieces[-1], shown)

    # ---- loops ---------------------------------------------------------------------------------------------------

    def is_loop_on_data(self, number: int, test: Any, rounds: int) -> bool:
        """Whether a ``while`` is one of the graph from here on: its test is tried, and undone."""
        self.pieces.check_rounds(rounds)
        site = self._site(number)
        progress = self.progress
        if not self._is_on() or site in progress.abandoned or (site in progress.peeled and not rounds):
            return False
        if site in progress.opened:
            return True
        piece = Piece(site, test, Paths(self.recorder.bodies), self._snapshot(site))
        (end,) = self.pieces.ends(piece, most=1)
        return piece.paths.has_questions or self.support.is_data(end.value)

    def loop(self, number: int, test: Any, body: Any, names: Sets, wants_broke: bool) -> Outcome:
        """A ``while`` on data becomes one node."""
        site = self._site(number)
        loop = Loop(self.pieces, site, test, body, names)
        return loop.record(wants_broke, site not in self.progress.peeled, self._snapshot(site))

    def iterate(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``range``, ``enumerate`` or ``zip``; of traced numbers, or of what is open ended, so is it."""
        is_made = any(function is one for one in (range, enumerate, zip))
        parts = None if is_made else self.support.parts(function, args, kwargs)
        if parts is not None and self._is_on() and self._opens(parts[1]):
            target, array, others, items = parts
            place = self.recorder.create(target, (self.recorder.argument(array), *others))
            plainly = None if self.recorder.options.dynamic else lambda: function(*args, **kwargs)
            return Iteration(place, items, None, [array], plainly)
        if kwargs and not all(type(_KEYWORDS.get((function, name))) is type(one) for name, one in kwargs.items()):
            return function(*map(self.walked, args), **kwargs)
        if function is range and self._is_on():
            args = tuple([self.support.index(one) if self.support.is_array(one) else one for one in args])
        is_range_of_array = function is range and any(map(self.support.is_array, args))
        if not self._is_on() or is_range_of_array or not any(self._is_walked(value) for value in args):
            return traced_range(*args) if function is range else function(*map(self.walked, args), **kwargs)
        if not all(map(self._can_be_walked, args)):
            return function(*map(self.walked, args), **kwargs)
        items = [self._items(value) for value in args]
        if kwargs.get("strict") and len(set(map(len, items))) > 1:  # it fails after some rounds, as it does in Python
            return function(*map(self.walked, args), **kwargs)
        place = self.recorder.create(function, tuple(self._argument(value) for value in args), kwargs)
        plainly = None if self._is_free(args) else lambda: self._plainly(function, args, kwargs)
        start = (0 if len(items) == 1 else items[0]) if function is range else None
        return Iteration(place, list(function(*items, **kwargs)), start, self._arrays(args), plainly)

    def _is_free(self, args: Iterable[Any]) -> bool:
        """Whether some of what is walked is free by itself, and not only for the sake of the loop."""
        if self.recorder.options.dynamic:
            return True
        numbers = [value for value in args if issubclass(type(value), Scalar)]
        inner = [value for value in args if isinstance(value, Iteration)]
        return any(map(self.support.is_data, numbers)) or any(value.plainly is None for value in inner)

    def _plainly(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What Python walks if no node does."""
        given = [
            value.plainly() if isinstance(value, Iteration) and value.plainly else self.walked(value) for value in args
        ]
        return traced_range(*given) if function is range else function(*given, **kwargs)

    def listed(self, array: Any, unpacks: bool, gives_parts: bool) -> Any:
        """A list out of an array that may have any length; None if it may not."""
        found = self.support.as_list(array, unpacks) if self._is_on() and self.support.is_array(array) else None
        if found is not None:
            found.gives_parts = gives_parts
        return found

    def grouped(self, function: Any, items: Any, place: int) -> Any:
        """The groups of what a node walks, of whatever lengths: how many there are, and their keys, are relied on."""
        if function is not itertools.groupby or not self._is_on() or not isinstance(items, Iteration):
            return None
        recorder = self.recorder
        groups = groups_of(items.items, place)
        if not all(type(key) in (int, bool) for key in keys_of(groups)):
            return None
        node = recorder.create(groups_of, (recorder.resolve(items.place), place))
        recorder.guard(recorder.create(keys_of, (node,)), keys_of(groups))
        lists = [recorder.create(operator.getitem, (node, index)) for index in range(len(groups))]
        return [
            (key, ListProxy(items, recorder.create(operator.getitem, (one, 1)), recorder))
            for (key, items), one in zip(groups, lists, strict=True)
        ]

    def repeated(self, items: list[Any], count: Any) -> Any:
        """A list that is repeated, which may have any length; None if it may not."""
        return self.support.repeated(items, count) if self._is_on() else None

    def places(self, group: Any, index: Any) -> list[Any] | None:
        """The indices of a small list or dict, where a whole number that comes from data is one; None elsewhere."""
        is_number = issubclass(type(index), Scalar) or self.support.is_array(index)
        if not is_number or not self._is_on() or not self.support.is_data(index):
            return None
        if not self.support.is_whole_number(index):
            return None
        found = self.support.places(group)
        return found if found is not None and 0 < len(found) <= _MOST_PLACES else None

    def index(self, value: Any) -> Any:
        """A whole number, as a traced one."""
        return self.support.index(value) if self.support.is_array(value) else value

    def indexed(self, array: Any, index: Any) -> Any:
        """An array indexed by a list of whole numbers, of whatever length; None if it is anything else."""
        if type(index) is not ListProxy or not self._is_on() or not index.is_whole or not self.support.is_array(array):
            return None
        numbers = self.recorder.concrete(index)
        return self.support.indexed(array, index) if numbers and all(type(one) is int for one in numbers) else None

    def walk(self, function: Any, values: Any) -> Any:
        """An iterator over an array or a list of any length, whose position is state that a piece may change."""
        if function is not iter or not self._is_on() or isinstance(values, Scalar) or not self._is_walked(values):
            return None
        return IteratorProxy(
            self.recorder, values, self.support.rows(values) if self.support.is_array(values) else None
        )

    def _arrays(self, args: Iterable[Any]) -> list[Any]:
        """The arrays among what is walked."""
        inner = [array for value in args if isinstance(value, Iteration) for array in value.arrays]
        return [*inner, *filter(self.support.is_array, args)]

    def _is_walked(self, value: Any) -> bool:
        if self.support.is_array(value):
            return self._opens(value)
        opens = self.recorder.options.dynamic or self.support.opens_loops
        is_number = issubclass(type(value), Scalar)
        is_whole = isinstance(value, (ListProxy, TupleProxy)) and value.is_whole
        return isinstance(value, Iteration) or is_whole or (is_number and (opens or self.support.is_data(value)))

    def _opens(self, array: Any) -> bool:
        """Whether a loop over an array is one of the graph."""
        return bool(self.recorder.options.dynamic or (self.support.opens_loops and not self.support.is_constant(array)))

    def _can_be_walked(self, value: Any) -> bool:
        """Whether a node can stand for what is walked."""
        is_number = issubclass(type(value), Scalar) or type(value) is int
        is_whole = isinstance(value, (ListProxy, TupleProxy)) and value.is_whole
        is_walkable = isinstance(value, Iteration) or type(value) is range or self.support.is_array(value)
        return is_number or is_whole or is_walkable

    def _items(self, value: Any) -> Any:
        if isinstance(value, Iteration):
            return value.items
        return self.support.rows(value) if self.support.is_array(value) else self.recorder.concrete(value)

    def _argument(self, value: Any) -> Any:
        return value.place if isinstance(value, Iteration) else self.recorder.argument(value)

    def is_open_ended(self, number: int, iterable: Any) -> bool:
        """Whether a ``for`` is one of the graph."""
        site = self._site(number)
        if not self._is_on() or site in self.progress.abandoned:
            return False
        is_list = isinstance(iterable, (ListProxy, TupleProxy)) and iterable.is_whole
        is_dynamic = self._opens(iterable) if self.support.is_array(iterable) else is_list
        opened = type(iterable) is range and site in self.progress.opened
        return isinstance(iterable, Iteration) or is_dynamic or opened

    def is_reduced(self, number: int, kind: str, function: Any, iterable: Any, is_whole: bool = False) -> bool:
        """Whether ``sum`` or its like over this is a loop of the graph; ``max`` and ``min`` of a ``whole`` list of
        numbers are calls."""
        is_list = isinstance(iterable, (ListProxy, TupleProxy))
        items = list(self.recorder.concrete(iterable)) if is_list and self._is_on() else []
        is_call = is_whole and kind in ("max", "min") and {type(item) for item in items} in ({int}, {float})
        return is_own(function, kind) and not is_call and self.is_open_ended(number, iterable)

    def give_up(self, number: int, why: str) -> None:
        """A loop cannot be one of the graph."""
        if self._is_on():
            raise Abandon(self._site(number), why)

    def check_summand(self, number: int, item: Any) -> None:
        """``sum`` of plain fractions is more exact than one addition after the other, from Python 3.12 on."""
        if sys.version_info >= (3, 12) and self._is_on() and type(self.recorder.concrete(item)) is float:
            raise Abandon(self._site(number), "sum() adds fractions in a way of its own")

    def walked(self, iterable: Any) -> Any:
        """What Python walks; items that a node would have given are relied on."""
        if not isinstance(iterable, Iteration):
            return iterable
        if iterable.plainly is not None:
            return iterable.plainly()
        self.support.listed(iterable.arrays)
        node = self.recorder.resolve(iterable.place)
        found = self.recorder.create(list, (node,))
        self.recorder.guard(self.recorder.create(len, (found,)), len(iterable.items))
        return self.recorder.result(self.recorder.apart(iterable.items), found)

    def _walk_of(self, numbers: range, example: Any = None) -> Iteration:
        """A range of plain numbers as what a node walks."""
        node = self.recorder.create(range, (numbers.start, numbers.stop, numbers.step))
        return Iteration(node, list(numbers), example)

    def _has_items(self, site: ConstructSite, node: Node) -> bool:
        """Whether there is a first round: a question, since what a loop without any leaves may be of another kind; in
        a loop that is met again and again, a guard."""
        if site in self._begun:
            self.progress.repeated.add(site)
            self.start_over()
        if site in self.progress.repeated:
            self.recorder.guard(node, True)
            return True
        self._begun.add(site)
        return bool(self.recorder.truth(node, True, is_data=True, is_fixed=True))

    def _first_of(self, example: Any, node: Node) -> Any:
        """The first item of a list that a node gives."""
        return self.recorder.result(self.recorder.apart(example), self.recorder.create(first_item, (node,)))

    def loop_over(
        self,
        number: int,
        items: Any,
        body: Any,
        names: Sets,
        wants_broke: bool,
        local_lists: tuple[str, ...],
        chains: tuple[str, ...],
        given_back: tuple[str, ...],
    ) -> Outcome:
        """A ``for`` over what is open ended becomes one node; local lists may have any length, and those that the
        program itself gives back."""
        site = self._site(number)
        is_own_wish = not self.recorder.options.dynamic and not (isinstance(items, Iteration) and items.plainly is None)
        known = items if type(items) is range else None
        if known is not None:
            items = None if site in self.progress.peeled and len(known) else self._walk_of(known)
        elif isinstance(items, (ListProxy, TupleProxy)):
            items = Iteration(self.recorder.argument(items), list(self.recorder.concrete(items)))
        elif self.support.is_array(items):
            items = Iteration(self.recorder.argument(items), self.support.rows(items), arrays=[items])
        peels = site in self.progress.peeled
        if peels and known is not None and len(known):  # how many rounds there are is known: so is the first one
            outcome = Outcome()
            if outcome.take(body(known[0])):
                return outcome
            items, peels = self._walk_of(known[1:], known[0]), False
        if items.example is None or (peels and not items.items):
            raise Abandon(site, "there is no item to record a round with")
        if peels:
            self.support.listed(items.arrays)
            node, example = self.recorder.create(list, (self.recorder.resolve(items.place),)), items.example
            outcome = Outcome()
            if not self._has_items(site, self.recorder.create(has_items, (node,))):
                return outcome
            try:
                is_over = outcome.take(body(self._first_of(example, node)))
            except CaptureError as error:  # it may be that the items were taken out before
                raise Abandon(site, one_line(error)) from error
            if is_over:
                return outcome
            items = Iteration(self.recorder.create(rest_of, (node,)), items.items[1:], example, items.arrays)
        seen = {*local_lists, *(given_back if is_own_wish and is_outermost() else ())}
        uses = ListUses(local_lists, seen if is_own_wish else None, chains)
        loop = Loop(self.pieces, site, None, body, names, items, uses)
        return loop.record(wants_broke, site not in self.progress.peeled, self._snapshot(site))
