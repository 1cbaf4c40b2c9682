"""The function graph of a program: TensorFlow's own tracing, AutoGraph included, run once and watched.

A callable and its arguments, with symbolic tensors in the place of arrays, come in; out come the result of that run and
notes on what a graph of TensorFlow does not hold: functions with gradients of their own, and the seeds that the program
gave. What the run would do once and the original at each call, printing say, is refused.
"""

from __future__ import annotations

import contextvars
import functools
import os
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy
import tensorflow as tf
from tensorflow.python.autograph.core import converter
from tensorflow.python.autograph.impl import api as autograph_api
from tensorflow.python.framework import constant_op, func_graph, ops, random_seed, tensor_conversion_registry
from tensorflow.python.framework import tensor as tensor_module
from tensorflow.python.ops import custom_gradient, resource_variable_ops
from tensorflow.python.ops.control_flow_v2_func_graphs import ControlFlowFuncGraph

from clew import tree
from clew.capture.bytecode.instructions import variables_of
from clew.capture.current_capture import current
from clew.capture.guards.notes import Variable
from clew.capture.patches import Patches
from clew.capture.python import caches, replacements, settings
from clew.capture.python.caches import CachedCalls
from clew.capture.python.callers import frame_of_program, is_file_of_python
from clew.capture.python.listener import Listener
from clew.capture.recording.list_proxies import StateListProxy
from clew.capture.state.containers import follows
from clew.capture.state.memory import Memory
from clew.capture.state.state import State
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.frameworks.numpy import files as numpy_files
from clew.frameworks.numpy import random_streams
from clew.frameworks.tensorflow import autograph
from clew.frameworks.tensorflow.importer import Notes, Region
from clew.frameworks.tensorflow.programs import is_part, layer_class
from clew.frameworks.tensorflow.random_numbers import MARK
from clew.frameworks.tensorflow.scalars import (
    ALL,
    NeedsKnown,
    Traced,
    TracedShape,
    has_traced,
    is_symbolic,
    numpy_of,
    python_call,
    sampled,
    size_of,
    tensor_of_int,
    traced_call,
)
from clew.frameworks.tensorflow.variables_around import check_bodies
from clew.ir import interpreter
from clew.ir.source import PACKAGE_FOLDER, SourceLine, is_hidden, is_hidden_file, is_installed_file, source_of_frame

_FEATURES = (converter.Feature.ASSERT_STATEMENTS,)
_BODIES = frozenset({"CondBranchFuncGraph", "WhileCondFuncGraph", "WhileBodyFuncGraph"})
_ASKING = frozenset({"numpy", "_numpy", "__array__", "__bool__", "device", "_handle", "gpu", "cpu"})
_COMPARING = (
    "is_compatible_with", "assert_is_compatible_with", "merge_with", "concatenate", "most_specific_compatible_shape",
    "most_specific_common_supertype", "is_subtype_of", "assert_has_rank", "with_rank", "with_rank_at_least",
    "with_rank_at_most", "assert_same_rank", "assert_is_fully_defined", "dims", "as_proto",
)  # fmt: skip
_AUTOGRAPH = os.path.join("tensorflow", "python", "autograph", "impl") + os.sep
_OWN = os.path.dirname(__file__) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_current: contextvars.ContextVar[Tracing | None] = contextvars.ContextVar("clew_tensorflow_tracing", default=None)


