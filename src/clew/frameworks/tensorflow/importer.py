"""From a graph of TensorFlow to one of Clew: each operation becomes a readable call, in program order.

A function graph and the values of its inputs come in; nodes go into a graph of Clew. Operations keep the order in which
the program made them, so effects keep theirs. A constant is written where it is used. Variables are attributes of the
root. What comes out runs eagerly, operation by operation, as the original does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import function_def_to_graph

from clew.errors import CaptureError
from clew.frameworks.tensorflow import random_numbers, readable_calls
from clew.frameworks.tensorflow.effects import KIND, UNASKED, drop_unused
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
from clew.ir.control_flow import cond, while_loop
from clew.ir.effects import is_impure
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
        elif kind in KINDS:
            KINDS[kind](self, operation)
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


# ---- operations with bodies ------------------------------------------------------------------------------------------
#
# Functional control flow of TensorFlow as branches, loops and calls of Clew.
#
# ``If`` and ``Case`` become ``clew.cond``, ``While`` becomes ``clew.while_loop``, with the bodies as graphs inside; a
# call of another function is written in line. Values that a body does not use are not handed to it, values that a loop
# does not change are operands, constants and variables are used where they are.


def function_graph(importer: Importer, name: str) -> Any:
    """The graph of a function that an operation names."""
    place = importer.function_graph
    while place is not None:
        found = place._get_function(name)
        if found is not None:
            graph = getattr(found, "graph", None)
            return graph if graph is not None else function_def_to_graph.function_def_to_graph(found.definition)
        place = getattr(place, "outer_graph", None)
    raise CaptureError(f"the function {name} is not known to its graph")


class _Body:
    """A nested graph that is being made. ``values`` are those that were handed over, as they are inside.

    Constants and attributes of the root need not be handed over; all else has a placeholder, under its place.
    """

    def __init__(
        self,
        importer: Importer,
        values: list[Value],
        tensors: list[Any] | None = None,
        names: list[str | None] | None = None,
        carried: Container[int] = (),
    ) -> None:
        self.graph = Graph()
        self.names = names
        self.carried = carried
        self.importer = importer.inner(importer.function_graph, self.graph)
        self.inputs: dict[int, Node] = {}
        self.values = [self._enter(place, value) for place, value in enumerate(values)]
        for place, tensor in enumerate(tensors or ()):
            if place in self.inputs and not isinstance(values[place], (Resource, Number)):
                self.inputs[place].value_type = array_type(tensor.dtype, tensor.shape)

    def _enter(self, place: int, value: Value) -> Value:
        name = None if self.names is None else self.names[place]
        if isinstance(value, Number) and place in self.carried:
            self.inputs[place] = self.graph.placeholder(name or "number")
            return self.inputs[place]
        if isinstance(value, (Literal, Number)) or (isinstance(value, Resource) and isinstance(value.place, str)):
            return value
        outer = value.place if isinstance(value, Resource) else value
        assert isinstance(outer, Node)
        node = self.inputs[place] = self.graph.placeholder(name or outer.name)
        node.value_type = outer.value_type
        return Resource(node, value.value) if isinstance(value, Resource) else node

    def finish(self, values: list[Value]) -> None:
        """Give back these values."""
        self.graph.output(tuple(self.importer.handed(value) for value in values))
        drop_unused(self.graph)


def import_branch(importer: Importer, operation: Any) -> None:
    """``If``: the first input decides, the others are handed to the side that is taken."""
    pred = importer.node(importer.value(operation.inputs[0]))
    values = [importer.value(tensor) for tensor in operation.inputs[1:]]
    names = [operation.get_attr(name).name for name in ("then_branch", "else_branch")]
    bodies = []
    for graph in [function_graph(importer, name) for name in names]:
        body = _Body(importer, values)
        body.finish(inline(body.importer, graph, body.values))
        bodies.append(body)
    _assign(importer, operation, _branch(importer, pred, bodies, values, operation.outputs))


def import_case(importer: Importer, operation: Any) -> None:
    """``Case``: an index decides; one that is out of range takes the last side."""
    values = [importer.value(tensor) for tensor in operation.inputs]
    values[0] = importer.node(values[0])
    graphs = [function_graph(importer, branch.name) for branch in operation.get_attr("branches")]
    _assign(importer, operation, _case(importer, values, graphs, 0, operation.outputs))


def _case(importer: Importer, values: list[Value], graphs: list[Any], number: int, tensors: list[Any]) -> list[Value]:
    """The sides from ``number`` on, one inside the other."""
    if number == len(graphs) - 1:
        return inline(importer, graphs[number], values[1:])
    pred = importer.call(tf.equal, (importer.node(values[0]), number))
    bodies = [_Body(importer, values), _Body(importer, values)]
    bodies[0].finish(inline(bodies[0].importer, graphs[number], bodies[0].values[1:]))
    bodies[1].finish(_case(bodies[1].importer, bodies[1].values, graphs, number + 1, tensors))
    return _branch(importer, pred, bodies, values, tensors)


def _branch(importer: Importer, pred: Node, bodies: list[_Body], values: list[Value], tensors: Any) -> list[Value]:
    """A branch over two bodies; what it gives."""
    used = [place for place in bodies[0].inputs if any(body.inputs[place].users for body in bodies)]
    _keep(bodies, used)
    operands = tuple(importer.node(values[place]) for place in used)
    node = importer.call(cond, (pred, bodies[0].graph, bodies[1].graph, *((operands,) if operands else ())))
    return [importer.item(node, place, tensor) for place, tensor in enumerate(tensors)]


def _assign(importer: Importer, operation: Any, values: list[Value]) -> None:
    importer.values.update({tensor.name: value for tensor, value in zip(operation.outputs, values, strict=True)})


def _keep(bodies: list[_Body], used: list[int]) -> None:
    """Take away the placeholders of values that nobody uses."""
    for body in bodies:
        for place, node in list(body.inputs.items()):
            if place not in used:
                body.graph.erase_node(node)
                del body.inputs[place]


def _reorder(graph: Graph, nodes: list[Node]) -> None:
    """Let these placeholders stand first, in this order."""
    for node in reversed(nodes):
        first = graph._root._next
        if first is not node:
            first.prepend(node)


def import_loop(importer: Importer, operation: Any) -> None:
    """``While``: all inputs are handed from round to round; those that no round changes are operands."""
    test_graph, body_graph = (function_graph(importer, operation.get_attr(name).name) for name in ("cond", "body"))
    values = [importer.value(tensor) for tensor in operation.inputs]
    steady = {place for place in range(len(values)) if _is_handed_on(body_graph, place)}
    changed = [place for place in range(len(values)) if place not in steady]
    kept = [place in steady or isinstance(value, Number) for place, value in enumerate(values)]
    starts = [value if kept[place] else importer.node(value) for place, value in enumerate(values)]
    names = [importer.name_of(tensor) for tensor in operation.outputs]
    test, body = (_Body(importer, starts, graph.inputs, names, changed) for graph in (test_graph, body_graph))
    test.graph.output(test.importer.node(inline(test.importer, test_graph, test.values)[0]))
    drop_unused(test.graph)
    results = inline(body.importer, body_graph, body.values)
    body.finish([results[place] for place in changed])
    changed = _needed(importer, operation, test, body, changed)
    used = [p for p in body.inputs if p in steady and (body.inputs[p].users or test.inputs[p].users)]
    _keep([test, body], [*changed, *used])
    for part in (test, body):
        _reorder(part.graph, [part.inputs[place] for place in (*changed, *used)])
    carried = tuple(importer.handed(starts[place]) for place in changed)
    operands = tuple(importer.node(values[place]) for place in used)
    node = importer.call(while_loop, (test.graph, body.graph, carried, *((operands,) if operands else ())))
    node.meta["tensorflow_name"] = operation.name
    for number, place in enumerate(changed):
        tensor = operation.outputs[place]
        importer.values[tensor.name] = importer.item(node, number, tensor)
    for place in steady:
        importer.values[operation.outputs[place].name] = values[place]


def _is_handed_on(graph: Any, place: int) -> bool:
    """Whether the body of a loop gives back one of its inputs as it is."""
    tensor = graph.outputs[place]
    while tensor.op.type == "Identity" and tensor is not graph.inputs[place]:
        tensor = tensor.op.inputs[0]
    return bool(tensor.name == graph.inputs[place].name)


def _needed(importer: Importer, operation: Any, test: _Body, body: _Body, changed: list[int]) -> list[int]:
    """The changed values without those that serve nothing but themselves, such as TensorFlow's own counter."""
    output = body.graph.output_node()
    for place in list(changed):
        tensor = operation.outputs[place]
        if tensor.consumers() or tensor.name in importer.wanted or test.inputs[place].users:
            continue
        others = [value for other, value in zip(changed, output.args[0], strict=True) if other != place]
        if body.inputs[place] in _behind([*others, *(node for node in body.graph.nodes if _acts(node))]):
            continue
        output.args = (tuple(others),)
        changed = [other for other in changed if other != place]
        drop_unused(body.graph)
    return changed


