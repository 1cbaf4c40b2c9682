"""Functions with ``functools.lru_cache`` in a program on NumPy's or JAX's arrays: their bodies run, no proxy is kept.

A cache that an earlier call has filled gives arrays that nobody saw being made, and one that is filled during a capture
would keep proxies for ever. So such a function is called past its cache, and its result is new at each call of the
graph. That is the same only if the body has no side effect and nobody writes to the result (``CachedCalls``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from clew.capture.python.caches import CachedCalls
from clew.frameworks.numpy.array_proxy import is_traced
from clew.ir.arguments import leaves

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder


class RecordedBodies(CachedCalls):
    """Calls of cached functions, each recorded as its body."""

    def __init__(self, recorder: NumpyRecorder) -> None:
        super().__init__(recorder.is_end)
        self._recorder = recorder

    def call(self, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the body gives."""
        recorder = self._recorder
        hash(recorder.concrete((args, tuple(kwargs.values()))))  # an array among them is an error of the program's own
        last = recorder.graph._root._prev
        with self.without_effects(cached):
            result = cached.__wrapped__(*args, **kwargs)
        self.check_recorded(cached, recorder.bodies.since(last))
        self.hand_out(cached, result)
        arrays = [leaf.plain for leaf in leaves(result) if is_traced(leaf) and type(leaf.plain) is numpy.ndarray]
        self.arrays += [(array, cached) for array in arrays]
        return result
