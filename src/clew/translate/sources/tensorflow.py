"""TensorFlow as a source: the names of its functions, its dtypes, its variables and what it writes into them.

Tensors are never written to; variables are, and what was read of one before stays what it was. Importing this file
imports TensorFlow.
"""

from __future__ import annotations

from typing import Any

import numpy
import tensorflow as tf

from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.translate.refusals import Refusal
from clew.translate.rows import tensorflow_layers
from clew.translate.rows.tensorflow import TENSORFLOW
from clew.translate.sources.source import Source, Special
from clew.translate.sources.tensorflow_flow import CONTROL
from clew.translate.values import Dtype, Number, Plain
from clew.translate.writer import Writer

ROWS = (tensorflow_layers,)
"""The files of rows; importing them fills the table."""
_WRITES = ("assign", "assign_add", "assign_sub")


class TensorflowSource(Source):
    """TensorFlow."""

    framework = "tensorflow"
    table = TENSORFLOW
    enters_nests = True
    implied = ("fits", "holds_numbers", "kind_of_number")

    def spellings(self, name: str) -> list[str]:
        return [name]

    def special(self, node: Node) -> Special | None:
        return CONTROL.get(node.target) if node.op == "call_function" else None

    def constant(self, value: Any) -> Any:
        if isinstance(value, tf.DType):
            return Dtype(value.name)
        if isinstance(value, tf.TensorShape):
            return tuple(value.as_list())
        return value

    def is_opaque(self, dtype: str) -> bool:
        return dtype in ("variant", "resource")

    def completed(self, writer: Writer, wanted: Any, value: Any) -> Any:
        is_number = isinstance(value, (Number, bool, int, float))
        return Plain(writer, value, wanted.dtype) if is_number and wanted is not None and not wanted.shape else value

    def is_array(self, value: Any) -> bool:
        return isinstance(value, (tf.Tensor, tf.Variable))

    def is_parameter(self, value: Any) -> bool:
        return isinstance(value, tf.Variable) and value.trainable and value.dtype.is_floating

    def identity(self, value: Any) -> Any:
        return value.ref()

    def dtype_of(self, value: Any) -> str:
        return str(value.dtype.name)

    def from_numpy(self, value: Any) -> Any:
        return tf.constant(value)

    def to_numpy(self, value: Any) -> Any:
        found = value.numpy()
        return found if isinstance(found, numpy.ndarray) else numpy.asarray(found)

    def may_share(self, node: Node) -> bool:
        return False

    def written(self, node: Node) -> tuple[str, int] | None:
        return (str(node.target), 0) if node.op == "call_method" and node.target in _WRITES else None


def prepare(graph: Graph, constants: dict[str, Any]) -> list[Refusal]:
    """Nothing has to be done before."""
    return []


SOURCE = TensorflowSource
