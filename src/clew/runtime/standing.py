"""How the module stands that a capture works on: its parts, their classes, modes and hooks, and what else it relied on.

A lazy graph asks this at each call, to choose among its captures. A capture of a method, which works on the object that
the method belongs to, asks it too, and refuses the call where something has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from operator import getitem, is_, methodcaller
from typing import Any

from clew.capture.example.captured import Pins
from clew.errors import GuardError
from clew.ir.guests import module_guest

HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class Parts:
    """The parts of a module, or of the one that a method belongs to, listed again only when it has others: a capture
    holds for these parts, their classes and their hooks only. Who chooses among captures asks for ``modes`` too."""

    def __init__(self, fn: Any, modes: bool = True) -> None:
        self._modes = modes
        self._list = getattr(getattr(fn, "__self__", fn), "modules", None)
        self._parts: list[Any] = []
        self._holders: list[dict[str, Any]] = []
        self._children: list[Any] = []
        self._hooks: list[dict[int, Any]] = []
        self._ids: tuple[int, ...] = ()
        self._hooks_made: Callable[[], int | None] = lambda: None
        self._made: int | None = None
        self._hooked: tuple[int, ...] = ()

    def mode(self) -> tuple[Any, ...]:
        """Which parts there are, which are training, and which hooks they have; nothing for a function."""
        if self._list is None:
            return ()
        if not self._are_the_same():
            parts = list(self._list())
            if not all("training" in vars(part) and "_modules" in vars(part) for part in parts):
                return tuple(part.training for part in parts if self._modes)
            self._note(parts)
        found: chain[Any] = chain(
            self._ids,
            map(type, self._parts),
            map(getitem, self._holders, repeat("training")) if self._modes else (),
            map(methodcaller("get", "forward"), self._holders),
            self._hooks_now(),
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
        self._hooks_made = (lambda: None) if guest is None else guest.hooks_made
        self._made, self._hooked = None, ()

    def _hooks_now(self) -> tuple[int, ...]:
        """The hooks of all parts; where there were none, they are looked for again only if one was put anywhere."""
        made = self._hooks_made()
        if made is None or self._hooked or made != self._made:
            self._made, self._hooked = made, tuple(chain.from_iterable(self._hooks))
        return self._hooked

    def _are_the_same(self) -> bool:
        """Whether the modules below each part are those that were noted, and no part has another dict."""
        children = self._children_now()
        if (not children and not self._parts) or len(children) != len(self._children):
            return False
        return all(map(is_, children, self._children)) and all(map(is_, map(vars, self._parts), self._holders))

    def _children_now(self) -> list[Any]:
        held = map(methodcaller("values"), map(getitem, self._holders, repeat("_modules")))
        return list(chain.from_iterable(held))


class Standing:
    """How things stood when a capture was made that works on the original itself."""

    def __init__(self, fn: Any, pins: Pins) -> None:
        self._parts = Parts(fn, modes=False)
        self._mode = self._parts.mode()
        self._pins = pins
        self._owner = type(getattr(fn, "__self__", fn)).__name__

    def check(self) -> None:
        """Raise if something is not as it was."""
        if self._parts.mode() != self._mode or not self._pins.hold():
            raise GuardError(
                f"the graph assumed that the {self._owner} is what it was, but something in it has changed",
                why="its parts, their hooks and attributes were read in the capture",
                fixes=("capture again", "clew.trace(fn) without an example captures again by itself"),
            )
