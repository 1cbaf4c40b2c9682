"""Equal items, where it counts which of them are taken: torch leaves that open, and a translated program says so.

In come the array that a ``topk`` chose from and what it took; a plain call warns if others of equal items could have
been taken. Arrays that have no values yet, under a compiler, tell nothing. Items of ``-inf`` are those that programs
rule out.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy

from clew.errors import EqualItemsWarning


def warn_of_equal_items(x: Any, taken: Any, where: str) -> None:
    """Warn if items of ``x``, along the last axis, equal the last one of those that were taken, and were not taken."""
    try:
        everything, chosen = numpy.asarray(x), numpy.asarray(taken)
    except (TypeError, ValueError, RuntimeError, NotImplementedError):  # a compiler traces the program
        return
    if not chosen.size:
        return
    last = chosen[..., -1:]
    are_more = (everything == last).sum(axis=-1) > (chosen == last).sum(axis=-1)
    count = int((are_more & (last[..., 0] != -numpy.inf)).sum()) if last.dtype.kind != "b" else 0
    if count:
        warnings.warn(
            f"of equal items topk takes the first ones, and torch may take others: {count} times here ({where})",
            EqualItemsWarning,
            stacklevel=2,
        )
