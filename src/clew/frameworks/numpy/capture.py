"""One run of a NumPy program on the example, under the recorder; then everything is put back.

Comes in: a callable, what the user has asked for, and what earlier runs have found out. Goes out: what the run
recorded, in the graph of all runs. Arrays, attributes, variables and the random state are as they were afterwards.
State that the program changed enters the next run as an input and is written by the graph; what a graph could not
change again is refused.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy

from clew.capture.bytecode.handled_errors import refused_proxies
from clew.capture.bytecode.try_blocks import ENTRANCES
from clew.capture.captured import Captured
from clew.capture.control_flow.argument_uses import Framework, asks, handed_on, sees_order
from clew.capture.control_flow.explore import capture_until_known, explore_paths
from clew.capture.control_flow.paths import Paths
from clew.capture.guards.lifting import lift_guards
from clew.capture.guards.notes import Variable
from clew.capture.guards.variable_reads import Reads
from clew.capture.options import Options
from clew.capture.patches import Patches
from clew.capture.python import caches, replacements
from clew.capture.python.caches import CachedCalls
from clew.capture.python.listener import Listener
from clew.capture.recording import numbers
from clew.capture.recording.alternatives import Choices
from clew.capture.recording.inputs import bind
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.recording.run import ExampleRun, Findings, Given
from clew.capture.state.reachable import behind, signature_of
from clew.capture.state.slots import Slot
from clew.capture.state.surroundings import functions_of
from clew.capture.symbolic.wrap import install
from clew.errors import CaptureError, ClewError
from clew.frameworks.numpy import call_sites, constructors, files, opaque_calls, random_streams
from clew.frameworks.numpy.array_proxy import Places, Reliance, is_traced
from clew.frameworks.numpy.effects import METHODS, is_function
from clew.frameworks.numpy.entry_guards import EntryGuards, NumpyInputs, UpdatedValues
from clew.frameworks.numpy.facts import may_catch_class
from clew.frameworks.numpy.opaque_calls import NUMPY_FOLDER, cannot_follow, find_island
from clew.frameworks.numpy.random_streams import NumpyStreams
from clew.frameworks.numpy.recorder import NumpyRecorder
from clew.frameworks.numpy.undo import NumpySupport, Rollback
from clew.ir.arguments import leaves
from clew.ir.graph import Graph
from clew.ir.source import is_installed

ENTRANCES.add(__name__)
_running: contextvars.ContextVar[Run | None] = contextvars.ContextVar("clew_numpy_capture", default=None)


class Run(ExampleRun):
    """One run of a program that is being captured; after the ``first`` one further runs take other paths."""

    running = _running
    recorder: NumpyRecorder
    inputs: NumpyInputs
    updates = Reliance.NOTHING
    """What it depends on which values the program writes to, and of which it makes others."""
    recorder_class: type[NumpyRecorder] = NumpyRecorder
    guards_class: type[EntryGuards] = EntryGuards
    inputs_class: type[NumpyInputs] = NumpyInputs
    framework = Framework(is_function, METHODS)

    def __init__(
        self,
        fn: Any,
        settings: Options,
        findings: Findings,
        paths: Paths | None = None,
        first: Run | None = None,
        answers: tuple[bool, ...] = (),
    ) -> None:
        super().__init__(fn, settings, findings, paths, first)
        recorder = self.recorder = self.recorder_class()
        self._connect(recorder, answers)
        self.inputs = self.inputs_class(recorder, settings.static)
        self.inputs.plain_kinds += (bool, int, float) if findings.has_plain_numbers else ()
        programs = behind(fn)
        self._look_around(programs, list(dict.fromkeys(found for part in programs for found in functions_of(part))))
        self.rollback = Rollback()
        self.places = Places(recorder)
        self.streams = NumpyStreams(self.rollback, recorder)
        recorder.rollback, recorder.places, recorder.streams = self.rollback, self.places, self.streams
        self._follow_control_flow(NumpySupport(recorder), programs)
        codes = [function.__code__ for function in self.surroundings.functions]
        self._keep_identities(codes)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
        """Let the arguments enter: what the program gets in their place."""
        self.inputs.handed_on = self._handed_on(args, kwargs)
        self.inputs.choices = self._choices(args, kwargs)
        return bind(self.inputs, signature_of(self.fn), args, kwargs, self.fn)

    def _take_out_proxies(self) -> None:
        """Put back what proxies stood for in variables around the program."""
        self.places.leave()

    def _handed_on(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> frozenset[str]:
        """The parameters that the program only hands on to calls of the framework."""
        if self.recorder.identity.is_asked or not isinstance(self.fn, FunctionType):
            return frozenset()
        try:
            bound = signature_of(self.fn).bind(*args, **kwargs).arguments
        except TypeError:  # which binding says
            return frozenset()
        arrays = {name for name, value in bound.items() if self.recorder.is_array(value)}
        return handed_on(self.fn, arrays, self.framework) - self.settings.static

    def _choices(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Choices | None:
        """The arguments that may be of other kinds: optional ones, and texts."""
        if self.paths is None or self.settings.refuses_questions:
            return None
        self.inputs.examples = [one for one in (*args, *kwargs.values()) if self.recorder.is_array(one)]
        own = [one for one in self.surroundings.functions if not is_installed(one.__code__)]
        asked = self.inputs.asked = asks(self.fn, own, self.framework.is_function)
        orders = self.inputs.key_orders
        orders.may_ask, orders.is_unseen = self.findings.asks_orders, self.findings.sees_no_order
        orders.is_seen = sees_order(own, self.framework.takes_nests)
        return Choices(self.inputs, asked, self.findings, self.settings.static)

    def _explain(self, error: Exception) -> None:
        """Raise the error; where C code refused a proxy, say so."""
        if isinstance(error, TypeError) and refused_proxies(error):
            raise CaptureError(
                f"a value that comes from an input went where only a plain one can go: {error}",
                fixes=("keep the function that does it as one call: clew.wrap",),
            ) from error
        raise error

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
        self._watch_outside()
        self.surroundings.watch_streams(self.state.streams)
        self.streams.follow(self.surroundings.python_streams())

    def _enter(self, lifted: list[Slot]) -> None:
        """Let the arguments and the lifted state enter, with their guards, and the arrays around the program."""
        self.inputs.write_checks()
        self._look_around_callables()
        self.state.lift(lifted)
        self._look_around_callables()
        self.inputs.resolve_arrays()
        self.after_inputs = self.recorder.graph._root._prev
        around = [Variable(holder, name) for holder, name in self.surroundings.everything()]
        kinds = self.surroundings.classes()
        around += [Variable(kind, name) for kind in kinds for name in vars(kind) if not name.startswith("__")]
        self.places.enter(around, self.surroundings.functions, self._owners())

    def _check(self) -> None:
        """Raise if the run did something that no node of the graph does again."""
        self._check_failure()
        if self.streams.moved_unseen():
            raise CaptureError(
                "the program draws random numbers by means that the capture does not see",
                where=self._line(),
                why="they would be frozen in the graph",
                fixes=("pass the random value as an argument", "use numpy.random or a Generator"),
            )
        self.rollback.check_unseen()
        self.open_files.check()
        self.recorder.cached.check()
        self.surroundings.check_streams([*self.streams.followed_ones, *self.streams.own])
        self.state.check_entered()

    def _undone(self) -> list[Any]:
        """All that has a ``put_back``, in the order in which it is put back."""
        return [*super()._undone(), self.rollback]

    def _prepared(self, given: Given) -> Given:
        """The arguments right before the program gets them."""
        args, kwargs = given
        replaced = constructors.replacement_of
        return tuple(map(replaced, args)), {name: replaced(value) for name, value in kwargs.items()}

    def _check_raised(self, error: Exception) -> None:
        """Raise another error if this one is not the program's own."""
        if self.recorder.raised is not error and opaque_calls.is_raised_inside(error):
            raise cannot_follow(f"a library that meets a value of the capture ({type(error).__name__})") from error

    def _listener(self) -> Listener:
        """The listener to plain Python during the run."""
        return NumpyListener(self.recorder)

    def _install(self, patches: Patches) -> None:
        """Replace what reports to the recorder, for the time of the run."""
        own = self.surroundings.functions
        functions = [*own, *opaque_calls.functions()]
        install(patches)
        opaque_calls.install(patches, self.islands, own)
        self.state.install(patches, self.surroundings.stored)
        replacements.install(patches)
        numbers.install(patches)
        files.install(patches)
        replacements.install_in(patches, self.surroundings, map(vars, self._owners()))
        constructors.install(patches, _current_recorder, functions)
        random_streams.install(patches, _current_streams, NumpyStreams, functions)
        caches.install(
            patches, _current_caches, self.surroundings, self.surroundings.classes(), opaque_calls.functions()
        )
        self.findings.progress.rewrites.install(patches)
        call_sites.install(patches, _current_recorder, functions)
        self._install_reads(patches)
        self._install_more(patches, functions)

    def _install_more(self, patches: Patches, functions: list[Any]) -> None:
        """What a run of another framework's programs replaces besides."""

    def call_wrapped(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function that the user has wrapped, or that cannot be followed: one node, whatever is inside."""
        if self.recorder.depth or not any(is_traced(leaf) for leaf in leaves((args, kwargs))):
            return function(*args, **kwargs)
        why = "the capture cannot follow it" if function in self.islands else "it is wrapped"
        return self.recorder.whole(function, args, kwargs, why)

    def _join(self, runs: list[Run]) -> None:
        """Bring together what several runs have recorded and read."""
        super()._join(runs)
        graph = self.recorder.bodies.outermost
        for run in runs:
            values, updated = UpdatedValues(graph, run.recorder.own_reliance), run.recorder.updated
            run.updates = values.reliance(values.kept(updated) if len(runs) == 1 else updated)

    def _write_guards(self, graph: Graph, runs: list[Run], reads: Reads | None) -> None:
        """Write what has to hold at the entrance, and let constants be computed now."""
        watches = self.settings.guards != "none"
        entry = self.guards_class(self.recorder, self.inputs, self.surroundings, self.state, reads, watches)
        least_ranks: dict[int, int] = {}
        for run in runs:
            for array, rank in run.recorder.least_ranks.items():
                least_ranks[array] = max(rank, least_ranks.get(array, 0))
        reliance = self._reliance(runs)
        entry.write(self.after_inputs, self._owners(), reliance, least_ranks)
        entry.write_choices([one for run in runs for one in run.inputs.chosen()], reliance, least_ranks)
        self._read_values(graph)
        self.recorder.folding.fold(graph, self.recorder.attributes.add_constant)

    def is_read_again(self, value: Any) -> bool:
        """Whether a value is an array: one that an attribute holds is read at each call."""
        return type(value) is numpy.ndarray

    def _reliance(self, runs: list[Run]) -> Reliance:
        """What the program could see of the dtypes and ranks of arrays."""
        executed = self.recorder.code.executed.values()
        if any(map(may_catch_class, self.surroundings.ran(executed))):
            return Reliance.DTYPE
        found = max(max(run.recorder.reliance, run.updates) for run in runs)
        if len(runs) > 1 and any(run.recorder.sizes_of_results for run in runs):  # such a size may be asked for earlier
            found = max(found, Reliance.RANK)
        takes = any(run.recorder.takes_by_arrays for run in runs)  # a mask gives another rank than numbers do
        return Reliance.DTYPE if found is Reliance.RANK and takes else found


def is_running() -> bool:
    """Whether there is a capture in this context."""
    return _running.get() is not None


def _current_recorder() -> NumpyRecorder | None:
    """The recorder of the capture that is recording right now, in this context."""
    run = _running.get()
    return None if run is None or run.recorder.depth or not run.recorder.hears() else run.recorder


def _current_caches() -> CachedCalls | None:
    """The calls of functions with a cache in the capture that is recording right now."""
    recorder = _current_recorder()
    return None if recorder is None else recorder.cached


def _current_streams() -> NumpyStreams | None:
    """The streams of the capture that is recording right now."""
    recorder = _current_recorder()
    return None if recorder is None else recorder.streams


REFUSED = {
    "leaves": "it says which modules stay calls, and NumPy has no modules",
    "stateful": "the capture follows objects as it finds them",
    "stateful_arguments": "the capture follows objects as it finds them",
}
"""Options that mean nothing here, and why."""


def capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Captured:
    """Run ``fn`` on the example and record it; with ``keep`` what the run did stays done.

    A run that finds state that it changes is undone, and the capture started over with that state among its inputs.
    """
    options.refuse("NumPy", REFUSED)
    return capture_by(Run, Findings(), fn, args, kwargs, options)


def capture_by(
    run_class: type[Run], findings: Findings, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
) -> Captured:
    """Run ``fn`` until nothing new is found out, each time by a run of this class."""
    if is_running():
        raise CaptureError("a capture was started inside another one", fixes=("capture before the program runs",))

    def explore() -> Captured:
        asked = options._replace(control_flow=findings.control_flow)

        def new_run(paths: Paths | None, first: Any, answers: tuple[bool, ...]) -> Run:
            return run_class(fn, asked, findings, paths, first, answers)

        return explore_paths(new_run, findings, args, kwargs)

    def island_for(error: CannotFollow) -> Any:
        return None if options.refuses_opaque else find_island(error, fn, findings.islands)

    try:
        captured = capture_until_known(explore, findings, options, island_for)
    except ClewError:
        if not any(slot.is_only_read for slot in findings.lifted.values()):
            raise
        findings = Findings()
        findings.reads_numbers = False
        captured = capture_until_known(explore, findings, options, island_for)
    lift_guards(captured.graph)
    return captured


_STATES = ("getstate", "setstate")


class NumpyListener(replacements.RecordingListener):
    """The listener of one run."""

    through = (NUMPY_FOLDER,)

    def clock(self, name: str, value: Any) -> Any:
        """The graph reads the clock again."""
        self._check_place(name)
        return super().clock(name, value)

    def draw(self, name: str, stream: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The graph draws again; where a stream stands, it could not remember."""
        self._check_place(name)
        if name in _STATES:
            raise self.refusal(f"{name} of a stream of random numbers")
        return super().draw(name, stream, original, args, kwargs)

    def _check_place(self, name: str) -> None:
        """A function that was handed to another one is run as often as that one likes: there nothing is asked anew."""
        if self.recorder.bodies.is_in_function:
            raise self.refusal(f"{name} inside of a function that is handed to another one")
