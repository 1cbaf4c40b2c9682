"""Functions with ``functools.lru_cache`` in a program: during a capture their bodies run, and no proxy is kept.

A cache that an earlier call has filled gives arrays that nobody saw being made, and one that is filled during a capture
would keep proxies for ever. So such a function is called past its cache, and its result is new at each call of the
graph. That is the same only if the body has no effects and nobody writes to the result, so these are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy

from clew.capture.bytecode.try_blocks import attempted_effect
from clew.capture.guards.notes import CHECKS
from clew.capture.patches import Patches
from clew.capture.python import caches as cached
from clew.capture.python.random_numbers import DRAWS
from clew.frameworks.numpy.array_proxy import is_traced
from clew.ir.arguments import leaves
from clew.ir.guests import Effect

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder


def install(patches: Patches, current: Callable[[], Any], functions: Iterable[Any], kinds: Iterable[type]) -> None:
    """Let cached functions that the program names be called past their caches."""

    def how() -> cached.Call | None:
        recorder = current()
        return None if recorder is None else lambda function, args, kwargs: past(recorder, function, args, kwargs)

    cached.install(patches, how, functions, kinds)


def past(recorder: NumpyRecorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function past its cache."""
    hash(recorder.concrete((args, tuple(kwargs.values()))))  # an array among them is an error of the program's own
    last = recorder.graph._root._prev
    with cached.without_effects(function, recorder.is_end):
        result = function.__wrapped__(*args, **kwargs)
    node = last._next
    while node is not recorder.graph._root:
        if node.op == "get_attr" or node.target in DRAWS or not _only_computes(node):
            raise cached.refusal(
                function, "its body reads clocks, draws random numbers, writes, or reads arrays that may change"
            )
        node = node._next
    recorder.cached.remember(function, result)
    arrays = [leaf.plain for leaf in leaves(result) if is_traced(leaf) and type(leaf.plain) is numpy.ndarray]
    recorder.unwritten += [(array, function) for array in arrays]
    return result


def _only_computes(node: Any) -> bool:
    """Whether a node has no effect."""
    return node.target in CHECKS or attempted_effect(node) is Effect.NONE
