"""Functions with ``functools.lru_cache`` in a program: during a capture their bodies run, and no stand-in is kept.

A cache that an earlier call has filled gives arrays that nobody saw being made, and one that is filled during a capture
would keep stand-ins for ever. So such a function is called past its cache. Its result is new at each call of the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from clew.capture.example.reach import attribute_names
from clew.capture.symbolic.patches import Patches

Current = Callable[[], Any]
_CACHED = type(functools.lru_cache(lambda: None))


def install(patches: Patches, current: Current, functions: Iterable[Any]) -> None:
    """Let cached functions that the program names be called past their caches."""
    for function in functions:
        names = attribute_names(function.__code__)
        for name in names & function.__globals__.keys():
            if isinstance(function.__globals__[name], _CACHED):
                patches.in_dict(function.__globals__, name, functools.partial(_past, current=current))
        for cell in function.__closure__ or ():
            try:
                held = cell.cell_contents
            except ValueError:  # a cell that is not filled yet
                continue
            if isinstance(held, _CACHED):
                patches.in_cell(cell, functools.partial(_past, current=current))


def _past(original: Any, current: Current) -> Any:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs) if current() is None else original.__wrapped__(*args, **kwargs)

    return call
