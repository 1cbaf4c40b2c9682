"""Pieces of a program recorded into bodies: a side of a branch, a round or the test of a loop.

A piece runs once for each of its paths, and all side effects are undone each time. Each path ends with an ``End``: what
the piece returned, and what it left in variables and other locations. Values are taken apart into leaves (arrays,
numbers) and structure; two fit together if their structures are equal and their leaves of the same kinds. If the paths
do not fit, ``Abandon`` restarts the capture without the piece.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from clew.capture.bytecode.instructions import only_returns
from clew.capture.control_flow.paths import Paths, one_line
from clew.capture.control_flow.raising import arguments_of, is_raised, leaves_program, record_raise
from clew.capture.control_flow.runtime import Returned
from clew.capture.location import MISSING
from clew.capture.recording.example_recorder import ExampleRecorder
from clew.capture.recording.list_proxies import StateListProxy
from clew.capture.recording.nested_programs import OpenBody
from clew.capture.recording.opaque_calls import holds_traced
from clew.capture.recording.recorder import Scalar
from clew.capture.restart import Diverged, Restart, swallowed
from clew.capture.state.snapshot import Part, Snapshot
from clew.errors import CaptureError, ClewError
from clew.ir.arguments import rebuilt_tuple
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.capture.recording.run import Findings

ConstructSite = tuple[str, int, int]
"""A place in the user's source: file, line of the function, number of the construct in it."""

_MOST_PATHS = 32
_MOST_NESTED = 4
_MOST_ROUNDS = 20_000


class Abandon(Restart):
    """A piece cannot be recorded: the capture restarts without it.

    With ``peel`` a loop is tried once more, its first round taken out of it.
    """

    def __init__(self, site: ConstructSite, why: str, peel: bool = False) -> None:
        self.site = site
        self.why = why
        self.peel = peel

    def note(self, findings: Findings) -> None:
        findings.progress.give_up(self)


class Support:
    """What a framework does for the recording of pieces."""

    recorder: ExampleRecorder
    opens_loops = False
    """Whether loops over sizes and arrays become loops of the graph, even if sizes are not asked to be free."""

    def attribute(self, owner: Any, name: str) -> Any:
        """What an object holds under a name, without any code that runs for it; ``MISSING`` if that is not so."""
        return MISSING

    def is_constant(self, array: Any) -> bool:
        """Whether an array, and with it the number of its rows, is the same at each call."""
        return False

    def is_array(self, value: Any) -> bool:
        """True for arrays as the program sees them."""
        return bool(self.recorder.is_array(value))

    def fresh(self, array: Any) -> Any:
        """Another object for the same array."""
        raise NotImplementedError

    def kind(self, value: Any) -> Any:
        """What two arrays or numbers must have in common to stand in one place."""
        raise NotImplementedError

    def is_data(self, value: Any) -> bool:
        """Whether the truth of a value depends on what arrays hold."""
        raise NotImplementedError

    def is_measured(self, value: Any) -> bool:
        """Whether the truth of a value depends on sizes or numbers, and a branch of the user's on it is one of the
        graph."""
        return False

    def is_of_modes(self, value: Any) -> bool:
        """Whether the truth of a value depends on modes, of training say, and on dtypes, and on nothing else."""
        return False

    def is_fact(self, value: Any) -> bool:
        """Whether a value stands for a fact about an array that a group may be searched for."""
        return False

    def is_node_of_data(self, node: Node) -> bool:
        """Whether the value of a node depends on what arrays hold, or changes from round to round."""
        raise NotImplementedError

    def shape(self, value: Any) -> Any:
        """The shape of an array; None for a number."""
        return None

    def rows(self, array: Any) -> list[Any]:
        """The items of an array in the example."""
        raise NotImplementedError

    def parts(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any, tuple[Any, ...], list[Any]] | None:
        """For a call that takes an array apart: the function, the array, its other arguments, and the parts in the
        example; None for any other call."""
        return None

    def index(self, array: Any) -> Any:
        """The whole number that an array of no dimensions stands for, as a traced one; the array itself if none."""
        return array

    def listed(self, arrays: Sequence[Any]) -> None:
        """The items of these arrays are taken out before they are walked: the arrays must not change meanwhile."""

    def repeated(self, items: Any, number: Any) -> Any:
        """``items * number`` as a list of any length; None if it cannot be one."""
        return None

    def is_whole_number(self, value: Any) -> bool:
        """Whether a value is a traced whole number, or an array that holds one alone."""
        return type(self.recorder.concrete(value)) is int

    def places(self, group: Any) -> list[Any] | None:
        """The whole numbers by which items of a list, tuple or dict are found; None for other values."""
        kind = type(group)
        if kind not in (list, tuple, dict) and not (issubclass(kind, (list, dict)) and kind.__module__[:5] == "clew."):
            return None
        if not issubclass(kind, dict):
            return list(range(len(group)))
        keys = list(group)
        return keys if all(type(key) is int for key in keys) else None

    def indexed(self, array: Any, index: Any) -> Any:
        """``array[index]``, with a list of whole numbers of any length; None if that cannot be."""
        return None

    def as_list(self, array: Any, unpacks: bool) -> Any:
        """``array.tolist()`` as a list of any length; None if it cannot be one.

        Rows that are lists themselves must be taken apart at once: another who holds one could change it.
        """
        return None

    def truth(self, value: Any) -> bool:
        """The truth of a value in the example."""
        raise NotImplementedError

    def note_differences(self, site: ConstructSite, arrays: list[Any]) -> None:
        """Arrays and numbers come together in one place: what may differ in them must not be asked for later."""

    def rewinding(self) -> Any:
        """A block: what is done inside to arrays and random states is undone at its end."""
        raise NotImplementedError

    def plainly(self) -> Any:
        """A block: what is done inside is not recorded."""
        raise NotImplementedError


