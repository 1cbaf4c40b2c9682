"""One capture of a TensorFlow program: TensorFlow traces it, and the function graph is imported.

Comes in: a function, a ``tf.function``, a method, a module or a Keras model, and its arguments, tensors or
``tf.TensorSpec``s. Goes out: the graph, the attributes of its root, the guards. The graph works on the original's own
variables. Python's state is as it was afterwards; a program that changes it is refused.
"""

from __future__ import annotations

import copy
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType
from typing import Any

import tensorflow as tf
from tensorflow.python import autograph

from clew.capture.bytecode.instructions import instructions_of
from clew.capture.captured import Captured
from clew.capture.control_flow.argument_uses import asks
from clew.capture.guards.lifting import lift_guards
from clew.capture.guards.notes import Variable
from clew.capture.guards.variables import WatchedVariables, may_count
from clew.capture.options import Options
from clew.capture.python.files import refuse_held
from clew.capture.python.listener import CHANGES, PRINTS, Listener
from clew.capture.python.screens import is_redirected
from clew.capture.recording.inputs import bind
from clew.capture.state.containers import SIMPLE, follows
from clew.capture.state.reachable import attribute_names, compares_objects
from clew.capture.state.slots import Slot
from clew.capture.state.state import State
from clew.capture.state.surroundings import Surroundings
from clew.capture.state.writes import Writes
from clew.errors import CaptureError, ClewError, as_cause
from clew.frameworks.numpy.opaque_calls import NUMPY_FOLDER
from clew.frameworks.tensorflow import autograph as autograph_operators
from clew.frameworks.tensorflow.effects import drop_unused
from clew.frameworks.tensorflow.entry_guards import EntryGuards, WrappedContents
from clew.frameworks.tensorflow.function_traces import check_traces
from clew.frameworks.tensorflow.importer import Importer
from clew.frameworks.tensorflow.inputs import TensorInputs, TensorOutputs, TensorRecorder, handles, tensors_in
from clew.frameworks.tensorflow.operations import PYTHON_FUNCTIONS
from clew.frameworks.tensorflow.programs import (
    Function,
    behind,
    check_names,
    functions_behind,
    is_layer,
    is_part,
    parts_of,
    signature_of,
)
from clew.frameworks.tensorflow.scalars import ALL, NeedsKnown, Traced, is_symbolic
from clew.frameworks.tensorflow.tracing import Tracing
from clew.frameworks.tensorflow.types import Root, variable_name
from clew.ir.arguments import all_nodes, nested_graphs
from clew.ir.control_flow import cond, is_control
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.source import is_hidden

_TRACKING = frozenset(
    "_obj_reference_counts_dict _self_setattr_tracking _self_unconditional_checkpoint_dependencies "
    "_self_unconditional_dependency_names _self_unconditional_deferred_dependencies _self_update_uid "
    "_self_name_based_restores _self_saveable_object_factories".split()
)
"""What modules note of the variables in their attributes."""

REFUSED = {
    "leaves": "it says which modules stay calls, and layers are traced down to operations",
    "include_generators": "random operations draw anew at each call; draw beforehand and pass the numbers",
    "guards": "its tracing reads variables where nobody sees it, so the graph relies on all that they hold",
    "stateful": "the capture follows objects as it finds them",
    "stateful_arguments": "the capture follows objects as it finds them",
}
"""Options that mean nothing here, and why."""


def capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Captured:
    """Trace ``fn`` on the example and import it; with ``keep`` the original runs on it too, for its result.

    With ``dynamic`` the sizes of all tensors among the arguments are left open.
    """
    options.refuse("TensorFlow", REFUSED)
    if options.control_flow == "guard":
        raise CaptureError(
            'control_flow="guard" says nothing in a program of TensorFlow',
            why="its tracing sees no values that a guard could check",
            fixes=('give "capture" or "error"',),
        )
    result = None
    unbuilt = any(not part.built for part in parts_of(behind(fn)) if is_layer(part))
    if unbuilt:
        if options.keep:
            result = fn(*args, **kwargs)
        else:
            _Capture(fn).build(args, kwargs)
    try:
        graph, root = _until_known(fn, args, kwargs, options, Root())
    except ClewError:
        raise
    except Exception:
        if options.keep and not unbuilt:
            fn(*args, **kwargs)  # which raises the same error, and has done before what it does
        raise
    if options.control_flow == "error" and any(is_control(node) for node in all_nodes(graph)):
        raise CaptureError("the program branches or loops on data", fixes=('control_flow="capture"',))
    if options.keep and not unbuilt:
        result = fn(*args, **kwargs)
    lift_guards(graph)
    return Captured(None, root.attributes, graph, result)


