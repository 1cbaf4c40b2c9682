"""Functional control flow of TensorFlow as branches, loops and calls of Clew.

``If`` and ``Case`` become ``clew.cond``, ``While`` becomes ``clew.while_loop``, with the bodies as graphs inside; a
call of another function is written in line. Values that a body does not use are not handed to it, values that a loop
does not change are operands, constants and variables are used where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.framework import function_def_to_graph

from clew.errors import CaptureError
from clew.frameworks.tensorflow.effects import drop_unused
from clew.frameworks.tensorflow.types import Literal, Number, Resource, Value, array_type
from clew.ir.control_flow import cond, while_loop
from clew.ir.effects import is_impure
from clew.ir.graph import Graph
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.frameworks.tensorflow.importer import Importer


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
