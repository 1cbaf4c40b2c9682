"""Arguments on their way into TensorFlow's tracing: symbolic tensors stand where the example has arrays.

``TensorInputs`` enters nests as other captures do, in place and with guards on all that is no array. ``TensorRecorder``
knows which value of TensorFlow is which node; it is asked when the result is written.
"""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy
import tensorflow as tf

from clew.capture.guards.notes import expression_of, require
from clew.capture.recording.inputs import Inputs
from clew.capture.recording.outputs import Outputs
from clew.capture.recording.recorder import Pending, Recorder
from clew.capture.state.containers import SIMPLE, attributes_of, follows
from clew.errors import CaptureError
from clew.frameworks.tensorflow import autograph
from clew.frameworks.tensorflow.importer import Importer, Notes
from clew.frameworks.tensorflow.programs import is_part
from clew.frameworks.tensorflow.values import Resource, Value, variable_name
from clew.ir.effects import pure
from clew.ir.node import Node

_SEVERAL = (list, tuple, set, frozenset, deque)
Composite = (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)


class TensorRecorder(Recorder):
    """Ties values to nodes. The nodes themselves are made by an importer."""

    importer: Importer

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[int, str] = {}

    def is_array(self, value: Any) -> bool:
        """True for tensors, specs of tensors and variables."""
        return isinstance(value, (tf.Tensor, tf.TensorSpec, tf.Variable))

    def is_end(self, value: Any) -> bool:
        """True for what is never looked into."""
        return self.is_array(value) or is_part(value)

    def argument(self, value: Any) -> Any:
        """What the output node holds for a value of TensorFlow."""
        if isinstance(value, tf.Variable):
            return self.importer.node(self.variable(value))
        if isinstance(value, tf.Tensor):
            if hasattr(value, "graph"):
                return self.importer.node(self.importer.value(value))
            return self.importer.attribute(self.importer.root.path_of(value, "_constant"))
        return value

    def variable(self, variable: Any) -> Resource:
        """A variable: the argument that it is, or an attribute of the root."""
        known = self.nodes.get(id(variable))
        if known is not None and known[0]() is variable:
            return Resource(self.resolve(known[1]), variable)
        return Resource(self.importer.root.path_of(variable, self._name(variable)), variable)

    def _name(self, variable: Any) -> str:
        return self.names.get(id(variable)) or variable_name(variable)


class TensorInputs(Inputs):
    """Enters arguments; ``make`` gives the symbolic tensor for an array, which then belongs to ``place``."""

    def __init__(
        self, recorder: TensorRecorder, make: Callable[[Any, str], Any], converts: bool, dynamic: bool
    ) -> None:
        super().__init__(recorder, lambda value, place: value, frozenset())
        self.plain_kinds = (int, float, bool)
        self.make = make
        self.converts = converts
        self.dynamic = dynamic
        self.symbols: list[tuple[Any, Any]] = []
        self._later: list[Callable[[], None]] = []

    def enter(self, value: Any, place: Any, name: str) -> Any:
        """The value as the program shall see it."""
        if isinstance(value, tf.Variable):
            self.recorder.track(value, place)
            self.arrays.append((value, place))
            return value
        if isinstance(value, (tf.Tensor, tf.TensorSpec)):
            if self.dynamic and value.shape.rank is not None:
                value = tf.TensorSpec([None] * value.shape.rank, value.dtype)
            self.arrays.append((value, place))
            return self._symbol(value, place, name)
        if isinstance(value, Composite):
            return self._composite(value, place, name)
        if isinstance(value, (numpy.ndarray, numpy.generic)):
            return self._numpy(value, place, name)
        if isinstance(value, (tf.DType, tf.TensorShape)):
            self.checks.append((require, place, value))
            return value
        return super().enter(value, place, name)

    def write_checks(self) -> list[Node]:
        """Put the guards of nests into the graph, and after them those of what was found in the nests."""
        written = super().write_checks()
        for write in self._later:
            write()
        self._later.clear()
        return written

    def _symbol(self, value: Any, place: Any, name: str) -> Any:
        symbol = self.make(value, name)
        self.symbols.append((symbol, place))
        return symbol

    def _composite(self, value: Any, place: Any, name: str) -> Any:
        """A ragged or sparse tensor by its parts."""
        parts = tf.nest.flatten(value, expand_composites=True)
        symbols = [self.make(part, name) for part in parts]
        spec = str(tf.type_spec_from_value(value))

        def write() -> None:
            node = self.recorder.resolve(place)
            found = self.recorder.create(spec_of, (node,))
            self.recorder.create(require, (found, spec, f"{expression_of(node)} is {spec}"))
            flat = self.recorder.create(tf.nest.flatten, (node,), {"expand_composites": True})
            for number, (part, symbol) in enumerate(zip(parts, symbols, strict=True)):
                item = self.recorder.create(operator.getitem, (flat, number))
                self.arrays.append((part, item))
                self.symbols.append((symbol, item))

        self._later.append(write)
        return tf.nest.pack_sequence_as(value, symbols, expand_composites=True)

    def _numpy(self, value: Any, place: Any, name: str) -> Any:
        """An array of NumPy: a tensor for functions that make one of it, otherwise a value that must be the same."""
        if self.converts:
            tensor = tf.convert_to_tensor(value)
            found = Pending(tf.convert_to_tensor, (place,))
            self.arrays.append((tensor, found))
            return self._symbol(tensor, found, name)

        def write() -> None:
            node = self.recorder.resolve(place)
            text = f"{expression_of(node)} is the same array of NumPy"
            found = self.recorder.create(contents_of, (node,))
            self.recorder.create(require, (found, contents_of(value), text))

        self._later.append(write)
        return value


