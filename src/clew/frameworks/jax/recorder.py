"""The recorder of JAX programs: each call of a public function on a traced array is made for real, and becomes a node.

NumPy inside of a program, and Python's numbers, are those of a NumPy program (the recorder derives from that one).
What comes as a primitive, or as a function that only JAX knows, is traced by JAX and imported, with the kinds of its
arrays guarded. While another trace of JAX is current, arrays behave as JAX's own tracers.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy

from clew.capture.control_flow.runtime import before_question
from clew.capture.recording.operators import OperatorForm
from clew.capture.recording.outputs import rebuild, rebuild_mapping
from clew.capture.recording.recorder import Pending, Scalar
from clew.capture.state.containers import attributes_of, contents
from clew.frameworks.jax import control_flow, private, transforms
from clew.frameworks.jax.array_proxy import (
    PROXIES,
    NativeTracer,
    RecordingTrace,
    TracedJaxArray,
    TracedJaxShape,
    fixed_shapes,
    traced_in,
)
from clew.frameworks.jax.importer import HANDLERS, Importer
from clew.frameworks.jax.staging import this_trace, whole_calls
from clew.frameworks.jax.traced_once import TracedOnce
from clew.frameworks.jax.types import kind_of, type_of_aval
from clew.frameworks.numpy import facts
from clew.frameworks.numpy.array_proxy import TracedPython, is_traced, made_stand_in, relying
from clew.frameworks.numpy.facts import Reliance, is_data
from clew.frameworks.numpy.opaque_calls import cannot_follow
from clew.frameworks.numpy.recorder import NumpyRecorder, is_of_class
from clew.ir.arguments import bodies_of
from clew.ir.graph import Graph
from clew.ir.node import Node

assert HANDLERS and control_flow

_MOST_KEPT = 1 << 20
_FACTS = {"dtype": Reliance.DTYPE, "ndim": Reliance.RANK, "itemsize": Reliance.DTYPE, "weak_type": Reliance.DTYPE}
_SIZES = frozenset({"shape", "size", "nbytes"})
_VIEWS = frozenset({"T", "mT", "real", "imag"})
_WAITING = frozenset({"block_until_ready"})
_VARYING = frozenset({"squeeze"})
_RELIED_ON = (TracedPython, facts.TracedDtype)
"""Stand-ins for what JAX's own code, and functions that are traced as a whole, take as plain values."""
_NUMBERS = (bool, int, float, complex)
_OPERANDS = (*_NUMBERS, numpy.ndarray, numpy.generic, list, tuple, str, bytes, type(None))


