"""The guest of TensorFlow: answers the questions of the rooms by calling the files beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from clew.frameworks.tensorflow import effects, types
from clew.frameworks.tensorflow.capture import capture
from clew.frameworks.tensorflow.programs import Function, is_layer
from clew.ir.guests import Effect, Guest, package_of


class TensorflowGuest(Guest):
    """What the rooms may ask about TensorFlow."""

    package = "tensorflow"
    array_class = tf.Tensor
    constant_classes = (tf.DType, tf.TensorShape)

    def owns(self, value: Any) -> bool:
        """True for tensors, variables, specs, modules, functions of TensorFlow, and layers of Keras on TensorFlow."""
        known = (tf.Tensor, tf.Variable, tf.TypeSpec, tf.Module, tf.RaggedTensor, tf.SparseTensor, Function)
        return isinstance(value, known) or is_layer(value) or package_of(value) == self.package

    def capture(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Any) -> Any:
        """Trace ``fn`` on an example and import it."""
        return capture(fn, args, kwargs, options)

    def function_effect(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
        """The effect of calling a function of TensorFlow."""
        return effects.function_effect(target, args, kwargs)

    def method_effect(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
        """The effect of a method of a variable."""
        return effects.method_effect(name, args)

    def qualified_name(self, function: Any) -> str | None:
        """The public name of a function or class of TensorFlow."""
        return types.qualified_name(function)

    def spell(self, value: Any, name_of: Callable[[Any], str]) -> str | None:
        """The expression of a dtype or shape."""
        return types.spell(value, name_of)

    def type_of(self, value: Any) -> Any:
        """The IR type of a tensor or variable."""
        return types.type_of(value)

    def same_value(self, left: Any, right: Any) -> bool | None:
        """Whether two tensors are the same constant."""
        return types.same_value(left, right)

    def memory_of(self, value: Any) -> tuple[Any, int] | None:
        """A tensor or variable itself, and the size of its elements."""
        if not isinstance(value, (tf.Tensor, tf.Variable)):
            return None
        return id(value), int(value.shape.num_elements() or 0) * value.dtype.size
