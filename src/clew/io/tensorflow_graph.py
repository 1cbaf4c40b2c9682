"""Graphs of TensorFlow in, ``tf.function``s out.

``from_tf`` takes a ``ConcreteFunction``, a ``FuncGraph`` or any ``tf.Graph`` and gives a captured function of readable
calls; ``to_tf`` makes a ``tf.function`` of a captured one, with TensorFlow's own control flow inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from clew.errors import InteropError, a_or_an
from clew.frameworks.tensorflow.entry_guards import EntryGuards
from clew.frameworks.tensorflow.importer import Importer, Notes, in_order
from clew.frameworks.tensorflow.inputs import TensorOutputs, TensorRecorder, handles
from clew.frameworks.tensorflow.inside_tf_function import run_staged
from clew.frameworks.tensorflow.types import Root
from clew.runtime.tensorflow_captured import TensorflowCapture


def from_tf(source: Any, outputs: Any = None) -> TensorflowCapture:
    """A captured function of a ``ConcreteFunction`` or ``tf.Graph``.

    Of a plain ``tf.Graph`` the placeholders are the inputs, and ``outputs``, a nest of its tensors, is what it gives;
    by default all tensors that no operation uses.
    """
    graph = source if isinstance(source, tf.Graph) else getattr(source, "graph", None)
    if not isinstance(graph, tf.Graph):
        raise InteropError(
            f"from_tf takes a ConcreteFunction or a tf.Graph, not {a_or_an(source)}",
            fixes=["give f.get_concrete_function(...), or clew.trace(f, args)"],
        )
    if outputs is None:
        outputs = getattr(source, "structured_outputs", None)
        outputs = _loose_ends(graph) if outputs is None else outputs
    recorder, root = TensorRecorder(), Root()
    notes = Notes(fixed_streams=True)
    tensors = [leaf for leaf in tf.nest.flatten(outputs, expand_composites=True) if isinstance(leaf, tf.Tensor)]
    importer = recorder.importer = Importer(graph, recorder.graph, root, notes, [tensor.name for tensor in tensors])
    captures = list(getattr(graph, "captures", ()))
    variables = {id(variable.handle): variable for variable in getattr(graph, "variables", ())}
    _inputs(importer, graph, {inner.name for _, inner in captures})
    importer.values.update(handles(importer, captures, recorder, variables))
    importer.run(None if hasattr(graph, "outputs") else _needed(graph, tensors))
    written = TensorOutputs(recorder)
    written.look_at(outputs)
    recorder.graph.output(written.of(outputs))
    recorder.graph.eliminate_dead_code()
    name = str(getattr(source, "name", None) or "graph")
    return TensorflowCapture(SimpleNamespace(**root.attributes), recorder.graph, name)


def _inputs(importer: Importer, graph: tf.Graph, captured: set[str]) -> None:
    found = getattr(graph, "inputs", None)
    if found is None:
        found = [one.outputs[0] for one in graph.get_operations() if one.type == "Placeholder"]
    tensors = [tensor for tensor in found if tensor.name not in captured]
    nodes = [importer.graph.placeholder(_identifier(tensor.op.name)) for tensor in tensors]
    guards = EntryGuards(importer.graph, importer.root)
    for tensor, node in zip(tensors, nodes, strict=True):
        importer.values[tensor.name] = importer.typed(node, tensor)
        guards.tensor(node, tensor)


def _identifier(name: str) -> str:
    found = "".join(letter if letter.isalnum() else "_" for letter in name)
    return found if found.isidentifier() else f"input_{found}"


def _loose_ends(graph: Any) -> Any:
    ends = [
        tensor
        for one in graph.get_operations()
        if one.type not in ("Placeholder", "Const")
        for tensor in one.outputs
        if not tensor.consumers()
    ]
    return ends[0] if len(ends) == 1 else tuple(ends)


def _needed(graph: Any, tensors: Sequence[Any]) -> list[Any]:
    """The operations that a session would run to compute these tensors."""
    wanted = {tensor.op.name for tensor in tensors}
    found = []
    for one in reversed(in_order(graph.get_operations())):
        if one.name in wanted:
            found.append(one)
            wanted.update(tensor.op.name for tensor in one.inputs)
            wanted.update(other.name for other in one.control_inputs)
    return found


def to_tf(function: Any, input_signature: Any = None) -> Any:
    """A ``tf.function`` that does what a captured function does; ``get_concrete_function`` gives its graph."""
    if not hasattr(function, "graph") or not hasattr(function, "root"):
        raise InteropError(f"to_tf takes a captured function, not {a_or_an(function)}")
    signature = function.__signature__

    @tf.autograph.experimental.do_not_convert
    def staged(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        inputs = function.graph.find_nodes(op="placeholder")
        values = {node: bound.arguments[node.target.lstrip("*")] for node in inputs}
        return run_staged(function.graph, function.root, values)

    staged.__name__ = function.__name__
    staged.__signature__ = signature  # type: ignore[attr-defined]
    return tf.function(staged, autograph=False, input_signature=input_signature)