class JaxRecorder(NumpyRecorder):
    """Records one run of a JAX program."""

    traces_facts = False

    branches_in_functions = True

    def __init__(self) -> None:
        super().__init__()
        self.trace = RecordingTrace(self, private.current_trace())
        self._kinds: set[Any] = set()
        self.open_rules: list[tuple[Any, str]] = []
        """The functions with derivatives of their own whose rules are being recorded, and their names."""
        self.traced_once = TracedOnce(self)
        self.has_seen_class = False
        """Whether the program may have seen of which class a number is."""

    def is_surely(self, traced: Any, kind: type) -> bool:
        """Whether a number is of this class of Python's in each call."""
        return is_of_class(self.resolve(traced.place), kind)

    def show_class(self, traced: Any) -> None:
        """The program asks of which class a value is."""
        is_seen = self.open and not self.depth and issubclass(type(traced), TracedPython)
        self.has_seen_class = self.has_seen_class or is_seen

    def is_recording(self) -> bool:
        """Whether what the program does now is recorded: it runs itself, and no transform of JAX's is in between."""
        return self.open and not self.depth and private.current_trace() is self.trace

    def hears(self) -> bool:
        """Whether functions of NumPy's that are called right now are the program's business, and not JAX's own."""
        frame: Any = sys._getframe(1)
        while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("clew."):
            frame = frame.f_back
        return frame is None or not _is_inside_jax(frame)

    # ---- values --------------------------------------------------------------------------------------------------

    def is_array(self, value: Any) -> bool:
        """True for what a proxy is made of: arrays of JAX and what a NumPy program has."""
        return (isinstance(value, jax.Array) and not is_traced(value)) or super().is_array(value)

    def is_end(self, value: Any) -> bool:
        """True for arrays, proxies and dtypes: what is in them is followed by other means."""
        return isinstance(value, (jax.Array, private.Tracer)) or super().is_end(value)

    def takes(self, value: Any) -> bool:
        """Whether a call may be given a value that is no array: JAX's own descriptions, and what is registered."""
        return True

    def enter(self, value: Any, place: Any) -> Any:
        """The proxy of an array from outside, one for each array."""
        if not isinstance(value, jax.Array):
            return super().enter(value, place)
        known = self.proxies.get(id(value))
        is_shared = self.identity.of_objects or not isinstance(place, (Node, Pending))
        if known is not None and known[0] is value and is_shared:
            return known[1]
        stand_in = self.result(value, place)
        self.proxies.setdefault(id(value), (value, stand_in))
        return stand_in

    def new_constant(self, value: Any) -> str:
        if isinstance(value, jax.Array):  # which was computed from constants, all of which are guarded
            if isinstance(value, private.Tracer):
                raise cannot_follow("a value of a transform of JAX outside of it")
            return self.attributes.add_constant(value)
        return super().new_constant(value)

    def note_type(self, node: Node, array: Any) -> None:
        """Note dtype and shape of an array on its node."""
        if isinstance(array, jax.Array) and not is_traced(array):
            object.__setattr__(node, "value_type", type_of_aval(private.aval_of(array)))
        else:
            super().note_type(node, array)

    def argument(self, value: Any) -> Any:
        """What a node holds for a value; wrappers of public functions are the functions themselves."""
        if type(value) is NativeTracer:
            value = value.traced
        original = getattr(value, "__clew_original__", None) if callable(value) and not is_traced(value) else None
        if original is None and self._is_own_nest(value):
            return self._nest_argument(value)
        return super().argument(value if original is None else original)

    def _is_own_nest(self, value: Any) -> bool:
        """Whether a value is of a class of its own that is registered with JAX, and holds values of the program."""
        kind = type(value)
        if kind in _PLAIN_NESTS or is_traced(value) or isinstance(value, tuple) or is_leaf_of_jax(value):
            return False
        return kind is not GivenFunction and any(map(self.follows, leaves_of(value)))

    def _nest_argument(self, value: Any) -> Any:
        """The node of what came in and is as it was; another one is made anew, of its class: JAX goes by that."""
        known = self.objects.get(id(value))
        if known is not None and known[0] is value and self._is_as_it_came(value):
            return self.resolve(known[1])
        if isinstance(value, defaultdict):
            return self.create(defaultdict, (value.default_factory, {key: self.argument(value[key]) for key in value}))
        state = {name: self.argument(part) for name, part in attributes_of(value).items()}
        if isinstance(value, dict):
            return self.create(rebuild_mapping, (type(value), {key: self.argument(value[key]) for key in value}, state))
        return self.create(rebuild, (type(value), state))

    def _is_as_it_came(self, value: Any) -> bool:
        """Whether what came in, and all below it, holds what it held then."""
        containers = {id(one.value): one for one in self.state.inputs.containers}

        def is_same(part: Any) -> bool:
            known = containers.get(id(part))
            if known is None or known.value is not part:
                return not isinstance(part, tuple) or all(map(is_same, part))
            now = contents(part)
            pairs = zip(now.values(), known.entered.values(), strict=False)
            return now.keys() == known.entered.keys() and all(one is before and is_same(one) for one, before in pairs)

        return is_same(value)

    def concrete(self, value: Any) -> Any:
        """The value with arrays and numbers in the place of proxies."""
        if type(value) is NativeTracer:
            return value.traced.plain
        if callable(value) and not is_traced(value) and not isinstance(value, type) and is_leaf_of_jax(value):
            return getattr(value, "__clew_original__", value)
        if type(value) in _PLAIN_NESTS or type(value) is TracedJaxShape:
            return super().concrete(value)
        if not is_traced(value) and not is_leaf_of_jax(value):
            return jax.tree_util.tree_map(self._plain_leaf, value)
        return super().concrete(value)

    def _plain_leaf(self, value: Any) -> Any:
        if type(value) in PROXIES:
            return self.concrete(value)
        if type(value) is NativeTracer:
            return value.traced.plain
        return value.plain if issubclass(type(value), Scalar) else value

    def result(self, value: Any, place: Any) -> Any:
        """The result of a recorded call as the program shall see it."""
        if isinstance(value, jax.Array) and not is_traced(value):
            if type(place) is Node:
                self.note_type(place, value)
            return self.tracer(value, place)
        if callable(value) and not isinstance(value, (type, numpy.dtype)) and _is_function(value):
            return GivenFunction(self, value, place)
        if type(value) in _PLAIN_RESULTS or (not isinstance(value, tuple) and is_leaf_of_jax(value)):
            return super().result(value, place)
        if type(value) in (tuple, list, dict) or isinstance(value, tuple):
            return super().result(value, place)
        return self._nest(value, place)

    def tracer(self, value: Any, place: Any) -> Any:
        """The proxy of an array of JAX."""
        new = made_stand_in(TracedJaxArray, value, place, self)
        object.__setattr__(new, "_trace", self.trace)
        return new

    def _nest(self, value: Any, place: Any) -> Any:
        """A nest of a class that is registered with JAX, made anew of its leaves."""
        found, structure = jax.tree_util.tree_flatten(value)
        parts = self.create(jax.tree_util.tree_leaves, (self.resolve(place),))
        items = [self.result(leaf, Pending(operator.getitem, (parts, index))) for index, leaf in enumerate(found)]
        return jax.tree_util.tree_unflatten(structure, items)

    def rely_on_kind(self, traced: TracedJaxArray) -> None:
        """JAX's own code looks at the abstract value of an array: its dtype, sizes and weak type are relied on."""
        if not self.open or (self.depth and private.current_trace() is self.trace.parent):
            return
        node = self.resolve(traced.place)
        if node in self._kinds:
            return
        self._kinds.add(node)
        self.rely(Reliance.DTYPE)
        self.guard(self.create(kind_of, (node,)), kind_of(traced.plain))

    # ---- calls ---------------------------------------------------------------------------------------------------

    def natively(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call under another trace than ours, which JAX makes of tracers; numbers are relied on."""

        def native(value: Any) -> Any:
            if type(value) is TracedJaxArray:
                is_plain = not self.open or value._trace.parent is private.current_trace()
                return value.plain if is_plain else NativeTracer(value)
            if issubclass(type(value), _RELIED_ON):
                self.reveal(value)
                return value.plain
            return value

        return function(*_mapped(native, args), **_mapped(native, kwargs))

    def can_operate(self, traced: Any, other: Any) -> bool:
        """Whether an operator between a proxy and this is JAX's or NumPy's business."""
        if type(traced) is TracedJaxArray:
            return isinstance(other, (*_OPERANDS, jax.Array)) or is_traced(other) or isinstance(other, private.Tracer)
        if isinstance(other, (jax.Array, private.Tracer)):
            return type(other) is TracedJaxArray or not isinstance(other, private.Tracer)
        if type(traced) is facts.TracedDtype and isinstance(other, private.ScalarMaker):
            return True
        return super().can_operate(traced, other)

    def operate(self, function: Callable[..., Any], *values: Any) -> Any:
        """Apply an operator and record it."""
        if self._is_of_jax(values) and not self.is_recording():
            return self.natively(function, values, {})
        if function is len:
            self._check_axes(values[0])
        return super().operate(function, *values)

    def _check_axes(self, traced: Any) -> None:
        """Rely on an array having an axis: a guard on its length, which comes first, would raise another error."""
        if type(traced) is TracedJaxArray and self.open and self.is_recording() and traced.plain.ndim:
            rank = self.create(getattr, (self.argument(traced), "ndim"))
            self.guard(self.create(operator.gt, (rank, 0)), True)

    def item(self, array: Any, key: Any) -> Any:
        """An item of an array."""
        if type(array) is TracedJaxArray and not self.is_recording():
            return self.natively(operator.getitem, (array, key), {})
        self.takes_by_arrays = self.takes_by_arrays or any(type(leaf) is TracedJaxArray for leaf in leaves_of(key))
        return super().item(array, key)

    def method(self, array: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a method of an array."""
        if type(array) is not TracedJaxArray:
            return super().method(array, name, args, kwargs)
        if not self.is_recording():
            return self.natively(lambda one, *rest, **named: getattr(one, name)(*rest, **named), (array, *args), kwargs)
        if name in _WAITING:
            return array
        args, kwargs = self.whole_arguments(args, kwargs)
        return self.record("call_method", name, (array, *args), self._settled(kwargs))

    def public(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a public function of JAX's."""
        if not self.is_recording():
            if not self.open:
                return function(*self.concrete(args), **self.concrete(kwargs))
            return self.natively(function, args, kwargs)
        apart = args, kwargs
        args, kwargs = self.whole_arguments(args, kwargs, function)
        given = leaves_of((args, kwargs))
        if any(map(transforms.is_user_function, given)):
            return transforms.with_functions(self, function, *fixed_shapes(apart))
        if any(self.follows(leaf) for leaf in given):
            return self.record("call_function", function, args, kwargs)
        value = self.perform(function, args, kwargs)
        made_array = any(isinstance(leaf, jax.Array) for leaf in leaves_of(value))
        return self.record("call_function", function, args, kwargs) if made_array else value

    def tell(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record a call that only shows or tells something; a transform of JAX might make it as often as it likes."""
        if not self.is_recording():
            raise cannot_follow(f"{function.__name__} inside of a transform of JAX that is not recorded")
        super().tell(function, args, kwargs)

    def settled(self, value: Any) -> Any:
        """A value with the numbers in it relied on."""

        def plain(leaf: Any) -> Any:
            if not issubclass(type(leaf), _RELIED_ON):
                return leaf
            self.reveal(leaf)
            return leaf.plain

        return jax.tree_util.tree_map(plain, value)

    def _is_of_jax(self, values: Iterable[Any]) -> bool:
        return any(isinstance(value, (jax.Array, private.Tracer)) for value in values)

    def record(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        written: Iterable[Any] = (),
        form: OperatorForm | None = None,
        called: Node | None = None,
    ) -> Any:
        """Make a call and record it; ``called`` is the node of a function that a call has given, the first argument."""
        given = leaves_of((args, kwargs))
        if written or (not self._is_of_jax(given) and not _is_function_of_jax(target)):
            return super().record(op, target, args, kwargs, written, form)
        if not self.open:
            return self.perform(target, args, kwargs)
        node_args = self.argument(args) if called is None else (called, *self.argument(args[1:]))
        node_kwargs = self.argument(kwargs) if kwargs else {}
        value = self.perform(target, args, kwargs, (node_args, node_kwargs))
        node = self.create_node(op, target, node_args, node_kwargs, is_result=True, form=form)
        if not self.bodies.open and self.folding.is_constant(node) and called is None:
            self.folding.add(node, value if _can_be_kept(value) else None)
        if called is None:  # what a function that JAX has given gives is built as what that was made of
            self._note_reliance(target, value, node)
        for one in given if self.identity.of_objects and isinstance(value, jax.Array) else ():
            if type(one) is TracedJaxArray:  # JAX may give back what it was given
                self.guard(self.create(operator.is_, (node, self.argument(one))), one.plain is value)
                if one.plain is value:
                    return one
        return self.result(value, node)

    def _note_reliance(self, target: Any, value: Any, node: Node) -> None:
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        self.rely(_reliance_of(value))
        if name in _VARYING and isinstance(value, jax.Array):
            self.guard(self.create(getattr, (node, "ndim")), value.ndim)

    def perform(
        self, target: Callable[..., Any] | str, args: tuple[Any, ...], kwargs: dict[str, Any], nodes: Any = None
    ) -> Any:
        """Make a call on plain values, as the program would without a capture."""
        with private.using(self.trace.parent):
            return super().perform(target, args, kwargs, nodes)

    # ---- what JAX's own code does --------------------------------------------------------------------------------

    def primitive(self, trace: RecordingTrace, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """A primitive under our trace: recorded if one of its arguments is traced."""
        ours = [traced_in(value) for value in args]

        def bind(*values: Any) -> Any:
            return primitive.bind(*values, **params)

        plain = [value if one is None else one.plain for value, one in zip(args, ours, strict=True)]
        if not self.open or self.depth or all(one is None for one in ours):
            with private.using(trace.parent):
                return bind(*plain)
        return self.imported(trace, bind, args, plain, not primitive.multiple_results)

    def primitive_with_rules(self, trace: RecordingTrace, primitive: Any, fun: Any, args: Sequence[Any]) -> Any:
        """A function with rules of derivatives: only where nothing is recorded it is just called."""
        if not self.open or self.depth or all(traced_in(value) is None for value in args):
            with private.using(trace.parent):
                return fun.call_wrapped(*[self.concrete(value) for value in args])
        raise cannot_follow("a function with a derivative of its own that JAX's own code calls")

    def imported(
        self,
        trace: RecordingTrace,
        function: Callable[..., Any],
        args: Sequence[Any],
        plain: list[Any],
        is_single: bool,
    ) -> Any:
        """A function of arrays traced by JAX, its equations as nodes; the kinds of its arguments are relied on."""
        for value in args:
            traced = traced_in(value)
            if traced is not None:
                self.rely_on_kind(traced)
        with self.paused(), private.using(trace.parent), whole_calls():

            def program(*values: Any) -> Any:
                this_trace()
                return function(*values)

            closed = jax.make_jaxpr(program)(*plain)
            values = function(*plain)
        operands = [self.bodies.localized(self.argument(value), self.graph) for value in args]
        importer = Importer(self.graph, lambda value: self.bodies.localized(self.node_of(value), self.graph))
        latest = self.graph._root._prev
        with self.paused(), private.using(trace.parent):
            nodes = importer.run(closed, operands)
        _name_originals(self.graph, latest)
        found = [values] if is_single else list(values)
        results = [self.result(value, node) for value, node in zip(found, nodes, strict=True)]
        return results[0] if is_single else results

    def staged(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function of arrays that JAX traces as a whole: its equations become nodes."""
        if not self.is_recording():
            return self.natively(function, args, kwargs)
        args, kwargs = fixed_shapes((args, kwargs))
        found, structure = jax.tree_util.tree_flatten((args, kwargs))
        places = [index for index, leaf in enumerate(found) if isinstance(leaf, (jax.Array, numpy.ndarray))]
        for leaf in found:
            if issubclass(type(leaf), _RELIED_ON):
                self.reveal(leaf)
        shapes: list[Any] = []

        def of_arrays(*arrays: Any) -> Any:
            whole = [leaf.plain if issubclass(type(leaf), Scalar) else leaf for leaf in found]
            for index, array in zip(places, arrays, strict=True):
                whole[index] = array
            named: Any
            positional, named = jax.tree_util.tree_unflatten(structure, whole)
            out, shape = jax.tree_util.tree_flatten(function(*positional, **named))
            shapes[:] = [shape]
            return out

        operands = [found[index] for index in places]
        plain = [self.concrete(value) for value in operands]
        results = self.imported(self.trace, of_arrays, operands, plain, False)
        return jax.tree_util.tree_unflatten(shapes[0], results)

    # ---- where values leave --------------------------------------------------------------------------------------

    def attribute(self, traced: Any, name: str) -> Any:
        """An attribute of what a proxy stands for."""
        if type(traced) is not TracedJaxArray:
            return super().attribute(traced, name)
        plain = traced.plain
        if not self.open:
            return getattr(plain, name)
        if name.startswith("__") or not hasattr(type(plain), name):
            raise AttributeError(f"{type(plain).__name__!r} object has no attribute {name!r}")
        if not self.is_recording():
            return getattr(NativeTracer(traced), name)
        if name in _FACTS:
            if name in ("dtype", "ndim") and not _is_inside_jax(sys._getframe(2)):
                return self._fact(getattr(plain, name), self.create(getattr, (self.argument(traced), name)))
            self.rely(_FACTS[name])
            return getattr(plain, name)
        if _is_inside_jax(sys._getframe(2)):
            self.rely_on_kind(traced)
        if name == "at":
            return AtIndex(traced)
        found = self.perform(getattr, (traced, name), {})
        if name in _SIZES or name in _VIEWS:
            if name in _SIZES and _is_inside_jax(sys._getframe(2)):
                return found
            place = self.create(getattr, (self.argument(traced), name), is_result=name in _VIEWS)
            if name == "shape" and not self.bodies.is_in_function:
                return facts.shape(found, place, self, kind=TracedJaxShape)
            self.rely(Reliance.RANK if name == "shape" else Reliance.NOTHING)
            return self.result(found, place)
        if name.startswith("_") or name in _REFUSED:
            raise cannot_follow(f"reading {name} of an array of JAX")
        if callable(found):
            return functools.partial(self._method_of, traced, name)
        self.rely(Reliance.DTYPE)
        self.guard(self.create(getattr, (self.argument(traced), name)), found)
        return found

    def _fact(self, value: Any, place: Any) -> Any:
        """A dtype, a rank, or what follows from them alone: a value of the graph."""
        if isinstance(value, numpy.dtype):
            return facts.dtype(value, place, self)
        return relying(self.result(value, place), Reliance.NOTHING)

    def fact(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function that looks at dtypes and ranks alone."""
        given = leaves_of((args, kwargs))
        if not self.is_recording() or not any(map(self.follows, given)):
            return self.natively(function, args, kwargs)
        if function.__name__ == "shape":
            return args[0].shape if type(args[0]) is TracedJaxArray else self.natively(function, args, kwargs)
        if function.__name__ in _ABOUT_DTYPES:
            info = function(*_mapped(self._plain_leaf, args), **_mapped(self._plain_leaf, kwargs))
            return AboutDtype(self, info, self.create(function, self.argument(args), self.argument(kwargs)))
        value = self.perform(function, args, kwargs)
        return self._fact(value, self.create(function, self.argument(args), self.argument(kwargs)))

    def _method_of(self, traced: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
        return self.method(traced, name, args, kwargs)

    def check_used(self) -> None:
        """A proxy is used: not inside a call that stays whole."""
        if self.open and self.depth:
            raise cannot_follow("a value of the program inside a function that stays one call")

    def escape(self, traced: Any, dtype: Any) -> Any:
        """C code, or code that is not recorded, wants the data."""
        if type(traced) is TracedJaxArray and self.open:
            raise cannot_follow("an array whose data leave JAX's functions")
        return numpy.asarray(traced.plain, dtype) if type(traced) is TracedJaxArray else super().escape(traced, dtype)

    def reveal(self, traced: Any) -> None:
        """The program relies on what a number is."""
        if type(traced) is not TracedJaxArray or not self.open:
            super().reveal(traced)
        elif traced.plain.ndim or isinstance(traced.plain, private.Tracer):
            raise cannot_follow("an array that is turned into text or bytes")
        else:
            self.rely(Reliance.DTYPE)
            node = self.create_node("call_method", "item", (self.argument(traced),), {})
            self.guard(node, traced.plain.item())

    def asked(self, traced: Any) -> bool:
        """Python asks whether a value is true: only that is relied on."""
        if type(traced) is not TracedJaxArray:
            return super().asked(traced)
        if not self.open:
            return bool(traced.plain)
        if not self.is_recording():
            return bool(NativeTracer(traced))
        answer = self.perform(bool, (traced,), {})
        asks_data = self.options.dynamic or is_data(self.resolve(traced.place), self)
        return self.truth(traced.place, answer, asks_data, True)

    def truth(self, place: Any, answer: bool, is_data: bool, is_fixed: bool = False) -> bool:
        """The program asks whether a value is true. Inside of a function that JAX was handed the question has one
        answer for all that JAX does with the function: Python's own `if` is written there, or it is guarded."""
        if is_data and self.open and self.bodies.is_in_function:
            self.has_seen_class = True  # an array in the place of a number may be traced there, and have no truth
            before_question(self)
        return super().truth(place, answer, is_data, is_fixed)

    def forced(self, function: Callable[..., Any], traced: Any) -> Any:
        """Python wants a plain number: the capture relies on it from now on."""
        if type(traced) is TracedJaxArray and self.open and not self.is_recording():
            return self.natively(function, (traced,), {})
        if function is len:
            self._check_axes(traced)
        self.show_class(traced)
        return super().forced(function, traced)


_REFUSED = frozenset("delete unsafe_buffer_pointer is_deleted copy_to_host_async addressable_data traceback".split())
_PLAIN_NESTS = frozenset({tuple, list, dict, slice, *_NUMBERS, str, bytes, type(None)})
_PLAIN_RESULTS = frozenset({*_NUMBERS, str, bytes, type(None)})


class GivenFunction:
    """A function that a call has given, as ``jax.vjp`` does: its calls are recorded.

    Some are nests of arrays for JAX; which arrays, and in which order, may be another in each call.
    """

    def __init__(self, recorder: JaxRecorder, function: Callable[..., Any], place: Any) -> None:
        self._recorder, self._function, self._place = recorder, function, place

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder, function = self._recorder, self._function
        if not recorder.is_recording():
            return recorder.natively(function, args, kwargs)
        called = recorder.resolve(self._place)
        return recorder.record("call_function", operator.call, (function, *args), kwargs, called=called)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self._function, name):
            raise AttributeError(f"{type(self._function).__name__!r} object has no attribute {name!r}")
        raise self._looked_into()

    def _looked_into(self) -> Exception:
        return cannot_follow("a function that JAX has given and that the program looks into")


def _taken_apart(function: GivenFunction) -> Any:
    if is_leaf_of_jax(function._function):
        return (), function
    raise function._looked_into()


jax.tree_util.register_pytree_node(GivenFunction, _taken_apart, lambda function, children: function)


_ABOUT_DTYPES = frozenset({"finfo", "iinfo"})


class AboutDtype:
    """What ``jax.numpy.finfo`` tells of a dtype that the graph has: each attribute is a value of the graph."""

    def __init__(self, recorder: JaxRecorder, info: Any, place: Any) -> None:
        self._recorder, self._info, self._place = recorder, info, place

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{type(self._info).__name__!r} object has no attribute {name!r}")
        value = getattr(self._info, name)
        return self._recorder._fact(value, self._recorder.create(getattr, (self._place, name)))


class AtIndex:
    """``x.at`` and ``x.at[key]``: what is done there gives a new array."""

    def __init__(self, array: TracedJaxArray) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        return AtPlace(self._array, key)


class AtPlace:
    """``x.at[key]``."""

    def __init__(self, array: TracedJaxArray, key: Any) -> None:
        self._array, self._key = array, key

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._update, name)

    def _update(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        recorder = self._array.recorder
        return recorder.record("call_function", at_update, (self._array, self._key, name, *args), kwargs)


def at_update(array: Any, key: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """``array.at[key].set(value)``, or another method of this name."""
    return getattr(array.at[key], name)(*args, **kwargs)


def _name_originals(graph: Graph, after: Node) -> None:
    """Let nodes that were written behind a node call the functions for which wrappers stand during a capture."""
    node = after._next
    while node is not graph._root:
        original = getattr(node.target, "__clew_original__", None)
        if original is not None:
            node.target = original
        for body in bodies_of(node):
            _name_originals(body, body._root)
        node = node._next


def _reliance_of(value: Any) -> Reliance:
    """What the program could see of a result depends on: of an array of JAX nothing, of several how many they are."""
    if isinstance(value, jax.Array) or value is None:
        return Reliance.NOTHING
    return Reliance.RANK if _is_nest_of_arrays(value) else Reliance.DTYPE


def _is_nest_of_arrays(value: Any) -> bool:
    """Whether a container holds nothing but arrays, functions that JAX gives, and such containers."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else None
    if parts is None:
        return False
    return all(isinstance(part, jax.Array) or _is_given(part) or _is_nest_of_arrays(part) for part in parts)


def _is_given(value: Any) -> bool:
    """Whether a value is a function that JAX gives, of which a program sees what it gives alone."""
    return callable(value) and not isinstance(value, type) and _is_function(value)


def leaves_of(nest: Any) -> list[Any]:
    """The leaves of a nest, those of classes that are registered with JAX included."""
    return jax.tree_util.tree_leaves(nest)


def is_leaf_of_jax(value: Any) -> bool:
    """Whether a value is no nest for JAX."""
    return bool(jax.tree_util.all_leaves([value]))


def _is_function(value: Any) -> bool:
    """Whether something that can be called is a function for the program, and no object of a class of its own."""
    return type(value).__module__.partition(".")[0] == "jax" or is_leaf_of_jax(value)


def _mapped(function: Callable[[Any], Any], nest: Any) -> Any:
    if isinstance(nest, slice):
        return slice(*(function(part) for part in (nest.start, nest.stop, nest.step)))
    return jax.tree_util.tree_map(
        lambda leaf: _mapped(function, leaf) if isinstance(leaf, slice) else function(leaf), nest
    )


def _is_function_of_jax(target: Any) -> bool:
    module = str(getattr(target, "__module__", None) or type(target).__module__)
    return module.partition(".")[0] in ("jax", "jaxlib") or target in (operator.call,)


def _is_inside_jax(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "jax"


def _can_be_kept(value: Any) -> bool:
    return isinstance(value, jax.Array) and not isinstance(value, private.Tracer) and value.size <= _MOST_KEPT