class End:
    """Where one path of a piece has ended."""

    def __init__(self, value: Any, levels: list[OpenBody]) -> None:
        self.value = value
        self.levels = levels
        self.arguments: tuple[Any, ...] = ()
        """The leaves of the value, or of what a ``return`` inside gives, as arguments of nodes."""
        self.places: dict[Any, Part] = {}
        self.values: dict[Any, Any] = {}
        self.left: dict[Any, tuple[Any, ...]] = {}
        """For each place what is there, and its leaves as arguments."""
        self.raised = False
        """Whether the path ends with an error that leaves the program: then nothing comes out of it."""

    @property
    def returned(self) -> Any:
        """What the piece gave back, taken out of a ``return``."""
        return self.value.value if isinstance(self.value, Returned) else self.value


class Piece:
    """What runs, into which paths, from which state; ``bind`` lets inputs enter, ``carried`` are read at the end."""

    def __init__(
        self,
        site: ConstructSite,
        function: Callable[..., Any],
        paths: Paths,
        snapshot: Snapshot,
        bind: Callable[[], tuple[Any, ...]] = tuple,
        carried: Sequence[Part] = (),
    ) -> None:
        self.site = site
        self.function = function
        self.paths = paths
        self.snapshot = snapshot
        self.bind = bind
        self.carried = carried
        self.inputs: list[Node] = []
        """The inputs of the body, where there are any by now."""
        self.raising: list[End] = []
        """The paths that end with an error, where these are none of the others."""
        self.is_untaken = False
        """Whether the program does not go there on the example."""
        self.is_constant = bind is tuple and not carried and only_returns(function)
        """Whether it does nothing at all, as the other side of an ``if`` without an ``else``: nothing to undo."""

    @property
    def body(self) -> OpenBody:
        """The body that the piece becomes."""
        assert self.paths.body is not None
        return self.paths.body


def _is_traced_key(key: Any) -> bool:
    if isinstance(key, tuple):
        return any(map(_is_traced_key, key))
    return issubclass(type(key), Scalar)


