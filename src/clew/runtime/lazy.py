"""LazyGraph: captured at the first call, and again whenever the guards of all captures fail.

The result of a call that captures comes from that very run. A call whose guards fail leaves no mark: what it had
changed by then is put back before the next capture is tried.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from clew.capture.example.contents import same_part
from clew.errors import CaptureError, GuardError

Pin = tuple[dict[str, Any], str, Any]
"""An attribute that a capture relied on: the dict that holds it, its name, its value."""


class LazyGraph:
    """A callable that captures itself as it is called. ``captures`` lists what it has.

    The second capture and those that follow keep sizes and numbers free where the first one relied on them.
    """

    def __init__(self, fn: Any, capture: Callable[..., tuple[Any, ...]], limit: int = 16) -> None:
        self.fn = fn
        self.captures: list[Any] = []
        self._modes: list[tuple[tuple[bool, ...], list[Pin]]] = []
        self.limit = limit
        self._capture = capture
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode = self._mode()
        for captured, (captured_mode, pins) in zip(self.captures, self._modes, strict=True):
            if mode != captured_mode or not _hold(pins):
                continue
            try:
                return captured(*args, **kwargs)
            except GuardError:
                continue
        if len(self.captures) >= self.limit:
            raise CaptureError(
                f"{self!r} has as many captures as it may have, and none of them fits this call",
                why="each capture holds for some inputs only; the guards of the captures say which",
                fixes=("look at .captures[i].guards", "raise the limit: clew.trace(fn, limit=...)"),
            )
        captured, result, pins = self._capture(self.fn, args, kwargs, bool(self.captures))
        self.captures.append(captured)
        self._modes.append((mode, pins))
        return result

    def __getattr__(self, name: str) -> Any:
        """What the original has, ``parameters()`` say, is the original's."""
        if name == "fn":
            raise AttributeError(name)
        return getattr(self.fn, name)

    def _mode(self) -> tuple[bool, ...]:
        """Which parts of a module are training: a capture holds for one mode only."""
        parts = getattr(self.fn, "modules", None)
        return () if parts is None else tuple(part.training for part in parts())

    def __repr__(self) -> str:
        return f"LazyGraph({getattr(self.fn, '__name__', self.fn)}, {len(self.captures)} captures)"


def _hold(pins: list[Pin]) -> bool:
    """Whether all attributes are what they were."""
    for holder, name, value in pins:
        now = holder.get(name, _hold)
        if now is not value and not same_part(now, value):
            return False
    return True
