"""From a capture of TensorFlow to a callable: generated code eagerly, TensorFlow's control flow in a ``tf.function``.

Both do what the graph says. The variables of the capture are attributes of the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from clew.capture.state.writes import refused_when_raising
from clew.errors import ClewError
from clew.frameworks.tensorflow.inside_tf_function import run_staged
from clew.ir.arguments import all_nodes
from clew.ir.effects import FIRST_WRITE
from clew.runtime.function import PlainCapture, Protection


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

    def _protection(self) -> Protection | None:
        """What surrounds the calls of a graph that sets state at its end."""
        return self._undone_when_refused if self._writes_late() else None

    @contextmanager
    def _undone_when_refused(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        """A program that raises may have set state by then, which the graph sets at its end: that call is refused."""
        values = (*args, *kwargs.values(), *vars(self.root).values())
        held = [value for value in values if isinstance(value, tf.Variable)]
        before = [variable.value() for variable in held]
        try:
            with refused_when_raising():
                yield
        except ClewError:
            for variable, value in zip(held, before, strict=True):
                variable.assign(value)
            raise

    def _writes_late(self) -> bool:
        """Whether the graph sets state at its end; worked out once for each state of the code."""
        code = self.recompile()
        known = self.__dict__.get("_late")
        if known is None or known[0] is not code:
            known = self.__dict__["_late"] = (code, any(node.meta.get(FIRST_WRITE) for node in all_nodes(self.graph)))
        return bool(known[1])