def _until_known(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options, root: Root, found: Iterable[Slot] = ()
) -> tuple[Graph, Root]:
    """Trace with all sizes and numbers open, and again with those known that the program has to know.

    A program that makes variables at its first call finds them at all others: it is traced for both.
    """
    known: frozenset[tuple[int, int]] = frozenset()
    lifted = {slot.key: slot for slot in found}
    while True:
        run = _Capture(fn, known, options, lifted, root)
        try:
            graph, _ = run.run(args, kwargs, options.opaque)
            break
        except _Changed as changed:
            lifted |= {slot.key: slot for slot in changed.slots}
        except NeedsKnown as needed:
            if needed.sources <= known:
                raise CaptureError(
                    "the program needs values that are known only when the graph runs",
                    fixes=("use functions of tf, which AutoGraph follows",),
                ) from None
            known |= needed.sources
    left = [(slot, value) for slot, value in run.left if slot.variable.get() is None]
    places = [(slot, made) for slot, value in left if (made := _later(run.tracing, value)) is not None]
    if not places:
        return graph, root
    return _with_later_calls(fn, args, kwargs, options, root, graph, places), root


def _later(tracing: Tracing, value: Any) -> Any:
    """Such a value as later calls find where the first one has left another: a variable, a tensor, a number."""
    if id(value) in tracing.notes.makers:
        return value
    if isinstance(value, Traced):
        return value.sample
    is_known = is_symbolic(value) and value.shape.rank is not None and value.dtype not in (tf.variant, tf.resource)
    return tf.zeros([2 if size is None else size for size in value.shape], value.dtype) if is_known else None


def _with_later_calls(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
    root: Root,
    first: Graph,
    places: list[tuple[Slot, Any]],
) -> Graph:
    """The graph of the first call, which finds None in some places, and of those that find the variables it made."""
    try:
        for slot, value in places:
            slot.variable.put(value)
        with suppress(CaptureError), _tracking_kept([slot.variable.holder for slot, _ in places]):
            later, _ = _until_known(fn, args, kwargs, options, root, [slot for slot, _ in places])
            return _joined(places[0][0], first, later) or first
    finally:
        for slot, _ in places:
            slot.variable.put(None)
    return first


def _joined(slot: Slot, first: Graph, later: Graph) -> Graph | None:
    """A graph that does what the first one does while a place holds None, and otherwise what the other one does."""
    graph = Graph()
    operands = []
    for node in first.find_nodes(op="placeholder"):
        made = graph.create_node("placeholder", node.target, node.args, node.kwargs, node.name)
        made.value_type = node.value_type
        operands.append(made)
    if any(str(node.target).startswith("*") for node in operands):
        return None
    for body in (first, later):
        for node in body.find_nodes(op="placeholder"):
            node.args, node.kwargs = (), {}
    test = graph.call_function(operator.is_, (slot.read(graph), None))
    graph.output(graph.call_function(cond, (test, first, later, tuple(operands))))
    return graph


@contextmanager
def _tracking_kept(owners: Iterable[Any]) -> Iterator[None]:
    """What modules note of the variables in their attributes is as it was afterwards."""
    holders = [vars_of(one) for one in owners if not is_layer(one)]
    kept = [(held, {name: copy.copy(held[name]) for name in _TRACKING & held.keys()}) for held in holders]
    try:
        yield
    finally:
        for holder, values in kept:
            for name in _TRACKING & holder.keys():
                del holder[name]
            holder.update(values)


def vars_of(value: Any) -> dict[str, Any]:
    """The attributes of an object that has some."""
    found: dict[str, Any] = getattr(value, "__dict__", {})
    return found


class _Changed(BaseException):
    """The program changes these places, which are inputs of the next run."""

    def __init__(self, slots: list[Slot]) -> None:
        self.slots = slots