class Tracing:
    """One run of a program under TensorFlow's tracing; one that ``builds`` layers may make variables."""

    def __init__(self, name: str, builds: bool = False) -> None:
        self.builds = builds
        self.graph = func_graph.FuncGraph(name)
        self.notes = Notes()
        self.refusal: CaptureError | None = None
        self.failed_inside = False
        """Whether an error has left a branch or loop, where the program need not go on the example."""
        self.entered: dict[str, int] = {}
        """The arguments that symbolic tensors stand for, by their names."""
        self.typed: set[int] = set()
        """Numbers among the arguments whose type the program relies on."""
        self.wanted: list[Any] = []
        """Traced values that TensorFlow has asked for plain ones, in vain."""
        self.lengths: dict[int, tuple[StateListProxy, Traced]] = {}
        """How long lists of the state were, by their identities."""
        self.variables: dict[int, Any] = {}
        self.around: list[Variable] = []
        """The variables around the program, and attributes of classes, that it may set."""
        self.patches = Patches()
        self.cached = _CachedConstants()

    def refuse(self, what: str, why: str = "", *fixes: str, where: str = "") -> CaptureError:
        """The error for something that cannot be captured; kept, since the program may catch it."""
        source = None if where else _line_of_program()
        error = CaptureError(what, where=where if source is None else source.describe(), why=why, fixes=fixes)
        self.refusal = self.refusal or error
        return error

    def line(self) -> str:
        """The line of the program that runs now."""
        source = _line_of_program()
        return "" if source is None else source.describe()

    # ---- what must be known ------------------------------------------------------------------------------------------

    def is_inside_library(self) -> bool:
        """Whether it is not the program itself that looks at a traced value, through AutoGraph or not."""
        return not _is_asked_by_user(3)

    def is_named_by_program(self) -> bool:
        """Whether the very code that looks at a traced value is the program's."""
        return _is_of_program(sys._getframe(2).f_code)

    def rely_on_type(self, value: Traced) -> None:
        """The program asks what kind of number a value is: those that it follows from must be of the same kind."""
        self.typed |= {place for place, _ in self._sources(value.tensor)}

    def needs_known(self, value: Traced) -> BaseException:
        """The error where a plain value is needed: TensorFlow can do without, a program starts again with it."""
        if not _is_asked_by_user(3):
            self.wanted.append(value.tensor)
            return TypeError("the value is known only when the graph runs")
        return self.restart([value.tensor])

    def needs_known_shape(self, *shaped: Any) -> BaseException:
        """The error where all sizes of tensors are needed."""
        tensors = [getattr(one, "tensor", one) for one in shaped]
        return self.restart([one for one in tensors if is_symbolic(one)])

    def restart(self, tensors: list[Any]) -> BaseException:
        """The error that starts again with what these tensors follow from."""
        sources = {source for tensor in tensors for source in self._sources(tensor)}
        if sources:
            return NeedsKnown(sources)
        return self.refuse(
            "the program needs a number, or a size, that follows from the values of tensors",
            "it is known only when the graph runs",
            "use functions of tf, which AutoGraph follows",
        )

    def numpy_of(self, tensor: Any) -> Traced:
        """The array of a tensor, as far as it is known: its dtype and its rank."""
        if tensor.shape.rank is None or tensor.dtype in (tf.string, tf.resource, tf.variant):
            raise self.refuse("the program asks a tensor for its array, of which not even the rank is known")
        sample = numpy.ones([2] * tensor.shape.rank, tensor.dtype.as_numpy_dtype)
        return traced_call(self, numpy_of, (tensor,), {}, sample if sample.ndim else sample[()])

    def _sources(self, tensor: Any) -> set[tuple[int, int]]:
        """The arguments and their sizes that a tensor follows from."""
        waiting, seen, found = [tensor], set(), set()
        while waiting:
            one = waiting.pop()
            if autograph.key_of(one) in seen:
                continue
            seen.add(autograph.key_of(one))
            if one.graph is self.graph and one.name in self.entered:
                found.add((self.entered[one.name], ALL))
                continue
            axis = self._axis(one)
            if axis is not None:
                found.add(axis)
                continue
            outside = [outer for outer, inner in getattr(one.graph, "captures", ()) if inner is one]
            if not outside and not one.op.inputs and one.op.type == "Placeholder":
                return {(place, ALL) for place in self.entered.values()}  # of a loop: it may follow from anything
            waiting += [value for value in (*outside, *one.op.inputs) if is_symbolic(value)]
        return found

    def _axis(self, tensor: Any) -> tuple[int, int] | None:
        """The argument and the axis whose size a tensor is."""
        call = self.notes.python_call_of(tensor.op)
        if call is None or call.function is not size_of:
            return None
        place = self.entered.get(tensor.op.inputs[0].name)
        return None if place is None or tensor.op.inputs[0].graph is not self.graph else (place, call.args[1])

    @contextmanager
    def running(self, layers: Iterable[type], surroundings: Surroundings, listener: Listener) -> Iterator[None]:
        """Let operations go into the graph, and watch what else happens; AutoGraph enters layers of these classes.

        Functions with a cache that those of the program name give constants; ``listener`` hears of plain Python.
        """
        token, held = _current.set(self), current.set(None)
        streams = random.getstate(), numpy.random.get_state()
        self.around = [Variable(holder, name) for holder, name in surroundings.cells()]
        kinds = surroundings.classes()
        self.around += [Variable(kind, name) for kind in kinds for name in vars(kind) if surroundings.stores(name)]
        try:
            with Patches() as self.patches, self.graph.as_default(), tf.variable_creator_scope(self._new_variable):
                patches = self.patches
                _install(patches)
                for kind in layers:
                    if not kind.__module__.startswith(("keras.", "tensorflow.")):
                        patches.on_class(kind, "call", self._converting)
                replacements.install(patches)
                numpy_files.install(patches)
                replacements.install_in(patches, surroundings)
                random_streams.install(patches, random_streams.Draws, random_streams.Draws, surroundings.functions)
                caches.install(patches, _current_caches, None if self.builds else surroundings, layers)
                with replacements.hearing(listener, surroundings):
                    yield
            self.cached.check()
            drawn = random.getstate() != streams[0] or repr(numpy.random.get_state()) != repr(streams[1])
            if drawn:
                self.refuse(
                    "the program draws random numbers from Python or NumPy",
                    "the graph would hold those of the example",
                    "use tf.random",
                    where=surroundings.line_naming(""),
                )
        finally:
            random.setstate(streams[0])
            numpy.random.set_state(streams[1])
            _current.reset(token)
            current.reset(held)
        if self.refusal is not None:
            raise self.refusal

    def watch(self, state: State, stored: Set[str]) -> None:
        """Let objects whose attributes the program changes tell when these are read, and set; ``stored`` are names."""
        current.set(state)
        state.install(self.patches, stored)

    def _new_variable(self, create: Callable[..., Any], **options: Any) -> Any:
        """A variable that the program makes is made by the graph; another one stands for it in this run."""
        if self.builds:
            return create(**options)
        named = ("trainable", "name", "dtype", "shape")
        given = {name: options[name] for name in named if options.get(name) is not None}
        start = options.get("initial_value")
        is_plain = start is not None and ops.get_default_graph() is self.graph and not has_traced(list(given.values()))
        if not is_plain or self.notes.fixed_streams:
            raise self.refuse(
                "the program makes a variable as it runs",
                "a graph works on variables that are there",
                "make variables beforehand: call the module once before it is captured",
            )
        value = tf.convert_to_tensor(start() if callable(start) else start, dtype=given.get("dtype"))
        sizes = [1 if size is None else size for size in value.shape]
        with tf.init_scope():
            open_shape = {} if value.shape.is_fully_defined() else {"shape": value.shape}
            made = create(**(options | {"initial_value": tf.zeros(sizes, value.dtype)} | open_shape))
        python_call(self, tf.Variable, (value,), given, tf.bool)
        self.notes.made[id(self.notes.python_calls[-1])] = made
        return made

    def call(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any], is_converted: bool = True) -> Any:
        """Run the program, its Python converted by AutoGraph where control flow depends on tensors."""
        if not is_converted:
            return program(*args, **kwargs)
        options = converter.ConversionOptions(recursive=True, user_requested=True, optional_features=_FEATURES)
        return autograph_api.converted_call(program, args, kwargs, options=options)

    def _converting(self, original: Any) -> Any:
        """Keras calls a layer's own code as it is, which needs the values of tensors for its branches."""

        @functools.wraps(original)
        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            tracing = _current.get()
            if tracing is None:
                return original(layer, *args, **kwargs)
            return tracing.call(original.__get__(layer, type(layer)), args, kwargs)

        return call

    def is_own(self, graph: Any) -> bool:
        """Whether a graph is this one, or a body of a branch or loop in it; inner functions keep their traces."""
        while graph is not self.graph and type(graph).__name__ in _BODIES:
            graph = graph.outer_graph
        return graph is self.graph


