"""Functions with ``functools.lru_cache`` in a TensorFlow program: they are asked eagerly, outside of the trace.

What such a function gives is a constant of the capture, as it is for the program; a cache never sees a symbolic tensor,
which would outlive the capture there. A body with effects, and a program that changes what a cache holds, are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from clew import tree
from clew.capture.patches import Patches
from clew.capture.python import caches as cached
from clew.frameworks.tensorflow.programs import is_part


def is_end(value: Any) -> bool:
    """What is never looked into for changes: tensors, variables, modules."""
    return isinstance(value, (tf.Tensor, tf.Variable)) or is_part(value)


def install(
    patches: Patches,
    results: cached.CachedResults,
    is_running: Callable[[], bool],
    functions: Iterable[Any],
    kinds: Iterable[type],
) -> None:
    """Let cached functions that the program names give constants."""

    def constant(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(isinstance(leaf, tf.Tensor) for leaf in tree.flatten((args, kwargs))[0]):
            return function(*args, **kwargs)  # which raises, as it does eagerly: no tensor can be a key
        with tf.init_scope():
            with cached.without_effects(function, is_end):
                function.__wrapped__(*args, **kwargs)
            result = function(*args, **kwargs)
        results.remember(function, result)
        return result

    unconverted = tf.autograph.experimental.do_not_convert(constant)
    cached.install(patches, lambda: unconverted if is_running() else None, functions, kinds)
