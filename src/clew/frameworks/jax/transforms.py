"""Functions of JAX that take functions: jit, grad, vmap, scan and their like become one call with captured bodies.

The transform is run for real, once. A function that it is handed is recorded, when JAX calls it on its own tracers,
into a graph of its own; values of the program around it that it uses are passed to the body explicitly. The call in the
graph hands the body to the same transform. A body that changes Python's state is refused: how often JAX runs it depends
on its caches.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy

from clew.capture.bytecode.try_blocks import ENTRANCES
from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.recording.outputs import Outputs
from clew.capture.recording.recorder import Pending
from clew.frameworks.jax import calls, names, private
from clew.frameworks.jax.array_proxy import RecordingTrace, fixed_shapes
from clew.frameworks.jax.traced_once import TracedBefore, anew, refusal
from clew.frameworks.numpy.array_proxy import is_traced
from clew.frameworks.numpy.opaque_calls import cannot_follow
from clew.ir.format import calls_in
from clew.ir.graph import Graph
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.frameworks.jax.recorder import JaxRecorder

ENTRANCES.add(__name__)
Current: TypeAlias = "Callable[[], JaxRecorder | None]"
TRANSFORMS = {
    jax: "grad value_and_grad vmap jit jacfwd jacrev jacobian hessian checkpoint remat",
    jax.lax: "composite",
    jnp: "vectorize frompyfunc",
}
"""Functions that make a function of another one."""
ORIGINAL_JIT = jax.jit
_TRACED_AGAIN = frozenset(
    "grad value_and_grad vmap jacfwd jacrev jacobian hessian vectorize vjp jvp linearize linear_transpose "
    "associative_scan piecewise apply_along_axis apply_over_axes fromfunction".split()
)
"""Functions of JAX's that run the functions that they are given at each call; the others may go on with what they have
traced of them before."""


def install(patches: Patches, current: Current) -> None:
    """Let the transforms report to the capture that ``current`` names, if one is recording."""
    for home, text in TRANSFORMS.items():
        for name in text.split():
            patches.in_dict(vars(home), name, noted(functools.partial(_transforming, current=current)))


@functools.cache
def _transforming(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def transform(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or not recorder.is_recording():
            return original(*args, **kwargs)
        given = inspect.signature(original).bind_partial(*args, **kwargs).arguments
        given |= given.pop("kwargs", {})
        name = next(iter(inspect.signature(original).parameters))
        if name not in given:
            return functools.partial(transform, *args, **kwargs)
        function = given.pop(name)
        return Transformed(recorder, original, function, given)

    transform.__clew_original__ = original  # type: ignore[attr-defined]
    return transform


class Transformed:
    """What a transform has made of a function; a call of it is recorded."""

    def __init__(
        self, recorder: JaxRecorder, transform: Callable[..., Any], function: Any, options: dict[str, Any]
    ) -> None:
        self._recorder, self._transform, self._function, self._options = recorder, transform, function, options
        self._plain: Any = None
        if callable(function):
            functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = self._recorder
        if not recorder.is_recording():
            return recorder.natively(self._original(), args, kwargs)
        return apply(recorder, self._transform, self._function, self._options, args, kwargs)

    def _original(self) -> Any:
        if self._plain is None:
            self._plain = self._transform(self._function, **self._recorder.concrete(self._options))
        return self._plain

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._original(), name)


def apply(
    recorder: JaxRecorder,
    transform: Callable[..., Any],
    function: Any,
    options: dict[str, Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    is_old: bool = False,
) -> Any:
    """Call what a transform makes of a function, and record that; if it ``is_old``, it made that before."""
    args, kwargs = fixed_shapes((args, kwargs))
    settled = recorder.settled(options)
    plain = {name: recorder.concrete(value) for name, value in settled.items()}
    body = body_of(recorder, function, transform.__name__, is_old)
    node_args, node_kwargs = recorder.argument(args), recorder.argument(kwargs)
    during = {name: value for name, value in plain.items() if not name.startswith("donate")}
    if isinstance(body, RecordedBody):
        body.given = (node_args, node_kwargs)
    try:
        value = recorder.perform(transform(body, **during), args, kwargs, None)
    except TracedBefore as found:
        body = found.body.again()
        value = recorder.perform(transform(body, **during), args, kwargs, None)
    made = recorder.create(calls.transformed, (transform, *_parts(body), recorder.argument(settled)))
    node = recorder.create_node("call_function", operator.call, (made, *node_args), node_kwargs, is_result=True)
    return recorder.result(value, node)


def _parts(body: Any) -> tuple[Any, tuple[Any, ...]]:
    """The body and the values from around it that a call of the graph gets."""
    return body.ended() if isinstance(body, RecordedBody) else (body, ())


def is_user_function(value: Any) -> bool:
    """Whether a value is a function that JAX would be handed, and none of JAX's own."""
    if not callable(value) or isinstance(value, type) or is_traced(value) or isinstance(value, private.Tracer):
        return False
    if isinstance(value, jax.tree_util.Partial):
        return False
    return not hasattr(value, "__clew_original__") and not names.is_public(value)


