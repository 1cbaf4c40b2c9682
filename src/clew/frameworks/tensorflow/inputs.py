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
from clew.capture.recording.list_proxies import StateListProxy
from clew.capture.recording.outputs import Outputs
from clew.capture.recording.recorder import Pending, Recorder
from clew.capture.state.containers import SIMPLE, attributes_of, follows
from clew.errors import CaptureError
from clew.frameworks.tensorflow import autograph
from clew.frameworks.tensorflow.importer import Importer
from clew.frameworks.tensorflow.programs import is_part
from clew.frameworks.tensorflow.scalars import ALL, Sizes, Traced, TracedShape, dtype_of
from clew.frameworks.tensorflow.tracing import Tracing
from clew.frameworks.tensorflow.types import Resource, Value, variable_name
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
        maker = self.importer.notes.makers.get(id(variable))
        if maker is not None:
            return Resource(maker, variable)
        return Resource(self.importer.root.path_of(variable, self._name(variable)), variable)

    def _name(self, variable: Any) -> str:
        return self.names.get(id(variable)) or variable_name(variable)


class TensorInputs(Inputs):
    """Enters arguments: a symbolic tensor stands for each tensor, a traced number for each number.

    ``known`` are the arguments, and their sizes, that the program has to know when it is traced.
    """

    def __init__(
        self, recorder: TensorRecorder, tracing: Tracing, known: frozenset[tuple[int, int]], static: frozenset[str]
    ) -> None:
        super().__init__(recorder, lambda value, place: value, static)
        self.plain_kinds = (bool,)
        self.tracing = tracing
        self.known = known
        self.converts = False
        self.heeds_specs = True
        """Whether sizes that a spec names are all that the capture shall hold for."""
        self.count = 0
        self.symbols: list[tuple[Any, Any]] = []
        self.numbers: list[tuple[int, Any, Any]] = []
        self._later: list[Callable[[], None]] = []
        self.given_arrays: list[tuple[Any, Any]] = []
        """Arrays of NumPy among the arguments, each with a copy."""

    def enter(self, value: Any, place: Any, name: str) -> Any:
        """The value as the program shall see it."""
        if isinstance(value, tf.Variable):
            self.recorder.track(value, place)
            self.arrays.append((value, place))
            return value
        if isinstance(value, (tf.Tensor, tf.TensorSpec)):
            symbol = self._symbol(value, place, name)
            self.arrays.append((tf.TensorSpec(symbol.shape, symbol.dtype), place))
            return symbol
        if isinstance(value, Composite):
            return self._composite(value, place, name)
        if isinstance(value, (numpy.ndarray, numpy.generic)):
            return self._numpy(value, place, name)
        if isinstance(value, (tf.DType, tf.TensorShape)):
            self.checks.append((require, place, value))
            return value
        if type(value) in (int, float) and self.takes_number(value, name):
            return self._number(value, place, name)
        return super().enter(value, place, name)

    def _number(self, value: Any, place: Any, name: str) -> Any:
        """A number is traced, unless the program has to know it."""
        key = self._key()
        if (key, ALL) in self.known:
            return self.constant(value, place, name)
        symbol = self._placeholder(dtype_of(value), [], name, key)
        self.tracing.notes.numbers.add(autograph.key_of(symbol))
        self.symbols.append((symbol, place))
        self.numbers.append((key, place, value))
        return Traced(self.tracing, symbol, value)

    def history(self, value: list[Any], place: Any, name: str) -> StateListProxy:
        """A list of the state; its length is a number of the graph."""
        made = super().history(value, place, name)
        symbol = tf.compat.v1.placeholder(dtype_of(1), [])
        self.tracing.notes.numbers.add(autograph.key_of(symbol))
        self.symbols.append((symbol, Pending(len, (place,))))
        self.tracing.lengths[id(made)] = (made, Traced(self.tracing, symbol, 2))
        return made

    def _key(self) -> int:
        self.count += 1
        return self.count - 1

    def _placeholder(self, dtype: Any, shape: Any, name: str, key: int) -> Any:
        label = name.strip("_") if name.isidentifier() else ""
        made = tf.compat.v1.placeholder(dtype, shape, name=label or None)
        self.tracing.entered[made.name] = key
        return made

    def write_checks(self) -> list[Node]:
        """Put the guards of nests into the graph, and after them those of what was found in the nests."""
        written = super().write_checks()
        for write in self._later:
            write()
        self._later.clear()
        return written

    def _symbol(self, value: Any, place: Any, name: str) -> Any:
        """A tensor of the same dtype and rank; sizes are open unless the program has to know them."""
        key, shape = self._key(), value.shape
        if shape.rank is not None and not (isinstance(value, tf.TensorSpec) and self.heeds_specs):
            known = [(key, ALL) in self.known or (key, axis) in self.known for axis in range(shape.rank)]
            shape = [size if is_known else None for size, is_known in zip(shape, known, strict=True)]
        symbol = self._placeholder(value.dtype, shape, name, key)
        self.symbols.append((symbol, place))
        return symbol

    def _composite(self, value: Any, place: Any, name: str) -> Any:
        """A ragged or sparse tensor by its parts."""
        key = self._key()
        parts = tf.nest.flatten(value, expand_composites=True)
        is_known = (key, ALL) in self.known
        shapes = [part.shape if is_known else [None] * part.shape.rank for part in parts]
        symbols = [self._placeholder(part.dtype, shape, name, key) for part, shape in zip(parts, shapes, strict=True)]
        spec = spec_of(value)

        def write() -> None:
            node = self.recorder.resolve(place)
            found = self.recorder.create(spec_of, (node,))
            self.recorder.create(require, (found, spec, f"{expression_of(node)} is a {spec}"))
            flat = self.recorder.create(tf.nest.flatten, (node,), {"expand_composites": True})
            for number, symbol in enumerate(symbols):
                item = self.recorder.create(operator.getitem, (flat, number))
                self.arrays.append((tf.TensorSpec(symbol.shape, symbol.dtype), item))
                self.symbols.append((symbol, item))

        self._later.append(write)
        kind = value if is_known else _open_spec(value)
        return tf.nest.pack_sequence_as(kind, symbols, expand_composites=True)

    def _numpy(self, value: Any, place: Any, name: str) -> Any:
        """An array of NumPy: a tensor for functions that make one of it, otherwise a value that must be the same."""
        if self.converts:
            found = Pending(tf.convert_to_tensor, (place,))
            symbol = self._symbol(tf.convert_to_tensor(value), found, name)
            self.arrays.append((tf.TensorSpec(symbol.shape, symbol.dtype), found))
            return symbol

        def write() -> None:
            node = self.recorder.resolve(place)
            text = f"{expression_of(node)} is the same array of NumPy"
            found = self.recorder.create(contents_of, (node,))
            self.recorder.create(require, (found, contents_of(value), text))

        self._later.append(write)
        if isinstance(value, numpy.ndarray) and value.flags.writeable:
            self.given_arrays.append((value, value.copy()))
        return value

    def is_array_written(self) -> bool:
        """Whether the program has written to an array of NumPy that it was given."""
        return any(contents_of(array) != contents_of(copy) for array, copy in self.given_arrays)

    def put_back(self) -> None:
        """Let all containers and arrays hold what they held."""
        super().put_back()
        for array, copy in self.given_arrays if self.is_array_written() else ():
            array[...] = copy


