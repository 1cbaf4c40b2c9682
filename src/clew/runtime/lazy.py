"""LazyGraph: captured at the first call, and again whenever the guards of all captures fail.

The result of a call that captures comes from that very run. A call whose guards fail leaves no mark: what it had
changed by then is put back before the next capture is tried. The capture that was used last is tried first, and those
whose guards at the entrance seem to fail are tried last.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from clew.capture.example.captured import Pins
from clew.capture.example.under_way import current as recording
from clew.errors import CaptureError, GuardError
from clew.runtime.standing import Parts

_OWN = frozenset({"fn", "captures", "limit", "_modes", "_order", "_parts", "_capture"})


class LazyGraph:
    """A callable that captures itself as it is called. ``captures`` lists what it has.

    The second capture and those that follow keep sizes and numbers free where the first one relied on them.
    """

    def __init__(self, fn: Any, capture: Callable[..., tuple[Any, ...]], limit: int = 16) -> None:
        if not isinstance(limit, int) or limit < 1:
            raise CaptureError(f"limit={limit!r} allows no capture", fixes=("give a number of captures, 1 or more",))
        self.fn = fn
        self.captures: list[Any] = []
        self._modes: list[tuple[tuple[Any, ...], Pins]] = []
        self._order: tuple[int, ...] = ()
        self._parts = Parts(fn)
        self.limit = limit
        self._capture = capture
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if recording.get() is not None:  # another capture is at work, and follows the original
            return self.fn(*args, **kwargs)
        mode = self._parts.mode()
        order: Iterable[int] = self._order
        if len(self._order) > 1:
            order = self._candidates(mode, args, kwargs)
        elif self._order:
            captured_mode, pins = self._modes[0]
            order = self._order if mode == captured_mode and pins.hold() else ()
        for place in order:
            try:
                result = self.captures[place](*args, **kwargs)
            except GuardError:
                continue
            if self._order[0] != place:
                self._order = (place, *(other for other in self._order if other != place))
            return result
        if len(self.captures) >= self.limit:
            raise CaptureError(
                f"{self!r} has as many captures as it may have, and none of them fits this call",
                why="each capture holds for some inputs only; the guards of the captures say which",
                fixes=("look at .captures[i].guards", "raise the limit: clew.trace(fn, limit=...)"),
            )
        captured, result, pins = self._capture(self.fn, args, kwargs, bool(self.captures))
        self.captures.append(captured)
        self._modes.append((mode, pins))
        self._order = (len(self.captures) - 1, *self._order)
        return result

    def _candidates(self, mode: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[int]:
        """The captures that this call may fit, by their places: first those whose guards at the entrance hold."""
        doubtful = []
        for place in self._order:
            captured_mode, pins = self._modes[place]
            if mode != captured_mode or not pins.hold():
                continue
            if self.captures[place]._may_fit(args, kwargs):
                yield place
            else:
                doubtful.append(place)
        yield from doubtful

    def __getattr__(self, name: str) -> Any:
        """What the original has, ``parameters()`` say, is the original's."""
        if name == "fn":
            raise AttributeError(name)
        return getattr(self.fn, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """What is set besides the attributes of a lazy graph is set in the original, which its captures work on."""
        is_own = name in _OWN or name.startswith("__") or "fn" not in self.__dict__
        object.__setattr__(self, name, value) if is_own else setattr(self.fn, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name) if name in self.__dict__ else delattr(self.fn, name)

    def __repr__(self) -> str:
        return f"LazyGraph({getattr(self.fn, '__name__', self.fn)}, {len(self.captures)} captures)"