def current_tracing() -> Tracing | None:
    """The run of a program that is being captured in this context."""
    return _current.get()


def _line_of_program() -> SourceLine | None:
    """The line of the program that runs now; AutoGraph converts what Python's library and Clew do for it, too."""
    frame = frame_of_program()
    source = None if frame is None else _original_line(source_of_frame(frame))
    while source is not None and (is_file_of_python(source.filename) or is_hidden_file(source.filename)):
        frame = None if frame is None or frame.f_back is None else frame_of_program(frame.f_back)
        source = None if frame is None else _original_line(source_of_frame(frame))
    return source


def _original_line(source: SourceLine | None) -> SourceLine | None:
    """The user's own line where AutoGraph has written another: AutoGraph's frames know the way back."""
    frame: Any = sys._getframe(1)
    while source is not None and frame is not None:
        known = getattr(frame.f_locals.get("converted_f"), "ag_source_map", None) or {}
        for place, origin in known.items():
            if place.lineno == source.lineno and place.filename == source.filename:
                return SourceLine(origin.loc.filename, origin.loc.lineno, origin.function_name)
        frame = frame.f_back
    return source


def _install(patches: Patches) -> None:
    patches.in_dict(vars(random_seed), "get_seed", _noting_seeds)
    patches.on_class(resource_variable_ops.BaseResourceVariable, "handle", _noting_variables)
    patches.in_dict(vars(custom_gradient), "_graph_mode_decorator", _noting_regions)
    patches.in_dict(vars(func_graph), "func_graph_from_py_func", _watching_locals)
    patches.on_class(tensor_module.Tensor, "__getattr__", _noting_questions)
    patches.on_class(tensor_module.Tensor, "__iter__", _iterating)
    patches.on_class(tensor_module.Tensor, "shape", _showing_sizes)
    patches.on_class(tensor_module.Tensor, "__getitem__", _indexed_by_numbers)
    patches.on_class(tensor_module.Tensor, "get_shape", _getting_shapes)
    for name in ("__str__", "__repr__", "__format__"):
        patches.on_class(tensor_module.Tensor, name, _refusing_texts)
    for name in _COMPARING:
        patches.on_class(tf.TensorShape, name, _knowing_shapes)
    patches.on_class(tensor_module.Tensor, "set_shape", _setting_shapes)
    patches.on_class(resource_variable_ops.BaseResourceVariable, "numpy", _variables_as_arrays)
    patches.in_dict(vars(tensor_conversion_registry), "convert", _converting_numbers)
    patches.in_dict(vars(constant_op), "_constant_impl", _constants_of_numbers)
    autograph.install(patches, _current.get)
    patches.in_dict(vars(autograph_api), "is_autograph_artifact", _not_converting_own)
    patches.in_dict(vars(autograph_api), "_convert_actual", _checking_variables)
    settings.refuse_calls(patches, numpy, dict.fromkeys(_OF_NUMPY, "a setting of NumPy"))
    for home, names in _switches():
        settings.refuse_calls(patches, home, dict.fromkeys(names, "a setting of TensorFlow"))


