"""The fingerprint of the module that a capture works on: its parts, their classes and hooks, and what was read.

A capture that works on the original itself, one of a lazy graph or of a method, compares it at each call, and refuses
the call where something has changed. The comparison is one generated expression, which may be false too often: then all
is compared one by one. Training modes are no part of it: captures read them, and guard those that they relied on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from operator import is_
from typing import Any

from clew.capture.captured import Pins
from clew.errors import GuardError
from clew.ir.guests import module_guest

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""The tables of a module that hold the hooks of its calls, those of the backward pass last."""


class Structure:
    """The parts of a module at one time, their classes, and methods ``forward`` of single ones.

    Two of them are equal if all of that is the same. The parts are kept alive, so that no other object can be taken for
    one of them.
    """

    def __init__(self, parts: list[Any]) -> None:
        self._parts = parts
        self._holders = [vars(part) for part in parts]
        self._tables = [holder["_modules"] for holder in self._holders]
        self._children = [[*table.items()] for table in self._tables]
        self._others = [(type(part), holder.get("forward")) for part, holder in zip(parts, self._holders, strict=True)]
        self.is_unchanged = self._test()
        guest = module_guest(parts[0])
        self._hooks: list[dict[int, Any]] = [held[name] for held in self._holders for name in HOOKS if name in held]
        self._hooks += [] if guest is None else guest.shared_hooks()
        self.hooks_made: Callable[[], int | None] = (lambda: None) if guest is None else guest.hooks_made
        self._found: tuple[int | None, tuple[Structure, tuple[int, ...]]] = (None, (self, ()))

    def _test(self) -> Callable[[], bool]:
        """What tells whether nothing of it has changed: one expression, since each call of a capture asks."""
        names: dict[str, Any] = {"is_": is_, "type": type, "all": all, "map": map}
        terms = []
        for i, (part, holder, table) in enumerate(zip(self._parts, self._holders, self._tables, strict=True)):
            kind, forward = self._others[i]
            names |= {f"p{i}": part, f"d{i}": holder, f"t{i}": kind, f"f{i}": forward}
            terms += [f"type(p{i}) is t{i}", f"(d := p{i}.__dict__) is d{i}"]
            terms.append("'forward' not in d" if forward is None else f"d.get('forward') is f{i}")
            children = f"[*(m := d['_modules'])] == n{i} and all(map(is_, m.values(), c{i}))"
            terms.append(children if table else "not d['_modules']")
            names |= {f"n{i}": [*table], f"c{i}": [*table.values()]} if table else {}
        return _compiled(" and ".join(terms), names)

    def now(self) -> tuple[Structure, tuple[int, ...]]:
        """Itself, and the hooks of all parts; where there were none, they are looked for again only if one was put
        anywhere."""
        made = self.hooks_made()
        before, now = self._found
        if made is None or made != before or now[1]:
            now = (self, tuple(chain.from_iterable(self._hooks)))
            self._found = (made, now)
        return now

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Structure) and self._identity() == other._identity())

    __hash__ = None  # type: ignore[assignment]

    def _identity(self) -> list[Any]:
        single = chain(self._parts, self._holders, self._tables, chain.from_iterable(self._others))
        return [*map(id, single), *([(name, id(child)) for name, child in below] for below in self._children)]


PartsAndHooks = tuple[Structure, tuple[int, ...]] | tuple[()]
"""Which parts there are, and which hooks they have."""


class Parts:
    """The parts of a module, or of the one that a method belongs to, listed again only when it has others: a capture
    holds for these parts, their classes and their hooks only."""

    def __init__(self, fn: Any) -> None:
        self._list: Callable[[], Iterable[Any]] | None = getattr(getattr(fn, "__self__", fn), "modules", None)
        self._structure: Structure | None = None

    @property
    def are_there(self) -> bool:
        """Whether there may be any."""
        return self._list is not None

    def now(self) -> PartsAndHooks:
        """Which parts there are, and which hooks they have; nothing for a function."""
        structure = self._structure
        if structure is not None and structure.is_unchanged():
            return structure.now()
        parts = [] if self._list is None else list(self._list())
        if not all("training" in vars(part) and isinstance(vars(part).get("_modules"), dict) for part in parts):
            return ()
        structure = self._structure = Structure(parts) if parts else None
        return () if structure is None else structure.now()


class Fingerprint:
    """What a capture that works on the original itself relied on when it was made; ``then`` are its parts.

    ``holds`` tells whether all is as it was. It is one generated expression, which may be false too often: then all is
    compared. ``is_free`` if there is nothing that could change.
    """

    def __init__(self, fn: Any, pins: Pins, parts: Parts | None = None, then: PartsAndHooks | None = None) -> None:
        self._parts = Parts(fn) if parts is None else parts
        self.then = self._parts.now() if then is None else then
        self.pins = pins
        self._owner = type(getattr(fn, "__self__", fn)).__name__
        self.is_free = not self.then and not any(pins) and not self._parts.are_there
        self._hooks_seen: list[int | None] = [None]
        self.holds = self._test()

    def _test(self) -> Callable[[], bool]:
        names: dict[str, Any] = {"compared": self._compare, "seen": self._hooks_seen, "MISSING": Pins}
        terms = []
        if not self.then and self._parts.are_there:
            return self._compare
        if self.then:
            structure, hooks = self.then
            if hooks or structure.hooks_made() is None:
                return self._compare
            self._hooks_seen[0] = structure.hooks_made()
            names |= {"is_unchanged": structure.is_unchanged, "hooks_made": structure.hooks_made}
            terms += ["hooks_made() == seen[0]", "is_unchanged()"]
        for i, (holder, name, value) in enumerate(self.pins.attributes):
            names |= {f"d{i}": holder, f"v{i}": value}
            terms.append(f"d{i}.get({name!r}, MISSING) is v{i}")
        if self.pins.held or self.pins.code:
            names["others_hold"] = self.pins._replace(attributes=()).hold
            terms.append("others_hold()")
        return _compiled(f"{' and '.join(terms) or 'True'} or compared()", names)

    def _compare(self) -> bool:
        """Whether all is as it was, looked at one by one."""
        made = self.then[0].hooks_made() if self.then else None
        if self._parts.now() != self.then or not self.pins.hold():
            return False
        self._hooks_seen[0] = made
        return True

    def check(self) -> None:
        """Raise if something is not as it was."""
        if not self.holds():
            raise GuardError(
                f"the graph assumed that the {self._owner} is unchanged, but something in it has changed",
                why="its parts, their hooks and attributes were read in the capture",
                fixes=("capture again", "clew.trace(fn) without an example captures again by itself"),
            )


def _compiled(expression: str, names: dict[str, Any]) -> Callable[[], bool]:
    """A function that gives the value of an expression over ``names``."""
    exec(compile(f"def test(): return {expression}", "<clew fingerprint>", "exec", dont_inherit=True), names)
    test: Callable[[], bool] = names["test"]
    return test
