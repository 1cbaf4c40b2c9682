"""From a graph of TensorFlow to one of Clew: each operation becomes a readable call, in program order.

A function graph and the values of its inputs come in; nodes go into a graph of Clew. Operations keep the order in which
the program made them, so effects keep theirs. A constant is written where it is used. Variables are attributes of the
root. What comes out runs eagerly, operation by operation, as the original does.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from clew.errors import CaptureError
from clew.frameworks.tensorflow import control_flow, random_numbers, readable_calls
from clew.frameworks.tensorflow.effects import KIND, UNASKED
from clew.frameworks.tensorflow.operations import (
    PYTHON_KINDS,
    Call,
    length_of,
    parameter_name,
    python_function,
    raw_function,
    variable_access,
)
from clew.frameworks.tensorflow.scalars import TOKEN, Operand, PythonCall, itself, method_of, numpy_of, size_of
from clew.frameworks.tensorflow.types import VARIABLE, Literal, Number, Resource, Root, Value, array_type, literal_of
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.source import SourceLine, is_hidden_file

_SKIPPED = frozenset({"NoOp", "ControlTrigger"})
_PASSING = frozenset({"Identity", "PreventGradient", "PlaceholderWithDefault"})


@dataclass
class Region:
    """The operations that one call of a function with a gradient of its own has made, to be one call again."""

    start: int
    end: int
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


@dataclass
class Notes:
    """What was seen while the graph of TensorFlow was made, and does not stand in it."""

    regions: dict[int, list[Region]] = field(default_factory=dict)
    """By the id of the graph."""
    seeds: list[Any] = field(default_factory=list)
    """The seeds that the program itself gave to its random operations; each operation names its place here."""
    graphs: list[Any] = field(default_factory=list)
    """The graphs whose ids those are, so that they stay."""
    names: dict[tuple[int, str], str] = field(default_factory=dict)
    """The program's own variables, by graph and tensor."""
    python_calls: list[PythonCall] = field(default_factory=list)
    """Calls of Python, which operations of the graph name by their places here."""
    made: dict[int, Any] = field(default_factory=dict)
    """The variables that stand for those that the program makes, by the identity of the call that makes them."""
    makers: dict[int, Node] = field(default_factory=dict)
    """The nodes that make those, by the identity of the variable."""
    numbers: set[tuple[int, str]] = field(default_factory=set)
    """Tensors that are numbers of Python, or may be, when the graph runs."""
    def python_call_of(self, operation: Any) -> PythonCall | None:
        """The call of Python that an operation names."""
        if operation.type != "PyFuncStateless":
            return None
        token = operation.get_attr("token").decode()
        return self.python_calls[int(token.removeprefix(TOKEN))] if token.startswith(TOKEN) else None

    fixed_streams: bool = False
    """Whether random numbers are drawn by kernels that keep a stream of their own, as in a ``tf.function``."""


