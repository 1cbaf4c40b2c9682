"""Functions that JAX traces once for each kind of arguments: what they read around them then, they keep.

``jax.jit``, ``jax.lax.scan`` and their like go on with what they have traced of a function at an earlier call, whatever
variables around it hold by now. A capture records the function anew. So what it reads must be the same each time: that
is checked within a run, and between calls for functions that are there before the program runs.
"""

from __future__ import annotations

import contextlib
import functools
import io
import operator
import sys
from collections.abc import Callable, Container
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import jax

from clew.capture.control_flow.node_comparison import identity
from clew.capture.control_flow.paths import Provenance
from clew.capture.guards import notes
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.recording.unused_calls import is_constant
from clew.capture.state.reachable import reads_variables
from clew.errors import CaptureError
from clew.frameworks.jax import private
from clew.frameworks.numpy.opaque_calls import where
from clew.ir.arguments import leaves as leaves_of
from clew.ir.format import calls_in
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.frameworks.jax.recorder import JaxRecorder
    from clew.frameworks.jax.transforms import RecordedBody

Kind = TypeVar("Kind", bound=CaptureError)
_READING = (notes.read_variable, notes.current_number)
_CALLED: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
"""What was recorded of functions in captures that counted as calls, as those of lazy graphs do: JAX saw none of it."""


class TracedOnce:
    """What was recorded of such functions in one run; ``around`` are the identities of those that are there before."""

    def __init__(self, recorder: JaxRecorder) -> None:
        self.recorder = recorder
        self.around: set[int] = set()
        self.kept: Container[Any] = ()
        """Functions that an earlier run could not follow: calls of them, or of what they are given to, stay whole."""
        self.is_call = False
        """Whether what the run does counts as a call of the program."""
        self._known: dict[Any, tuple[Any, list[Node]]] = {}
        self._bodies: dict[Any, RecordedBody] = {}
        """The recordings of functions whose traces JAX may go on with, by what it finds them by."""
        self._read: dict[int, tuple[Any, list[Any]]] = {}
        """The functions that read variables, and the arrays that they got from there."""
        self._held: list[Any] = []

    def check(self, body: RecordedBody, given: Any) -> None:
        """Raise if JAX goes on with another trace than the one that was recorded now, or may do so."""
        function = body.function
        self._held.append(function)
        assert body.graph is not None
        leaves = jax.tree_util.tree_leaves(given)
        key = (_identity(function), *map(_kind, leaves))
        traced = (calls_in(body.graph), body.values)
        earlier = self._bodies.setdefault(key, body)
        if self._known.setdefault(key, traced) == traced:
            return
        if earlier is not body and self._is_same_call(earlier, body):
            raise TracedBefore(earlier)
        raise refusal(function, "a variable that it reads has changed since its first call")

    def _is_same_call(self, one: RecordedBody, other: RecordedBody) -> bool:
        """Whether a function is handed over with the same values as before, whose kinds are the same then in each call
        of the program; and what it reads around it is still there."""
        open_graphs = [self.recorder.bodies.outermost, *(body.graph for body in self.recorder.bodies.open)]
        if not all(any(self._origin(node).graph is graph for graph in open_graphs) for node in one.values):
            return False
        looked = Provenance(self.recorder.bodies, None)
        keys = [
            [looked.expression(leaf) if isinstance(leaf, Node) else identity(leaf) for leaf in leaves_of(body.given)]
            for body in (one, other)
        ]
        return one.given is not None and keys[0] == keys[1]

    def end(self, function: Any, values: list[Node], is_old: bool) -> None:
        """What a function gets from around is known. One that ``is_old``, or is there before the program runs, may read
        only what stays as it is."""
        is_around = isinstance(function, FunctionType) and id(function) in self.around
        if is_around or is_old:
            arrays = [self._settled(function, node) for node in values]
            self._check_called(function, arrays)
            if not is_old and reads_variables(function):  # what was jitted before is compared at its call
                self._check_kept(function)
        elif not _is_made_in_round(function) and any(map(self._may_vary, values)):
            raise refusal(function, "a variable that it reads changes from round to round of a loop")

    def count_as_call(self) -> None:
        """The run counts as a call of the program: JAX would go on with what it had traced."""
        for function, arrays in self._read.values():
            _CALLED.setdefault(function, {}).update(self._traces(function, arrays))

    def _traces(self, function: Any, arrays: list[Any]) -> dict[Any, Any]:
        """What was recorded of a function, by the kinds of its arguments, with the arrays from around it."""
        found = {key[1:]: known for key, known in self._known.items() if key[0] == _identity(function)}
        contents = [private.contents_of(array) for array in arrays]
        return {key: (calls, contents) for key, (calls, _) in found.items()}

    def _check_called(self, function: Any, arrays: list[Any]) -> None:
        """Raise if a capture that counted as a call saw other variables around it."""
        self._read[id(function)] = (function, arrays)
        called = _CALLED.get(function, {})
        if any(called.get(key, trace) != trace for key, trace in self._traces(function, arrays).items()):
            raise refusal(function, "a variable that it reads has changed since")

    def _check_kept(self, function: Any) -> None:
        """Raise if JAX has traced it when variables around it were others."""
        recorder = self.recorder
        with recorder.paused(), recorder.places.suspended(), contextlib.redirect_stdout(io.StringIO()):
            if any(kept != now for kept, now in private.traces_of(function, recorder.trace.parent)):
                raise self.refusal(function, "a variable that it reads has changed since")

    def refusal(self, function: Any, why: str) -> CaptureError:
        """The error for a function that is there before the program runs: a call of it can stay whole."""
        error = _refusal(CannotFollow, function, why)
        error.island = None if self.recorder.bodies.is_in_function else function
        return error

    def whole(
        self,
        target: Any,
        functions: list[Any],
        given: tuple[tuple[Any, ...], dict[str, Any]],
        is_traced: Callable[..., bool],
        anew: Callable[..., Any],
    ) -> Any:
        """A call that JAX makes by what it has traced of functions before: one node, which makes the very same call.

        A capture leaves nothing in JAX's caches, unless it counts as a call: where they know nothing yet, what ``anew``
        gives is called meanwhile.
        """
        recorder, (args, kwargs) = self.recorder, given
        for function in functions:
            if _CALLED.get(function):
                raise refusal(function, "a capture has counted as a call of it, of which JAX knows nothing")
        with recorder.paused(), recorder.places.suspended(), recorder.state.suspended():
            is_known = self.is_call or is_traced(recorder.concrete(args), recorder.concrete(kwargs))
        run = target if is_known else anew
        return recorder.whole(target, args, kwargs, "JAX goes on with what it has traced of it", run)

    def _settled(self, function: Any, node: Node) -> Any:
        """The array that a value is in each call, which is relied on."""
        origin, recorder = self._origin(node), self.recorder
        if is_constant(origin):
            return recorder.attributes.constants[str(origin.target)]
        entries = [one for one in recorder.state.entries if origin.args[:1] == (one.slot.variable,)]
        held = [one.before for one in entries if one.slot.is_only_read]
        if origin.target not in _READING or not held or not isinstance(held[0], jax.Array):
            raise self.refusal(function, "it reads a variable that the program changes")
        kept = recorder.create_node("get_attr", recorder.new_constant(held[0]), (), {})
        recorder.guard(recorder.create(operator.is_, (origin, kept)), True)
        return held[0]

    def _origin(self, node: Node) -> Node:
        """What a parameter of the bodies around stands for."""
        outer: Node | None = node
        while outer is not None:
            node, outer = outer, self.recorder.bodies.outer(outer)
        return node

    def _may_vary(self, node: Node) -> bool:
        """Whether a value is made in a round of a loop that is being recorded."""
        graph = self._origin(node).graph
        return any(body.graph is graph and body.is_branch for body in self.recorder.bodies.open)