class PieceRecorder:
    """Records pieces of one run of a program."""

    def __init__(self, recorder: ExampleRecorder, support: Support) -> None:
        self.recorder = recorder
        self.support = support
        self.running: list[Piece] = []
        """The pieces that are being recorded, each inside of the one before."""

    def _check_nested(self, piece: Piece) -> None:
        """Give up a construct that a function which calls itself comes to again and again where the example does not
        go: with the numbers of the example that may have no end."""
        inside = list(itertools.dropwhile(lambda one: not (one.is_untaken and one.site == piece.site), self.running))
        if sum(one.site == piece.site for one in inside) > _MOST_NESTED:
            raise Abandon(piece.site, "the program calls itself here on a way that the example does not go")

    def check_rounds(self, rounds: int) -> None:
        """Raise if a loop may have no end: one that is run with values that the program never has there."""
        paths = self.recorder.paths
        if rounds > _MOST_ROUNDS and paths is not None and (paths.body is not None or paths.answers):
            raise CaptureError("a loop seems to have no end on a way that the example does not go")

    def ends(self, piece: Piece, most: int = _MOST_PATHS) -> list[End]:
        """Run a piece for each of its paths."""
        self._check_nested(piece)
        self.running.append(piece)
        try:
            return self._ends(piece, most)
        finally:
            self.running.pop()

    def _ends(self, piece: Piece, most: int) -> list[End]:
        recorder, paths = self.recorder, piece.paths
        outer, guarded, levels = recorder.paths, recorder.guarded, len(recorder.bodies.open)
        check, recorder.hooks.check_piece = recorder.hooks.check_piece, self._checking(piece.site)
        found: list[End] = []
        answers: tuple[bool, ...] | None = ()
        recorder.paths = paths
        if outer is not None:
            paths.limited, paths.most_paths = outer.limited, outer.most_paths
        try:
            while answers is not None:
                recorder.guarded = set(guarded)
                paths.begin(recorder.bodies, answers)
                ended: list[End] = []
                try:
                    ended = self._path(piece, is_forced=bool(answers))
                    found += ended
                finally:
                    del recorder.bodies.open[levels:]
                    recorder.open = False  # traced numbers among the keys of a dict are plain ones from here on
                    if not piece.is_constant:
                        piece.snapshot.restore(was_looked_at=any(not end.raised for end in ended))
                    recorder.open = True
                answers = next(paths.open_paths(), None) if paths.runs < most else None
        finally:
            recorder.paths, recorder.guarded, recorder.hooks.check_piece = outer, guarded, check
        return found

    @property
    def is_off_example(self) -> bool:
        """Whether the program runs off the path of the example: its values need not fit the answers."""
        paths = self.recorder.paths
        return paths is not None and bool(paths.answers or paths.assumed)

    @contextmanager
    def plainly(self, site: ConstructSite) -> Iterator[None]:
        """A block that runs, on plain values, a piece that has been recorded."""
        try:
            with self.support.plainly():
                yield
        except ClewError:
            raise
        except Exception as error:
            if self.is_off_example:
                raise Abandon(site, f"on the example it cannot be run here: {one_line(error)}") from error
            raise

    def _checking(self, site: ConstructSite) -> Callable[[Node, str], None]:
        """What gives a piece up if it changes what stands for a node of the graphs around it."""
        bodies = self.recorder.bodies
        around = [bodies.outermost, *(body.graph for body in bodies.open)]

        def check(node: Node, why: str) -> None:
            if any(node.graph is graph for graph in around):
                raise Abandon(site, why)

        return check

    def _path(self, piece: Piece, is_forced: bool) -> list[End]:
        """One path of a piece; none if it cannot be recorded."""
        recorder = self.recorder
        failure, recorder.error_notes.failure = recorder.error_notes.failure, None
        try:
            with nullcontext() if piece.is_constant else self.support.rewinding():
                end = End(piece.function(*piece.bind()), list(recorder.bodies.open))
                self._look_around(piece, end)
            if recorder.error_notes.failure is not None:
                raise CaptureError("it catches an error of one of its calls")
            kept = swallowed()
            if kept is not None:
                raise kept
            if not piece.is_constant and piece.snapshot.changes_class():
                raise CaptureError("it sets an attribute of a class or of an array")
            if not piece.is_constant and piece.snapshot.reorders():
                raise CaptureError("it changes the order of a dict")
        except (Exception, Diverged) as error:
            if isinstance(error, Exception) and (is_forced or piece.is_untaken) and self._raises(piece, error):
                return [self._raising_end(piece, error)]
            if not is_forced or not piece.paths.is_ahead:
                raise Abandon(piece.site, f"it cannot be recorded: {one_line(error)}") from error
            piece.paths.give_up(error)
            return []
        finally:
            recorder.error_notes.failure = failure
        piece.paths.end()
        return [end]

    def _raises(self, piece: Piece, error: Exception) -> bool:
        """Whether an error is the program's own, and all that is left of this path when it has left the program."""
        snapshot = piece.snapshot
        is_own = is_raised(error) and self.recorder.error_notes.failure is None and leaves_program()
        if not is_own or arguments_of(self.recorder, error) is None:
            return False
        return snapshot.changes_only_locals() and not snapshot.changes_class() and not snapshot.reorders()

    def _raising_end(self, piece: Piece, error: Exception) -> End:
        recorder = self.recorder
        made = arguments_of(recorder, error)
        assert made is not None, "else it is not the end of a way"
        record_raise(recorder, made)
        end = End(None, list(recorder.bodies.open))
        end.raised = True
        piece.paths.end()
        return end

    def _look_around(self, piece: Piece, end: End) -> None:
        """Note what the piece has left behind."""
        end.arguments = self.arguments(end.returned)
        changed = [] if piece.is_constant else [(place, now) for place, _, now in piece.snapshot.changed()]
        if any(_is_traced_key(place.place) for place, _ in changed):
            raise CaptureError("a number that comes from data is a key of a dict")
        for place, now in [*changed, *((place, place.get()) for place in piece.carried)]:
            key = place.key
            end.places[key], end.values[key], end.left[key] = place, now, self.arguments(now)

    def arguments(self, value: Any) -> tuple[Any, ...]:
        """The leaves of a value as arguments of nodes."""
        return tuple(self.recorder.argument(leaf) for leaf in leaves_of(self.recorder, value))

    def check_fit(self, site: ConstructSite, values: Sequence[Any], peel: bool = False) -> None:
        """Values that shall stand in one place must have the same structure, and leaves of the same kinds."""
        leaves = [leaf for value in values for leaf in leaves_of(self.recorder, value)]
        if any(stays_inside(self.recorder, leaf) for leaf in leaves):
            raise Abandon(site, "a variable holds a text that follows from a dtype or device")
        first = structure_of(self.recorder, values[0])
        kinds = self._kinds(values[0])
        for value in values[1:]:
            if (value is MISSING) != (values[0] is MISSING):
                raise Abandon(site, "a variable is set on one way only", peel)
            if structure_of(self.recorder, value) != first:
                raise Abandon(site, "a variable holds different things on different ways", peel)
            if self._kinds(value) != kinds:
                raise Abandon(site, "a variable is of another type on another way", peel)
        self.support.note_differences(site, leaves)

    def check_containers(self, piece: Piece, before: Any, values: Sequence[Any]) -> None:
        """What comes to stand in one place is copied: no list or dict in it may be held by another place too, and no
        object in it may have been made inside, with arrays and numbers that belong to that run alone."""
        if any(self._is_made(piece, one) for value in values for one in constants_of(self.recorder, value)):
            raise Abandon(piece.site, "a variable holds an object that was made inside")
        own = {id(one) for one in containers_of(before) if not piece.snapshot.is_shared(one)}
        rows = [list(containers_of(value)) for value in values]
        foreign = [one for row in rows for one in row if piece.snapshot.knows(one) and id(one) not in own]
        if not foreign:
            return
        same = all(list(map(id, row)) == list(map(id, rows[0])) for row in rows)
        if not same or any(True for one in foreign for _ in leaves_of(self.recorder, one)):
            raise Abandon(piece.site, "a variable holds a list or dict that another one holds too")

    def _is_made(self, piece: Piece, value: Any) -> bool:
        return not piece.snapshot.knows(value) and holds_traced(self.recorder, value)

    def check_alone(self, site: ConstructSite, values: Sequence[Any]) -> None:
        """What one path leaves in different places must not be the same list or dict."""
        found = [id(one) for value in values for one in containers_of(value)]
        if len(set(found)) < len(found):
            raise Abandon(site, "two variables hold the same list or dict")

    def _kinds(self, value: Any) -> list[Any]:
        return [self.support.kind(leaf) for leaf in leaves_of(self.recorder, value)]

    def tied(self, leaf: Any, place: Any) -> Any:
        """A value of the example as the result of a node; an object of its own, for others may hold the same array."""
        if self.recorder.is_array(leaf):
            leaf = self.support.fresh(leaf)
        return self.recorder.result(self.recorder.concrete(leaf), place)


