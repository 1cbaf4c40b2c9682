"""Functions of Python inside of a graph stay calls: ``tf.py_function`` and ``tf.numpy_function``.

TensorFlow's graph names them by a token; the function itself is taken from where TensorFlow keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.ops import script_ops

from clew.errors import CaptureError
from clew.frameworks.tensorflow.operations import Call
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.frameworks.tensorflow.importer import Importer

KINDS = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
FUNCTIONS = (tf.py_function, tf.numpy_function)


def spelled(importer: Importer, call: Call) -> Node | None:
    """The call of a function of Python; None for any other operation."""
    if call.kind not in KINDS:
        return None
    held: Any = script_ops._py_funcs._funcs.get(call.attribute("token"))
    if held is None:
        raise CaptureError("a function of Python in this graph is gone", where=str(call.operation.name))
    function = getattr(held, "_func", held)
    inputs = [importer.node(value) for value in call.inputs["input"]]
    name, kinds = FUNCTIONS[call.kind != "EagerPyFunc"], call.attribute("Tout")
    return importer.call(name, (function, inputs, kinds[0] if len(kinds) == 1 else kinds))