def _acts(node: Node) -> bool:
    return node.op not in ("placeholder", "output") and is_impure(node)


def _behind(nodes: list[Any]) -> set[Node]:
    """All nodes that these need."""
    found: set[Node] = set()
    waiting = [node for node in nodes if isinstance(node, Node)]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return found


def import_call(importer: Importer, operation: Any) -> None:
    """A call of another function is written in line."""
    graph = function_graph(importer, operation.get_attr("f").name)
    values = [importer.value(tensor) for tensor in operation.inputs]
    _assign(importer, operation, inline(importer, graph, values, is_function=True))


def inline(importer: Importer, graph: Any, values: list[Value], is_function: bool = False) -> list[Value]:
    """Import the graph of a function in line; what it gives."""
    inner = importer.inner(graph, importer.graph)
    inner.is_function = importer.is_function or is_function
    inner.values.update({tensor.name: value for tensor, value in zip(graph.inputs, values, strict=True)})
    inner.run()
    return [inner.value(tensor) for tensor in graph.outputs]


KINDS: dict[str, Callable[[Any, Any], None]] = {
    "If": import_branch,
    "StatelessIf": import_branch,
    "Case": import_case,
    "StatelessCase": import_case,
    "While": import_loop,
    "StatelessWhile": import_loop,
    "PartitionedCall": import_call,
    "StatefulPartitionedCall": import_call,
}
"""The operations that hold functions, each with what imports it."""
