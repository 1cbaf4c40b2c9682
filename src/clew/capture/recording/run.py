"""One run of a program on the example, whatever the framework: ``ExampleRun.run`` is the template, to be read first.

A framework's run records the program once; after the ``first`` one further runs take other paths. What they find out
goes into ``Findings``, with which the capture restarts; what they record becomes one graph when all paths are known.
Always holds: the program's state is as it was after each run, unless the run's result is that of a call.
"""

from __future__ import annotations

import contextvars
import enum
import io
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import CO_VARARGS
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

from clew.capture.bytecode.call_sites import stands_for
from clew.capture.bytecode.handled_errors import ErrorWatch
from clew.capture.bytecode.try_blocks import ENTRANCES
from clew.capture.captured import Captured, Pins
from clew.capture.control_flow.body_recorder import Support
from clew.capture.control_flow.node_comparison import arrange_controls
from clew.capture.control_flow.paths import Paths
from clew.capture.control_flow.raising import arguments_of, is_raised, record_raise
from clew.capture.control_flow.regions import Progress, Regions
from clew.capture.control_flow.runtime import current as current_regions
from clew.capture.current_capture import current
from clew.capture.guards.notes import Variable
from clew.capture.guards.redundant import drop_implied
from clew.capture.guards.variable_reads import Reads, hear_guards
from clew.capture.guards.variables import own_code, own_partials, take_over_guards, values_only_read
from clew.capture.options import LEFT_OUT, Options
from clew.capture.patches import Patches
from clew.capture.python import replacements
from clew.capture.python.files import OpenFiles, refuse_held
from clew.capture.python.listener import Listener
from clew.capture.python.loggers import STANDARD, functions_of_handler, handlers_and_filters, is_logger
from clew.capture.recording.example_recorder import ExampleRecorder
from clew.capture.recording.folding import Folding
from clew.capture.recording.inputs import Identities, Inputs
from clew.capture.recording.list_proxies import ListProxy
from clew.capture.recording.nested_programs import Bodies
from clew.capture.recording.outputs import plain
from clew.capture.recording.recorder import IdentityQuestions, RootAttributes, Scalar
from clew.capture.recording.unused_calls import drop_unused
from clew.capture.restart import Restart, swallowed
from clew.capture.state.containers import ACTING, CHANGING, contents, same_contents
from clew.capture.state.first_call import FirstCallChange, choose_first_call, first_call_change, left_inside
from clew.capture.state.reachable import asks_for_identity, behind, check_slots, compares_objects
from clew.capture.state.slots import Slot
from clew.capture.state.state import State
from clew.capture.state.surroundings import Surroundings, functions_of
from clew.capture.state.writes import Writes, changes_in_passing, mark_passing_changes
from clew.capture.symbolic.wrap import handle_call
from clew.errors import CaptureError, ClewError
from clew.ir.graph import Graph
from clew.ir.guards import Guard
from clew.ir.node import Node
from clew.ir.source import SourceLine, is_installed, user_frame

ENTRANCES.add(__name__)


class LibraryTracers(enum.Enum):
    """What libraries are told that ask whether the program is being traced."""

    PLAIN = "the answer of now, as long as they ask for no data"
    FOLLOWED = "each answer, in a run of its own"
    LEFT = "the answer of now: what follows the other cannot be recorded, or has too little in common"