# ---- values taken apart: leaves and structure ------------------------------------------------------------------------

_NUMBERS = (bool, int, float, complex)
_PLAIN = (str, bytes, type(None), type)


class Leaf:
    """Stands in a structure for an array or a number."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf)

    __hash__ = None  # type: ignore[assignment]


LEAF = Leaf()


class Constant:
    """Stands in a structure for a value that is neither: the same object, or an equal plain one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return False
        same = type(self.value) is type(other.value) and isinstance(self.value, (str, bytes, type(None)))
        return self.value is other.value or (same and bool(self.value == other.value))

    __hash__ = None  # type: ignore[assignment]


def is_leaf(recorder: ExampleRecorder, value: Any) -> bool:
    """Whether a value is an array or a number, or of another class that the graph follows."""
    kind = type(value)
    return kind in _NUMBERS or kind in recorder.leaf_kinds or issubclass(kind, Scalar) or recorder.is_array(value)


def stays_inside(recorder: ExampleRecorder, value: Any) -> bool:
    """Whether a value is followed where it was made, and nowhere else: its plain one is no leaf."""
    return issubclass(type(value), Scalar) and not is_leaf(recorder, recorder.concrete(value))


def structure_of(recorder: ExampleRecorder, value: Any) -> Any:
    """The structure of a value."""
    if is_leaf(recorder, value):
        return LEAF
    kind = type(value)
    if isinstance(value, tuple):
        return (kind, [structure_of(recorder, item) for item in value])
    if kind is list:
        return (kind, [structure_of(recorder, item) for item in value])
    if kind is dict:
        return (kind, {key: structure_of(recorder, item) for key, item in value.items()}, list(value))
    return Constant(value)


