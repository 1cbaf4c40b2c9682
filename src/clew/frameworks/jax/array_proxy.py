"""Tracers of JAX that hold real arrays: what the program calls on them is recorded, and JAX takes them as its own.

A tracer holds an array of the example (inside of a transform of JAX, the tracer that JAX has put there) and its node.
Operators, methods and facts go to the recorder. JAX's own code, where no public name is in between, takes it for a
tracer of the ``RecordingTrace``, which records primitives; what it reads of the abstract value is guarded.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax

from clew.capture.recording.list_proxies import ListProxy, StateListProxy, TupleProxy
from clew.frameworks.jax import private
from clew.frameworks.numpy.array_proxy import Items, Reliance, Traced
from clew.frameworks.numpy.facts import TracedShape

if TYPE_CHECKING:
    from clew.frameworks.jax.recorder import JaxRecorder


class RecordingTrace(private.Trace):  # type: ignore[misc]
    """The trace that is current while the program runs; ``parent`` computes."""

    __slots__ = ("parent", "recorder")

    def __init__(self, recorder: JaxRecorder, parent: Any) -> None:
        super().__init__()
        self.recorder = recorder
        self.parent = parent

    def stage_value(self, val: Any) -> Any:
        """A value that JAX's own code makes a value of this trace: it is one as it is."""
        return val

    def process_primitive(self, primitive: Any, tracers: Any, params: Any, /) -> Any:
        """A primitive that no public function stands before."""
        return self.recorder.primitive(self, primitive, tracers, params)

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, *, symbolic_zeros: Any
    ) -> Any:
        """A function with a rule of derivatives that was reached by JAX's own code."""
        del jvp, symbolic_zeros
        return self.recorder.primitive_with_rules(self, primitive, fun, tracers)

    def process_custom_vjp_call(
        self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, *, out_trees: Any, symbolic_zeros: Any
    ) -> Any:
        """The same with rules for gradients."""
        del fwd, bwd, out_trees, symbolic_zeros
        return self.recorder.primitive_with_rules(self, primitive, fun, tracers)


class TracedJaxArray(Traced, private.Tracer):  # type: ignore[misc]
    """A proxy of an array of JAX."""

    __slots__ = ("place", "plain", "recorder", "reliance")
    recorder: JaxRecorder
    has_items = True
    dimension_as_value = None
    __jax_array__ = None

    @property
    def aval(self) -> Any:  # type: ignore[override]
        """The abstract value, which JAX's own code reads: what it says is relied on."""
        self.recorder.rely_on_kind(self)
        return private.aval_of(self.plain)

    def _is_traced_array(self) -> bool:
        return True

    def to_concrete_value(self) -> Any:
        """The value, if JAX's own code wants it and it is a single number: then it is relied on."""
        if self.plain.ndim or not self.recorder.open:
            return None
        self.recorder.reveal(self)
        return self.plain

    def full_lower(self) -> Any:
        return self

    def get_referent(self) -> Any:
        return self

    def __getitem__(self, key: Any) -> Any:
        return self.recorder.item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        operator.setitem(self.plain, key, value)  # which raises the error that the program would get

    def __len__(self) -> int:
        return int(self.recorder.forced(len, self))

    def __iter__(self) -> Iterator[Any]:
        return Items(self)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self.plain)  # which raises the error that the program would get

    def __reversed__(self) -> Iterator[Any]:
        return iter(self[::-1])

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        return self.recorder.escape(self, None)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:  # type: ignore[override]
        return self.recorder.escape(self, dtype)


class TracedJaxShape(TracedShape):
    """The shape of an array of JAX: whoever looks into it relies on the ranks of all arrays."""

    def fix_length(self) -> tuple[Any, ...]:
        """Rely on ranks from now on."""
        if self.is_whole:
            self.recorder.rely(Reliance.RANK)
            self.fixed = tuple.__getitem__(self, slice(None))
        return self.plain

    def _reach(self, place: int) -> None:
        self.recorder.rely(Reliance.RANK)


def _parts_of(shape: TracedJaxShape) -> tuple[Any, None]:
    return shape.fix_length(), None


def _of_parts(_: None, sizes: Any) -> Any:
    return tuple(sizes)


jax.tree_util.register_pytree_node(TracedJaxShape, _parts_of, _of_parts)  # functions of nests take it for a tuple


def fixed_shapes(nest: Any) -> Any:
    """A nest of arguments with plain tuples and lists in the place of shapes and lists of any length."""
    kind = type(nest)
    if kind is TracedJaxShape:
        return tuple(nest.fix_length())
    if kind in (tuple, list):
        return kind(map(fixed_shapes, nest))
    return {key: fixed_shapes(value) for key, value in nest.items()} if kind is dict else without_proxies(nest)


PROXIES = (ListProxy, StateListProxy, TupleProxy)
"""Proxies of lists and tuples, which JAX takes for leaves."""


def without_proxies(nest: Any) -> Any:
    """A nest with lists and tuples in the place of their proxies."""
    if not any(type(leaf) in PROXIES for leaf in jax.tree_util.tree_leaves(nest)):
        return nest

    def plain(leaf: Any) -> Any:
        if type(leaf) not in PROXIES:
            return leaf
        return (tuple if type(leaf) is TupleProxy else list)(map(without_proxies, leaf))

    return jax.tree_util.tree_map(plain, nest)


def _read(name: str) -> property:
    return property(lambda self: self.recorder.attribute(self, name))


_OWN = frozenset({*vars(TracedJaxArray), "recorder", "has_items", "plain", "place", "relied_on"})
for _name in dir(private.Tracer):
    if not _name.startswith("_") and _name not in _OWN:
        setattr(TracedJaxArray, _name, _read(_name))


class NativeTracer(private.Tracer):  # type: ignore[misc]
    """The same value as JAX's own code takes it, with JAX's own operators; for code that runs under another trace."""

    __slots__ = ("traced",)

    def __init__(self, traced: TracedJaxArray) -> None:
        self._trace = traced._trace
        self.traced = traced

    @property
    def aval(self) -> Any:  # type: ignore[override]
        """The abstract value; what it says is relied on."""
        return self.traced.aval

    def to_concrete_value(self) -> Any:
        """The value of a single number, which is relied on."""
        return self.traced.to_concrete_value()


def traced_in(value: Any) -> Any:
    """The proxy that a tracer of ours is; None for all other values."""
    kind = type(value)
    return value if kind is TracedJaxArray else value.traced if kind is NativeTracer else None
