"""One operation of a TensorFlow graph as a call: its inputs, its attributes, and the call of ``tf.raw_ops`` for it.

Every operation has this path. Inputs are grouped as the definition of the operation names them; attributes that follow
from the inputs, or that have their default value, are left out. Functions of Python, which the graph names by a token,
stay calls; variables are read and written by their own methods.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops import script_ops

from clew.errors import CaptureError
from clew.frameworks.tensorflow.types import Resource, Value
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.frameworks.tensorflow.importer import Importer

_RENAMED = {"reduction_indices": "axis", "dim": "axis", "split_dim": "axis", "squeeze_dims": "axis", "t": "x", "e": "y"}
"""Names that ``tf.raw_ops`` has for arguments, where the definition of the operation has another."""


class Call:
    """An operation with the values of its inputs."""

    def __init__(self, operation: Any, values: list[Value]) -> None:
        self.operation = operation
        self.kind = str(operation.type)
        self.definition = definition_of(self.kind)
        self.inputs = self._grouped(values)

    def _grouped(self, values: list[Value]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        place = 0
        for argument in self.definition.input_arg:
            count = length_of(argument, self.operation)
            if count is None:
                found[argument.name] = values[place]
                place += 1
            else:
                found[argument.name] = values[place : place + count]
                place += count
        return found

    def attribute(self, name: str) -> Any:
        """The value of an attribute."""
        return _plain(self.operation.get_attr(name))

    def default_dtype(self, name: str) -> Any:
        """The dtype that the operation gives to plain values of an input; None if it has no preference."""
        kind = next(argument.type_attr for argument in self.definition.input_arg if argument.name == name)
        for attribute in self.definition.attr:
            if kind and attribute.name == kind and attribute.HasField("default_value"):
                return tf.as_dtype(attribute.default_value.type)
        return None

    @property
    def output(self) -> Any:
        """The first result of the operation, a symbolic tensor."""
        return self.operation.outputs[0]

    def settings(self) -> dict[str, Any]:
        """The attributes that a caller has to give."""
        given = {}
        for attribute in self.definition.attr:
            if attribute.name in inferred_attributes(self.kind):
                continue
            if attribute.type in ("func", "list(func)"):
                raise CaptureError(
                    f"the operation {self.kind} takes a function as an attribute",
                    where=str(self.operation.name),
                    why="no call of tf.raw_ops could be given that function",
                    fixes=("keep datasets and iterators outside of the captured function",),
                )
            value = self.operation.get_attr(attribute.name)
            if not attribute.HasField("default_value") or not _is_default(value, attribute):
                given[attribute.name] = _plain(value)
        return given


@functools.cache
def definition_of(kind: str) -> Any:
    """What TensorFlow has registered for a type of operations."""
    found = op_def_registry.get(kind)
    if found is None:
        raise CaptureError(f"TensorFlow has no definition of the operation {kind}")
    return found


@functools.cache
def inferred_attributes(kind: str) -> frozenset[str]:
    """The attributes that follow from the inputs."""
    arguments = definition_of(kind).input_arg
    return frozenset(name for one in arguments for name in (one.type_attr, one.number_attr, one.type_list_attr) if name)


@functools.cache
def raw_function(kind: str) -> Any:
    """The function of ``tf.raw_ops``; None if there is none."""
    return getattr(tf.raw_ops, kind, None)


@functools.cache
def parameter_names(kind: str) -> frozenset[str]:
    """The parameters of that function."""
    return frozenset(inspect.signature(raw_function(kind)).parameters)


def parameter_name(kind: str, name: str) -> str:
    """The name of the parameter for an input or an attribute."""
    if name in parameter_names(kind):
        return name
    return "condition" if kind == "Where" else _RENAMED[name]


def length_of(argument: Any, operation: Any) -> int | None:
    """How many tensors an argument or a result is; None for a single one."""
    if argument.number_attr:
        return int(operation.get_attr(argument.number_attr))
    if argument.type_list_attr:
        return len(operation.get_attr(argument.type_list_attr))
    return None


def _is_default(value: Any, attribute: Any) -> bool:
    default = attribute.default_value
    kind = attribute.type
    if kind == "type":
        return bool(tf.as_dtype(value) == tf.as_dtype(default.type))
    if kind == "shape":
        return bool(tf.TensorShape(value) == tf.TensorShape(default.shape)) and not default.shape.unknown_rank
    if kind.startswith("list("):
        return list(value) == _default_list(default.list, kind[5:-1])
    field = {"int": "i", "float": "f", "bool": "b", "string": "s"}.get(kind)
    return field is not None and value == getattr(default, field)


def _default_list(default: Any, kind: str) -> list[Any]:
    field = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape"}[kind]
    found = list(getattr(default, field))
    return [tf.as_dtype(item) for item in found] if kind == "type" else found


def _plain(value: Any) -> Any:
    """An attribute as a plain value: texts as str, shapes as lists."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if type(value).__name__ == "TensorShapeProto":
        shape = tf.TensorShape(value)
        return None if shape.rank is None else shape.as_list()
    return value


# ---- functions of Python inside of a graph: tf.py_function and tf.numpy_function -------------------------------------

PYTHON_KINDS = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
PYTHON_FUNCTIONS = (tf.py_function, tf.numpy_function)


def python_function(importer: Importer, call: Call) -> Node | None:
    """The call of a function of Python; None for any other operation."""
    if call.kind not in PYTHON_KINDS:
        return None
    held: Any = script_ops._py_funcs._funcs.get(call.attribute("token"))
    if held is None:
        raise CaptureError("a function of Python in this graph is gone", where=str(call.operation.name))
    function = getattr(held, "_func", held)
    inputs = [importer.node(value) for value in call.inputs["input"]]
    name, kinds = PYTHON_FUNCTIONS[call.kind != "EagerPyFunc"], call.attribute("Tout")
    return importer.call(name, (function, inputs, kinds[0] if len(kinds) == 1 else kinds))


# ---- variables are read and written by their own methods, other resources by their handles ---------------------------

_WRITES = {"AssignVariableOp": "assign", "AssignAddVariableOp": "assign_add", "AssignSubVariableOp": "assign_sub"}
READING = frozenset({"value", "sparse_read"})
WRITING = frozenset(_WRITES.values())


def variable_access(importer: Importer, call: Call) -> Node | None:
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