class Importer:
    """Imports one function graph into one graph of Clew; ``inner`` makes those for bodies."""

    def __init__(self, function_graph: Any, graph: Graph, root: Root, notes: Notes, wanted: Iterable[str]) -> None:
        self.function_graph = function_graph
        self.graph = graph
        self.root = root
        self.notes = notes
        self.wanted = set(wanted)
        self.values: dict[str, Value] = {}
        self.source: SourceLine | None = None
        self.is_function = notes.fixed_streams
        self._attributes: dict[str, Node] = {}
        self._constants: dict[int, tuple[Node, Literal]] = {}

    def inner(self, function_graph: Any, graph: Graph) -> Importer:
        """An importer for the body of a branch, a loop or a function."""
        wanted = [tensor.name for tensor in function_graph.outputs]
        made = Importer(function_graph, graph, self.root, self.notes, wanted)
        made.is_function, made.source = self.is_function, self.source
        if graph is self.graph:  # the body goes in line: what is known of this graph holds there too
            made._attributes, made._constants = self._attributes, self._constants
        return made

    def run(self, operations: Iterable[Any] | None = None) -> None:
        """Import all operations, or these."""
        chosen = None if operations is None else {one.name for one in operations}
        everything = list(self.function_graph.get_operations())
        places = {one.name: place for place, one in enumerate(everything)}
        regions = {region.end: region for region in self.notes.regions.get(id(self.function_graph), ())}
        hidden = {place for region in regions.values() for place in range(region.start, region.end)}
        for one in in_order(everything):
            place = places[one.name]
            if place not in hidden and (chosen is None or one.name in chosen):
                self._import(one)
            if place + 1 in regions:
                self._region(regions[place + 1], everything)

    # ---- values --------------------------------------------------------------------------------------------------

    def value(self, tensor: Any) -> Value:
        """What a symbolic tensor of this graph is here."""
        found = self.values.get(tensor.name)
        if found is None:
            raise CaptureError(f"the tensor {tensor.name} comes from no operation of this graph")
        return found

    def node(self, value: Value) -> Node:
        """A node that gives a value, made now if need be."""
        if isinstance(value, Node):
            return value
        if isinstance(value, Resource):
            return self.resource(value)
        if isinstance(value, Number):
            return self.call(type(value.value), (value.value,))
        known = self._constants.get(id(value))
        if known is None:
            known = self._constants[id(value)] = (self._constant(value), value)
        return known[0]

    def handed(self, value: Value) -> Any:
        """A value as branches and loops hand it on."""
        return value.value if isinstance(value, Number) else self.node(value)

    def argument(self, value: Any) -> Any:
        """A value as an argument of a call that makes tensors of plain values by itself."""
        if isinstance(value, list):
            return [self.argument(item) for item in value]
        if isinstance(value, Literal) and value.has_default_dtype:
            return value.plain()
        return self.handle(value) if isinstance(value, Resource) else self.node(value)

    def _constant(self, value: Literal) -> Node:
        if not value.is_small:
            tensor = tf.constant(value.array, dtype=value.dtype)
            return self.typed(self.attribute(self.root.path_of(tensor, "_constant")), tensor)
        options: dict[str, Any] = {} if value.has_default_dtype else {"dtype": value.dtype}
        if not value.array.size:
            options["shape"] = list(value.array.shape)
        node = self.call(tf.constant, (value.plain(),), options)
        node.value_type = array_type(value.dtype, tf.TensorShape(value.array.shape))
        return node

    def attribute(self, path: str) -> Node:
        """A node that reads an attribute of the root, one in each graph."""
        node = self._attributes.get(path)
        if node is None:
            node = self._attributes[path] = self.graph.create_node("get_attr", path, (), {})
            node.source = self.source
        return node

    def resource(self, value: Resource) -> Node:
        """A node that gives a variable, or the handle of another resource."""
        node = self.attribute(value.place) if isinstance(value.place, str) else value.place
        if value.is_variable:
            node.value_type = VARIABLE
        return node

    def handle(self, value: Resource) -> Node:
        """A node that gives the handle of a resource."""
        node = self.resource(value)
        return self.call(getattr, (node, "handle")) if value.is_variable else node

    # ---- nodes ---------------------------------------------------------------------------------------------------

    def call(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Node:
        """Add a call of a function."""
        node = self.graph.call_function(target, args, kwargs or {})
        node.source = self.source
        return node

    def method(self, name: str, args: tuple[Any, ...]) -> Node:
        """Add a call of a method."""
        node = self.graph.call_method(name, args)
        node.source = self.source
        return node

    def typed(self, node: Node, tensor: Any) -> Node:
        """Note the type of a tensor on its node."""
        is_number = hasattr(tensor, "graph") and (id(tensor.graph), tensor.name) in self.notes.numbers
        if isinstance(tensor.dtype, tf.DType) and not is_number:
            node.value_type = array_type(tensor.dtype, tensor.shape)
        return node

    def item(self, node: Node, place: int, tensor: Any = None) -> Node:
        """Take one of several results."""
        name = None if tensor is None else self.name_of(tensor)
        found = self.graph.call_function(operator.getitem, (node, place), {}, name=name)
        found.source = self.source
        return found if tensor is None else self.typed(found, tensor)

    def name_of(self, tensor: Any) -> str | None:
        """The program's own variable for a tensor."""
        return self.notes.names.get((id(tensor.graph), tensor.name))

    # ---- operations ----------------------------------------------------------------------------------------------

    def _import(self, operation: Any) -> None:
        kind = operation.type
        if kind in _SKIPPED or (operation.outputs and operation.outputs[0].name in self.values):
            return  # inputs have their values already
        self.source = source_of(operation)
        if kind == "Const":
            self.values[operation.outputs[0].name] = literal_of(operation)
        elif kind in _PASSING and not _has_own_gradient(operation):
            self.values[operation.outputs[0].name] = self.value(operation.inputs[0])
        elif kind in control_flow.KINDS:
            control_flow.KINDS[kind](self, operation)
        else:
            self._call(operation)

    def _call(self, operation: Any) -> None:
        if _has_own_gradient(operation):
            raise _foreign_gradient(operation, self.source)
        python = self.notes.python_call_of(operation)
        if python is not None:
            self.values[operation.outputs[0].name] = self._python(python, operation)
            return
        if operation.type in ("Placeholder", "PlaceholderV2"):
            raise CaptureError(f"nothing is fed to the placeholder {operation.name}")
        call = Call(operation, [self.value(tensor) for tensor in operation.inputs])
        for spelled in (python_function, variable_access, random_numbers.spelled, readable_calls.spelled):
            node = spelled(self, call)
            if node is not None:
                self.bind(call, node)
                return
        self.bind(call, self.raw(call))

    def _python(self, call: PythonCall, operation: Any) -> Value:
        """A call of Python."""
        given = [self.value(tensor) for tensor in operation.inputs]
        if call.function is itself:
            (value,) = call.args
            return given[value.place] if isinstance(value, Operand) else Number(value)

        def argument(value: Any) -> Any:
            if isinstance(value, Operand):
                found = given[value.place]
                return found.value if isinstance(found, Number) else self.node(found)
            if type(value) in (tuple, list):
                return type(value)(map(argument, value))
            return slice(*map(argument, (value.start, value.stop, value.step))) if type(value) is slice else value

        args = tuple(map(argument, call.args))
        kwargs = {name: argument(value) for name, value in call.kwargs.items()}
        if call.function is size_of:
            return self.call(operator.getitem, (self.call(getattr, (args[0], "shape")), args[1]))
        if call.function is numpy_of:
            return self.method("numpy", args)
        if call.function is method_of and not kwargs:
            return self.method(args[1], (args[0], *args[2:]))
        node = self.call(call.function, args, kwargs)
        if id(call) in self.notes.made:
            self._make(self.notes.made[id(call)], node)
        return node

    def _make(self, variable: Any, node: Node) -> None:
        """From here on a variable of the program's own is what a node has made."""
        node.value_type = VARIABLE
        self.notes.makers[id(variable)] = node
        for outer, inner in self.function_graph.captures:
            if outer is variable.handle:
                self.values[inner.name] = Resource(node, variable)

    def raw(self, call: Call) -> Node:
        """The call of ``tf.raw_ops`` for an operation."""
        function = raw_function(call.kind)
        if function is None:
            raise CaptureError(
                f"the operation {call.kind} has no function in tf.raw_ops",
                where="" if self.source is None else self.source.describe(),
            )
        inputs = {parameter_name(call.kind, name): self._raw(call, name, value) for name, value in call.inputs.items()}
        settings = {parameter_name(call.kind, name): value for name, value in call.settings().items()}
        return self.call(function, (), inputs | settings)

    def _raw(self, call: Call, name: str, value: Any) -> Any:
        """An input of ``tf.raw_ops``, which gives plain values the dtype that is the operation's default."""
        if isinstance(value, Literal) and call.default_dtype(name) not in (None, value.dtype):
            return self.node(value)
        return self.argument(value)

    def bind(self, call: Call, node: Node) -> None:
        """Let the results of an operation belong to a node and its items."""
        operation, results = call.operation, call.definition.output_arg
        node.meta["tensorflow_name"] = operation.name
        node.meta[KIND] = call.kind
        if operation.name.startswith("gradient_tape/") or "/gradient_tape/" in operation.name:
            node.meta[UNASKED] = True
        alone = call.kind in PYTHON_KINDS and len(operation.outputs) == 1
        if alone or (len(results) == 1 and length_of(results[0], operation) is None):
            self.values[operation.outputs[0].name] = self.typed(node, operation.outputs[0])
            return
        place = 0
        for number, result in enumerate(results):
            count = length_of(result, operation)
            tensors = operation.outputs[place : place + (1 if count is None else count)]
            place += len(tensors)
            holder = node if len(results) == 1 or not tensors else self.item(node, number)
            if count is None:
                self.values[tensors[0].name] = self.typed(holder, tensors[0])
            else:
                for inner, tensor in enumerate(tensors):
                    self.values[tensor.name] = self.item(holder, inner, tensor)

    def _region(self, region: Region, everything: list[Any]) -> None:
        """A function with a gradient of its own stays one call."""
        inside = {one.name for one in everything[region.start : region.end]}
        self.source = source_of(everything[region.end - 1])
        names = {leaf.name for leaf in tf.nest.flatten((region.args, region.kwargs)) if tf.is_tensor(leaf)}
        for one in everything[region.start : region.end]:
            for tensor in one.inputs:
                known = self.values.get(tensor.name)
                if tensor.op.name not in inside and tensor.name not in names and not isinstance(known, Resource):
                    raise _closed_over(region.function, tensor, self.source)
        args, kwargs = tf.nest.map_structure(self._given, (tuple(region.args), dict(region.kwargs)))
        node = self.call(readable_calls.own_gradient(region.function), tuple(args), dict(kwargs))
        results = tf.nest.flatten(region.result)
        if tf.is_tensor(region.result):
            self.values[region.result.name] = self.typed(node, region.result)
        else:
            for place, tensor in enumerate(results):
                self.values[tensor.name] = self.item(node, place, tensor)
        for one in everything[region.start : region.end]:
            if one.type == "IdentityN":
                self._hand_on(one, inside)

    def _hand_on(self, operation: Any, inside: set[str]) -> None:
        """What a function with a gradient of its own was given is a result of its last operation, too."""
        for given, tensor in zip(operation.inputs, operation.outputs, strict=True):
            while given.op.type == "Identity" and given.op.name in inside:
                given = given.op.inputs[0]
            if tensor.name not in self.values and given.name in self.values:
                self.values[tensor.name] = self.values[given.name]

    def _given(self, leaf: Any) -> Any:
        """An argument of a function that stays a call."""
        if isinstance(leaf, tf.Tensor) and hasattr(leaf, "graph"):
            return self.node(self.value(leaf))
        if isinstance(leaf, tf.Tensor):
            return self.attribute(self.root.path_of(leaf, "_constant"))
        return leaf


def in_order(operations: list[Any]) -> list[Any]:
    """The operations as they were made, each after all that it needs."""
    done: set[str] = set()
    ordered: list[Any] = []
    for start in operations:
        waiting = [start]
        while waiting:
            one = waiting[-1]
            needed = [tensor.op for tensor in one.inputs] + list(one.control_inputs)
            missing = [other for other in needed if other.name not in done]
            if missing and one.name not in done:
                waiting += missing
                continue
            waiting.pop()
            if one.name not in done:
                done.add(one.name)
                ordered.append(one)
    return ordered


def source_of(operation: Any) -> SourceLine | None:
    """The user's line that made an operation."""
    for frame in reversed(list(operation.traceback or ())):
        if not is_hidden_file(frame.filename):
            return SourceLine(frame.filename, frame.lineno, frame.name)
    return None


def _has_own_gradient(operation: Any) -> bool:
    return "_gradient_op_type" in operation.node_def.attr


def _foreign_gradient(operation: Any, source: SourceLine | None) -> CaptureError:
    return CaptureError(
        f"the operation {operation.name} has a gradient of its own, which the graph cannot keep",
        where="" if source is None else source.describe(),
        why="it was made by tf.custom_gradient inside of a tf.function that had been traced before",
        fixes=("capture before the inner tf.function is first called", "take the inner tf.function away"),
    )


def _closed_over(function: Any, tensor: Any, source: SourceLine | None) -> CaptureError:
    return CaptureError(
        f"{getattr(function, '__name__', function)}, which has a gradient of its own, uses a tensor around it",
        where="" if source is None else source.describe(),
        why=f"it stays one call, and {tensor.name} is none of its arguments",
        fixes=("pass the tensor as an argument",),
    )