def leaves_of(recorder: ExampleRecorder, value: Any) -> Iterator[Any]:
    """The arrays and numbers in a value, from left to right."""
    if is_leaf(recorder, value):
        yield value
    elif isinstance(value, tuple) or type(value) is list:
        for item in value:
            yield from leaves_of(recorder, item)
    elif type(value) is StateListProxy:
        if value.size is not None:
            yield value.length()
        for item in list.__iter__(value):  # past its note of who looks at it
            yield from leaves_of(recorder, item)
    elif type(value) is dict:
        for item in value.values():
            yield from leaves_of(recorder, item)


def constants_of(recorder: ExampleRecorder, value: Any) -> Iterator[Any]:
    """What in a value is neither an array or number nor a tuple, list or dict, but for plain values."""
    if is_leaf(recorder, value) or isinstance(value, (*_PLAIN, StateListProxy)):
        return
    if isinstance(value, tuple) or type(value) in (list, dict):
        for item in value.values() if type(value) is dict else value:
            yield from constants_of(recorder, item)
    else:
        yield value


def containers_of(value: Any) -> Iterator[Any]:
    """The lists and dicts in a value, which a copy of it would not share with others."""
    if type(value) in (list, dict):
        yield value
    if isinstance(value, tuple) or type(value) is list:
        for item in value:
            yield from containers_of(item)
    elif type(value) is dict:
        for item in value.values():
            yield from containers_of(item)


def with_leaves(recorder: ExampleRecorder, value: Any, change: Callable[[Any], Any]) -> Any:
    """A value like this one, with other leaves; what holds none is the same object."""
    if is_leaf(recorder, value):
        return change(value)
    if not any(True for _ in leaves_of(recorder, value)):
        return value
    if isinstance(value, tuple):
        items = [with_leaves(recorder, item, change) for item in value]
        return tuple(items) if type(value) is tuple else rebuilt_tuple(value, items)
    if type(value) is list:
        return [with_leaves(recorder, item, change) for item in value]
    return {key: with_leaves(recorder, item, change) for key, item in value.items()}
