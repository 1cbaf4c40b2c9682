"""Random numbers as the original would draw them.

A program that runs eagerly asks TensorFlow for the seeds of each random operation as it runs: from the global seed, the
seed that the program gives, and the number of operations so far. ``draw`` asks in the same way, so that the stream is
the original's. In a ``tf.function`` each operation keeps a stream of its own, which starts where TensorFlow's tracing
has put it: without any seed fresh numbers are as good, with one the capture is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import random_seed

from clew.capture.guards.notes import require
from clew.errors import CaptureError
from clew.frameworks.tensorflow.operations import Call, definition_of, raw_function
from clew.ir.effects import pure
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.frameworks.tensorflow.importer import Importer

MARK = 0x7E57_C1EF
"""Stands where an operation's first seed would be; its second then names the place of the program's own."""


def draw(operation: Any, seed: int | None, **arguments: Any) -> Any:
    """Run a random operation of ``tf.raw_ops`` with the seeds that TensorFlow gives it right now."""
    first, second = random_seed.get_seed(seed)
    return operation(**arguments, seed=first or 0, seed2=second or 0)


@pure
def global_seed() -> int | None:
    """The global seed, None if there is none."""
    found: int | None = context.global_seed()
    return found


def spelled(importer: Importer, call: Call) -> Node | None:
    """A call that draws random numbers; None for operations that hold no seeds."""
    names = {attribute.name for attribute in call.definition.attr}
    if not {"seed", "seed2"} <= names:
        return None
    first, second = call.attribute("seed"), call.attribute("seed2")
    if first == MARK:
        return _drawn(importer, call, importer.notes.seeds[second])
    if not definition_of(call.kind).is_stateful:
        return None
    if (first, second) != (0, 0):
        raise CaptureError(
            f"the random operation {call.operation.name} of a tf.function has a seed",
            where="" if importer.source is None else importer.source.describe(),
            why="it keeps a stream of its own from call to call, which the graph cannot share",
            fixes=(
                "draw with tf.random.Generator or tf.random.stateless_*",
                "capture the function without tf.function, without a seed of the operation",
            ),
        )
    node = importer.call(global_seed, ())
    importer.call(require, (node, None, "tf.random.set_seed was not called"))
    return _drawn(importer, call, None)


_FRIENDLY = {
    "RandomUniform": tf.random.uniform,
    "RandomStandardNormal": tf.random.normal,
    "TruncatedNormal": tf.random.truncated_normal,
}


def _drawn(importer: Importer, call: Call, seed: Any) -> Node:
    function = _FRIENDLY.get(call.kind)
    if function is not None:
        dtype = call.attribute("dtype")
        options = {} if dtype == tf.float32 else {"dtype": dtype}
        options |= {} if seed is None else {"seed": seed}
        return importer.call(function, (importer.argument(call.inputs["shape"]),), options)
    inputs = {name: importer.argument(value) for name, value in call.inputs.items()}
    settings = {name: value for name, value in call.settings().items() if name not in ("seed", "seed2")}
    return importer.call(draw, (raw_function(call.kind), seed), inputs | settings)