@pure
def spec_of(value: Any) -> str:
    """What kind of tensor a value is, shapes and dtypes included."""
    return str(tf.type_spec_from_value(value)) if isinstance(value, Composite) else f"a {type(value).__name__}"


@pure
def contents_of(value: Any) -> tuple[str, str, tuple[int, ...], bytes]:
    """All that tells two arrays of NumPy apart."""
    array = numpy.asarray(value)
    return type(value).__name__, str(array.dtype), array.shape, array.tobytes()


@pure
def packed(kind: type, *parts: Any) -> Any:
    """A ragged or sparse tensor, or slices, of its parts."""
    if kind is tf.RaggedTensor:
        values, *splits = parts
        return cast(Any, tf.RaggedTensor).from_nested_row_splits(values, splits, validate=False)
    if kind is tf.SparseTensor:
        return tf.SparseTensor(*parts)
    return tf.IndexedSlices(*parts)


_GENERATED = "tensorflow.python.ops.gen_"


@pure
def named(kind: str, *parts: Any) -> Any:
    """The named tuple that an operation of TensorFlow gives: ``linalg_ops.Qr``."""
    module, _, name = kind.partition(".")
    return getattr(sys.modules[_GENERATED + module], f"_{name}Output")(*parts)


class TensorOutputs(Outputs):
    """Writes what a program gives back; ``notes`` tell which tensors are numbers of Python in the original."""

    notes: Notes | None = None

    def of(self, value: Any) -> Any:
        """What the output node holds for a value."""
        if isinstance(value, tf.RaggedTensor):
            parts: list[Any] = [value.flat_values, *value.nested_row_splits]
        elif isinstance(value, tf.SparseTensor):
            parts = [value.indices, value.values, value.dense_shape]
        elif isinstance(value, tf.IndexedSlices):
            parts = [value.values, value.indices, *([] if value.dense_shape is None else [value.dense_shape])]
        elif isinstance(value, tf.Tensor) and hasattr(value, "graph") and self._is_number(value):
            if value.dtype.is_floating:
                raise CaptureError(
                    "the result is a float of Python that a branch or loop over tensors changes",
                    why="in the graph it is a tensor of float32, which is less exact",
                    fixes=("start it as a tensor: tf.constant(...)",),
                )
            return self.recorder.create(autograph.number, (super().of(value),))
        elif isinstance(value, tf.Tensor) and self._is_mixed(value):
            raise CaptureError(
                "the result is a number of Python on one side of a branch, and a tensor on another",
                why="in the graph it is a tensor on both",
                fixes=("make it a tensor on both sides: tf.constant(...)",),
            )
        elif isinstance(value, (tf.DType, tf.TensorShape, numpy.generic)):
            return value
        elif isinstance(value, tuple) and type(value).__module__.startswith(_GENERATED):
            kind = f"{type(value).__module__.removeprefix(_GENERATED)}.{type(value).__name__}"
            return self.recorder.create(named, (kind, *map(self.of, value)))
        elif isinstance(value, tf.TensorArray) or is_part(value) or type(value).__module__.startswith("tensorflow."):
            if self.recorder.is_array(value):
                return super().of(value)
            raise CaptureError(f"the result holds a {type(value).__name__}", fixes=("return the tensors in it",))
        else:
            return super().of(value)
        return self.recorder.create(packed, (type(value), *map(super().of, parts)))

    def _is_number(self, tensor: Any) -> bool:
        return self.notes is not None and autograph.stands_for_number(self.notes, tensor)

    def _is_mixed(self, tensor: Any) -> bool:
        is_symbolic = self.notes is not None and hasattr(tensor, "graph")
        return is_symbolic and autograph.key_of(tensor) in self.notes.mixed  # type: ignore[union-attr]


def tensors_in(value: Any, depth: int = 8) -> Iterator[Any]:
    """All tensors in a nest, in composite tensors and in objects too."""
    if isinstance(value, tf.Tensor):
        yield value
    elif isinstance(value, Composite):
        yield from tf.nest.flatten(value, expand_composites=True)
    elif depth and not isinstance(value, (*SIMPLE, type)):
        inner: Any = value.values() if isinstance(value, dict) else value if isinstance(value, _SEVERAL) else ()
        if follows(value) or dataclasses.is_dataclass(value):
            inner = [*inner, *attributes_of(value).values()]
        for item in inner:
            yield from tensors_in(item, depth - 1)


def handles(importer: Importer, captures: Any, recorder: TensorRecorder, by_handle: dict[int, Any]) -> dict[str, Value]:
    """What a traced graph has taken from outside: variables, other resources, and tensors."""
    found: dict[str, Value] = {}
    for outer, inner in captures:
        variable = by_handle.get(id(outer))
        if variable is not None:
            found[inner.name] = recorder.variable(variable)
        elif outer.dtype == tf.resource:
            found[inner.name] = Resource(importer.root.path_of(outer, "_resource"), outer)
        else:
            node = importer.attribute(importer.root.path_of(outer, "_constant"))
            found[inner.name] = importer.typed(node, outer)
    return found
