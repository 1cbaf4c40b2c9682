"""The capture of a torch program: runs on the example, each with what the earlier ones found out, until one is whole.

Comes in: a callable, its arguments, what the user asked for. Goes out: the graph with guards. `Findings` is what runs
hand on, `Run` is one run under the recorder, `capture` is all of them. Tensors, modules, variables and random state are
afterwards as they were before.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FunctionType
from typing import Any

import torch

from clew.capture.bytecode.handled_errors import refused_proxies
from clew.capture.bytecode.try_blocks import ENTRANCES
from clew.capture.captured import Captured
from clew.capture.control_flow.argument_uses import asks
from clew.capture.control_flow.explore import capture_until_known, explore_paths
from clew.capture.control_flow.node_comparison import arrange_controls
from clew.capture.control_flow.paths import Paths
from clew.capture.guards.lifting import lift_guards
from clew.capture.guards.notes import Variable
from clew.capture.guards.variable_reads import Reads
from clew.capture.options import Options
from clew.capture.patches import Patches, Stock
from clew.capture.python import caches, replacements
from clew.capture.python.caches import CachedCalls, check_hash
from clew.capture.python.listener import Listener
from clew.capture.recording.alternatives import Choices
from clew.capture.recording.inputs import bind
from clew.capture.recording.opaque_calls import CannotFollow, Unseen
from clew.capture.recording.outputs import plain
from clew.capture.recording.recorder import Scalar
from clew.capture.recording.run import ExampleRun, Given, LibraryTracers
from clew.capture.recording.run import Findings as RunFindings
from clew.capture.recording.unused_calls import drop_unused
from clew.capture.restart import Restart
from clew.capture.state.first_call import after_first_call, widen
from clew.capture.state.reachable import asks_for_identity
from clew.capture.state.slots import Slot, places_in
from clew.capture.state.writes import Accesses
from clew.capture.symbolic.wrap import install
from clew.errors import CaptureError, ClewError
from clew.frameworks.torch import facts, interception, number_functions
from clew.frameworks.torch.calls import constructors, dispatch
from clew.frameworks.torch.calls.opaque_calls import find_island
from clew.frameworks.torch.calls.opaque_calls import install as install_islands
from clew.frameworks.torch.entry_facts import Facts, by_sizes, has_guarded_ranks
from clew.frameworks.torch.entry_guards import PLAIN_TENSORS, EntryGuards, TorchInputs, is_plain_tensor
from clew.frameworks.torch.interception import TorchListener
from clew.frameworks.torch.modules.calls import Leaves, ModuleCalls, leaf_policy
from clew.frameworks.torch.modules.hooks import (
    HooksOfAll,
    HookTables,
    SetUp,
    behind,
    count_of_global_hooks,
    functions_behind,
    hooks,
    set_up,
    signature_of,
)
from clew.frameworks.torch.modules.optimizers import TRAINERS
from clew.frameworks.torch.modules.state import (
    ClosedOver,
    Modules,
    all_places,
    closed_over,
    tensors_in,
    watch_classes,
    watch_modules_around,
)
from clew.frameworks.torch.modules.training_mode import asking
from clew.frameworks.torch.numpy_bridge.arrays import ArrayRecorder, enter_arrays, reaches_numpy
from clew.frameworks.torch.numpy_bridge.arrays import install_in as install_arrays_in
from clew.frameworks.torch.numpy_bridge.packages import MetFunctions, Packages, streams_of, used_by
from clew.frameworks.torch.recorder import RecordingMode, TorchRecorder
from clew.frameworks.torch.scalars import MODE
from clew.frameworks.torch.tracing_tools import Tracers
from clew.frameworks.torch.undo import Rollback, TorchSupport
from clew.ir.arguments import leaves
from clew.ir.graph import Graph
from clew.ir.guards import Expression, Guard
from clew.ir.source import is_installed


class Findings(RunFindings):
    """What earlier runs of a program have found out, and what later ones need."""

    def __init__(self, lifted: dict[Any, Slot] | None = None) -> None:
        super().__init__(lifted)
        self.plain_kinds: tuple[type, ...] = ()
        self.caches: list[tuple[Any, str]] = []
        self.filled: list[Any] = []
        """Functions with a cache that was empty before the program called them."""
        self.module_paths: dict[Any, str] = {}
        self.unseen = False
        """Whether the program has made a tensor by means that were not seen."""
        self.follows_arrays = True
        self.packages = Packages()
        self.met = MetFunctions()
        self.with_arrays: Exception | None = None
        """Why a run that followed arrays has failed, after which the next ones do without."""
        self.tells_tensors_apart = False
        """Whether the program asks which tensors are the same: then each of them enters by itself."""
        self.set_up: SetUp | None = None
        """What the program does to its modules at its first call."""
        self.set_up_stays = False
        self._closed_over: list[ClosedOver | None] = []

    def closed_over(self, fn: Any) -> ClosedOver | None:
        """What holds the modules that a function names, the same in all runs."""
        if not self._closed_over:
            self._closed_over.append(closed_over(fn))
        return self._closed_over[0]

    def undo_set_up(self) -> None:
        """Let modules be as they were before the capture, unless the run counts."""
        if self.set_up is not None and not self.set_up_stays:
            self.set_up.undo()


ENTRANCES.add(__name__)
_running: contextvars.ContextVar[Run | None] = contextvars.ContextVar("clew_capture", default=None)

_MOST_PARTS = 8
"""A module of more parts is a model: what follows a question of a library, about a mask say, is not written twice."""


class Run(ExampleRun):
    """One run of a program that is being captured; after the ``first`` one further runs take other paths."""

    running = _running
    recorder: TorchRecorder
    inputs: TorchInputs

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
        self.findings: Findings = findings
        islands = self.islands
        self.leaves: Leaves = lambda part, path: part in islands or settings.leaves(part, path)
        self.recorder = self._new_recorder(answers)
        self.module = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
        if not isinstance(self.module, torch.nn.Module):
            self.module = findings.closed_over(fn)
        self.recorder.root = self.module
        opens_lists = settings.dynamic and not findings.tells_tensors_apart
        self.inputs = TorchInputs(self.recorder, settings.static, opens_lists)
        self.inputs.plain_kinds += findings.plain_kinds + ((bool, int, float) if findings.has_plain_numbers else ())
        self.inputs.changing = frozenset(
            id(slot.variable.holder) for slot in findings.lifted.values() if not slot.is_only_read
        )
        self.rollback = self.recorder.rollback = Rollback(self.recorder)
        self.places = [] if self.module is None else all_places(self.module)
        self.module_paths = findings.module_paths = {}
        for path, part in self.places:
            self.module_paths.setdefault(part, path)
        self.parts = list(self.module_paths)
        if paths is not None:
            paths.root = self.module
            follows = findings.looks_into_libraries and findings.tracers is not LibraryTracers.FOLLOWED
            paths.looks_into_libraries = follows and len(self.parts) <= _MOST_PARTS
        programs = [*behind(fn), *self.parts, *hooks(self.parts)]
        self._look_around(programs, functions_behind(programs))
        tensors = {part: tensors_in(part) for part in self.parts}
        self.modules = None if self.module is None else Modules(self.module, self.places, self.leaves, tensors)
        self.module_calls = ModuleCalls(
            self.recorder, self.state, self.modules, self.module_paths, self.leaves, islands
        )
        self._follow_control_flow(TorchSupport(self.recorder), programs)
        self.accesses = Accesses(settings.stateful_arguments)
        self.plain_kinds: tuple[type, ...] = ()
        if self.surroundings.derived(_asks_for_identity):
            self.inputs.plain_kinds += (bool,)
        reached = [one.__code__ for one in self.surroundings.functions]
        codes = [code for code in reached if not is_installed(code)]
        self._keep_identities(codes)
        self.recorder.fact_proxies.are_plain = torch.dtype in findings.plain_kinds or facts.may_compare_unseen(reached)
        self.recorder.numpy_use.follows_arrays = findings.follows_arrays
        if findings.follows_arrays and (findings.packages.names or self.surroundings.derived(reaches_numpy)):
            self.recorder.border()
        self._global_hooks = count_of_global_hooks()
        self._learn_paths(tensors)

    @property
    def _is_function(self) -> bool:
        """Whether the program is no module, nor a method of one."""
        return self.module is None or isinstance(self.module, ClosedOver)

    def _is_hooked(self) -> bool:
        """Whether functions that are hooked to the module see its arguments."""
        return self.fn is self.module and bool(hooks([self.module]) or count_of_global_hooks())

    def _new_recorder(self, answers: tuple[bool, ...]) -> TorchRecorder:
        recorder = TorchRecorder()
        recorder.caches.filled = self.findings.filled
        recorder.numpy_use.met = self.findings.met
        recorder.tracers = Tracers(recorder, self.findings)
        recorder.numpy_use.packages = self.findings.packages if self.findings.follows_arrays else None
        self._connect(recorder, answers)
        return recorder

    def _learn_paths(self, held: dict[torch.nn.Module, list[tuple[str, torch.Tensor]]]) -> None:
        for part, path in self.module_paths.items():
            for name, value in held[part]:
                if id(value) not in self.recorder.attributes.paths:
                    full = f"{path}.{name}" if path else name
                    self.recorder.attributes.paths[id(value)] = (full, value)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
        """Let the arguments enter: what the program gets in their place."""
        target = self.module.forward if self.fn is self.module and self.module is not None else self.fn
        self.inputs.choices = self._choices(target, (*args, *kwargs.values()))
        return bind(self.inputs, signature_of(target), args, kwargs, None if self._is_hooked() else target)

    def _choices(self, target: Any, examples: Iterable[Any]) -> Choices | None:
        """The arguments that may be of other kinds: texts, flags, items of dicts, and None or not with free sizes.
        None or a tensor only in a program of the user's own, which is no model with many such arguments."""
        code = getattr(getattr(target, "__func__", target), "__code__", None)
        is_library = code is None or is_installed(code)  # each kind is a run of all of it
        if self.paths is None or self.settings.refuses_questions or (is_library and not self.settings.dynamic):
            return None
        if self.settings.dynamic and not is_library and not self.findings.tells_tensors_apart:
            self.inputs.examples = list(examples)
        asks_orders = self.settings.dynamic and self.findings.asks_orders and not is_library
        self.inputs.key_orders.may_ask = asks_orders
        self.inputs.key_orders.is_unseen = self.findings.sees_no_order
        asked = self.inputs.asked = asks(target, self.surroundings.functions, self._is_of_torch)
        return Choices(self.inputs, asked, self.findings, self.settings.static, self.settings.dynamic)

    @staticmethod
    def _is_of_torch(function: Any) -> bool:
        return str(getattr(function, "__module__", "")).partition(".")[0] == "torch"

    def _take_out_proxies(self) -> None:
        """Put back what proxies stood for in variables around the program."""
        if self.recorder.arrays is not None:
            self.recorder.arrays.places.leave()

    def _explain(self, error: Exception) -> None:
        """Raise the error that ended the run, or a clearer one; return if another run may go better."""
        self._do_without_arrays(error)
        self._need_plain(error)

    def _start_over(self) -> None:
        """Let the next run begin with what this one has found out."""
        self.findings.plain_kinds = self.plain_kinds
        super()._start_over()

    def _do_without_arrays(self, error: Exception) -> None:
        """After a run with proxies for arrays that has failed, the next one follows them in packages too, or there no
        longer, or does without, unless an island helps."""
        arrays, packages = self.recorder.arrays, self.findings.packages
        if isinstance(error, CannotFollow) and self.first is None and self.findings.follows_arrays:
            packages.check_error(error, self.surroundings.functions, arrays is not None)
        if arrays is None or self.first is not None or arrays.has_raised(error):
            return
        is_island = isinstance(error, CannotFollow) and not self.settings.refuses_opaque
        if is_island and find_island(error, self.fn, self.findings.module_paths, self.islands) is not None:
            return
        self.findings.with_arrays = error
        self.findings.follows_arrays = packages.leave()
        raise Restart

    def _need_plain(self, error: Exception) -> None:
        """Raise the error, unless torch refused a traced number, of a kind that the next run gets plain then."""
        proxies = refused_proxies(error)
        self.plain_kinds = (*self.inputs.plain_kinds, torch.dtype) if self._may_refuse_facts(error) else ()
        self.plain_kinds = self.plain_kinds or self._plain_instead(proxies)
        if proxies and not self.plain_kinds:
            raise CaptureError(
                f"a number that comes from an input went where only a plain one can go: {error}",
                fixes=("force it with operator.index(), which guards its value",),
            ) from error
        if not self.plain_kinds:
            raise error

    def _may_refuse_facts(self, error: Exception) -> bool:
        """Whether an error may come from what stands for a dtype or device, and no call has failed by itself."""
        is_own = self.recorder.raised is error or isinstance(error, ClewError)
        return self.recorder.fact_proxies.were_given and not is_own

    def _plain_instead(self, proxies: list[str]) -> tuple[type, ...]:
        """Which numbers the next run shall get plain, since proxies of these classes were refused."""
        refused = bool if "TracedBool" in proxies else float if "TracedFloat" in proxies else int
        is_first = bool(proxies) and refused not in self.inputs.plain_kinds
        return (*self.inputs.plain_kinds, refused) if is_first else ()

    def _watch_state(self) -> None:
        """Remember everything that the program can change besides its arguments."""
        for owner in self._plain_owners():
            self.state.watch(owner, owner.__dict__, is_inner=type(owner).__module__.startswith("clew."))
        if self.modules is not None:
            self.modules.watch(self.state)
        owners, around = [*behind(self.fn), *self.parts], self.surroundings
        watch_classes(self.state, {type(owner) for owner in owners}, around.classes(), around.stores)
        self.state.watch_variables(around.changeable())
        around_it = watch_modules_around(self.state, self.parts, self.state.memory.ends.values())
        self.hook_tables = HookTables((*self.parts, *around_it))
        self._watch_outside()
        self.surroundings.watch_streams([*self.state.streams, *streams_of(self.surroundings.derived(used_by))])
        for stream in [stream for _, stream in self.state.streams if type(stream) is torch.Generator]:
            self.rollback.save_generator(stream)
            self.recorder.generators.watch(stream)
        known = self.recorder.attributes.constants.values()  # those that another run has met
        self.rollback.watch([*([] if self.modules is None else self.modules.tensors), *known])
        for _, value in self.surroundings.held(is_plain_tensor):
            self.rollback.watch_attributes(value)

    def _enter(self, lifted: list[Slot]) -> None:
        """Let the arguments and the lifted state enter, with their guards."""
        self.inputs.write_checks()
        if self.inputs.ends:
            around = [end for end in self.state.memory.ends.values() if isinstance(end, torch.nn.Module)]
            known = [*self.parts, *(part for module in around for part in module.modules())]
            self.hook_tables.watch(watch_modules_around(self.state, known, self.inputs.ends))
            self.state.memory.ends |= {id(end): end for end in self.inputs.ends}
        self._look_around_callables()
        self._trace_modes(lifted)
        self.state.lift(lifted)
        self._look_around_callables()
        for trainer in [end for end in self._ends() if isinstance(end, TRAINERS)]:
            self.recorder.trainers.watch(trainer)
        self.surroundings.watch_streams(("", stream) for stream in self.inputs.streams)
        self.recorder.streams.follow(self.surroundings.python_streams())
        self.inputs.resolve_arrays()
        self.after_inputs = self.recorder.graph._root._prev
        enter_arrays(self, [*self.parts, *self._plain_owners()])
        for value, _ in self.inputs.arrays:
            if type(value) in PLAIN_TENSORS:
                self.rollback.watch_attributes(value)
            if isinstance(value, torch.Tensor):
                self.rollback.watch_tensor(value)

    def _trace_modes(self, lifted: Iterable[Slot]) -> None:
        """Let the modes of parts be data, unless code that the program may run needs the plain ones."""
        rewrites = self.findings.progress.rewrites
        asked = asking(rewrites.functions)
        if not (asked.needs_plain or self.recorder.identity.is_asked or bool in self.findings.plain_kinds):
            self.recorder.modes.take(self.module_paths, {slot.key for slot in lifted})
            self.state.data = frozenset((id(vars(part)), MODE) for part in self.parts if self.recorder.modes.has(part))
            if self.paths is not None:
                rewrites.want(asked.branching)

    def _want_modes(self) -> None:
        """Let modes that the program has set enter the next run as state, whatever it has set them to."""
        followed = set() if self.modules is None else self.modules.followed()
        for part, mode in self.recorder.modes.set.items():
            path = self.module_paths[part]
            if part in followed:
                place = f"{path}.{MODE}" if path else MODE
                self.state.want_slot(Slot(Variable(vars(part), MODE), part, place))
            elif vars(part).get(MODE) is mode:
                raise CaptureError(
                    f"the program sets the mode of a {type(part).__name__}, whose inside it does not follow",
                    why="the graph was captured for the module as it was",
                    fixes=("do it before the capture", "let its inside be captured: leaves="),
                )

    def _check(self) -> None:
        """Raise if the run did something that no node of the graph does again."""
        self._check_failure()
        if self.recorder.fact_proxies.were_given and facts.may_compare_unseen(self.recorder.code.executed.values()):
            self.findings.plain_kinds = (*self.inputs.plain_kinds, torch.dtype)
            raise Restart
        if count_of_global_hooks() != self._global_hooks:
            raise CaptureError("the program adds hooks to all modules, or takes some away, for its next call")
        self.rollback.check_unseen(self._line())
        self.open_files.check()
        self.recorder.trainers.check()
        self.recorder.caches.check()
        arrays = self.recorder.arrays
        if arrays is not None:
            arrays.check()
        followed = [] if arrays is None else arrays.streams.followed_ones
        try:
            self.surroundings.check_streams([*self.recorder.streams.own, *followed])
        except CaptureError:
            self.findings.packages.meet(self.surroundings.derived(used_by))
            raise
        if self.modules is not None:
            self.modules.check()
        self._check_set_up()
        self.state.check_entered()
        if self.first is None:
            self.findings.met.check()
        self._want_modes()

    def _check_set_up(self) -> None:
        known, tables = self.findings.set_up, self.hook_tables
        if known is not None or tables.have_changed():
            is_method = not self._is_function and self.fn is not self.module and not self.settings.live
            changed = self.state.changed()
            keys = {*self.findings.lifted, *(slot.key for slot in changed)}
            is_one = not self._has_several_paths() or self.is_aligned
            nodes = list(self.recorder.bodies.outermost.nodes if self.paths is None else self.paths.nodes())
            found = tables.check(known, nodes, keys, can_be=not is_method and is_one)
            if found:
                self.findings.set_up = SetUp(found, changed, nodes, needs_flags=self._is_function)
                raise Restart

    def _leave(self, stays: bool) -> None:
        """Put everything back, or let what the run did stay done."""
        super()._leave(stays and not self.plain_kinds)

    def _commit(self) -> None:
        """Let what the run did stay done."""
        super()._commit()
        self.recorder.array_attributes.commit(partial(plain, self.recorder))
        self.recorder.generators.commit()

    def _undone(self) -> list[Any]:
        """All that has a ``put_back``, in the order in which it is put back."""
        parts = [self.inputs, self.state, self.recorder.arrays, self.open_files, self.rollback, self.modules]
        return [part for part in (*parts, self.hook_tables) if part is not None]

    def _prepared(self, given: Given) -> Given:
        """The arguments right before the program gets them."""
        self.recorder.tracers.begin()
        return given

    def _drained(self, result: Any) -> Any:
        """The result of the program; an iterator has been walked to its end."""
        return dispatch.drain(self, result)

    def _ends(self) -> list[Any]:
        """The tensors, modules and optimizers around the program and among its arguments."""
        return [*self.state.memory.ends.values(), *self.inputs.ends]

    def _plain_owners(self) -> list[Any]:
        """Objects outside of modules whose attributes the program may change."""
        return self._owners(self.settings.stateful, (torch.nn.Module,))

    def _install(self, patches: Patches) -> None:
        """Replace what reports to the recorder, for the time of the run."""
        reached, met = self.surroundings.functions, self.findings.caches
        self.recorder.caches.before_hash = partial(check_hash, met)
        self.findings.progress.rewrites.install(patches)
        install(patches)
        install_islands(patches, self.islands, reached)
        replacements.install(patches)
        patches.from_stock(_stock)
        if self.findings.unseen or self.surroundings.derived(constructors.call_tensor):
            constructors.install_unseen(patches, _current_recorder)
        if self.recorder.arrays is not None:
            followed = self.findings.packages.functions()
            install_arrays_in(patches, _current_arrays, _current_recorder, [*reached, *followed])
        self.state.install(patches, self.surroundings.stored)
        self._install_reads(patches)
        interception.install_in(patches, _current_recorder, self.surroundings, self.parts, self._ends())
        kinds = {kind for own in set(map(type, self.parts)) for kind in own.__mro__}
        own_kinds = [kind for kind in kinds if not kind.__module__.startswith(("torch.", "builtins"))]
        caches.install(patches, _current_caches, self.surroundings, own_kinds, met=met)
        number_functions.install_in(patches, _current_recorder, self.findings.met.functions)

    @contextmanager
    def _following(self, patches: Patches) -> Iterator[None]:
        """Let torch's calls, and reads of arguments, report to the recorder."""
        with RecordingMode(self.recorder), self.accesses.watched(patches):
            yield

    def _listener(self) -> Listener:
        """The listener to plain Python during the run."""
        return TorchListener(self.recorder)

    def call_wrapped(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function that the user has wrapped: one node, whatever is inside."""
        given = list(leaves((args, kwargs)))
        symbolic = any(isinstance(leaf, torch.Tensor) or issubclass(type(leaf), Scalar) for leaf in given)
        if self.recorder.depth or not symbolic:
            return function(*args, **kwargs)
        with self.recorder.streams.followed():
            why = "the capture cannot follow it" if function in self.islands else "it is wrapped"
            return self.recorder.whole("call_function", function, function, args, kwargs, given, why, function)

    def _entered_modules(self) -> Iterable[torch.nn.Module]:
        return () if self.modules is None else (part for _, part in self.modules.entered)

    def _more_code_guards(self) -> Iterable[Guard]:
        """Hooks that run with every module: the graph calls the layers, and not the modules around them."""
        called = [part for part in self._entered_modules() if type(part).forward is not torch.nn.Module.forward]
        if any(part is not self.module for part in called):
            hooks = HooksOfAll()
            subject = Variable({"hooks": hooks}, "hooks", hooks, hooks)
            yield Guard(subject, "variable", None, "code", label="the hooks of all modules are unchanged")

    def _finish_path(self, result: Any) -> bool:
        """Complete what this run has recorded; False if the result holds state, which must be lifted first."""
        if self.fn is self.module and not self.settings.live:
            self._check_given_out(result)
        with torch._C.DisableTorchFunction():
            is_done = super()._finish_path(result)
        self.recorder.sizes.keep_asked(of_paths=True)
        return is_done

    def _check_given_out(self, result: Any) -> None:
        """Raise if the result holds the module itself, or a part that the captured module has one of its own for."""
        entered = {} if self.modules is None else {id(part): path for path, part in self.modules.entered}
        given = next((one for one in leaves(result) if id(one) in entered), None)
        if given is not None:
            path = entered[id(given)]
            raise CaptureError(
                f"the {type(self.module).__name__} returns " + (f"its part {path!r}" if path else "itself"),
                why="the captured module is another one, with attributes of its own",
                fixes=("return what it holds", "clew.trace(module) without an example works on the original"),
            )

    def _ends_raising(self, error: Exception) -> bool:
        """Whether this path ends with a ``raise`` of the program's own, which the graph does too."""
        is_own = super()._ends_raising(error)
        if is_own:
            self.recorder.sizes.keep_asked(of_paths=True)
        return is_own

    def _join(self, runs: list[Run]) -> None:
        """Bring together what several runs have recorded and read."""
        super()._join(runs)
        for run in runs[1:]:
            self.recorder.relied.facts = run.recorder.relied.facts | self.recorder.relied.facts
            self.recorder.relied.hashed |= run.recorder.relied.hashed
            self.recorder.array_attributes.asked |= run.recorder.array_attributes.asked
        self.accesses.loosen(self.inputs, self.recorder.bodies.outermost)

    def _write_guards(self, graph: Graph, runs: list[Run], reads: Reads | None) -> None:
        """Write what has to hold at the entrance, and let constants be computed now."""
        if self.findings.set_up is not None and self._is_function:
            with graph.inserting_before(self.after_inputs._next):
                self.after_inputs = graph.call_function(set_up, (self.findings.set_up,))
        watches = self.settings.guards != "none"
        entry = EntryGuards(self.recorder, self.inputs, self.surroundings, self.state, reads, watches)
        entry.module = self.module
        entered = [] if self.modules is None else self.modules.entered
        entry.write(self.after_inputs, [*entered, *self.module_calls.entered.items()])
        open_inputs = [run.inputs for run in runs if run.inputs.lists or run.inputs.kinds_chosen]
        if self.recorder.relied.hashed and open_inputs:
            self.findings.tells_tensors_apart = True
            raise Restart
        if open_inputs:
            entry.write_choices(open_inputs)
        self._read_values(graph)
        sources = self.recorder.folding.fold(graph, self.recorder.attributes.add_constant)
        if sources is not None:
            entry.constants(sources, self.after_inputs)

    def _drop_unused(self, graph: Graph, runs: list[Run]) -> None:
        """Erase calls that nobody uses."""
        for run in runs:
            run.recorder.sizes.keep_asked()
        is_flat = not self.recorder.bodies.is_used and not self._has_several_paths()
        drop_unused(graph, self.settings.keeps_unused, is_flat)


def _asks_for_identity(functions: Iterable[FunctionType]) -> bool:
    return any(asks_for_identity(function.__code__) for function in functions)


def is_running() -> bool:
    """Whether there is a capture in this context."""
    return _running.get() is not None


def _current_caches() -> CachedCalls | None:
    """The calls of functions with a cache in the capture that is recording right now."""
    recorder = _current_recorder()
    return None if recorder is None else recorder.caches


def _current_recorder() -> TorchRecorder | None:
    """The recorder of the capture that is recording right now, in this context."""
    run = _running.get()
    return None if run is None or run.recorder.depth else run.recorder


def _current_arrays() -> ArrayRecorder | None:
    """The recorder of arrays of the capture that is recording right now."""
    recorder = _current_recorder()
    return None if recorder is None else recorder.arrays


def _reporting_call(original: Callable[..., Any]) -> Callable[..., Any]:
    def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
        run = _running.get()
        if run is None or run.recorder.depth:
            return original(module, *args, **kwargs)
        return run.module_calls.call(original, module, args, kwargs)

    return __call__


def _replace_in_torch(patches: Patches) -> None:
    """What every capture replaces in the same way."""
    patches.on_method(torch.nn.Module, "__call__", _reporting_call)
    interception.install(patches, _current_recorder)


_stock = Stock(_replace_in_torch)


def capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Captured:
    """Run ``fn`` on the example and record it; with ``keep`` what the run did stays done.

    A run that finds state that it changes is undone, and the capture started over with that state among its inputs.
    """
    if is_running():
        raise CaptureError("a capture was started inside another one", fixes=("capture before the program runs",))
    around = tuple(part for part in options.stateful if not isinstance(part, torch.nn.Module))  # followed anyway
    settings = options._replace(leaves=leaf_policy(options.leaves), stateful=around)
    findings = Findings(options.lifted)
    findings.lifted |= {slot.key: slot for slot in places_in(around)}
    known = dict(findings.lifted)
    try:
        captured = _capture(fn, args, kwargs, settings, findings)
    except ClewError:
        if not any(slot.is_only_read for slot in findings.lifted.values()):
            raise
        findings = Findings(known)
        findings.reads_numbers = False
        captured = _capture(fn, args, kwargs, settings, findings)
    if findings.first_call_change is not None and not settings.keep:
        with after_first_call(findings.first_call_change), suppress(ClewError):
            twin = _capture(fn, args, kwargs, settings, Findings(dict(findings.lifted)))
            widen(captured.graph, twin.graph, findings.first_call_change)
    _lift(captured, settings)
    return captured


def _lift(captured: Captured, settings: Options) -> None:
    """Let guards leave the graph, those too that follow from sizes, dtypes and devices of what came in."""
    graph, root = captured.graph, captured.module
    has_ranks = has_guarded_ranks(graph)
    facts = functools.cache(lambda: Facts(graph, root, has_ranks))  # few captures need them

    def computed(value: Any) -> Expression | None:
        found = facts().expression(value)
        return by_sizes(value) if found is None else found

    if lift_guards(graph, root, computed):
        drop_unused(graph, settings.keeps_unused)
        arrange_controls(graph)
        drop_unused(graph, settings.keeps_unused)


def _capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], settings: Options, findings: Findings) -> Captured:
    """Run a program until everything is known that its graph needs."""

    def explore() -> Captured:
        try:
            return _explore(fn, args, kwargs, settings._replace(control_flow=findings.control_flow), findings)
        except Unseen:
            if findings.unseen:
                raise
            findings.unseen = True
            raise Restart from None  # now with a look at more

    def island_for(error: CannotFollow) -> Any:
        return None if settings.refuses_opaque else find_island(error, fn, findings.module_paths, findings.islands)

    try:
        captured = capture_until_known(explore, findings, settings, island_for)
        findings.set_up_stays = settings.keep
        return captured
    except Exception as error:
        undone = isinstance(error, ClewError) or not settings.keep
        for cached in findings.filled if undone else ():  # a program that is not captured shall find them as they were
            cached.cache_clear()
        if isinstance(error, CannotFollow) and isinstance(findings.with_arrays, CaptureError):
            raise findings.with_arrays from error  # which says what of NumPy cannot be followed
        raise
    finally:
        findings.undo_set_up()


def _explore(fn: Any, args: Any, kwargs: Any, settings: Options, findings: Findings) -> Captured:
    """Run a program once for each path that it can take."""
    met, packages = len(findings.caches), set(findings.packages.names)
    if findings.set_up is not None:
        findings.set_up.do()

    def new_run(paths: Paths | None, first: Any, answers: tuple[bool, ...]) -> Run:
        return Run(fn, settings, findings, paths, first, answers)

    captured = explore_paths(new_run, findings, args, kwargs)
    if len(findings.caches) > met or findings.packages.names != packages:
        raise Restart  # which the program has caught, by a handler of everything
    return captured
