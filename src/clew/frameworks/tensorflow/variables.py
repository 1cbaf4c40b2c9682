"""Variables are read and written by their own methods; other resources through ``tf.raw_ops`` and their handles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.frameworks.tensorflow.operations import Call
from clew.frameworks.tensorflow.values import Resource
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.frameworks.tensorflow.importer import Importer

_WRITES = {"AssignVariableOp": "assign", "AssignAddVariableOp": "assign_add", "AssignSubVariableOp": "assign_sub"}
READING = frozenset({"value", "sparse_read"})
WRITING = frozenset(_WRITES.values())


def spelled(importer: Importer, call: Call) -> Node | None:
    """The reading or writing of a variable; None for any other operation."""
    variable: Any = call.inputs.get("resource")
    if not isinstance(variable, Resource) or not variable.is_variable:
        return None
    if call.kind == "ReadVariableOp":
        return importer.method("value", (importer.resource(variable),))
    if call.kind in _WRITES:
        value = importer.node(call.inputs["value"])
        return importer.method(_WRITES[call.kind], (importer.resource(variable), value))
    if call.kind == "ResourceGather" and not call.attribute("batch_dims"):
        return importer.method("sparse_read", (importer.resource(variable), importer.argument(call.inputs["indices"])))
    return None