def _placeholder(value: Any) -> Any:
    if not isinstance(value, (tf.Tensor, tf.TensorSpec)):
        return value
    return tf.compat.v1.placeholder(value.dtype, value.shape)


_PLACE = re.compile(r'File ".*", line \d+, in ')


_TELLING_APART = frozenset({"GradientTape", "ForwardAccumulator", "gradients"})
"""Names by which a program asks how something changes with a tensor, which may be given under two names."""


class _Capture:
    """One run of a program that is being captured."""

    def __init__(
        self,
        fn: Any,
        known: frozenset[tuple[int, int]] = frozenset(),
        options: Options | None = None,
        lifted: dict[Any, Slot] | None = None,
        root: Root | None = None,
    ) -> None:
        self.fn = fn
        self.known = known
        self.lifted = lifted or {}
        self.keeps_unused = options is None or options.keeps_unused
        programs = behind(fn)
        self.parts = parts_of(programs)
        self.objects = [one for one in programs if not isinstance(one, (type, Function)) and hasattr(one, "__dict__")]
        functions = functions_behind([*programs, *self.parts])
        self.surroundings = Surroundings(functions, map(type, (*programs, *self.parts)))
        check_names(self.surroundings.functions)
        self.named = {name for one in self.surroundings.functions for name in attribute_names(one.__code__)}
        around = [value for _, value in self.surroundings.values()]
        self.parts = parts_of([*self.parts, *around])
        self.layers = {type(part) for part in self.parts if is_layer(part)}
        self.recorder = TensorRecorder()
        self.is_function = any(isinstance(one, Function) for one in programs)
        self.tracing = Tracing(getattr(fn, "__name__", type(fn).__name__))
        static = frozenset() if options is None else options.static
        self.inputs = TensorInputs(self.recorder, self.tracing, known, static)
        self.inputs.heeds_specs = options is None or not options.dynamic
        self.inputs.converts = self.is_function or is_layer(fn)
        if is_layer(fn) or any(compares_objects(function.__code__) for function in self.surroundings.functions):
            self.inputs.plain_kinds = (bool, int, float)
        self.state = State(self.inputs)
        self.root = Root() if root is None else root
        self.left: list[tuple[Slot, Any]] = []
        self.wrapped: list[WrappedContents] = []
        self._learn_names()

    def _learn_names(self) -> None:
        """Variables that have no name of their own are called as the program calls them."""
        attributes = [item for one in (*self.parts, *self.objects) for item in vars(one).items()]
        for name, value in (*attributes, *self.surroundings.values()):
            if isinstance(value, tf.Variable) and variable_name(value) == "Variable":
                self.recorder.names[id(value)] = name

    def build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A layer makes its variables when it is first called: it is traced once for that."""
        tracing = Tracing("build", builds=True)
        stored = [(part, name, vars(part)[name]) for part in self.parts for name in _set_by_call(part)]
        with self._refusing(tracing), self._running(tracing):
            given_args, given_kwargs = tf.nest.map_structure(_placeholder, (args, kwargs))
            try:
                tracing.call(self.fn, given_args, given_kwargs, is_converted=not is_layer(self.fn))
            finally:
                for part, name, value in stored:
                    object.__setattr__(part, name, value)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], opaque: str) -> tuple[Any, Root]:
        """Trace the program and import what it has done."""
        graph = self.recorder.graph
        tracing = self.tracing
        tracing.notes.fixed_streams = self.is_function
        self._watch()
        refuse_held(self.state.memory.outside_functions, lambda: self.surroundings.line_naming(""))
        try:
            owners = {id(one): one for one in (*self.objects, *self.parts)}.values()
            around = [value for _, value in self.surroundings.values()]
            check_traces([*behind(self.fn), *owners, *around], self.lifted.values())
            with _tracking_kept(owners), self._refusing(tracing), self._running(tracing):
                self.inputs.asked = asks(self.fn, self.surroundings.functions)
                given = bind(self.inputs, signature_of(self.fn), args, kwargs, None if is_layer(self.fn) else self.fn)
                self.inputs.write_checks()
                self._lift()
                result = self._call(tracing, *given)
            self._check()
            return self._finish(graph, tracing, result, opaque)
        finally:
            self.inputs.put_back()
            self.state.put_back()
            for held in self.wrapped:
                held.put_back()

    def _running(self, tracing: Tracing) -> AbstractContextManager[None]:
        listener = TensorflowListener(self.recorder, self.surroundings, tracing)
        return tracing.running(self.layers, self.surroundings, listener)

    def _lift(self) -> None:
        """Let the places that the program changes enter; tensors stay what they are while nothing else is run."""
        self.state.lift(self.lifted.values())
        self.tracing.watch(self.state, self.surroundings.stored)

    def _call(self, tracing: Tracing, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not isinstance(self.fn, Function):
            return tracing.call(self.fn, args, kwargs, is_converted=not is_layer(self.fn))
        result = tracing.call(self.fn.python_function, args, kwargs, is_converted=self.fn._autograph)
        # A tf.function gives tensors in the place of all that can be one.
        return tf.nest.map_structure(lambda leaf: leaf if leaf is None else _converted(leaf), result)

    @contextmanager
    def _refusing(self, tracing: Tracing) -> Iterator[None]:
        """An error of the program is its own; one that only the tracing has met says that it cannot be captured."""
        try:
            yield
        except ClewError:
            raise
        except Exception as error:
            if tracing.refusal is not None:
                raise tracing.refusal from as_cause(error)
            if tracing.wanted and not tracing.builds:
                raise tracing.restart(tracing.wanted) from error
            if _is_raised_by_user(error) and not tracing.failed_inside:
                raise
            everything = {(place, ALL) for place in range(self.inputs.count)}
            if not everything <= self.known and not tracing.builds:
                raise NeedsKnown(everything) from error
            raise CaptureError(
                f"TensorFlow cannot trace this program: {type(error).__name__}: {_first_lines(error)}",
                why="it needs the values of tensors, or something else that a graph cannot hold",
                fixes=("use functions of tf, which AutoGraph follows", "give other arguments"),
            ) from as_cause(error)

    # ---- the state of Python -------------------------------------------------------------------------------------

    def _watch(self) -> None:
        for owner in {id(one): one for one in (*self.objects, *self.parts)}.values():
            if is_part(owner) or not is_hidden_object(owner):
                is_foreign = is_layer(owner) and type(owner).__module__.startswith("keras.")
                counts = _is_followed if is_foreign else self._counts
                skipped = {name for name, value in vars(owner).items() if not counts(value)} | _TRACKING
                skipped |= {name for name in vars(owner) if is_part(owner) and not self._is_of_user(name)}
                self.state.watch(owner, vars(owner), skip=frozenset(skipped))
        for holder, name in self.surroundings.cells():
            self.state.watch_variable(Variable(holder, name))
        self.wrapped = [
            WrappedContents(f"{type(part).__name__}.{name}", value)
            for part in self.parts
            for name, value in vars(part).items()
            if isinstance(value, (list, dict)) and not _is_followed(value) and self._is_of_user(name)
        ]

    def _is_of_user(self, name: str) -> bool:
        """Whether an attribute of a module is the program's own: frameworks keep theirs under private names."""
        return name in self.named or name == "_trainable" or not name.startswith("_")

    def _is_of_program(self, slot: Any) -> bool:
        """Whether a place is the program's: layers make private attributes of their own when they are first called."""
        return not is_part(slot.owner) or self._is_of_user(slot.variable.name)

    def _check(self) -> None:
        """Raise if the program has changed what no operation changes again."""
        self.surroundings.check_streams()
        for part in self.parts:
            if is_layer(part) and part._losses:
                part._losses.clear()
                raise CaptureError(
                    f"the layer {part.name} adds a loss as it runs",
                    why="the graph would not add it again",
                    fixes=("return the loss",),
                )
        if self.inputs.is_array_written():
            raise CaptureError(
                "the program writes to an array of NumPy that it is given",
                why="no operation of the graph would write to it again",
                fixes=("write to a copy of the array", "give a tensor"),
            )
        for held in self.wrapped:
            if held.changed() is not None:
                raise CaptureError(
                    f"the program changes {held.label}",
                    why="TensorFlow keeps it in a container of its own, which the graph would not change again",
                    fixes=("keep the state in a tf.Variable", "return the new value"),
                )
        changed = [slot for slot in self.state.changed() if self._is_of_program(slot)]
        if changed:
            raise _Changed(changed)
        self.state.check_entered()

    # ---- the graph -----------------------------------------------------------------------------------------------

    def _finish(self, graph: Any, tracing: Tracing, result: Any, opaque: str) -> tuple[Any, Root]:
        wanted = [leaf.name for leaf in tensors_in(result) if hasattr(leaf, "graph")]
        after_inputs = graph._root._prev
        self.recorder.code.outside_reads.write(graph)
        self._guards(EntryGuards(graph, self.root))
        importer = self.recorder.importer = Importer(tracing.graph, graph, self.root, tracing.notes, wanted)
        for symbol, place in self.inputs.symbols:
            importer.values[symbol.name] = importer.typed(self.recorder.resolve(place), symbol)
        importer.values.update(handles(importer, tracing.graph.captures, self.recorder, tracing.variables))
        importer.run()
        outputs = TensorOutputs(self.recorder)
        self.left = list(self.state.left())
        graph.output(Writes(self.state, graph).finish(result, outputs))
        with graph.inserting_before(after_inputs._next):
            self.state.drop_unread()
        drop_unused(graph, self.keeps_unused)
        name_by_variables(graph)
        graph.lint()
        stay = tracing.notes.regions or any(node.target in PYTHON_FUNCTIONS for node in all_nodes(graph))
        if opaque == "error" and stay:
            raise CaptureError(
                "a function of Python, or one with a gradient of its own, would stay a call", fixes=('opaque="call"',)
            )
        return graph, self.root

    def _guards(self, guards: EntryGuards) -> None:
        for value, place in self.inputs.arrays:
            guards.tensor(self.recorder.resolve(place), value)
        for key, place, value in self.inputs.numbers:
            guards.number(self.recorder.resolve(place), value, key in self.tracing.typed)
        functions = self.surroundings.functions
        asks = any(compares_objects(function.__code__) for function in functions)
        if (asks or self.named & _TELLING_APART) and len(self.inputs.arrays) > 1:
            guards.different([self.recorder.resolve(place) for _, place in self.inputs.arrays])
        around = []
        for holder, name, value in self.surroundings.variables({function.__code__ for function in functions}):
            if (id(holder), name) in self.lifted:
                continue
            if may_count(self.surroundings.is_of_library(holder, name), value):
                around.append((f"{holder.__name__}.{name}" if isinstance(holder, type) else name, holder, name, value))
        names = ", ".join(one[0] for one in around)
        guards.watched(self._watched(around), f"{names} {'is unchanged' if len(around) == 1 else 'are unchanged'}")
        for kind in self.surroundings.classes():
            held = [
                (f"{kind.__name__}.{name}", kind, name, vars(kind)[name])
                for name in sorted(self.named & vars(kind).keys())
            ]
            plain = [one for one in held if type(one[3]) in SIMPLE or (follows(one[3]) and not callable(one[3]))]
            guards.watched(self._watched(plain), f"the attributes of {kind.__name__} are unchanged")
        for owner in {id(one): one for one in (*self.objects, *self.parts)}.values():
            if isinstance(owner, Function):
                continue
            label = getattr(owner, "name", None) or type(owner).__name__
            told = [(name, value) for name, value in vars(owner).items() if self._counts(value)]
            own = [(name, value) for name, value in told if not is_part(owner) or self._is_of_user(name)]
            own = [(name, value) for name, value in own if (id(owner), name) not in self.lifted]
            held = [(f"{label}.{name}", owner, name, value) for name, value in own]
            guards.watched(self._watched(held), f"the attributes of {label} are unchanged")

        for one in self.wrapped:
            guards.wrapped(one)

    def _watched(self, variables: Any) -> WatchedVariables:
        made = WatchedVariables(self.recorder.is_end)
        for one in variables:
            made.add(*one)
        return made

    def _counts(self, value: Any) -> bool:
        """Whether an attribute may have told the program something."""
        return _is_followed(value) or self.recorder.is_end(value)


