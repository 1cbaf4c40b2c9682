"""What calls of TensorFlow do besides computing: by the definitions of its operations, and by methods of variables.

A call without effect whose result nobody uses still raises where its arguments do not fit (``x + y`` of sizes that do
not go together, ``x[3]`` of three items): only what raises for no tensors of the dtypes that it has is dropped.
"""

from __future__ import annotations

import operator
from typing import Any

import tensorflow as tf

from clew.frameworks.tensorflow import random_numbers, readable_calls
from clew.frameworks.tensorflow.operations import READING, WRITING, definition_of
from clew.frameworks.tensorflow.types import VARIABLE, qualified_name
from clew.ir.effects import is_impure
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.types import ArrayType

_RANDOM = (tf.random.uniform, tf.random.normal, tf.random.truncated_normal, random_numbers.draw)
_RAW = "tensorflow.raw_ops."


_TOTAL = frozenset(
    "BiasAddGrad BroadcastGradientArgs Cast ClipByValue ConcatOffset Elu EnsureShape ExpandDims Identity IdentityN "
    "InvertPermutation L2Loss LeakyRelu LogSoftmax MatrixDiagPartV3 MatrixDiagV3 Neg Range Rank ReadVariableOp Shape "
    "ShapeN Size Softmax StopGradient TensorListReserve TensorListLength ZerosLike OnesLike".split()
) | (readable_calls.UNARY.keys() - {"Cholesky", "InvertPermutation", "MatrixDeterminant", "FFT", "IFFT"})
"""Operations that raise for no tensors."""
_NUMBERS: tuple[Any, ...] = (
    operator.add, operator.sub, operator.mul, operator.neg, operator.not_, operator.pos, operator.lt, operator.le,
    operator.gt, operator.ge, operator.eq, operator.ne, abs, min, max, getattr,
)  # fmt: skip
"""Functions of Python that raise for no numbers."""
KIND = "tensorflow_type"
"""Under this name the meta of a node tells the type of its operation."""
UNASKED = "unasked"
"""Marks, in the meta of a node, what only the tracing has made: gradients compute more than what is asked for."""


def may_raise(node: Node) -> bool:
    """Whether a call refuses some values that its arguments may have in another run."""
    kind = node.meta.get(KIND)
    if node.op == "call_method":
        return kind not in _TOTAL
    if node.op != "call_function" or node.meta.get(UNASKED) or kind in _TOTAL:
        return False
    if kind in readable_calls.REDUCTIONS or kind == "Transpose":
        return any(isinstance(value, Node) for value in (*node.args[1:], *node.kwargs.values()))
    if kind in readable_calls.BINARY or kind in ("RealDiv", "Equal", "NotEqual"):
        return kind in ("FloorDiv", "FloorMod", "Pow") or not any(map(_is_scalar, node.args))
    if kind == "StridedSlice" and node.target is operator.getitem:
        index = node.args[1]
        return not all(type(one) is slice for one in (index if isinstance(index, tuple) else (index,)))
    if node.target in (int, float, bool):
        return not _can_be_number(node.target, node.args[0])
    return kind is not None or (node.target not in _NUMBERS and not _is_item(node) and node.target is not tf.constant)


def _can_be_number(target: Any, value: Any) -> bool:
    """Whether ``int``, ``float`` or ``bool`` takes all that a value may be: one number, and for ``int`` no nan."""
    if not isinstance(value, Node):
        return True
    kind = value.value_type
    if isinstance(kind, ArrayType):
        is_whole = kind.dtype.startswith(("int", "uint", "bool"))
        return _is_scalar(value) and (is_whole or (target is not int and not kind.dtype.startswith("complex")))
    return target is not int or value.target in (int, len, bool, round) or _is_item(value)


def _is_scalar(value: Any) -> bool:
    kind = getattr(value, "value_type", None)
    return not isinstance(value, Node) or (isinstance(kind, ArrayType) and not kind.shape)


def _is_item(node: Node) -> bool:
    """Whether a node takes one of several results, or a size."""
    owner = node.args[0] if node.args else None
    is_known = isinstance(owner, Node) and (owner.target is getattr or owner.value_type is None)
    return node.target is operator.getitem and is_known and type(node.args[1]) is int


def drop_unused(graph: Graph, keeps_raising: bool = True) -> None:
    """Erase what nobody uses and has no effect; what may raise stays, if ``keeps_raising``."""
    graph.eliminate_dead_code((lambda node: is_impure(node) or may_raise(node)) if keeps_raising else None)


def function_effect(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
    """The effect of a function that the importer writes; None for any other."""
    if any(target is function for function in _RANDOM):
        return Effect.RANDOM
    if id(target) in readable_calls.PURE:
        return Effect.NONE
    name = qualified_name(target)
    if name is None or not name.startswith(_RAW):
        return None
    return Effect.WRITE if definition_of(name.removeprefix(_RAW)).is_stateful else Effect.NONE


def method_effect(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
    """The effect of a method of a variable; None if the receiver is not known to be one."""
    if not args or getattr(args[0], "value_type", None) != VARIABLE:
        return None
    if name in READING:
        return Effect.NONE
    return Effect.WRITE if name in WRITING else None
