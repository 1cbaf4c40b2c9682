"""The recorder of NumPy programs: what reaches a proxy for an array becomes a node, and every question a guard.

Ufuncs and functions come through NumPy's protocols, methods and operators through the proxies; writing is followed
through views. An array that leaves for code which cannot be recorded is seen when it is asked for its data.
"""

from __future__ import annotations

import operator
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Protocol

import numpy

from clew.capture.bytecode.handled_errors import may_see_error
from clew.capture.bytecode.try_blocks import ARITHMETIC, NEVER, is_tried, succeeds
from clew.capture.control_flow.runtime import before_guard
from clew.capture.recording.example_recorder import ExampleRecorder
from clew.capture.recording.list_proxies import ListProxy, StateListProxy
from clew.capture.recording.opaque_calls import CannotFollow, OpaqueCall, changed_one, copies_of
from clew.capture.recording.operators import OperatorForm
from clew.capture.recording.recorder import Pending, Recorder, Scalar
from clew.errors import CaptureError
from clew.frameworks.numpy import attributes, facts, files
from clew.frameworks.numpy.array_proxy import (
    Reliance,
    Traced,
    TracedArray,
    TracedBool,
    TracedPython,
    is_traced,
    relying,
    stand_in,
    whole_list,
)
from clew.frameworks.numpy.caches import RecordedBodies
from clew.frameworks.numpy.effects import FIRST_WRITTEN, WRITING_METHODS, computes, with_named_out
from clew.frameworks.numpy.facts import (
    DATA_BOOLS,
    gives_several,
    guard_kind,
    is_arithmetic,
    is_array,
    is_data,
    own_reliance,
    reliance_of,
    varies,
)
from clew.frameworks.numpy.opaque_calls import cannot_follow, where
from clew.frameworks.numpy.types import array_type
from clew.ir.arguments import leaves
from clew.ir.control_flow import is_control
from clew.ir.node import Node
from clew.ir.source import is_installed, user_frame

if TYPE_CHECKING:
    from clew.frameworks.numpy.array_proxy import Places
    from clew.frameworks.numpy.random_streams import NumpyStreams

_OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "true_divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "power": operator.pow, "matmul": operator.matmul, "left_shift": operator.lshift, "right_shift": operator.rshift,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge, "equal": operator.eq,
    "not_equal": operator.ne,
}  # fmt: skip
FORMS = {name: OperatorForm(function) for name, function in _OPERATORS.items()}
"""The operator of each ufunc that is one, by name."""


_NUMBERS = (bool, int, float, complex)
_OPERANDS = frozenset({*_NUMBERS, numpy.ndarray})
_ARRAY_OPERANDS = _OPERANDS | {list, tuple, str, bytes, type(None)}
STREAMS = (numpy.random.Generator, numpy.random.RandomState)
_ENDS = (numpy.ndarray, numpy.generic, numpy.dtype, *STREAMS)
_MOST_KEPT = 1 << 20
_JOINS = frozenset("sum stack concatenate concat hstack vstack array asarray".split())
_asarray = numpy.asarray  # by its own name, because a recorder stands in its place during a capture


class ArrayRollback(Protocol):
    """What puts arrays and generators back after a run."""

    def watch(self, array: Any) -> None:
        """Remember an array that the program did not make."""

    def watch_stream(self, stream: Any) -> None:
        """Remember where a generator of random numbers stands."""

    def save(self, array: Any) -> None:
        """An array is about to be written to: what it holds is kept."""

    def comparing(self) -> AbstractContextManager[None]:
        """Keep copies of what is written to inside, by whatever means."""