def _set_by_call(part: Any) -> list[str]:
    """The attributes that a layer has and that its own ``call`` sets: those are the program's state."""
    code = getattr(getattr(type(part), "call", None), "__code__", None)
    steps = [] if code is None or is_hidden(code) else instructions_of(code)
    return [one.argval for one in steps if one.opname == "STORE_ATTR" and one.argval in vars(part)]


def _is_followed(value: Any) -> bool:
    return type(value) in SIMPLE or follows(value) or type(value) is tuple


def is_hidden_object(value: Any) -> bool:
    """True for functions of frameworks, which keep no state of the program."""
    code = getattr(value, "__code__", None)
    return code is not None and is_hidden(code)


def _converted(leaf: Any) -> Any:
    return leaf if tf.is_tensor(leaf) and not isinstance(leaf, tf.Variable) else tf.convert_to_tensor(leaf)


def _is_raised_by_user(error: Exception) -> bool:
    """Whether the error comes from a ``raise`` of the program itself, also where AutoGraph has made it anew."""
    if type(error).__module__.startswith(("tensorflow.", "keras.")) or "SymbolicTensor" in str(error):
        return False  # which only a tracing has
    lines = [line.strip() for line in str(error).splitlines()]
    places = [place for place, line in enumerate(lines) if _PLACE.match(line)]
    if "in user code:" in lines and places:
        return lines[places[-1]].endswith("*") and lines[places[-1] + 1].startswith("raise")
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and not is_hidden(trace.tb_frame.f_code)


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return " ".join(lines[:1] if len(lines) < 2 or "in user code" not in lines[0] else lines[-2:])[:300]


