"""One capture of a JAX program: trace it on the example, then write the jaxpr as a graph of readable calls.

Comes in: a callable and its arguments. Goes out: the graph, its constants, the guards. The program is run once for the
trace, on tracers; it computes nothing, and what it changed in Python is put back. State that it changed enters the next
run as an input and is written by the graph. What tracing cannot see through is refused.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax

from clew.capture.captured import Captured
from clew.capture.current_capture import current
from clew.capture.guards.lifting import lift_guards
from clew.capture.guards.notes import Variable
from clew.capture.guards.redundant import drop_implied
from clew.capture.options import LEFT_OUT, Options
from clew.capture.patches import Patches
from clew.capture.python import replacements
from clew.capture.python.caches import CachedResults
from clew.capture.recording.inputs import bind
from clew.capture.state.containers import attributes_of, contents, follows
from clew.capture.state.reachable import asks_for_identity, behind, compares_objects, global_names, signature_of
from clew.capture.state.slots import Slot
from clew.capture.state.state import State
from clew.capture.state.surroundings import Surroundings, functions_of, held_by
from clew.capture.state.writes import Writes
from clew.errors import CaptureError
from clew.frameworks.jax import caches, control  # fills the table of handlers
from clew.frameworks.jax.entry_guards import EntryGuards
from clew.frameworks.jax.importer import HANDLERS, Importer
from clew.frameworks.jax.layers import Layers, is_of_keras
from clew.frameworks.jax.printing import Printing
from clew.frameworks.jax.programs import check_names, rules_of
from clew.frameworks.jax.python_listener import JaxListener
from clew.frameworks.jax.recorder import JaxInputs, JaxRecorder
from clew.frameworks.jax.refusals import (
    PlainNumbers,
    Raised,
    check_callbacks,
    check_numbers,
    explained,
    no_random_numbers,
    watch_errors,
)
from clew.frameworks.jax.scalars import Standing, teach_jax
from clew.frameworks.jax.staging import this_trace, whole_calls
from clew.frameworks.numpy import foreign_draws
from clew.ir.guards import attribute_paths
from clew.ir.interpreter import Interpreter

assert HANDLERS and control

REFUSED = {
    "leaves": "it says which modules stay calls, and JAX has no modules",
    "include_generators": "random numbers come from keys, which are arguments or constants",
    "stateful": "the capture follows objects as it finds them",
    "stateful_arguments": "the capture follows objects as it finds them",
}
"""Options that mean nothing here, and why."""

_MOST_RUNS = 12
_running: contextvars.ContextVar[Any] = contextvars.ContextVar("clew_jax_capture", default=None)


def capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Captured:
    """Trace ``fn`` on the example and record it; with ``keep`` the graph is also run once, for its result.

    ``control_flow`` and ``dynamic`` say nothing here: control flow of JAX's own is in the jaxpr, Python's cannot be
    traced, and a jaxpr has fixed sizes.
    """
    options.refuse("JAX", REFUSED)
    if _running.get() is not None:
        raise CaptureError("a capture was started inside another one", fixes=("capture before the program runs",))
    teach_jax()
    lifted: dict[Any, Slot] = {}
    known: dict[int, Any] = {}
    plain: tuple[type, ...] = ()
    for _ in range(_MOST_RUNS):
        run = _Capture(fn, options, plain)
        lifted = {slot.key: slot for slot in run.layers.slots()} | lifted
        try:
            done = run.run(args, kwargs, lifted, known)
        except PlainNumbers:
            plain, known = (bool, int, float), {}
            continue
        if done is not None:
            return _kept(done, args, kwargs, fn) if options.keep else done
        lifted |= {slot.key: slot for slot in run.found}
        known = {} if run.found else {serial: one.plain for serial, one in run.recorder.taken.items()}
        run.state.forget()
    raise CaptureError(
        "the program changes other places of its state in each run", why=", ".join(slot.label for slot in run.found)
    )


def _kept(captured: Captured, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any) -> Captured:
    """The same with the result of the graph, which has now been run once on the example."""
    given = signature_of(fn).bind(*args, **kwargs)
    given.apply_defaults()
    inputs = captured.graph.find_nodes(op="placeholder")
    values = {node: given.arguments[str(node.target).lstrip("*")] for node in inputs}
    root = SimpleNamespace(**captured.constants)
    result = Interpreter(root, graph=captured.graph).run(initial_env=values)
    return captured._replace(result=result)


class _Capture:
    """One run of a program that is being captured."""

    def __init__(self, fn: Any, options: Options, plain: tuple[type, ...]) -> None:
        self.fn = fn
        self.options = options
        self.recorder = JaxRecorder()
        self.inputs = JaxInputs(self.recorder, options.static)
        programs = behind(fn)
        self.functions = list(dict.fromkeys(function for part in programs for function in functions_of(part)))
        held = [one for part in programs if isinstance(part, partial) for one in held_by(part)]
        self.surroundings = Surroundings(self.functions, map(type, programs), held)
        for rule in [one for _, value in list(self.surroundings.values()) for one in rules_of(value)]:
            self.surroundings.add(rule)
        check_names(self.surroundings.functions)
        codes = [function.__code__ for function in self.surroundings.functions]
        self.asks_for_types = any("type" in global_names(code) or asks_for_identity(code) for code in codes)
        is_plain = self.asks_for_types or any(map(compares_objects, codes))
        self.inputs.plain_kinds = (bool, int, float) if is_plain else plain
        values = [*programs, *(value for _, value in self.surroundings.values())]
        self.layers = Layers(values, self.recorder.is_end)
        self.layers.check_built()
        self.owners = [one for one in (*programs, *self.functions) if not is_of_keras(one)]
        self.state = State(self.inputs)
        self.printing = Printing(self.recorder)
        self.cached = CachedResults(self.recorder.is_end)
        self.found: list[Slot] = []
        self.result: Any = None

    # ---- the run -------------------------------------------------------------------------------------------------

    def run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], lifted: dict[Any, Slot], known: dict[int, Any]
    ) -> Captured | None:
        """Record one run; None if it must be made again: ``found`` names state to lift, ``taken`` became arrays."""
        arrays, standing = self._foresee(args, kwargs, lifted.values())
        standing |= known
        self._watch_state()
        token, failure = _running.set(self), Raised()
        try:
            with whole_calls():
                return self._recorded(args, kwargs, lifted, arrays, standing, failure)
        except Exception as error:
            understood = self._understood(error)
            if understood is error:
                raise
            raise understood from error
        finally:
            _running.reset(token)
            self.recorder.open = False
            self._put_back()

    def _recorded(
        self,
        args: Any,
        kwargs: Any,
        lifted: dict[Any, Slot],
        arrays: list[Any],
        standing: dict[int, Any],
        failure: Raised,
    ) -> Captured | None:
        closed = self._trace(args, kwargs, lifted.values(), arrays, standing, failure)
        failure.check()
        self.cached.check()
        self.layers.check_losses()
        self.surroundings.check_streams()
        self.found = [slot for slot in self.state.changed() if not self.layers.is_own(slot)]
        if self.found or set(self.recorder.taken) - set(standing):
            return None
        self.state.check_entered()
        self._write(closed, len(arrays), list(standing))
        return None if self.found else self._captured()

    def _foresee(self, args: Any, kwargs: Any, lifted: Iterable[Slot]) -> tuple[list[Any], dict[int, Any]]:
        """The arrays that will enter, in order, and the values of the stand-ins, found by letting all enter in vain."""
        inputs = JaxInputs(JaxRecorder(), self.inputs.static)
        inputs.plain_kinds = self.inputs.plain_kinds
        state = State(inputs)
        try:
            bind(inputs, signature_of(self.fn), args, kwargs)
            state.lift(lifted)
        finally:
            inputs.put_back()
            state.put_back()
        if inputs.hosts and self.asks_for_types:
            raise CaptureError(
                "the program asks for the type of a value, and an array of NumPy is among its arguments",
                why="what stands for that array while the program is traced has another type",
                fixes=("ask with isinstance", "pass an array of JAX: jax.numpy.asarray(x)"),
            )
        return [value for value, _ in inputs.arrays], {one.serial: one.plain for one in inputs.recorder.standing}

    def _trace(
        self,
        args: Any,
        kwargs: Any,
        lifted: Iterable[Slot],
        arrays: list[Any],
        standing: dict[int, Any],
        failure: Raised,
    ) -> Any:
        """The jaxpr of the program on the arrays and stand-ins; its results are all tracers that were left anywhere."""
        recorder, inputs = self.recorder, self.inputs

        def program(*tracers: Any) -> list[Any]:
            this_trace()
            recorder.tracers = list(tracers[: len(arrays)])
            recorder.pool = dict(zip(standing, tracers[len(arrays) :], strict=True))
            given = bind(inputs, signature_of(self.fn), args, kwargs)
            inputs.write_checks()
            self.state.lift(lifted)
            inputs.resolve_all()
            self.after_inputs = recorder.graph._root._prev
            recorder.running = True
            try:
                self.result = self.fn(*given[0], **given[1])
            finally:
                recorder.running = False
            self.left = list(self._tracers_left())
            return self.left

        with Patches() as patches:
            watch_errors(patches, failure)
            self.printing.install(patches)
            self.state.install(patches)
            replacements.install(patches)
            replacements.install_in(patches, self.surroundings, self._attributes())
            foreign_draws.install(patches, self.surroundings.functions)
            caches.install(patches, self, self.surroundings.functions, self.surroundings.classes())
            token = current.set(self.state)
            try:
                listener = JaxListener(self.recorder, self.surroundings)
                with no_random_numbers(), replacements.hearing(listener, self.surroundings):
                    return jax.make_jaxpr(program)(*arrays, *standing.values())
            finally:
                current.reset(token)

    def _attributes(self) -> Iterator[dict[str, Any]]:
        """The attributes of the objects behind the program."""
        for owner in self.owners:
            held = getattr(owner, "__dict__", None)
            if isinstance(held, dict) and not isinstance(owner, type) and not _is_jax(owner):
                yield held

    def _tracers_left(self) -> Iterator[Any]:
        """The tracers in the result and in all that the program has left in its state, each once."""
        seen: dict[int, Any] = {}
        waiting = [self.result, [value for _, value in self.state.left()], self.printing.values()]
        waiting += [list(contents(held.value).values()) for held in self.inputs.containers]
        while waiting:
            value = waiting.pop()
            if id(value) in seen:
                continue
            seen[id(value)] = value
            if self.recorder.is_array(value):
                if isinstance(value, jax.core.Tracer):
                    yield value
            elif isinstance(value, (tuple, list, set, frozenset)):
                waiting += list(value)
            elif isinstance(value, dict):
                waiting += [*value.values(), *attributes_of(value).values()]
            elif not issubclass(type(value), Standing) and (
                follows(value) or hasattr(type(value), "__dataclass_fields__")
            ):
                waiting += list(attributes_of(value).values())

    def _understood(self, error: Exception) -> Exception:
        """What the user, or the loop around the runs, shall make of an error."""
        numbers = bool(self.recorder.standing) and not self.inputs.plain_kinds
        if numbers and isinstance(error, (TypeError, jax.errors.JAXTypeError, ValueError)):
            return PlainNumbers()
        return explained(error)

    # ---- before and after ----------------------------------------------------------------------------------------

    def _watch_state(self) -> None:
        """Remember everything that the program can change besides its arguments."""
        self.layers.watch(self.state)
        for owner in self.owners:
            if (
                not isinstance(owner, type)
                and isinstance(getattr(owner, "__dict__", None), dict)
                and not _is_jax(owner)
            ):
                self.state.watch(owner, owner.__dict__)
        for kind in self.surroundings.classes():
            if self.surroundings.may_vary(kind):
                self.state.watch_class(kind)
                for name, value in list(vars(kind).items()):
                    if not name.startswith("__") and (follows(value) or self.surroundings.stores(name)):
                        self.state.watch_variable(Variable(kind, name))
        for holder, name in self.surroundings.cells():
            self.state.watch_variable(Variable(holder, name))

    def _put_back(self) -> None:
        self.inputs.put_back()
        self.state.put_back()
        self.surroundings.put_back_streams()

    # ---- the graph -----------------------------------------------------------------------------------------------

    def _write(self, closed: Any, count: int, serials: list[int]) -> None:
        """Write the jaxpr, what the program left in its state, and the guards into the graph."""
        recorder, graph = self.recorder, self.recorder.graph
        check_numbers(closed.jaxpr, closed.jaxpr.invars[count:], serials, recorder)
        operands = [recorder.resolve(place) for _, place in self.inputs.arrays]
        operands += [self._array_of(recorder.taken.get(serial)) for serial in serials]
        if self.options.refuses_opaque:
            check_callbacks(closed.jaxpr)
        results = Importer(graph, recorder.node_of, whole=True).run(closed, operands)
        for tracer, node in zip(self.left, results, strict=True):
            recorder.track(tracer, node)
        self.printing.write()
        output = Writes(self.state, graph).finish(self.result)
        graph.output(output)
        self.found = self.state.wanted()
        with graph.inserting_before(self.after_inputs._next):
            self.state.drop_unread()
        entry = EntryGuards(recorder, self.inputs, self.surroundings, self.state, self.layers)
        entry.write(self.after_inputs, self.options.guards)
        if self.options.guards == "none":
            graph.output_node().meta[LEFT_OUT] = "variables around the program are not looked at again"
        drop_implied(graph)
        graph.eliminate_dead_code()

    def _array_of(self, standing: Any) -> Any:
        """The node of the array that JAX makes of a stand-in; None if it never took it."""
        if standing is None:
            return None
        return self.recorder.create(jax.numpy.asarray, (self.recorder.resolve(standing.place),))

    def _captured(self) -> Captured:
        graph = self.recorder.graph
        lift_guards(graph)
        used = {*(node.target for node in graph.find_nodes(op="get_attr")), *attribute_paths(graph.guards.entry)}
        constants = {path: value for path, value in self.recorder.attributes.constants.items() if path in used}
        return Captured(None, constants, graph)


def _is_jax(owner: Any) -> bool:
    return type(owner).__module__.partition(".")[0] in ("jax", "jaxlib")