_OF_NUMPY = ("seterr", "seterrcall", "setbufsize", "set_printoptions")
_SWITCHING = re.compile(
    r"(tensorflow\._api\.v2|keras|keras\._tf_keras\.keras)\."
    r"(config|debugging|autograph|backend|utils|mixed_precision|data|summary|profiler|experimental)\b"
)
_SWITCHES = ("set_", "enable_", "disable_", "experimental_enable_", "register_", "trace_o", "start", "stop")


def _switches() -> Iterator[tuple[ModuleType, list[str]]]:
    """The functions that switch something for all that follows, after the program too, and where they are found."""
    for path, home in list(sys.modules.items()):
        if path.startswith(("tensorflow._api.v2.", "keras.")) and _SWITCHING.match(path):
            names = [name for name in vars(home) if name.startswith(_SWITCHES) and name != "set_value"]
            yield home, [name for name in names if type(vars(home)[name]) is FunctionType]


def _checking_variables(original: Any) -> Any:
    """AutoGraph makes a local variable of one around the program that the body of a branch or loop only sets."""

    def _convert_actual(entity: Any, context: Any) -> Any:
        made = original(entity, context)
        tracing = _current.get()
        if tracing is not None:
            check_bodies(tracing, entity.__code__, made.__code__)
        return made

    return _convert_actual


def _showing_sizes(original: Any) -> Any:
    """A program sees traced numbers where sizes are not known; TensorFlow itself knows what None means."""

    def shape(tensor: Any) -> Any:
        found = original.__get__(tensor)
        tracing = _current.get()
        if tracing is None or not hasattr(tensor, "graph") or not found.rank or found.is_fully_defined():
            return found
        return TracedShape(tensor, found, tracing) if tracing.is_named_by_program() else found

    return property(shape)


