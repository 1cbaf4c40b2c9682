"""One capture of a NumPy program: run it on the example under the recorder, then put everything back.

Comes in: a function, method or callable object and its arguments. Goes out: the graph, its constants, the guards.
Arrays, attributes, variables and the random state are as they were afterwards. State that the program changed enters
the next run as an input and is written by the graph; what a graph could not change again is refused.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from clew.capture.example.captured import Captured
from clew.capture.example.folding import Folding
from clew.capture.example.guards import Variable
from clew.capture.example.implied import drop_implied
from clew.capture.example.inputs import bind
from clew.capture.example.nests import Nests
from clew.capture.example.outputs import plain
from clew.capture.example.programs import behind, check_slots, signature_of
from clew.capture.example.reach import asks_for_identity, compares_objects
from clew.capture.example.recorder import Recorder
from clew.capture.example.slots import Slot
from clew.capture.example.state import State, current
from clew.capture.example.surroundings import Surroundings, functions_of, held_by
from clew.capture.example.writes import Writes
from clew.capture.symbolic.patches import Patches
from clew.capture.symbolic.wrap import handle_call, install
from clew.errors import CaptureError, ClewError
from clew.frameworks.numpy import caches, islands, libraries, makers, numbers, sites, streams
from clew.frameworks.numpy.entry_guards import EntryGuards
from clew.frameworks.numpy.islands import CannotFollow, cannot_follow, find_island
from clew.frameworks.numpy.places import Places
from clew.frameworks.numpy.recording import NumpyRecorder
from clew.frameworks.numpy.rollback import Rollback
from clew.frameworks.numpy.streams import Streams
from clew.frameworks.numpy.traced import is_traced, stand_in
from clew.ir.arguments import leaves

_running: contextvars.ContextVar[_Capture | None] = contextvars.ContextVar("clew_numpy_capture", default=None)
_MOST_RUNS = 12


def capture(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    leaves: Any = None,
    static: frozenset[str] = frozenset(),
    keep: bool = False,
    include_generators: bool = True,
    array_caching: bool = True,
    opaque: str = "call",
    control_flow: str = "guard",
    dynamic: bool = False,
) -> Captured:
    """Run ``fn`` on the example and record it; with ``keep`` what the run did stays done.

    A run that finds state that it changes is undone, and the capture started over with that state among its inputs.
    """
    _check_options(leaves, opaque, control_flow)
    lifted: dict[Any, Slot] = {}
    found: list[Any] = []
    for _ in range(_MOST_RUNS):
        run = _Capture(fn, static, keep, found)
        run.recorder.folding = Folding(caches=array_caching, bakes=not include_generators)
        run.recorder.refuses_opaque = opaque == "error"
        run.recorder.refuses_questions = control_flow == "error"
        try:
            captured = run.run(args, kwargs, lifted.values())
        except CannotFollow as error:
            island = find_island(error, fn, found)
            if island is None or opaque == "error":
                raise
            found.append(island)
            continue
        if captured is not None:
            return captured
        lifted |= {slot.key: slot for slot in run.found}
        run.state.forget()
    raise CaptureError(
        "the program changes other places of its state in each run", why=", ".join(slot.label for slot in run.found)
    )


def _check_options(leaves: Any, opaque: str, control_flow: str) -> None:
    if control_flow not in ("capture", "guard", "error"):  # branches and loops on data are guarded, whichever is asked
        raise CaptureError(f"control_flow={control_flow!r} says nothing", fixes=('give "guard" or "error"',))
    if opaque not in ("call", "error"):
        raise CaptureError(f"opaque={opaque!r} says nothing", fixes=('give "call" or "error"',))
    if leaves is not None:
        raise CaptureError("leaves says which modules stay calls, and NumPy has no modules", fixes=("leave it out",))
    if _running.get() is not None:
        raise CaptureError("a capture was started inside another one", fixes=("capture before the program runs",))


class _Capture:
    """One run of a program that is being captured."""

    def __init__(self, fn: Any, static: frozenset[str], keep: bool, islands: list[Any]) -> None:
        self.fn = fn
        self.islands = islands
        self.keep = keep
        self.raised = False
        self.found: list[Slot] = []
        self.recorder = NumpyRecorder()
        self.nests = Nests(self.recorder, lambda value, place: stand_in(value, place, self.recorder), static)
        programs = behind(fn)
        self.functions = list(dict.fromkeys(function for part in programs for function in functions_of(part)))
        check_slots(programs)
        held = [one for part in programs if isinstance(part, partial) for one in held_by(part)]
        self.surroundings = Surroundings(self.functions, {type(part) for part in programs}, held)
        self.state = State(self.nests)
        self.rollback = Rollback()
        self.places = Places(self.recorder)
        self.streams = Streams(self.rollback, self.recorder)
        recorder = self.recorder
        recorder.surroundings, recorder.state, recorder.rollback = self.surroundings, self.state, self.rollback
        recorder.places, recorder.streams = self.places, self.streams
        codes = [function.__code__ for function in self.surroundings.functions]
        recorder.compares_objects = any(map(compares_objects, codes))
        if any(map(asks_for_identity, codes)):
            self.nests.plain_kinds = (bool,)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], lifted: Iterable[Slot]) -> Captured | None:
        """Record one run; None if it changed state that was not lifted, which ``found`` then names."""
        self._watch_state()
        done = False
        try:
            given = bind(self.nests, signature_of(self.fn), args, kwargs)
            self._enter(lifted)
            try:
                with self._recording():
                    result = self._call(given)
            finally:
                self.places.leave()
            self._check()
            self.found = self.state.changed()
            done = not self.found and self._finish(result)
        except TypeError as error:
            if "Traced" not in str(error):
                raise
            raise CaptureError(
                f"a value that comes from an input went where only a plain one can go: {error}",
                fixes=("keep the function that does it as one call: clew.wrap",),
            ) from error
        finally:
            self.recorder.open = False
            self._leave(self.keep and (done or self.raised))
        if not done:
            return None
        value = plain(self.recorder, result) if self.keep else None
        return Captured(None, self.recorder.constants, self.recorder.graph, value, (), self.state.pins())

    def _watch_state(self) -> None:
        """Remember everything that the program can change besides its arguments."""
        for owner in self._owners():
            self.state.watch(owner, owner.__dict__)
        for kind in self.surroundings.classes():
            self.state.watch_class(kind)
            for name in [name for name in vars(kind) if self.surroundings.stores(name) and not name.startswith("__")]:
                self.state.watch_variable(Variable(kind, name))
        for holder, name in self.surroundings.cells():
            self.state.watch_variable(Variable(holder, name))

    def _owners(self) -> list[Any]:
        """Objects whose attributes the program may change: a callable object, a method's object, functions."""
        reached = [one for one in self.surroundings.functions if "-packages" not in one.__code__.co_filename]
        owners = [*behind(self.fn), *dict.fromkeys([*self.functions, *reached])]
        plain = [owner for owner in owners if not isinstance(owner, type)]
        return [owner for owner in plain if isinstance(getattr(owner, "__dict__", None), dict)]

    def _enter(self, lifted: Iterable[Slot]) -> None:
        """Let the arguments and the lifted state enter, with their guards, and the arrays around the program."""
        self.nests.write_checks()
        self._look_around_callables()
        self.state.lift(lifted)
        self._look_around_callables()
        self.nests.resolve_arrays()
        self.after_inputs = self.recorder.graph._root._prev
        around = [Variable(holder, name) for holder, name in self.surroundings.everything()]
        kinds = self.surroundings.classes()
        around += [Variable(kind, name) for kind in kinds for name in vars(kind) if not name.startswith("__")]
        self.places.enter(around, self.surroundings.functions, self._owners())

    def _look_around_callables(self) -> None:
        """Functions and objects that came in can be called: watch the variables around them."""
        for function in [found for value in self.nests.callables for found in functions_of(value)]:
            for holder, name in self.surroundings.add(function):
                self.state.watch_variable(Variable(holder, name))
        self.nests.callables.clear()

    def _check(self) -> None:
        """Raise if the run did something that no node of the graph does again."""
        if self.recorder.failure is not None:
            kind, where = self.recorder.failure
            raise CaptureError(
                f"the program catches a {kind} that one of its calls raised",
                where=where,
                why="whether it is raised may depend on the input",
                fixes=("test the condition instead of catching the error",),
            )
        if self.streams.moved_unseen():
            raise CaptureError(
                "the program draws random numbers by means that the capture does not see",
                why="they would be frozen in the graph",
                fixes=("pass the random value as an argument", "use numpy.random or a Generator"),
            )
        self.rollback.check_unseen()
        self.surroundings.check_streams(self.streams.followed_ones)
        self.state.check_entered()

    def _leave(self, stays: bool) -> None:
        """Put everything back, or let what the run did stay done."""
        if stays:
            settled = partial(plain, self.recorder)
            self.state.settle(settled)
            self.nests.settle(settled)
            return
        self.nests.put_back()
        self.state.put_back()
        self.rollback.put_back()
        self.surroundings.put_back_streams()

    def _call(self, given: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
        """Run the program; an error of its own is its own, and what it did before stays done if the run counts."""
        self.recorder.running = True
        try:
            args = [makers.standing(value) for value in given[0]]
            return self.fn(*args, **{name: makers.standing(value) for name, value in given[1].items()})
        except ClewError:
            raise
        except Exception as error:
            if self.recorder.raised is not error and islands.is_raised_inside(error):
                raise cannot_follow(f"a library that meets a value of the capture ({type(error).__name__})") from error
            self.raised = True
            raise
        finally:
            self.recorder.running = False

    @contextmanager
    def _recording(self) -> Iterator[None]:
        token, wrapped, state = _running.set(self), handle_call.set(self.call_wrapped), current.set(self.state)
        own = self.surroundings.functions
        functions = [*own, *libraries.functions()]
        try:
            with Patches() as patches:
                install(patches)
                islands.install(patches, self.islands, own)
                self.state.install(patches)
                makers.install(patches, _current_recorder, functions)
                streams.install(patches, _current_recorder, functions)
                numbers.install(patches, functions)
                caches.install(patches, _current_recorder, functions)
                sites.install(patches, _current_recorder, functions)
                yield
        finally:
            _running.reset(token)
            handle_call.reset(wrapped)
            current.reset(state)

    def call_wrapped(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function that the user has wrapped, or that cannot be followed: one node, whatever is inside."""
        if self.recorder.depth or not any(is_traced(leaf) for leaf in leaves((args, kwargs))):
            return function(*args, **kwargs)
        why = "the capture cannot follow it" if function in self.islands else "it is wrapped"
        return self.recorder.whole(function, args, kwargs, why)

    def _finish(self, result: Any) -> bool:
        """Complete the graph; False if the result holds state, which must be lifted first."""
        graph = self.recorder.graph
        self.recorder.finishing = True
        graph.output(Writes(self.state, graph).finish(result))
        self.found = self.state.wanted()
        with graph.inserting_before(self.after_inputs._next):
            self.state.drop_unread()
        entry = EntryGuards(self.recorder, self.nests, self.surroundings, self.state)
        entry.write(self.after_inputs, self._owners())
        self.recorder.folding.fold(graph, partial(Recorder._new_constant, self.recorder))
        drop_implied(graph, None)
        graph.eliminate_dead_code()
        return not self.found


def _current_recorder() -> NumpyRecorder | None:
    """The recorder of the capture that is recording right now, in this context."""
    run = _running.get()
    return None if run is None or run.recorder.depth else run.recorder