def body_of(recorder: JaxRecorder, function: Any, target: str, is_old: bool) -> Any:
    """A function as it is handed to a function of JAX's: the program's own are recorded."""
    if is_user_function(function):
        return RecordedBody(recorder, function, target not in _TRACED_AGAIN, is_old)
    return recorder.concrete(function)


class RecordedBody:
    """A function that records itself into a graph whenever JAX calls it; each run must come out the same.

    Of one that ``is_traced_once`` JAX keeps what it has traced for the next call; one that ``is_old`` was handed to JAX
    before the program ran.
    """

    def __init__(
        self,
        recorder: JaxRecorder,
        function: Callable[..., Any],
        is_traced_once: bool = False,
        is_old: bool = False,
    ) -> None:
        self.recorder = recorder
        self.function = function
        self.is_traced_once, self.is_old = is_traced_once, is_old
        self.graph: Graph | None = None
        self.values: list[Node] = []
        self.given: Any = None
        """The nodes of what the function was handed over with."""
        self.finished = False
        if hasattr(function, "__name__"):
            self.__name__ = self.__qualname__ = function.__name__
        else:
            self.__name__ = self.__qualname__ = "body"
        with contextlib.suppress(TypeError, ValueError):
            self.__signature__ = inspect.signature(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._record(args, kwargs)

    def again(self) -> RecordedBody:
        """The same body for one more call, at which JAX goes on with what it has traced of it."""
        assert self.graph is not None
        copied = Graph()
        copied.output(copied.graph_copy(self.graph, {}))
        self.graph, self.finished = copied, False
        return self

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        recorder = self.recorder
        if self.finished:
            raise cannot_follow(f"{self.__name__}, which JAX calls again after the call that it was handed to,")
        changed = _changed(recorder)
        before = recorder.depth, recorder.trace
        recorder.depth, recorder.trace = 0, RecordingTrace(recorder, private.current_trace())
        body = recorder.bodies.begin()
        try:
            with private.using(recorder.trace):
                given = [self._entered(value, body.graph, place) for place, value in enumerate(args)]
                named = {name: self._enter(value, body.graph.placeholder(name)) for name, value in kwargs.items()}
                result = self.function(*given, **named)
                outputs = Outputs(recorder)
                outputs.look_at(result)
                body.graph.output(recorder.bodies.localized(outputs.of(result), body.graph))
        finally:
            recorder.bodies.end()
            recorder.depth, recorder.trace = before
        if _changed(recorder) != changed:
            raise cannot_follow(f"{self.__name__}, which JAX runs as often as its caches say and which changes state,")
        self._keep(body.graph, list(body.free))
        if self.is_traced_once:
            recorder.traced_once.check(self, (args, kwargs))
        return recorder.concrete(result)

    def _entered(self, value: Any, graph: Graph, place: int) -> Any:
        return self._enter(value, graph.placeholder(_name_of(self.function, place)))

    def _enter(self, value: Any, place: Any) -> Any:
        """What JAX hands to the function as the function shall see it."""
        if isinstance(value, (jax.Array, private.Tracer)) and not is_traced(value):
            if type(place) is Node:
                self.recorder.note_type(place, value)
            return self.recorder.tracer(value, place)
        if type(value) in (bool, int, float, complex):
            return self.recorder.result(value, place)
        if type(value) is dict:
            return {key: self._enter(item, Pending(operator.getitem, (place, key))) for key, item in value.items()}
        if isinstance(value, (list, tuple)) and (type(value) in (list, tuple) or hasattr(value, "_fields")):
            items = [self._enter(item, Pending(operator.getitem, (place, i))) for i, item in enumerate(value)]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if jax.tree_util.all_leaves([value]):
            return value
        found, structure = jax.tree_util.tree_flatten(value)
        parts = Pending(jax.tree_util.tree_leaves, (place,))
        items = [self._enter(item, Pending(operator.getitem, (parts, i))) for i, item in enumerate(found)]
        return jax.tree_util.tree_unflatten(structure, items)

    def _keep(self, graph: Graph, values: list[Node]) -> None:
        graph.eliminate_dead_code()
        if self.graph is not None and (calls_in(graph) != calls_in(self.graph) or values != self.values):
            raise cannot_follow(f"{self.__name__}, which JAX runs several times and which takes other paths each time,")
        self.graph, self.values = graph, values

    def ended(self) -> tuple[Graph, tuple[Node, ...]]:
        """The body and the nodes that it needs from around it, when the call that it was handed to is over."""
        if self.graph is None:
            raise cannot_follow(f"{self.__name__}, which JAX was handed and did not run,")
        self.finished = True
        if self.is_traced_once:
            self.recorder.traced_once.end(self.function, self.values, self.is_old)
        return self.graph, tuple(self.values)


def _changed(recorder: JaxRecorder) -> Any:
    """The places of the program's state that it has changed by now."""
    return {slot.key for slot in recorder.state.changed()}


def _name_of(function: Any, place: int) -> str:
    """The name of a function's parameter, for people; the namespace of the graph makes it unique."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    found = [name for name in code.co_varnames[: code.co_argcount] if name != "self"] if code is not None else []
    return found[place] if place < len(found) else f"arg{place}"


# ---- functions with derivatives of their own ---------------------------------------------------------------------


def ruled(recorder: JaxRecorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a function with rules of derivatives: the function and its rules are recorded as bodies."""
    name = str(getattr(function, "__name__", "function"))
    if function.symbolic_zeros if isinstance(function, jax.custom_jvp) else getattr(function, "optimize_remat", False):
        return recorder.staged(function, args, kwargs)
    args = tuple(inspect.signature(function.fun).bind(*fixed_shapes(args), **fixed_shapes(kwargs)).args)
    nondiff = tuple(sorted(function.nondiff_argnums))
    node_args = recorder.argument(args)
    value = recorder.perform(function, args, {}, None)
    if any(function is one for one, _ in recorder.open_rules):
        label = next(label for one, label in recorder.open_rules if one is function)
        return recorder.result(value, recorder.create(calls.again, (label, *node_args), is_result=True))
    label = name if all(name != taken for _, taken in recorder.open_rules) else f"{name}_{len(recorder.open_rules)}"
    bodies = _rules_recorded(recorder, function, label, recorder.concrete(args), nondiff)
    parts = [recorder.create(calls.bound, (graph, *values)) for graph, values in (body.ended() for body in bodies)]
    told = {"name": label} | ({"nondiff": nondiff} if nondiff else {})
    target = calls.ruled_jvp if isinstance(function, jax.custom_jvp) else calls.ruled_vjp
    node = recorder.create_node("call_function", target, (*parts, *node_args), told, is_result=True)
    return recorder.result(value, node)


def _rules_recorded(
    recorder: JaxRecorder, function: Any, label: str, args: tuple[Any, ...], nondiff: tuple[int, ...]
) -> list[RecordedBody]:
    """The bodies of a function and of its rules, each run once on the example."""
    fixed = [args[place] for place in nondiff]
    moving = tuple(value for place, value in enumerate(args) if place not in nondiff)
    body = RecordedBody(recorder, function.fun)
    recorder.perform(body, args, {}, None)
    recorder.open_rules.append((function, label))
    try:
        if isinstance(function, jax.custom_jvp):
            if function.jvp is None:
                raise cannot_follow(f"{label}, which has no rule of derivatives yet,")
            rule = RecordedBody(recorder, function.jvp)
            recorder.perform(lambda: rule(*fixed, moving, _ones(moving)), (), {}, None)
            return [body, rule]
        if function.fwd is None:
            raise cannot_follow(f"{label}, which has no rule of derivatives yet,")
        ahead, back = RecordedBody(recorder, function.fwd), RecordedBody(recorder, function.bwd)
        results, residuals = recorder.perform(ahead, args, {}, None)
        recorder.perform(lambda: back(*fixed, residuals, _ones(results)), (), {}, None)
        return [body, ahead, back]
    finally:
        recorder.open_rules.pop()


def _ones(nest: Any) -> Any:
    """Tangents for the values of a nest."""

    def one(value: Any) -> Any:
        kind = jax.dtypes.result_type(value)
        if not jnp.issubdtype(kind, jnp.inexact):
            return numpy.zeros(jnp.shape(value), jax.dtypes.float0)
        return jax.lax.full(jnp.shape(value), 1, kind)

    return jax.tree_util.tree_map(one, nest)


def with_functions(
    recorder: JaxRecorder, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A call of a function of JAX's that is given functions of the program: these are recorded as bodies."""
    if any(leaf in recorder.traced_once.kept for leaf in jax.tree_util.tree_leaves((args, kwargs)) if callable(leaf)):
        return _whole(recorder, target, args, kwargs)
    bodies: list[RecordedBody] = []

    def swapped(leaf: Any) -> Any:
        if not is_user_function(leaf):
            return leaf
        bodies.append(RecordedBody(recorder, leaf, getattr(target, "__name__", "") not in _TRACED_AGAIN))
        return bodies[-1]

    run_args, run_kwargs = jax.tree_util.tree_map(swapped, (args, kwargs), is_leaf=_is_none)
    rest = [leaf for leaf in jax.tree_util.tree_leaves((run_args, run_kwargs)) if not isinstance(leaf, RecordedBody)]
    for body in bodies:
        body.given = [id(target), *map(recorder.argument, rest)]
    value, (run_args, run_kwargs) = _performed(recorder, target, (run_args, run_kwargs))

    def written(leaf: Any) -> Any:
        if not isinstance(leaf, RecordedBody):
            return recorder.argument(leaf)
        graph, values = leaf.ended()
        return recorder.create(calls.bound, (graph, *values))

    node_args, node_kwargs = jax.tree_util.tree_map(written, (run_args, run_kwargs), is_leaf=_is_none)
    node = recorder.create_node("call_function", target, node_args, node_kwargs, is_result=True)
    return recorder.result(value, node)


def _performed(recorder: JaxRecorder, target: Callable[..., Any], given: tuple[Any, Any]) -> tuple[Any, Any]:
    """What a call gives, and what it was given: recordings of earlier calls, where JAX goes on with what it has traced
    of them."""
    while True:
        try:
            return recorder.perform(target, *given, None), given
        except TracedBefore as found:
            given = _with_body(given, found.body.again())


def _with_body(given: tuple[Any, Any], body: RecordedBody) -> Any:
    def replaced(leaf: Any) -> Any:
        return body if isinstance(leaf, RecordedBody) and leaf.function is body.function else leaf

    return jax.tree_util.tree_map(replaced, given, is_leaf=_is_none)


def _whole(recorder: JaxRecorder, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Such a call as a whole, because JAX goes on with what it has traced of the functions."""
    leaves = jax.tree_util.tree_leaves((args, kwargs))
    copies = {id(leaf): anew(leaf) for leaf in leaves if is_user_function(leaf)}

    def call(*given: Any, **named: Any) -> Any:
        given, named = jax.tree_util.tree_map(lambda leaf: copies.get(id(leaf), leaf), (given, named), is_leaf=_is_none)
        return target(*given, **named)

    def is_traced(given: tuple[Any, ...], named: dict[str, Any]) -> bool:
        call(*given, **named)
        pairs = [(copies[id(leaf)], leaf) for leaf in leaves if id(leaf) in copies]
        found = [(private.traced_kinds(new), private.traced_kinds(old)) for new, old in pairs]
        if any(new & known and new - known for new, known in found):
            raise refusal(target, "it was given other arguments then")
        return all(new <= known for new, known in found)

    functions = [leaf for leaf in leaves if id(leaf) in copies]
    return recorder.traced_once.whole(target, functions, (args, kwargs), is_traced, call)


def _is_none(value: Any) -> bool:
    return value is None