def _getting_shapes(original: Any) -> Any:
    def get_shape(tensor: Any) -> Any:
        tracing = _current.get()
        found = original(tensor)
        if tracing is None or not hasattr(tensor, "graph") or found.is_fully_defined() or not _is_asked_by_user():
            return found
        return found if found.rank is None else TracedShape(tensor, found, tracing)

    return get_shape


def _knowing_shapes(original: Any) -> Any:
    """What shapes tell about one another follows from all sizes."""

    def told(shape: Any, *args: Any, **kwargs: Any) -> Any:
        tracing = _current.get()
        traced = [one for one in (shape, *args, *kwargs.values()) if isinstance(one, TracedShape)]
        if tracing is not None and traced and _is_asked_by_user():
            raise tracing.needs_known_shape(*traced)
        return original(shape, *args, **kwargs)

    if isinstance(original, property):
        return property(lambda shape: _knowing_shapes(original.fget)(shape))
    return functools.wraps(original)(told)


def _setting_shapes(original: Any) -> Any:
    """``set_shape`` raises where the sizes are others, which a graph would not."""

    def set_shape(tensor: Any, shape: Any) -> Any:
        tracing = _current.get()
        is_open = hasattr(tensor, "graph") and not tensor.shape.is_fully_defined()
        is_own = sys._getframe(1).f_code.co_filename.startswith(_OWN)
        if tracing is not None and is_open and not is_own and _is_asked_by_user():
            raise tracing.needs_known_shape(tensor, shape)
        return original(tensor, shape)

    return set_shape


def _refusing_texts(original: Any) -> Any:
    """What a tensor looks like is known only when the graph runs."""

    def text(tensor: Any, *args: Any) -> Any:
        tracing = _current.get()
        if tracing is not None and hasattr(tensor, "graph") and _is_asked_by_user():
            raise tracing.refuse("the program makes text of a tensor", "it would show the example's", "use tf.strings")
        return original(tensor, *args)

    return text


def _indexed_by_numbers(original: Any) -> Any:
    def __getitem__(tensor: Any, index: Any) -> Any:
        tracing = _current.get()
        if tracing is not None and has_traced(index):
            index = _as_tensors(tracing, index)
        return original(tensor, index)

    return __getitem__


def _as_tensors(tracing: Tracing, index: Any) -> Any:
    if type(index) in (tuple, list):
        return type(index)(_as_tensors(tracing, one) for one in index)
    if type(index) is slice:
        return slice(*(_as_tensors(tracing, one) for one in (index.start, index.stop, index.step)))
    return tensor_of(tracing, index, tf.int32 if type(index.sample) is int else None) if has_traced(index) else index


def tensor_of(tracing: Tracing, value: Traced, dtype: Any = None, preferred: Any = None) -> Any:
    """The tensor that TensorFlow makes of a number or array, when the graph runs."""
    with tf.init_scope():
        found = None
        if dtype is None and preferred is not None:
            try:
                found = tf.convert_to_tensor(value.sample, dtype=preferred)
            except (TypeError, ValueError):
                found = None
        if found is None:
            found = tf.convert_to_tensor(value.sample, dtype=dtype)
            if dtype is None:
                _check_kind(tracing, value)
    if found.dtype.is_integer or found.dtype == tf.bool:
        tracing.rely_on_type(value)
    shape = [None] * numpy.ndim(value.sample)
    if dtype is None and preferred is None and type(value.sample) is int:
        return python_call(tracing, tensor_of_int, (value,), {}, found.dtype, shape)
    return python_call(tracing, tf.constant, (value,), {"dtype": found.dtype}, found.dtype, shape)


def _check_kind(tracing: Tracing, value: Traced) -> None:
    """TensorFlow gives a number the dtype of its kind."""
    tracing.rely_on_type(value)
    if value.is_open:
        raise tracing.refuse(
            "a number that may be an int or a float becomes a tensor", "its dtype is known only when the graph runs"
        )


def _converting_numbers(original: Any) -> Any:
    """Numbers that are known only when the graph runs become tensors then, alone and in lists."""

    @functools.wraps(original)
    def convert(value: Any, dtype: Any = None, name: Any = None, *rest: Any, **options: Any) -> Any:
        tracing = _current.get()
        if tracing is None:
            return original(value, dtype, name, *rest, **options)
        preferred = options.get("preferred_dtype", rest[1] if len(rest) > 1 else None)
        if isinstance(value, Traced):
            return tensor_of(tracing, value, dtype, preferred)
        if isinstance(value, TracedShape):
            return tf.shape(value.tensor, out_type=dtype or preferred or tf.int32)
        if type(value) in (list, tuple) or isinstance(value, list):
            value = _packable(tracing, value, dtype or preferred)
        return original(value, dtype, name, *rest, **options)

    return convert


