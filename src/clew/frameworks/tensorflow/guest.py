"""The guest of TensorFlow: answers the questions of the rooms by calling the files beside this one."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import tensorflow as tf

from clew.frameworks.tensorflow import effects, types
from clew.frameworks.tensorflow.capture import capture
from clew.frameworks.tensorflow.programs import Function, is_layer
from clew.ir.guests import Guest, package_of
from clew.ir.source import hide_folder


class TensorflowGuest(Guest):
    """What the rooms may ask about TensorFlow."""

    package = "tensorflow"
    array_class = tf.Tensor
    constant_classes = (tf.DType, tf.TensorShape)
    capture = staticmethod(capture)
    function_effect = staticmethod(effects.function_effect)
    method_effect = staticmethod(effects.method_effect)
    qualified_name = staticmethod(types.qualified_name)
    spell = staticmethod(types.spell)
    type_of = staticmethod(types.type_of)
    same_value = staticmethod(types.same_value)

    def prepare(self) -> None:
        """Frames of Keras are no user's either."""
        keras = importlib.util.find_spec("keras")
        if keras is not None and keras.origin is not None:
            hide_folder(os.path.dirname(os.path.abspath(keras.origin)) + os.sep)

    def owns(self, value: Any) -> bool:
        """True for tensors, variables, specs, modules, functions of TensorFlow, and layers of Keras on TensorFlow."""
        known = (tf.Tensor, tf.Variable, tf.TypeSpec, tf.Module, tf.RaggedTensor, tf.SparseTensor, Function)
        return isinstance(value, known) or is_layer(value) or package_of(value) == self.package

    def memory_of(self, value: Any) -> tuple[Any, int] | None:
        """A tensor or variable itself, and the size of its elements."""
        if not isinstance(value, (tf.Tensor, tf.Variable)):
            return None
        return id(value), int(value.shape.num_elements() or 0) * value.dtype.size
