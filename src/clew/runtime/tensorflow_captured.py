"""From a capture of TensorFlow to a callable: generated code eagerly, TensorFlow's control flow in a ``tf.function``.

Both do what the graph says. The variables of the capture are attributes of the root.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from clew.frameworks.tensorflow.inside_tf_function import run_staged
from clew.runtime.function import PlainCapture


class TensorflowCapture(PlainCapture):
    """A function captured by TensorFlow's tracing."""

    framework = "tensorflow"

    @tf.autograph.experimental.do_not_convert
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if tf.executing_eagerly():
            return super().__call__(*args, **kwargs)
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        inputs = self.graph.find_nodes(op="placeholder")
        return run_staged(self.graph, self.root, {node: bound.arguments[node.target.lstrip("*")] for node in inputs})