def _packable(tracing: Tracing, value: Any, dtype: Any) -> Any:
    """A nest of numbers with tensors in the place of traced ones, all of the dtype that TensorFlow would give it."""
    if not has_traced(value):
        return value
    if dtype is None:
        known = [leaf.dtype for leaf in tf.nest.flatten(list(value)) if isinstance(leaf, tf.Tensor)]
        with tf.init_scope():
            dtype = known[0] if known else tf.convert_to_tensor(sampled(list(value))).dtype
        for leaf in () if known else tf.nest.flatten(list(value)):
            if isinstance(leaf, Traced):
                _check_kind(tracing, leaf)
    made = [_packed(tracing, one, dtype) for one in value]
    return made


def _packed(tracing: Tracing, value: Any, dtype: Any) -> Any:
    if type(value) in (list, tuple):
        return [_packed(tracing, one, dtype) for one in value]
    return tensor_of(tracing, value, dtype) if isinstance(value, Traced) else value


def _constants_of_numbers(original: Any) -> Any:
    @functools.wraps(original)
    def _constant_impl(value: Any, dtype: Any, shape: Any, *rest: Any, **options: Any) -> Any:
        tracing = _current.get()
        is_traced = tracing is not None and (has_traced(value) or isinstance(value, TracedShape))
        if not is_traced:
            return original(value, dtype, shape, *rest, **options)
        made = tf.convert_to_tensor(value, dtype=dtype)
        return made if shape is None else tf.broadcast_to(made, shape)

    return _constant_impl


def _noting_seeds(original: Any) -> Any:
    """The seeds that the program gives are noted; TensorFlow would mix them with those of a graph."""

    def get_seed(op_seed: Any) -> Any:
        tracing = _current.get()
        graph = ops.get_default_graph()
        if tracing is None or tracing.notes.fixed_streams or not tracing.is_own(graph):
            return original(op_seed)
        if op_seed is not None and not isinstance(op_seed, int):
            raise tracing.refuse(f"the seed of a random operation is a {type(op_seed).__name__}")
        tracing.notes.seeds.append(op_seed)
        return MARK, len(tracing.notes.seeds) - 1

    return get_seed


def _noting_variables(original: Any) -> Any:
    """A graph knows the handles of variables only: whoever asks for a handle is noted."""

    def handle(variable: Any) -> Any:
        tracing = _current.get()
        found = original.__get__(variable)
        if tracing is not None:
            tracing.variables[id(found)] = variable
        return found

    return property(handle)


def _variables_as_arrays(original: Any) -> Any:
    def numpy(variable: Any) -> Any:
        tracing = _current.get()
        return original(variable) if tracing is None else tracing.numpy_of(tf.convert_to_tensor(variable))

    return numpy


def _noting_regions(original: Any) -> Any:
    def _graph_mode_decorator(f: Any, args: Any, kwargs: Any) -> Any:
        tracing = _current.get()
        if tracing is None:
            return original(f, args, kwargs)
        graph = ops.get_default_graph()
        start = len(graph.get_operations())
        result = original(f, args, kwargs)
        end = len(graph.get_operations())
        found = tracing.notes.regions.setdefault(id(graph), [])
        found[:] = [region for region in found if region.start < start]
        found.append(Region(start, end, f, args, kwargs, result))
        tracing.notes.graphs.append(graph)
        return result

    return _graph_mode_decorator


def _watching_locals(original: Any) -> Any:
    """The body of a branch or loop is traced once: a list that it changes would be changed once, and not in the end."""

    @functools.wraps(original)
    def func_graph_from_py_func(*args: Any, **kwargs: Any) -> Any:
        tracing = _current.get()
        if tracing is None:
            return original(*args, **kwargs)
        memory = Memory(lambda value: False, most=2000)
        frame: Any = sys._getframe(1)
        while frame is not None:
            if not is_hidden(frame.f_code):
                for value in variables_of(frame).values():
                    if follows(value):
                        memory.remember(value, depth=4)
            frame = frame.f_back
        is_body = isinstance(kwargs.get("func_graph"), ControlFlowFuncGraph)
        before = [(one, one.get()) for one in tracing.around] if is_body else []
        try:
            made = original(*args, **kwargs)
        except Exception:
            tracing.failed_inside = tracing.failed_inside or is_body
            raise
        if memory.has_changed() or any(one.get() is not value for one, value in before):
            raise tracing.refuse(
                "the program changes a variable, list, dict or object inside of a branch or loop over tensors",
                "it would be changed once, whatever way is taken and however often",
                "keep what changes in tensors, in a tf.TensorArray say",
            )
        return made

    return func_graph_from_py_func