class TracedBefore(BaseException):
    """JAX goes on with what it has traced of a function at an earlier call, which is this recording."""

    def __init__(self, body: RecordedBody) -> None:
        self.body = body


def refusal(function: Any, why: str) -> CaptureError:
    """The error for a function whose first trace JAX goes on with."""
    return _refusal(CaptureError, function, why)


def _refusal(kind: type[Kind], function: Any, why: str) -> Kind:
    name = getattr(function, "__name__", "a function")
    return kind(
        f"{name} does not do what JAX has compiled of it at an earlier call",
        where=where(),
        why=f"{why}, and JAX goes on with what it compiled",
        fixes=(f"{name}.clear_cache() or jax.clear_caches() before the capture", "make the variable an argument"),
    )


def anew(function: Any) -> Any:
    """The same function as one that JAX has never seen."""
    return functools.wraps(function)(lambda *args, **kwargs: function(*args, **kwargs))


def _identity(function: Any) -> Any:
    """What tells functions apart for JAX: methods are the same if object and function are."""
    if isinstance(function, MethodType):
        return id(function.__self__), id(function.__func__)
    return id(function)


def _kind(leaf: Any) -> str:
    return str(private.aval_of(leaf)) if isinstance(leaf, jax.Array) else f"{type(leaf).__name__} {leaf!r}"


def _is_made_in_round(function: Any) -> bool:
    """Whether the code that runs now, up to the loop that is being recorded, makes such functions."""
    code = getattr(function, "__code__", None)
    frame: Any = sys._getframe(1)
    while frame is not None and not str(frame.f_globals.get("__name__", "")).startswith("clew.capture.control_flow"):
        if code is None or _makes(frame.f_code, code):
            return True
        frame = frame.f_back
    return False


def _makes(maker: CodeType, code: CodeType) -> bool:
    return any(one is code for one in maker.co_consts)