class Findings:
    """What earlier runs of a program have found out, and what later ones need."""

    def __init__(self, lifted: dict[Any, Slot] | None = None) -> None:
        self.lifted: dict[Any, Slot] = {} if lifted is None else lifted
        self.islands: list[Any] = []
        self.control_flow = "capture"
        """What becomes of branches and loops on data, as `clew.trace` takes it."""
        self.progress = Progress()
        self.looks_into_libraries = True
        """Whether questions of code that is not the user's are worth a run for each answer."""
        self.guarded: set[Any] = set()
        """Places in libraries whose questions are guarded, since the two answers have too little in common."""
        self.most_paths: int = Options._field_defaults["max_paths"]
        self.limited: dict[Any, SourceLine] = {}
        """Lines of the user's that are guarded, since more paths than that follow from them."""
        self.tracers = LibraryTracers.PLAIN
        self.asked_tracers: set[Any] = set()
        """What libraries have asked to learn whether the program is traced, if that is followed."""
        self.left: dict[Any, Any] = {}
        """What a run has left in places that it has changed, by their keys."""
        self.first_call_change: FirstCallChange | None = None
        """What the program sets to another constant, and may find so at its next call."""
        self.has_plain_numbers = False
        """Whether the program gets plain numbers, all guarded, since something that it calls took no others."""
        self.guesses: dict[str, int] = {}
        """How many arrays were tried in vain for an argument that the example leaves out, by its name."""
        self.impossible: set[tuple[str, str]] = set()
        """Arguments, and kinds of them that the program cannot be run with."""
        self.reads_numbers = True
        """Whether numbers around the program are read at each call."""
        self.asks_orders = True
        """Whether each order in which the keys of dicts may stand is a path of its own."""
        self.sees_no_order = False
        """Whether the program does the same in whatever order the keys of dicts stand: all were tried."""


def clear_frames(error: BaseException | None) -> None:
    """Let the frames of a run that was given up go: what ends with them, a generator say, acts before all is undone."""
    if isinstance(error, Restart):
        traceback.clear_frames(error.__traceback__)