def _noting_questions(original: Any) -> Any:
    """Whether a tensor has a value already is asked by programs that do something else if it has not."""

    def __getattr__(tensor: Any, name: str) -> Any:
        tracing = _current.get()
        if tracing is not None and name == "numpy" and hasattr(tensor, "graph") and _is_asked_by_user():
            return functools.partial(tracing.numpy_of, tensor)
        if tracing is not None and name in _ASKING and _is_asked_by_user():
            raise tracing.refuse(
                f"the program asks a tensor for .{name}",
                "the value is known only when the graph runs",
                "stay with functions of tf",
            )
        return original(tensor, name)

    return __getattr__


def _iterating(original: Any) -> Any:
    """Python may iterate over a tensor whose length is known, as it does eagerly: ``a, b = x``."""

    def __iter__(tensor: Any) -> Any:
        tracing = _current.get()
        if tracing is None or not hasattr(tensor, "graph") or not tensor.shape.rank:
            return original(tensor)
        if tensor.shape[0] is None:
            raise tracing.restart([traced_call(tracing, size_of, (tensor, 0), {}, 2).tensor])
        return iter(tf.unstack(tensor))

    return __iter__


def _is_asked_by_user(depth: int = 2) -> bool:
    """Whether the caller of Clew is a user's code: no framework's, no installed package's and none of Python's own.

    Code that AutoGraph has converted calls through AutoGraph.
    """
    frame: Any = sys._getframe(depth - 1)
    while frame is not None and (_AUTOGRAPH in frame.f_code.co_filename or frame.f_code.co_filename.startswith(_OWN)):
        frame = frame.f_back
    return frame is not None and _is_of_program(frame.f_code)


def _is_of_program(code: CodeType) -> bool:
    """Whether code is the user's: what runs the graph of a capture that the program calls counts as the program."""
    name = code.co_filename
    if is_hidden(code) or is_installed_file(name):
        return name == _INTERPRETER
    return bool(name) and not name.startswith((_STANDARD, "<frozen", "<__array"))


_INTERPRETER = interpreter.__file__


def _not_converting_own(original: Any) -> Any:
    """What Clew has put in the place of Python's functions runs as it is."""

    def is_autograph_artifact(entity: Any) -> bool:
        code = getattr(entity, "__code__", None)
        is_own = (
            type(entity).__module__.startswith("clew.") if code is None else code.co_filename.startswith(PACKAGE_FOLDER)
        )
        return is_own or original(entity)

    return is_autograph_artifact


# ---- functions with functools.lru_cache are asked outside of the trace: no symbolic tensor stays in a cache ----------


def _is_end(value: Any) -> bool:
    """What is never looked into for changes: tensors, variables, modules."""
    return isinstance(value, (tf.Tensor, tf.Variable)) or is_part(value)


class _CachedConstants(CachedCalls):
    """Calls of cached functions: their results are constants of the graph."""

    def __init__(self) -> None:
        super().__init__(_is_end)
        layers = layer_class()
        self.ends = (tf.Tensor, tf.Variable, tf.Module, *(() if layers is None else (layers,)))

    def line(self) -> str:
        """The line of the program, behind the code that AutoGraph has made of it."""
        source = _line_of_program()
        return "" if source is None else source.describe()

    def call(self, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the cache gives, outside of the trace."""
        if any(isinstance(leaf, tf.Tensor) for leaf in tree.flatten((args, kwargs))[0]):
            return cached(*args, **kwargs)  # which raises, as it does eagerly: no tensor can be a key
        with tf.init_scope():
            with self.without_effects(cached):
                cached.__wrapped__(*args, **kwargs)
            result = cached(*args, **kwargs)
        self.hand_out(cached, result)
        return result


def _current_caches() -> CachedCalls | None:
    tracing = _current.get()
    return None if tracing is None else tracing.cached
