"""The function graph of a program: TensorFlow's own tracing, AutoGraph included, run once and watched.

A callable and its arguments, with symbolic tensors in the place of arrays, come in; out come the result of that run and
notes on what a graph of TensorFlow does not hold: functions with gradients of their own, and the seeds that the program
gave. What the run would do once and the original at each call, printing say, is refused.
"""

from __future__ import annotations

import builtins
import contextvars
import functools
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import tensorflow as tf
from tensorflow.python.autograph.core import converter
from tensorflow.python.autograph.impl import api as autograph_api
from tensorflow.python.autograph.operators import py_builtins
from tensorflow.python.framework import func_graph, ops, random_seed
from tensorflow.python.framework import tensor as tensor_module
from tensorflow.python.ops import custom_gradient, resource_variable_ops

from clew.capture.bytecode.instructions import variables_of
from clew.capture.patches import Patches
from clew.capture.python import replacements
from clew.capture.python.caches import CachedResults
from clew.capture.python.callers import frame_of_program, is_file_of_python
from clew.capture.python.listener import Listener
from clew.capture.state.containers import follows
from clew.capture.state.memory import Memory
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.frameworks.numpy import foreign_draws
from clew.frameworks.tensorflow import autograph, caches, sizes
from clew.frameworks.tensorflow.importer import Notes, Region
from clew.frameworks.tensorflow.random_numbers import MARK
from clew.ir.source import PACKAGE_FOLDER, SourceLine, is_hidden, is_hidden_file, is_installed_file, source_of_frame

_BODIES = frozenset({"CondBranchFuncGraph", "WhileCondFuncGraph", "WhileBodyFuncGraph"})
_ASKING = frozenset({"numpy", "_numpy", "__array__", "__bool__", "device", "_handle", "gpu", "cpu"})
_AUTOGRAPH = os.path.join("tensorflow", "python", "autograph") + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_current: contextvars.ContextVar[Tracing | None] = contextvars.ContextVar("clew_tensorflow_tracing", default=None)


class Tracing:
    """One run of a program under TensorFlow's tracing; one that ``builds`` layers may make variables."""

    def __init__(self, name: str, builds: bool = False) -> None:
        self.builds = builds
        self.graph = func_graph.FuncGraph(name)
        self.notes = Notes()
        self.refusal: CaptureError | None = None
        self.knows_sizes = False
        self.variables: dict[int, Any] = {}
        self.cached = CachedResults(caches.is_end)

    def refuse(self, what: str, why: str = "", *fixes: str) -> CaptureError:
        """The error for something that cannot be captured; kept, since the program may catch it."""
        source = _line_of_program()
        error = CaptureError(what, where="" if source is None else source.describe(), why=why, fixes=fixes)
        self.refusal = self.refusal or error
        return error

    @contextmanager
    def running(self, layers: Iterable[type], surroundings: Surroundings, listener: Listener) -> Iterator[None]:
        """Let operations go into the graph, and watch what else happens; AutoGraph enters layers of these classes.

        Functions with a cache that those of the program name give constants; ``listener`` hears of plain Python.
        """
        token = _current.set(self)
        streams = random.getstate(), numpy.random.get_state()
        try:
            with Patches() as patches, self.graph.as_default(), tf.variable_creator_scope(self._no_variables):
                _install(patches)
                for kind in layers:
                    if not kind.__module__.startswith(("keras.", "tensorflow.")):
                        patches.on_class(kind, "call", self._converting)
                replacements.install(patches)
                replacements.install_in(patches, surroundings)
                foreign_draws.install(patches, surroundings.functions)
                functions = () if self.builds else surroundings.functions
                caches.install(patches, self.cached, lambda: _current.get() is self, functions, layers)
                with replacements.hearing(listener, surroundings):
                    yield
            self.cached.check()
            drawn = random.getstate() != streams[0] or repr(numpy.random.get_state()) != repr(streams[1])
            if drawn:
                self.refuse(
                    "the program draws random numbers from Python or NumPy",
                    "the graph would hold those of the example",
                    "use tf.random",
                )
        finally:
            random.setstate(streams[0])
            numpy.random.set_state(streams[1])
            _current.reset(token)
        if self.refusal is not None:
            raise self.refusal

    def _no_variables(self, create: Callable[..., Any], **options: Any) -> Any:
        if self.builds:
            return create(**options)
        raise self.refuse(
            "the program makes a variable as it runs",
            "a graph works on variables that are there",
            "make variables beforehand: call the module once before it is captured",
        )

    def call(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any], is_converted: bool = True) -> Any:
        """Run the program, its Python converted by AutoGraph where control flow depends on tensors."""
        if not is_converted:
            return program(*args, **kwargs)
        options = converter.ConversionOptions(recursive=True, user_requested=True, optional_features=())
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
    autograph.install(patches, _current_notes)
    sizes.install(patches, _unknown_size)
    patches.in_dict(vars(builtins), "print", _refusing_prints)
    patches.in_dict(vars(autograph_api), "is_autograph_artifact", _not_converting_own)
    for name in ("int", "float", "sorted", "any", "all"):
        patches.in_dict(py_builtins.BUILTIN_FUNCTIONS_MAP, name, _refusing_tensors)
    patches.in_dict(py_builtins.BUILTIN_FUNCTIONS_MAP, "print", _refusing_prints)