Given = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments by position and by name, as the program gets them."""


class ExampleRun:
    """One run of a program; a framework adds the steps that ``run`` goes through."""

    running = contextvars.ContextVar[Any]("clew_run", default=None)
    """The current run in this context, one variable for each framework."""

    recorder: ExampleRecorder
    inputs: Inputs
    state: State
    surroundings: Surroundings
    functions: list[FunctionType]
    regions: Regions
    after_inputs: Node
    """The last node of those that take the arguments apart: guards at the entrance stand behind it."""
    result: Any
    module: Any = None

    def __init__(
        self, fn: Any, settings: Options, findings: Findings, paths: Paths | None, first: ExampleRun | None
    ) -> None:
        self.fn = fn
        self.settings = settings
        self.findings = findings
        self.paths = paths
        self.first = first
        self.open_files = OpenFiles(())
        self.errors = ErrorWatch((), Scalar, [])
        self.raised: Exception | None = None  # the program's own error
        self.stays = False  # whether what the run did stays done
        self.found: list[Slot] = []
        self.reads = Reads()

    @property
    def islands(self) -> list[Any]:
        """Functions and modules that cannot be followed, and stay one call each."""
        return self.findings.islands

    # ---- the template --------------------------------------------------------------------------------------------

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record one run; it raises ``Restart`` if the program must be run again with what was found out."""
        self._watch_state()
        done = stays = False
        try:
            given = self._bind(args, kwargs)
            self._enter(list(self.findings.lifted.values()))
            given = self.inputs.decide(given)
            choose_first_call(self.state, self.inputs.choices)
            try:
                with self._recording():
                    self.result = self._call(given)
            finally:
                self._take_out_proxies()
            self._check_swallowed()
            self.regions.check()
            self._check()
            self.found = self.state.changed()
            for slot in self.found:
                self._note_left(slot.key, slot.variable.get())
            done = not self.found and not self._finds_later_state() and self._finish_path(self.result)
            if done and not self._has_several_paths():
                self.finish([self])
                stays = self.settings.keep
        except Exception as error:
            self._check_swallowed(error)
            done = self._ends_raising(error)
            if not done:
                self._explain(error)
        finally:
            self.recorder.open = False
            ending = sys.exc_info()[1]  # not always the error of the program: another run may be asked for
            clear_frames(ending)
            counts = ending is not None and ending is self.raised and self.first is None
            self._leave(stays or (self.settings.keep and counts))
        if not done:
            self._start_over()

    def _note_left(self, key: Any, value: Any) -> None:
        """Note what the run has left in a place that it has changed."""
        kind = self.inputs.kind_left(value)
        if kind is not None:
            self.findings.left[key] = kind.value

    def _finds_later_state(self) -> bool:
        """Whether the run has set what was None inside of its state, which a later call finds so: it is run again."""
        choices, left = self.inputs.choices, self.findings.left
        asked = [] if choices is None else [one for one in left_inside(self.state) if one[0] not in left]
        known = len(left)
        for key, value in asked:
            if choices is not None and key[1] in choices.asked().optional:
                self._note_left(key, value)
        return len(left) > known

    def _watch_state(self) -> None:
        """Remember everything that the program can change besides its arguments."""
        raise NotImplementedError

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
        """Let the arguments enter: what the program gets in their place."""
        raise NotImplementedError

    def _enter(self, lifted: list[Slot]) -> None:
        """Guard what the arguments are, and let the lifted state enter."""
        raise NotImplementedError

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """A block inside of which the program runs, and all that it does is recorded."""
        variables: list[tuple[contextvars.ContextVar[Any], Any]] = [
            (self.running, self), (handle_call, self.call_wrapped), (current, self.state),
            (current_regions, self.regions),
        ]  # fmt: skip
        tokens = [(variable, variable.set(value)) for variable, value in variables]
        try:
            with Patches() as patches:
                self._install(patches)
                with (
                    self._following(patches),
                    replacements.hearing(self._listener(), self.surroundings),
                    self.reads.watching(),
                    self._watch_errors(),
                ):
                    yield
        finally:
            for variable, token in tokens:
                variable.reset(token)

    def _install(self, patches: Patches) -> None:
        """Replace what reports to the recorder, for the time of the run."""
        raise NotImplementedError

    @contextmanager
    def _following(self, patches: Patches) -> Iterator[None]:
        """What a framework needs besides, around the program."""
        yield

    def _listener(self) -> Listener:
        """The listener to plain Python during the run."""
        raise NotImplementedError

    def call_wrapped(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function that the user has wrapped, or that cannot be followed: one node, whatever is inside."""
        raise NotImplementedError

    def _call(self, given: Given) -> Any:
        """Run the program; an error of its own is its own, and what it did before stays done if the run counts."""
        given = self._prepared(given)  # held by this frame: a snapshot of the program's state begins here
        self.recorder.running = True
        self.recorder.code.caller = id(user_frame(1))
        try:
            return self._drained(taking_list(self.fn, given[1])(*given[0], **given[1]))
        except ClewError:
            raise
        except Exception as error:
            self._check_raised(error)
            self.raised = error
            raise
        finally:
            self.recorder.running = False

    def _prepared(self, given: Given) -> Given:
        """The arguments right before the program gets them."""
        return given

    def _drained(self, result: Any) -> Any:
        """The result of the program; an iterator has been walked to its end."""
        return result

    def _check_raised(self, error: Exception) -> None:
        """Raise another error if this one is not the program's own."""

    def _take_out_proxies(self) -> None:
        """Put back what proxies stood for in variables around the program."""

    def _check(self) -> None:
        """Raise if the run did something that no node of the graph does again."""
        raise NotImplementedError

    def _explain(self, error: Exception) -> None:
        """Raise the error that ended the run, or a clearer one; return if another run may go better."""
        raise error

    def _leave(self, stays: bool) -> None:
        """Put everything back, or let what the run did stay done."""
        self.stays = stays
        if stays:
            self._commit()
            return
        for part in self._undone():
            part.put_back()
        self.surroundings.put_back_streams()

    def _commit(self) -> None:
        """Let what the run did stay done, and show what it wanted to show."""
        settled = partial(plain, self.recorder)
        self.state.commit(settled)
        self.inputs.commit(settled)
        for act in self.recorder.acts:
            act()

    def _undone(self) -> list[Any]:
        """All that has a ``put_back``, in the order in which it is put back."""
        return [self.inputs, self.state, self.open_files]

    # ---- how a run begins ----------------------------------------------------------------------------------------

    def _connect(self, recorder: ExampleRecorder, answers: tuple[bool, ...]) -> None:
        """Let a recorder write what all runs of the program write, on the path of these answers."""
        asked = self.settings
        recorder.folding = Folding(caches=asked.array_caching, bakes=not asked.include_generators)
        recorder.options = asked
        recorder.code.gets_plain_numbers = self.findings.has_plain_numbers
        recorder.paths = self.paths
        if self.paths is not None:
            recorder.bodies = Bodies(self.paths.graph)
            self.paths.begin(recorder.bodies, answers)
        if self.first is not None:  # the same constants bear the same names
            recorder.attributes = RootAttributes(self.first.recorder.attributes)

    def _look_around(self, programs: list[Any], functions: list[FunctionType]) -> None:
        """Find what the program, these objects and their functions, can reach and change besides its arguments."""
        self.functions = functions
        check_slots(programs)
        self.surroundings = Surroundings(functions, map(type, programs), filter(_is_partial, programs))
        self.state = State(self.inputs, None if self.first is None else self.first.state.histories)
        self.recorder.surroundings, self.recorder.state = self.surroundings, self.state

    def _install_reads(self, patches: Patches) -> None:
        """Let containers around the program, and guards of graphs that it calls, tell what is read."""
        hear_guards(patches)
        if self.settings.guards == "read":
            self.reads.install(patches, self.surroundings, self.findings.lifted)

    def _join_reads(self, runs: list[Any]) -> Reads | None:
        """What all runs have read of the containers around the program; None if all that they hold counts."""
        for run in runs:
            self.reads.add(run.reads)
        return self.reads if self.settings.guards == "read" else None

    def _follow_control_flow(self, support: Support, own: list[Any]) -> None:
        """Let loops and branches of these functions, and of those around them, be recorded."""
        progress, around = self.findings.progress, self.surroundings
        self.regions = Regions(self.recorder, support, progress, self._variables)
        functions = [part for part in own if isinstance(part, FunctionType)]
        progress.rewrites.functions = list(dict.fromkeys([*functions, *self.functions, *around.functions]))

    def _keep_identities(self, codes: list[CodeType]) -> None:
        """Let a program whose code compares objects meet the objects that it would meet."""
        compares, asks_for_truths = any(map(compares_objects, codes)), any(map(asks_for_identity, codes))
        if asks_for_truths or compares:
            self.recorder.identity = IdentityQuestions(True, asks_for_truths, compares)
        if asks_for_truths:
            self.inputs.plain_kinds += (bool,)
        if compares:  # equal numbers may be one object, two proxies never are
            self.inputs.plain_kinds += (bool, int, float)
            self.inputs.identities = Identities(self.surroundings.found)

    def _entered_modules(self) -> Iterable[Any]:
        """The modules whose inside is in the graph."""
        return ()

    def _more_code_guards(self) -> Iterable[Guard]:
        """What else runs with the program and may be set anew."""
        return ()

    def _variables(self) -> Iterator[tuple[Any, str]]:
        """The variables around the program, and the classes that it names."""
        yield from self.surroundings.cells()
        yield from ((kind, "") for kind in self.surroundings.classes())

    def _owners(self, more: tuple[Any, ...] = (), beside: tuple[type, ...] = ()) -> list[Any]:
        """Objects whose attributes the program may change: a callable object, a method's object, functions."""
        reached = [one for one in self.surroundings.functions if not is_installed(one.__code__)]
        owners = [*more, *behind(self.fn), *dict.fromkeys([*self.functions, *reached])]
        plain = [owner for owner in owners if not isinstance(owner, (type, *beside))]
        return [owner for owner in plain if isinstance(getattr(owner, "__dict__", None), dict)]

    def _look_around_callables(self) -> None:
        """Functions and objects that came in can be called: watch the variables around them."""
        builtins = [value for value in self.inputs.callables if type(value) is BuiltinFunctionType]
        refuse_held([value for value in builtins if value in ACTING or value in CHANGING], self._line)
        for function in [found for value in self.inputs.callables for found in functions_of(value)]:
            for holder, name in self.surroundings.add(function):
                self.state.watch_variable(Variable(holder, name))
        self.inputs.callables.clear()

    def _line(self) -> str:
        """Where the program begins, for errors about what it holds."""
        return self.surroundings.line_naming("")

    def _watch_outside(self) -> None:
        """What leads to the world outside: files, functions of the system, and loggers.

        Handlers and filters of users' classes run when the program logs: what they do and keep is its own.
        """
        refuse_held(self.state.memory.outside_functions, self._line)
        named = [value for _, value in self.surroundings.held(_is_file)]
        self.open_files = OpenFiles([*self.state.memory.files, *named])
        loggers = [value for _, value in self.surroundings.held(is_logger)]
        for handler in handlers_and_filters([*self.state.memory.loggers, *loggers]):
            for function in functions_of_handler(handler):
                for holder, name in self.surroundings.add(function):
                    self.state.watch_variable(Variable(holder, name))
            if hasattr(handler, "__dict__"):
                self.state.watch(handler, vars(handler), skip=STANDARD)

    # ---- how a run ends ------------------------------------------------------------------------------------------

    def _watch_errors(self) -> ErrorWatch:
        """What sees errors that the program catches, and that proxies may have caused."""
        codes = [function.__code__ for function in self.functions]
        self.errors = ErrorWatch(codes, Scalar, self.recorder.error_notes.failed)
        return self.errors

    def _check_swallowed(self, error: Exception | None = None) -> None:
        """Raise what the program has kept of Clew's; start over with plain numbers if it has kept an error of code that
        takes no others."""
        kept = swallowed()
        if kept is not None and kept is not error:
            raise kept
        if self.errors.error is not None and not self.findings.has_plain_numbers:
            self.findings.has_plain_numbers = True
            raise Restart

    def _check_failure(self) -> None:
        """A call that failed and was caught leaves no node, yet decided the path: such a program is refused."""
        if self.recorder.error_notes.failure is not None:
            kind, where = self.recorder.error_notes.failure
            raise CaptureError(
                f"the program catches a {kind} that one of its calls raised",
                where=where,
                why="whether it is raised may depend on the input",
                fixes=("test the condition instead of catching the error",),
            )

    def _ends_raising(self, error: Exception) -> bool:
        """Whether this path ends with a ``raise`` of the program's own, which the graph does too."""
        recorder = self.recorder
        is_own = self.first is not None and self.raised is not None and recorder.error_notes.failure is None
        is_own = is_own and (is_raised(error) or isinstance(error, NameError))  # of a variable that is not set
        made = arguments_of(recorder, error) if is_own else None
        if made is None or self.paths is None or not self.paths.is_ahead:
            return False
        changed = [held for held in self.inputs.containers if not same_contents(contents(held.value), held.entered)]
        if changed or self.state.changed() or any(True for _ in self.state.left()):
            return False
        record_raise(recorder, made)
        recorder.graph.output(None)
        self.paths.end()
        return True

    def _finish_path(self, result: Any) -> bool:
        """Complete what this run has recorded; False if the result holds state, which must be lifted first."""
        graph = self.recorder.graph
        self.recorder.finishing = True
        self.findings.first_call_change = first_call_change(self.state)
        graph.output(Writes(self.state, graph).finish(result))
        self.found = self.state.wanted()
        if self.paths is not None and not self.found:
            self.paths.end()
        return not self.found

    def _start_over(self) -> None:
        """Let the next run begin with the state that this one has changed among its inputs."""
        self.findings.lifted |= {slot.key: slot for slot in self.found}
        self.state.forget()
        raise Restart

    def _read_values(self, graph: Graph) -> None:
        """Let the next run begin with the numbers and arrays among its inputs that this one has only read."""
        if not self.findings.reads_numbers:
            return
        slots = values_only_read(graph, self.surroundings, self.state, self.settings.dynamic, self.is_read_again)
        found = {slot.key: slot for slot in slots if type(slot.variable.expected) not in self.inputs.plain_kinds}
        if not found.keys() <= self.findings.lifted.keys():
            self.findings.lifted |= {key: slot for key, slot in found.items() if key not in self.findings.lifted}
            raise Restart

    def is_read_again(self, value: Any) -> bool:
        """Whether a value that the program finds around itself is an array that the graph reads at each call."""
        return False

    def ignores_order(self, node: Node) -> bool:
        """Whether a call does the same in whatever order the keys of dicts among its arguments stand."""
        return False

    def _has_several_paths(self) -> bool:
        """Whether pieces of the program were run more often than the program does: then no run counts."""
        return self.paths is not None and (self.paths.has_questions or self.regions.were_used)

    @property
    def is_aligned(self) -> bool:
        """Whether optional values alone tell the paths apart, so that the graph is like that of one path."""
        return self.paths is not None and self.paths.are_aligned and not self.regions.were_used

    # ---- all runs ------------------------------------------------------------------------------------------------

    def captured(self, runs: list[Any]) -> Captured:
        """What all runs have recorded."""
        several = self._has_several_paths()
        if several:
            self.recorder.bodies.open.clear()
            self.recorder.open = True
            self.finish(runs)
            self.recorder.open = False
            arrange_controls(self.recorder.bodies.outermost)
        value = plain(self.recorder, self.result) if self.settings.keep and not several else None
        state = [entry.slot.path for entry in self.state.entries if entry.slot.path is not None]
        graph = self.recorder.bodies.outermost
        executed = list(self.recorder.code.executed.values())
        own = list(self.surroundings.methods(executed))
        if self.settings.guards != "none":
            modules = dict.fromkeys(map(type, self._entered_modules()))
            own_guards = own_code(self.surroundings, self.inputs, self.state, executed, modules)
            graph._code_guards = (*own_guards, *own_partials(self.surroundings.partials), *self._more_code_guards())
        if changes_in_passing(self.state, self.surroundings, self.module, executed):
            mark_passing_changes(graph)
        methods = [(vars(one.holder), one.name, one.expected) for one in own]
        names = self.surroundings.names(executed)
        absent = [(holder, name, Pins) for holder, name in self.state.shadowed(self.surroundings, names)]
        attributes, code = [*self.state.pins(), *methods, *absent], list(self.surroundings.code(executed))
        pins = Pins(attributes, self.state.held_by_pins(names), code)
        return Captured(self.module, self.recorder.attributes.constants, graph, value, state, pins, several)

    def finish(self, runs: list[Any]) -> None:
        """Complete the graph with what all runs relied on."""
        graph = self.recorder.bodies.outermost
        self._join(runs)
        with graph.inserting_before(self.after_inputs._next):
            self.state.drop_unread()
        if self.settings.guards == "none":
            graph.output_node().meta[LEFT_OUT] = "variables around the program are not looked at again"
        self._write_guards(graph, runs, self._join_reads(runs))
        if self.settings.guards != "none":
            with graph.inserting_before(self.after_inputs._next):
                take_over_guards(graph, self.reads.guards.values())
        drop_implied(graph, self.module)
        self._drop_unused(graph, runs)

    def _write_guards(self, graph: Graph, runs: list[Any], reads: Reads | None) -> None:
        """Write what has to hold at the entrance, and let constants be computed now."""
        raise NotImplementedError

    def _drop_unused(self, graph: Graph, runs: list[Any]) -> None:
        """Erase calls that nobody uses."""
        drop_unused(graph, self.settings.keeps_unused)

    def _join(self, runs: list[Any]) -> None:
        """Bring together what several runs have recorded and read."""
        if self.paths is not None:
            self.paths.finish()
        for run in runs[1:]:
            self.recorder.code.executed |= run.recorder.code.executed
            self.recorder.code.outside_reads.add(run.recorder.code.outside_reads)
            self.state.learn_from(run.state)


def taking_list(fn: Any, given: dict[str, Any]) -> Any:
    """A function that takes any number of arguments, as one that is given them in one list, if there is such a list."""
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    if not isinstance(code, CodeType) or not code.co_flags & CO_VARARGS:
        return fn
    place = code.co_argcount + code.co_kwonlyargcount
    if type(given.get(code.co_varnames[place])) is not ListProxy:
        return fn
    function: FunctionType = getattr(fn, "__func__", fn)
    taking = code.replace(co_flags=code.co_flags & ~CO_VARARGS, co_kwonlyargcount=code.co_kwonlyargcount + 1)
    stands_for(taking, code)
    made = FunctionType(taking, function.__globals__, code.co_name, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made if function is fn else MethodType(made, fn.__self__)


def _is_partial(value: Any) -> bool:
    return isinstance(value, partial)


def _is_file(value: Any) -> bool:
    return isinstance(value, io.IOBase)