class NumpyRecorder(ExampleRecorder):
    """A recorder of NumPy's calls."""

    streams: NumpyStreams
    rollback: ArrayRollback
    places: Places

    traces_facts = True
    """Whether shapes, ranks and dtypes are values of the graph; else they are plain, and guarded by others."""
    reliance = Reliance.NOTHING
    """What of numbers, ranks and dtypes the program may have seen."""
    sizes_of_results = False
    """Whether the program asks for sizes of arrays that are none of the arguments."""
    takes_by_arrays = False
    """Whether the program takes items by arrays: masks, or numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.proxies: dict[int, tuple[Any, Any]] = {}
        self.errors = numpy.geterr()
        self.errstates: list[tuple[Any, Node]] = []
        self._thread = threading.get_ident()
        self.own_reliance: dict[Node, Reliance | None] = {}
        """What it depends on whether a call gives an array, besides its arguments; None where it gives a number."""
        self.arguments: list[Any] = []
        """The arrays among the arguments."""
        self.least_ranks: dict[int, int] = {}
        """By the identity of such an array, how many axes it must have."""
        self.updated: list[Node] = []
        """Values that rounds of loops, or sides of branches, update in place."""
        self.listed: list[Any] = []
        """Arrays whose items were taken out for a loop: they must not be written to."""
        self.cached = RecordedBodies(self)
        self._memory: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    # ---- values --------------------------------------------------------------------------------------------------

    def is_array(self, value: Any) -> bool:
        """True for what a proxy is made of: arrays, NumPy's numbers, its generators of random numbers."""
        return type(value) is numpy.ndarray or (isinstance(value, (numpy.generic, *STREAMS)) and not is_traced(value))

    def is_end(self, value: Any) -> bool:
        """True for arrays, proxies and dtypes: what is in them is followed by other means."""
        is_own_class = isinstance(value, numpy.ndarray) and type(value) is not numpy.ndarray  # which is flat
        return is_traced(value) or (isinstance(value, _ENDS) and not is_own_class)

    def follows(self, value: Any) -> bool:
        """Whether a call on this value is recorded."""
        return is_traced(value)

    def takes(self, value: Any) -> bool:
        """Whether a call may be given a value of another framework."""
        return False

    def looks_into(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a function of another package is run and recorded like the program's own."""
        return False

    def hears(self) -> bool:
        """Whether functions of NumPy's that are called right now are the program's business."""
        return True

    def enter(self, value: Any, place: Any) -> Any:
        """The proxy of an array from outside, one for each array."""
        attributes.check_followed(value)
        known = self.proxies.get(id(value))
        if known is not None and known[0] is value and not isinstance(value, numpy.generic):
            return known[1]
        made = self.streams.stand_in(self, value, place) if isinstance(value, STREAMS) else self.result(value, place)
        relying(made, Reliance.NUMBERS if isinstance(value, numpy.generic) else Reliance.NOTHING)
        self.proxies[id(value)] = (value, made)
        if type(value) is numpy.ndarray:
            self.rollback.watch(value)
        return made

    def constant(self, value: Any) -> Any:
        """The proxy of an array that the program's surroundings hold; its node is made when it is used."""
        return self.enter(value, _Lazy(self, value))

    def argument(self, value: Any) -> Any:
        """What a node holds for a value; NumPy's own numbers, where they are constants, are literals. The node of an
        array has its type, whoever has made it."""
        if isinstance(value, numpy.generic) and not is_traced(value):
            return value
        found = super().argument(value)
        is_untyped = type(found) is Node and found.value_type is None and issubclass(type(value), Scalar)
        if is_untyped and self.is_array(value.plain):
            self.note_type(found, value.plain)
        return found

    def node_of(self, value: Any) -> Node:
        """The node of an array that is no proxy: one that came in, or that the surroundings hold."""
        known = self.proxies.get(id(value))
        if known is not None and known[0] is value:
            return self.resolve(known[1].place)
        return super().node_of(value)

    def new_constant(self, value: Any) -> str:
        held = self.state.had(value) if self.finishing else self.surroundings.holds(value) or self.state.want(value)
        held = held or self.proxies.get(id(value), (None,))[0] is value
        if not held:
            raise cannot_follow("an array that was made by means that the capture does not see")
        return super().new_constant(value)

    def note_type(self, node: Node, array: Any) -> None:
        """Note dtype and shape of an array on its node."""
        if isinstance(array, (numpy.ndarray, numpy.generic)):
            object.__setattr__(node, "value_type", array_type(array))

    def result(self, value: Any, place: Any) -> Any:
        """The result of a recorded call as the program shall see it."""
        kind = type(value)
        if kind in _NUMBERS or kind is numpy.ndarray:
            return self._stand_in(value, place)
        if issubclass(kind, numpy.generic):
            if issubclass(kind, (numpy.character, numpy.object_)):  # texts, for which nothing can stand
                self.guard(place, value)
                return value
            return self._stand_in(value, place)
        if isinstance(value, tuple):
            items = [self.result(item, Pending(operator.getitem, (place, i))) for i, item in enumerate(value)]
            return tuple(items) if kind is tuple else kind(*items) if hasattr(value, "_fields") else kind(items)
        if kind is list:
            self.guard(self.create(len, (self.resolve(place),)), len(value))
            return [self.result(item, Pending(operator.getitem, (place, i))) for i, item in enumerate(value)]
        if self.traces_facts and isinstance(value, numpy.dtype):
            return facts.dtype(value, place, self)
        if self.traces_facts and isinstance(value, type):
            self.guard(place, value)
            return value
        if value is None or isinstance(value, (numpy.dtype, type)) or value is numpy:
            return value
        if kind in (str, bytes):
            self.guard(place, value)
            return value
        if kind is dict:  # of settings
            return {key: self.result(part, Pending(operator.getitem, (place, key))) for key, part in value.items()}
        raise cannot_follow(f"a {kind.__name__} that a call gave")

    def _stand_in(self, value: Any, place: Any) -> Any:
        if type(place) is Node:
            self.note_type(place, value)
        if type(value) is numpy.ndarray:
            owner = value
            while isinstance(owner.base, numpy.ndarray):
                owner = owner.base
            self._memory[id(owner)] = owner
        number = stand_in(value, place, self, self.class_for(value))
        return bool(number) if type(value) is bool and self.identity.of_truths and self.open else number

    def class_for(self, value: Any) -> Any:
        """The class of the proxy of a value; None for the usual one."""
        return None

    def rely(self, reliance: Reliance) -> None:
        """The program may have seen what depends on this."""
        self.reliance = max(self.reliance, reliance)

    def is_given(self, array: Any) -> bool:
        """Whether an array is one of the arguments, with an axis in each call."""
        return any(array is one for one in self.arguments)

    def rely_on_memory(self, traced: Any) -> None:
        """The program updates a value: an array is written to, of a number another one is made."""
        if not self.traces_facts or not self.open:
            return
        if traced.reliance <= Reliance.NUMBERS:
            self.rely(traced.reliance)
        elif self._is_in_piece or control_of_result(self.resolve(traced.place)):
            self.updated.append(self.resolve(traced.place))
        else:
            plain = traced.plain
            self.guard(self.create(is_array, (self.argument(traced),)), isinstance(plain, numpy.ndarray))

    @property
    def _is_in_piece(self) -> bool:
        """Whether a round of a loop or a side of a branch is being recorded, and not a whole path of the program."""
        paths = self.paths
        is_way = paths is not None and paths.body is None
        return len(self.bodies.open) > (len(paths.way.trail) - 1 if is_way else 0)  # type: ignore[union-attr]

    def is_surely(self, traced: Any, kind: type) -> bool:
        """Whether a number is of this class of Python's in each call."""
        if not self.traces_facts:
            return type(traced.plain) is kind
        return is_of_class(self.resolve(traced.place), kind)

    def show_class(self, traced: Any) -> None:
        """The program asks of which class a value is."""
        if not self.traces_facts or not self.open or not self.running or self.depth:
            return
        is_known = type(traced) is TracedArray and traced.reliance is Reliance.NOTHING
        if not is_known and type(traced) is not TracedBool and not self.is_surely(traced, int):
            self.guard(self.create(type, (self.argument(traced),)), type(traced.plain))

    def memory(self) -> list[Any]:
        """The arrays that hold what the program's arrays are, of those that are still in use."""
        return list(self._memory.values())

    # ---- operators and items -------------------------------------------------------------------------------------

    def can_operate(self, traced: Any, other: Any) -> bool:
        """Whether an operator between a proxy and this is NumPy's business."""
        allowed = _OPERANDS if isinstance(traced, TracedPython) else _ARRAY_OPERANDS
        if type(other) in allowed or is_traced(other) or isinstance(other, numpy.generic):
            return True
        can_compare = facts.can_compare(traced, other)
        if not can_compare and type(other) in _ARRAY_OPERANDS:
            self.show_class(traced)
        return can_compare

    def operate(self, function: Callable[..., Any], *values: Any) -> Any:
        """Apply an operator and record it."""
        self.check_used()
        return self.record("call_function", function, values, {})

    def update(self, function: Callable[..., Any], array: TracedArray, other: Any) -> Any:
        """An operator that writes to its left operand, which it gives back."""
        self.check_used()
        self.rely_on_memory(array)
        self.record("call_function", function, (array, other), {}, written=(array,))
        return array

    def item(self, array: Any, key: Any) -> Any:
        """An item or a view of an array."""
        self.check_used()
        self.takes_by_arrays = self.takes_by_arrays or type(key) is TracedArray
        return self.record("call_function", operator.getitem, (array, key), {})

    def set_item(self, array: Any, key: Any, value: Any) -> None:
        """Write to items of an array."""
        self.check_used()
        self.record("call_function", operator.setitem, (array, key, value), {}, written=(array,))

    # ---- calls ---------------------------------------------------------------------------------------------------

    def ufunc(self, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a ufunc, or of a method of one."""
        self.check_used()
        out = kwargs.get("out")
        if isinstance(out, tuple) and len(out) == 1:
            kwargs = {**kwargs, "out": out[0]}
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        written = inputs[:1] if method == "at" else ()
        form = FORMS.get(ufunc.__name__) if method == "__call__" and not kwargs else None
        return self.record("call_function", function, inputs, kwargs, written, form)

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function of NumPy's."""
        self.check_used()
        files.check(function)
        args, kwargs = self.whole_arguments(args, kwargs, function)
        name = getattr(function, "__name__", "")
        handler = attributes.ANSWERS.get(function) if not kwargs and len(args) == 1 and is_traced(args[0]) else None
        if handler is not None:
            return handler(args[0])
        args, kwargs = with_named_out(function, args, kwargs)
        if name not in DATA_BOOLS:
            args, kwargs = self._settled(args), self._settled(kwargs)
        place = FIRST_WRITTEN.get(name)
        written = args[:1] if place is not None and place(kwargs) else ()
        return self.record("call_function", function, args, kwargs, written)

    def site(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that stands in the program itself: of constants alone it is recorded if it makes an array."""
        files.check(function)
        args, kwargs = self.whole_arguments(args, kwargs, function)
        if any(self.follows(leaf) for leaf in leaves((args, kwargs))):
            if isinstance(function, numpy.ufunc):
                args, kwargs = with_named_out(function, args, kwargs)
                return self.ufunc(function, "__call__", args, kwargs)
            return self.call(function, args, kwargs)
        if _functions_in((args, kwargs)) and function is not numpy.frompyfunc:  # which may act, so they run once
            return self.call(function, args, kwargs)
        with self.paused():
            value = function(*args, **kwargs)
        made = any(type(leaf) is numpy.ndarray for leaf in leaves(value))
        return self.call(function, args, kwargs) if made else value

    def whole_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], function: Any = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, of which some are handed on as a whole; ``function`` may be one that joins all items
        of a list."""
        named = {name: self._whole(value) for name, value in kwargs.items()}
        given = [self._whole(value) for value in args]
        if given and type(given[0]) is StateListProxy and getattr(function, "__name__", "") in _JOINS:
            node, items = given[0].whole(), list.__getitem__(given[0], slice(None))
            given[0] = given[0] if node is None else whole_list(self.concrete(items), node, self)
        return tuple(given), named

    def _whole(self, value: Any) -> Any:
        """A list that a loop of the graph has filled, or the shape of an array, is handed on as a whole."""
        if issubclass(type(value), facts.TracedShape) and value.is_whole:
            return facts.whole_shape(self.concrete(value), value.place, self)
        if type(value) is not ListProxy or not value.is_whole or value.recorder not in (self, self.owner):
            return value
        return whole_list(self.concrete(value), value.place, self)

    def method(self, array: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a method of an array."""
        self.check_used()
        attributes.check_method(name)
        args, kwargs = self.whole_arguments(args, kwargs)
        args, kwargs = with_named_out(getattr(numpy.ndarray, name, None), args, kwargs, is_method=True)
        args, kwargs = self._settled(args), self._settled(kwargs)
        if name == "tolist" and self.traces_facts and self.open:  # of which classes and depth, they decide
            for fact in ("ndim", "dtype"):
                self.guard(self.create(getattr, (self.argument(array), fact)), getattr(array.plain, fact))
        place = WRITING_METHODS.get(name)
        written = (array,) if place is not None and place(kwargs) else ()
        return self.record("call_method", name, (array, *args), kwargs, written)

    def _settled(self, nest: Any) -> Any:
        """Flags decide what a call gives, so a traced one is relied on."""
        if isinstance(nest, dict):
            return {key: bool(value) if type(value) is TracedBool else value for key, value in nest.items()}
        return tuple(bool(value) if type(value) is TracedBool else value for value in nest)

    def record(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        written: Iterable[Any] = (),
        form: OperatorForm | None = None,
    ) -> Any:
        if not self.open:
            return self.perform(target, args, kwargs)
        outs = kwargs.get("out")
        written = [*written, *(part for part in (outs if isinstance(outs, tuple) else (outs,)) if part is not None)]
        attributes.check_arguments(self, (args, kwargs), written)
        if numpy.geterr() != self.errors:
            raise cannot_follow("a setting of numpy.errstate that was made by means that the capture does not see")
        node_args, node_kwargs = self.argument(args), self.argument(kwargs) if kwargs else {}
        border = self._border(target, args, kwargs)
        for array in written:
            self._check_unlisted(array.plain)
            self.rollback.save(array.plain)
            self.folding.spoil(self.resolve(array.place))
        only_computes = not written and border is None and computes(target, args, kwargs)
        value = self.perform(target, args, kwargs, (node_args, node_kwargs) if only_computes else None)
        if only_computes and self._is_caught(target):
            node = self._succeeded(target, node_args, node_kwargs)
        else:
            errors = ARITHMETIC if self.traces_facts and is_arithmetic(target, args) else None
            node = self.create_node(op, target, node_args, node_kwargs, is_result=True, form=form, errors=errors)
        if border is not None:
            border.end()
        if not written and not self.bodies.open and self.folding.is_constant(node):
            self.folding.add(node, value if can_be_kept(value) else None)
        if varies(target, args, kwargs, self.traces_facts) or (self.traces_facts and gives_several(target, value)):
            guard_kind(self, value, node)
        if not isinstance(value, (numpy.ndarray, numpy.generic)) and any(map(facts.is_whole, leaves((args, kwargs)))):
            self.rely(Reliance.DTYPE)  # how many results there are may depend on it
        result = self._given_back(value, node, args, written)
        if written or not self.traces_facts:
            return result
        self.own_reliance[node] = own_reliance(target, args, kwargs)
        return relying(result, reliance_of(target, args, kwargs))

    def _is_caught(self, target: Any) -> bool:
        """Whether a call may fail because of what its arrays hold, and the program catches that, whatever it says."""
        may_fail = getattr(target, "__module__", "") == "numpy.linalg" and self.paths is not None
        frame = user_frame(1) if may_fail else None
        if frame is None or id(frame) == self.code.caller or may_see_error(frame):
            return False
        return is_tried(frame, self.code.executed, (numpy.linalg.LinAlgError,), self.module_stack.gate)

    def _succeeded(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        """The result of such a call; where it fails, which is a question, the program gets the error."""
        kind = numpy.linalg.LinAlgError
        both = self.create_node("call_function", succeeds, (kind, target, *args), kwargs, errors=NEVER)
        take = partial(self.create_node, "call_function", operator.getitem, kwargs={}, errors=NEVER)
        asked, found = take(args=(both, 0)), take(args=(both, 1), is_result=True)
        if not self.truth(asked, True, is_data=True, is_fixed=True):
            error = kind(f"{target.__name__} fails")
            self.error_notes.failed.append(error)
            raise error
        return found

    def _border(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpaqueCall | None:
        """What guards the state behind functions of the user's that NumPy will call; None if there is none."""
        functions = _functions_in((args, kwargs))
        if not functions:
            return None
        border = OpaqueCall(self, target, _ENDS)
        border.argument(tuple(functions))
        border.begin()
        return border

    def _check_unlisted(self, array: Any) -> None:
        if any(numpy.may_share_memory(array, listed) for listed in self.listed):
            raise CaptureError(
                "the program writes to an array that a loop walks, or that a function with a cache has given",
                where=where(),
                why="the items were taken out before; the cache would give the changed array the next time",
                fixes=("write to a copy of the array", "capture without dynamic=True"),
            )
        self.cached.check_written(array, numpy.may_share_memory)

    def _given_back(self, value: Any, node: Node, args: tuple[Any, ...], written: list[Any]) -> Any:
        """The result; what a call wrote to and gave back is the proxy that it was."""
        if type(value) is numpy.ndarray:
            for array in written:
                if array.plain is value:
                    return array
            for array in args if self.identity.of_objects else ():
                if is_traced(array) and isinstance(array.plain, numpy.ndarray):
                    same = self.create(operator.is_, (node, self.argument(array)))
                    self.guard(same, array.plain is value)
                    if array.plain is value:
                        return array
        return self.result(value, node)

    def whole(self, target: Any, args: Any, kwargs: Any, opaque: str, run: Callable[..., Any] | None = None) -> Any:
        """A call that stays one node, whatever is inside; it may write to any array that it is given. What the capture
        calls meanwhile is ``run``, if that is given."""
        self.check_used()
        self.check_opaque(target, opaque)
        attributes.check_arguments(self, (args, kwargs), ())
        for leaf in leaves((args, kwargs)):
            if isinstance(leaf, Traced) and type(leaf.plain) is numpy.ndarray:
                self._check_unlisted(leaf.plain)
                self.rollback.save(leaf.plain)
                self.folding.spoil(self.resolve(leaf.place))
        with self.streams.followed(), self.places.suspended(), self.state.suspended():
            border = OpaqueCall(self, target, _ENDS)
            node_args, node_kwargs = border.argument(args), border.keywords(kwargs)
            border.begin()
            plain_args, plain_kwargs = self.concrete((args, kwargs))
            containers = copies_of((plain_args, plain_kwargs))
            value = self.perform(run or target, plain_args, plain_kwargs)
            changed = changed_one(containers)
            if changed:
                name = target.__qualname__
                raise cannot_follow(f"a {changed} that {name}, one call of the graph, is given and changes,")
            node = self.create_node("call_function", target, node_args, node_kwargs, is_result=True)
            border.end()
        node.meta["opaque"] = opaque
        guard_kind(self, value, node)
        return self._given_back(value, node, args, [])

    def perform(
        self, target: Callable[..., Any] | str, args: tuple[Any, ...], kwargs: dict[str, Any], nodes: Any = None
    ) -> Any:
        """Make the call of a function, or of the method of this name, on plain values; an error is the user's. A
        program that catches it can be captured if the call, whose arguments are these ``nodes``, only computes."""
        args, kwargs = self.concrete(args), self.concrete(kwargs) if kwargs else {}
        with self.paused():
            try:
                if isinstance(target, str):
                    return getattr(args[0], target)(*args[1:], **kwargs)
                return target(*args, **kwargs)
            except CannotFollow:
                raise
            except Exception as error:
                self.note_failure(error, None if nodes is None else target, *(nodes or ()))
                self.raised = error
                raise

    # ---- where values leave --------------------------------------------------------------------------------------

    def check_used(self) -> None:
        """A proxy is used: not inside a call that stays whole, nor in another thread."""
        if not self.open:  # it was left somewhere, and is unchanged
            return
        if self.depth:
            raise cannot_follow("a value of the program inside a function that is handed to NumPy, or stays one call,")
        if threading.get_ident() != self._thread:
            raise cannot_follow("a value of the program in another thread")

    def attribute(self, traced: Any, name: str) -> Any:
        """An attribute of what a proxy stands for."""
        return attributes.attribute(self, traced, name)

    def set_attribute(self, array: Any, name: str, value: Any) -> None:
        """Setting an attribute of an array."""
        attributes.set_attribute(self, array, name, value)

    def escape(self, traced: Any, dtype: Any) -> Any:
        """C code, or code that is not recorded, wants the data."""
        self.check_used()
        if isinstance(traced, TracedArray) and self.open:
            raise cannot_follow("an array whose data leave NumPy's functions")
        self.reveal(traced)
        return _asarray(traced.plain, dtype)

    def reveal(self, traced: Any) -> None:
        """The program relies on what a number is."""
        if not self.open:
            return
        self.check_used()
        self.show_class(traced)
        if isinstance(traced, TracedArray):
            raise cannot_follow("an array that is turned into text or bytes")
        if isinstance(traced, (TracedPython, facts.TracedDtype)):
            self.guard(traced.place, traced.plain)
        else:
            self.guard(self.create_node("call_method", "item", (self.argument(traced),), {}), traced.plain.item())

    def forced(self, function: Callable[..., Any], traced: Any) -> Any:
        """Python wants a plain number: the capture relies on it from now on."""
        if not self.open:
            return function(traced.plain)
        self.check_used()
        value = self.perform(function, (traced,), {})
        is_it = isinstance(traced, TracedPython) and type(value) is type(traced.plain)
        self.guard(traced.place if is_it else self.create(function, (self.argument(traced),)), value)
        return value

    def asked(self, traced: Any) -> bool:
        """Python asks whether a value is true: only that is relied on."""
        if not self.open:
            return bool(traced.plain)
        self.check_used()
        if not isinstance(traced, TracedArray):
            self.rely_on_memory(traced)  # an array may have no truth, even if nothing comes of it
        answer = self.perform(bool, (traced,), {})
        asks_data = self.frees(self.resolve(traced.place))
        return self.truth(traced.place, answer, asks_data, not isinstance(traced, TracedArray))

    def frees(self, node: Node) -> bool:
        """Whether the graph shall hold for other values of what the program asks about: it comes from data, or it is
        the user's own code that asks."""
        if self.options.dynamic or is_data(node, self):
            return True
        frame = user_frame(2)
        return not self.options.refuses_questions and (frame is None or not is_installed(frame.f_code))

    def guard(self, place: Any, answer: Any, why: str = "") -> None:
        """Note that the program relied on a value; if a loop does on a whole number, it may become one of the graph."""
        node = self.resolve(place)
        known = (node, (type(answer), answer)) in self.guarded
        if type(answer) is int and not known and self.paths is not None and self.open:
            before_guard(self, self.options.dynamic or is_data(node, self))
        super().guard(node, answer, why)


class _Lazy:
    """The place of an array of the surroundings, whose node is made when the program uses the array; else pending."""

    __slots__ = ("recorder", "value")

    def __init__(self, recorder: NumpyRecorder, value: Any) -> None:
        self.recorder = recorder
        self.value = value

    @property
    def node(self) -> Node:
        """The node that reads the constant."""
        return Recorder.node_of(self.recorder, self.value)


def is_of_class(node: Node, kind: type) -> bool:
    """Whether a node gives a number of this class of Python's, whatever it is given."""
    return node.target is kind or (kind is int and (node.target is len or attributes.is_size(node)))


def control_of_result(node: Node) -> bool:
    """Whether a value is what a branch or loop gives, or one of several that it gives."""
    made = node.args[0] if node.target is operator.getitem else node
    return isinstance(made, Node) and is_control(made)


def can_be_kept(value: Any) -> bool:
    """Whether a result may be kept for all calls: an array of moderate size."""
    if type(value) is numpy.ndarray:
        return not value.dtype.hasobject and value.size <= _MOST_KEPT
    return isinstance(value, numpy.generic)


def _functions_in(values: Any) -> list[Any]:
    """The functions of the user's among arguments, in lists and tuples too."""
    return [one for one in leaves(values) if type(one) in (FunctionType, MethodType)]
