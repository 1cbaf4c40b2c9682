"""What calls of TensorFlow do besides computing: by the definitions of its operations, and by methods of variables."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from clew.frameworks.tensorflow import random_numbers, readable_calls
from clew.frameworks.tensorflow.operations import definition_of
from clew.frameworks.tensorflow.types import VARIABLE, qualified_name
from clew.frameworks.tensorflow.variables import READING, WRITING
from clew.ir.guests import Effect

_RANDOM = (tf.random.uniform, tf.random.normal, tf.random.truncated_normal, random_numbers.draw)
_RAW = "tensorflow.raw_ops."


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


def method_effect(name: str, args: tuple[Any, ...]) -> Effect | None:
    """The effect of a method of a variable; None if the receiver is not known to be one."""
    if not args or getattr(args[0], "value_type", None) != VARIABLE:
        return None
    if name in READING:
        return Effect.NONE
    return Effect.WRITE if name in WRITING else None
