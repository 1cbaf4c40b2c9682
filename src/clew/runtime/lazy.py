"""LazyGraph: captured at the first call, and again whenever the guards of all captures fail.

The result of a call that captures comes from that very run. A call whose guards fail leaves no mark: what it had
changed by then is put back before the next capture is tried. The capture that was used last is tried first, and those
whose guards at the entrance seem to fail are tried last.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from operator import getitem, is_, methodcaller
from typing import Any

from clew.capture.example.captured import Pins
from clew.capture.example.state import current as recording
from clew.errors import CaptureError, GuardError
from clew.ir.guests import module_guest


class LazyGraph:
    """A callable that captures itself as it is called. ``captures`` lists what it has.

    The second capture and those that follow keep sizes and numbers free where the first one relied on them.
    """

    def __init__(self, fn: Any, capture: Callable[..., tuple[Any, ...]], limit: int = 16) -> None:
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

    def __repr__(self) -> str:
        return f"LazyGraph({getattr(self.fn, '__name__', self.fn)}, {len(self.captures)} captures)"


HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class Parts:
    """The parts of a module, or of the one that a method belongs to, listed again only when it has others: a capture
    holds for these parts, their classes, their mode and their hooks only."""

    def __init__(self, fn: Any) -> None:
        self._list = getattr(getattr(fn, "__self__", fn), "modules", None)
        self._parts: list[Any] = []
        self._holders: list[dict[str, Any]] = []
        self._children: list[Any] = []
        self._hooks: list[dict[int, Any]] = []
        self._ids: tuple[int, ...] = ()

    def mode(self) -> tuple[Any, ...]:
        """Which parts there are, which are training, and which hooks they have; nothing for a function."""
        if self._list is None:
            return ()
        if not self._are_the_same():
            parts = list(self._list())
            if not all("training" in vars(part) and "_modules" in vars(part) for part in parts):
                return tuple(part.training for part in parts)
            self._note(parts)
        found: chain[Any] = chain(
            self._ids,
            map(type, self._parts),
            map(getitem, self._holders, repeat("training")),
            map(methodcaller("get", "forward"), self._holders),
            chain.from_iterable(self._hooks),
        )
        return tuple(found)

    def _note(self, parts: list[Any]) -> None:
        self._parts = parts
        self._holders = [vars(part) for part in parts]
        self._ids = (*map(id, parts), *map(id, self._holders))
        self._children = self._children_now()
        guest = module_guest(parts[0])
        self._hooks = [held[name] for held in self._holders for name in HOOKS if name in held]
        self._hooks += [] if guest is None else guest.shared_hooks()

    def _are_the_same(self) -> bool:
        """Whether the modules below each part are those that were noted, and no part has another dict."""
        children = self._children_now()
        if (not children and not self._parts) or len(children) != len(self._children):
            return False
        return all(map(is_, children, self._children)) and all(map(is_, map(vars, self._parts), self._holders))

    def _children_now(self) -> list[Any]:
        held = map(methodcaller("values"), map(getitem, self._holders, repeat("_modules")))
        return list(chain.from_iterable(held))
