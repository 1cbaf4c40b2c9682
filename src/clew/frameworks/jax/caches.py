"""Functions with ``functools.lru_cache`` in a JAX program: they are asked on plain values, outside of the trace.

What such a function gives is a constant of the capture, as it is for the program; a cache never sees a tracer, which
would outlive the capture there. Numbers that it is asked for are guarded. A body with effects, and a program that
changes what a cache holds, are refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import jax

from clew import tree
from clew.capture.patches import Patches
from clew.capture.python import caches as cached
from clew.frameworks.jax.scalars import Standing


def install(patches: Patches, capture: Any, functions: Iterable[Any], kinds: Iterable[type]) -> None:
    """Let cached functions that the program names give constants."""
    thread = threading.get_ident()

    def how() -> cached.Call | None:
        is_own = capture.recorder.running and threading.get_ident() == thread
        return (lambda function, args, kwargs: _constant(capture, function, args, kwargs)) if is_own else None

    cached.install(patches, how, functions, kinds)


def _constant(capture: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, structure = tree.flatten((args, kwargs))
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return function(*args, **kwargs)  # which raises, as it does for every array: none can be a key
    for leaf in leaves:
        if issubclass(type(leaf), Standing):
            hash(leaf)  # which guards it
    plain_args, plain_kwargs = tree.unflatten(
        [leaf.plain if issubclass(type(leaf), Standing) else leaf for leaf in leaves], structure
    )
    printed = len(capture.printing)
    with jax.ensure_compile_time_eval():
        with cached.without_effects(function, capture.recorder.is_end):
            function.__wrapped__(*plain_args, **plain_kwargs)
        if len(capture.printing) != printed:
            raise cached.refusal(function, "its body prints, only when the cache has no result yet")
        result = function(*plain_args, **plain_kwargs)
    capture.cached.remember(function, result)
    return result