def _current_notes() -> Notes | None:
    tracing = _current.get()
    return None if tracing is None else tracing.notes


def _unknown_size(what: str) -> None:
    tracing = _current.get()
    if tracing is not None and not tracing.knows_sizes and _is_asked_by_user(4):
        raise tracing.refuse(what, "Python sees None in its place", "use tf.shape(x)")


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
        made = original(*args, **kwargs)
        if memory.has_changed():
            raise tracing.refuse(
                "the program changes a list, dict or object inside of a branch or loop over tensors",
                "it would be changed once, whatever way is taken and however often",
                "keep what changes in tensors, in a tf.TensorArray say",
            )
        return made

    return func_graph_from_py_func


def _noting_questions(original: Any) -> Any:
    """Whether a tensor has a value already is asked by programs that do something else if it has not."""

    def __getattr__(tensor: Any, name: str) -> Any:
        tracing = _current.get()
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
        if tracing is None or not hasattr(tensor, "graph") or not tensor.shape.rank or tensor.shape[0] is None:
            return original(tensor)
        return iter(tf.unstack(tensor))

    return __iter__


def _refusing_prints(original: Any) -> Any:
    """What is printed as the program is traced would be printed once only."""

    @functools.wraps(original)
    def printed(*args: Any, **kwargs: Any) -> Any:
        tracing = _current.get()
        if tracing is None:
            return original(*args, **kwargs)
        raise tracing.refuse("the program prints", "it would do so once, in the capture", "use tf.print")

    return printed


def _is_asked_by_user(depth: int = 2) -> bool:
    """Whether the caller of Clew is a user's code: no framework's, no installed package's and none of Python's own.

    Code that AutoGraph has converted calls through AutoGraph.
    """
    frame: Any = sys._getframe(depth - 1)
    while frame is not None and (_AUTOGRAPH in frame.f_code.co_filename or frame.f_code.co_filename == __file__):
        frame = frame.f_back
    name = "" if frame is None else frame.f_code.co_filename
    return bool(name) and not (is_hidden(frame.f_code) or is_installed_file(name) or name.startswith((_STANDARD, "<")))


def _not_converting_own(original: Any) -> Any:
    """What Clew has put in the place of Python's functions runs as it is."""

    def is_autograph_artifact(entity: Any) -> bool:
        code = getattr(entity, "__code__", None)
        is_own = (
            type(entity).__module__.startswith("clew.") if code is None else code.co_filename.startswith(PACKAGE_FOLDER)
        )
        return is_own or original(entity)

    return is_autograph_artifact


def _refusing_tensors(original: Any) -> Any:
    """``int(x)`` gives a number of Python, which AutoGraph would make a tensor."""

    @functools.wraps(original)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        tracing = _current.get()
        if tracing is not None and any(isinstance(value, tf.Tensor) for value in args):
            raise tracing.refuse(
                f"the program calls {original.__name__.strip('_')}() of a tensor",
                "the number is known only when the graph runs",
                "use tf.cast, tf.sort, tf.reduce_any or tf.reduce_all",
            )
        return original(*args, **kwargs)

    return replaced
