"""A captured graph inside of a ``tf.function``: branches and loops become TensorFlow's own again.

Generated code has Python's ``if`` and ``while``, which need the values of tensors. Where there are none yet, because a
graph of TensorFlow is being made, the nodes are interpreted instead: ``clew.cond`` as ``tf.cond``, ``clew.while_loop``
as ``tf.while_loop`` with the shapes that the graph notes.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from clew.capture.guards.notes import Variable
from clew.frameworks.tensorflow.tracing import current_tracing
from clew.ir.arguments import all_nodes, leaves
from clew.ir.control_flow import cond, inputs_of, while_loop
from clew.ir.graph import Graph
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node
from clew.ir.types import ArrayType


def run_staged(graph: Graph, root: Any, values: dict[Node, Any]) -> Any:
    """The result of a graph, made of TensorFlow's functional control flow; ``values`` are those of the placeholders."""
    tracing = current_tracing()
    nodes = all_nodes(graph) if tracing is not None else ()
    if tracing is not None and any(isinstance(leaf, Variable) for node in nodes for leaf in leaves(node.args)):
        raise tracing.refuse(
            "a captured program that reads or changes variables of Python is captured again",
            "what it does to them would be done once, in the capture",
            "capture the original",
        )
    interpreter = Staged(root, graph=graph)
    return interpreter.run(initial_env=dict(values), enable_io_processing=False)


class Staged(Interpreter):
    """Interprets nodes while TensorFlow is making a graph."""

    def run_node(self, n: Node) -> Any:
        """The value of one node; a loop needs to know what its bodies say of shapes."""
        if n.op == "call_function" and n.target is while_loop:
            return self._loop(n)
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Branches on symbolic tensors are TensorFlow's."""
        if target is cond and isinstance(args[0], tf.Tensor):
            pred, one, other, *rest = args
            operands = rest[0] if rest else ()
            return tf.cond(pred, lambda: one(*operands), lambda: other(*operands))
        return super().call_function(target, args, kwargs)

    def _loop(self, node: Node) -> Any:
        (test, body, carried, *rest), _ = self.fetch_args_kwargs_from_env(node)
        operands = rest[0] if rest else ()
        body_graph: Any = node.args[1]
        if not carried:
            return tf.while_loop(lambda one: test(*operands), _counted(body, operands), (tf.constant(0),))[1:]
        shapes = [_shape(inner, value) for inner, value in zip(inputs_of(body_graph), carried, strict=False)]
        found = tf.while_loop(
            lambda *values: test(*values, *operands),
            lambda *values: body(*values, *operands),
            tuple(carried),
            shape_invariants=tuple(shapes),
        )
        return tuple(found)


def _counted(body: Any, operands: Any) -> Any:
    """A loop that carries nothing still acts: TensorFlow wants it to carry something."""

    def act(count: Any) -> Any:
        body(*operands)
        return (count,)

    return act


def _shape(inner: Node, value: Any) -> Any:
    """The shape that a carried value has in all rounds."""
    known = inner.value_type
    if not isinstance(known, ArrayType):
        return tf.TensorShape(None)
    sizes = [None if isinstance(size, str) else size for size in known.shape]
    return tf.TensorShape(sizes)