def _open_spec(value: Any) -> Any:
    """What kind of composite tensor a value is, with all sizes open."""
    spec: Any = tf.type_spec_from_value(value)
    if isinstance(value, tf.RaggedTensor):
        sizes = [None] * value.shape.rank
        return tf.RaggedTensorSpec(sizes, value.dtype, value.ragged_rank, value.row_splits.dtype)
    return tf.SparseTensorSpec([None] * value.shape.rank, value.dtype) if isinstance(value, tf.SparseTensor) else spec


@pure
def spec_of(value: Any) -> str:
    """What kind of tensor a value is, all but its sizes."""
    return str(_open_spec(value)) if isinstance(value, Composite) else f"a {type(value).__name__}"


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
    """Writes what a program gives back."""

    def of(self, value: Any) -> Any:
        """What the output node holds for a value."""
        if isinstance(value, Traced):
            return self.recorder.argument(value.tensor)
        if isinstance(value, TracedShape):
            return self.recorder.create(getattr, (self.recorder.argument(value.tensor), "shape"))
        if isinstance(value, tf.RaggedTensor):
            parts: list[Any] = [value.flat_values, *value.nested_row_splits]
        elif isinstance(value, tf.SparseTensor):
            parts = [value.indices, value.values, value.dense_shape]
        elif isinstance(value, tf.IndexedSlices):
            parts = [value.values, value.indices, *([] if value.dense_shape is None else [value.dense_shape])]
        elif isinstance(value, (tf.DType, tf.TensorShape, numpy.generic)):
            return value
        elif isinstance(value, tuple) and type(value).__module__.startswith(_GENERATED):
            kind = f"{type(value).__module__.removeprefix(_GENERATED)}.{type(value).__name__}"
            return self.recorder.create(named, (kind, *map(self.of, value)))
        elif isinstance(value, Sizes):
            return self.recorder.create(tf.TensorShape, ([self.of(size) for size in value],))
        elif isinstance(value, tf.TensorArray) or is_part(value) or type(value).__module__.startswith("tensorflow."):
            if self.recorder.is_array(value):
                return super().of(value)
            raise CaptureError(f"the result holds a {type(value).__name__}", fixes=("return the tensors in it",))
        else:
            return super().of(value)
        return self.recorder.create(packed, (type(value), *map(super().of, parts)))


def tensors_in(value: Any, depth: int = 8) -> Iterator[Any]:
    """All tensors in a nest, in composite tensors and in objects too."""
    if isinstance(value, Traced):
        yield value.tensor
    elif isinstance(value, tf.Tensor):
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
    made = {id(variable) for variable in importer.notes.made.values()}
    for outer, inner in captures:
        variable = by_handle.get(id(outer))
        if id(variable) in made:
            continue
        if variable is not None:
            found[inner.name] = recorder.variable(variable)
        elif outer.dtype == tf.resource:
            found[inner.name] = Resource(importer.root.path_of(outer, "_resource"), outer)
        else:
            node = importer.attribute(importer.root.path_of(outer, "_constant"))
            found[inner.name] = importer.typed(node, outer)
    return found
