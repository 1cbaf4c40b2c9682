"""NumPy as a source: the names of its functions and methods, its dtypes, what it writes in place."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy

from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.translate.refusals import Refusal
from clew.translate.rows import numpy_data
from clew.translate.rows.numpy import NUMPY
from clew.translate.sources.source import Source
from clew.translate.values import Dtype

ROWS = (numpy_data,)
"""The files of rows; importing them fills the table."""
_IN_PLACE: dict[Callable[..., Any], str] = {
    getattr(operator, f"i{name}"): f"operator.{name}"
    for name in "add sub mul truediv floordiv mod pow matmul lshift rshift xor".split()
} | {operator.iand: "operator.and_", operator.ior: "operator.or_", operator.setitem: "operator.setitem"}
_VIEWS = frozenset(
    "getitem reshape ravel transpose T mT swapaxes moveaxis rollaxis squeeze expand_dims broadcast_to asarray "
    "asanyarray ascontiguousarray diagonal real imag flip flipud fliplr rot90 split array_split hsplit vsplit view "
    "diag atleast_1d atleast_2d atleast_3d permute_dims matrix_transpose broadcast_arrays flat cond while_loop "
    "for_loop".split()
)
_WRITING_METHODS = frozenset({"sort", "fill", "put", "partition", "resize", "setfield", "itemset"})


_WRITING_FUNCTIONS = ("fill_diagonal", "add.at", "multiply.at", "maximum.at", "minimum.at")


class NumpySource(Source):
    """NumPy."""

    framework = "numpy"
    table = NUMPY
    implied = ("holds_numbers", "has_an_axis", "has_axes", "is_number", "is_number_or_array")

    def constant(self, value: Any) -> Any:
        if isinstance(value, numpy.dtype):
            return Dtype(value.name)
        if isinstance(value, type) and issubclass(value, numpy.generic):
            return Dtype(numpy.dtype(value).name)
        return value

    def to_numpy(self, value: Any) -> Any:
        return value

    def is_array(self, value: Any) -> bool:
        return isinstance(value, numpy.ndarray)

    def from_numpy(self, value: Any) -> Any:
        return numpy.array(value)

    def may_share(self, node: Node) -> bool:
        name = str(node.args[1]) if node.target is getattr else self.names(node)[-1].rpartition(".")[2]
        if node.target is operator.getitem and _copies(node):
            return False
        return name in _VIEWS or self.table.find(self.names(node)) is None

    def counts(self, node: Node) -> bool:
        return self.names(node)[-1] in ("unique", "nonzero")

    def target(self, node: Node) -> Any:
        out = node.kwargs.get("out", node.args[0] if node.args else None)
        return out[0] if isinstance(out, tuple) else out

    def written(self, node: Node) -> tuple[str, int] | None:
        name = self.names(node)[0] if node.op == "call_function" else ""
        if name in _WRITING_FUNCTIONS or (node.op.startswith("call") and isinstance(self.target(node), Node)
                                          and node.kwargs.get("out") is not None):  # fmt: skip
            return name or str(node.target), 0
        if node.op == "call_method" and node.target in _WRITING_METHODS:
            return str(node.target), 0
        return (_IN_PLACE[node.target], 0) if node.target in _IN_PLACE else None


def _copies(node: Node) -> bool:
    """Whether items are taken by arrays or lists of places, or one item without axes is."""
    if isinstance(node.value_type, ArrayType) and not node.value_type.shape:
        return True
    index = node.args[1]
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(one, list) or (isinstance(one, Node) and isinstance(one.value_type, ArrayType))
               for one in parts)  # fmt: skip


def prepare(graph: Graph, constants: dict[str, Any]) -> list[Refusal]:
    """Nothing has to be done before."""
    return []


SOURCE = NumpySource