_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\s*(?::[^=]+)?(?:[-+*/@%]|//|\*\*)?=(?!=)")


def name_by_variables(graph: Graph) -> None:
    """Rename the nodes of a graph and of those inside it."""
    for one in (graph, *nested_graphs(graph)):
        nodes = [node for node in one.nodes if node.op in ("call_function", "call_method") and node.source is not None]
        for node, following in zip(nodes, [*nodes[1:], None], strict=False):
            if node.users and (following is None or following.source != node.source):
                name = _variable(node)
                if name is not None and name != node.name:
                    node.name = name


def _variable(node: Node) -> str | None:
    assert node.source is not None
    found = _ASSIGNMENT.match(node.source.text)
    return None if found is None or not found[1].strip("_") else found[1]


_AUTOGRAPH = (
    *(os.path.join(os.path.dirname(autograph.__file__), part) + os.sep for part in ("impl", "operators", "core")),
    autograph_operators.__file__,
)
"""Where AutoGraph, or what stands for its functions, calls what the program calls; elsewhere it handles code."""


class TensorflowListener(Listener):
    """The listener of one run."""

    fixes = ("pass the value as an argument", "use tf.random, tf.timestamp and the like")
    through = (NUMPY_FOLDER, *_AUTOGRAPH)

    def __init__(self, recorder: TensorRecorder, surroundings: Surroundings, tracing: Tracing) -> None:
        super().__init__(recorder)
        self._surroundings = surroundings
        self._tracing = tracing

    def is_listening(self) -> bool:
        """All that happens while TensorFlow traces is the program's, or TensorFlow's own."""
        return True

    def caller(self, frame: FrameType | None) -> FrameType | None:
        """The frame that has called, through AutoGraph or not."""
        while frame is not None and frame.f_code.co_filename.startswith(_AUTOGRAPH):
            frame = frame.f_back
        return frame

    def messages(self, frame: FrameType | None, what: str, is_shown: Callable[[], bool] | None = None) -> None:
        """What is told as the program is traced would be told once only."""
        is_heard = self.hears(frame) if what == PRINTS else self.is_own(frame) and not is_redirected()
        if is_heard and (is_shown is None or is_shown()):
            raise self._tracing.refuse(f"the program {what}s", "it would do so once, in the capture", "use tf.print")

    def has_stream(self, stream: Any) -> bool:
        """Whether a stream is one from around the program."""
        return any(stream is own for own in self._surroundings.python_streams())

    def line(self) -> str:
        """The line of the program, past the code that AutoGraph has made of it."""
        return self._tracing.line()

    def refusal(self, what: str, why: str = CHANGES, kind: type[CaptureError] | None = None) -> CaptureError:
        """The error, which the tracing keeps: the program may catch it."""
        return self._tracing.refuse(f"{what} cannot be captured", why, *self.fixes)
