"""LazyGraph: captured at the first call, and again whenever the guards of all captures fail.

The result of a call that captures comes from that very run. A call whose guards fail leaves no mark: what it had
changed by then is put back before the next capture is tried.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from clew.errors import CaptureError, GuardError


class LazyGraph:
    """A callable that captures itself as it is called. ``captures`` lists what it has."""

    def __init__(self, fn: Any, capture: Callable[..., tuple[Any, Any]], protect: Any, limit: int = 16) -> None:
        self.fn = fn
        self.captures: list[Any] = []
        self._modes: list[tuple[bool, ...]] = []
        self.limit = limit
        self._capture = capture
        self._protect = protect
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode = self._mode()
        for captured, captured_mode in zip(self.captures, self._modes, strict=True):
            if mode != captured_mode:
                continue
            try:
                with self._protect(captured, args, kwargs):
                    return captured(*args, **kwargs)
            except GuardError:
                continue
        if len(self.captures) >= self.limit:
            raise CaptureError(
                f"{self!r} has as many captures as it may have, and none of them fits this call",
                why="each capture holds for some inputs only; the guards of the captures say which",
                fixes=("look at .captures[i].guards", "raise the limit: clew.trace(fn, limit=...)"),
            )
        captured, result = self._capture(self.fn, args, kwargs)
        self.captures.append(captured)
        self._modes.append(mode)
        return result

    def _mode(self) -> tuple[bool, ...]:
        """Which parts of a module are training: a capture holds for one mode only."""
        parts = getattr(self.fn, "modules", None)
        return () if parts is None else tuple(part.training for part in parts())

    def __repr__(self) -> str:
        return f"LazyGraph({getattr(self.fn, '__name__', self.fn)}, {len(self.captures)} captures)"
