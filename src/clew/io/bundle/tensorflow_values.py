"""What bundles of TensorFlow's programs have: variables, constants, dtypes and shapes. Importing this file imports
TensorFlow.

A variable that was one stays one: programs that write to it and read it elsewhere do so again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from clew.io.bundle.values import JSON, Decoder
from clew.io.bundle.weights import Weights
from clew.ir.permissions import Permissions


class TensorflowDecoder(Decoder):
    """Reads values of one file of a program of TensorFlow."""

    def __init__(
        self, manifest: JSON, weights: Weights, permissions: Permissions, of_program: Callable[[JSON, Decoder], Any]
    ) -> None:
        super().__init__(manifest, weights, permissions, of_program)
        self._variables: dict[int, tf.Variable] = {}

    def of_framework(self, kind: str, held: JSON) -> Any:
        """A variable by its number, a constant, a dtype or a shape."""
        if kind == "variable":
            return self._variable(held)
        if kind == "constant":
            return tf.constant(self.array(held))
        if kind == "number type":
            return tf.as_dtype(str(held))
        return tf.TensorShape(held) if kind == "sizes" else super().of_framework(kind, held)

    def _variable(self, place: JSON) -> tf.Variable:
        if place not in self._variables:
            entry = self.tensors[place]
            self._variables[place] = tf.Variable(
                self.array(entry["value"]),
                trainable=bool(entry["trainable"]),
                name=str(entry["name"]),
                shape=tf.TensorShape(entry["sizes"]),
            )
        return self._variables[place]
