"""What a program reaches, cached for its next capture.

In come the functions and classes of a program; out come all functions that it reaches, the variables around them and
their values now. A cached answer counts as long as all code that it names is the same and all other values are of the
same classes: to see that is far cheaper than to search again.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterable
from types import CellType, FunctionType, MethodType
from typing import Any

from clew.capture.guards.notes import Variable
from clew.capture.state.containers import CODE, SIMPLE, look_up
from clew.capture.state.reachable import ReachableFunctions, global_names, is_generated, names_all_globals, stored_names

ANY = "*"
"""Stands for all names, where code can set a variable by a name that is a value."""
_PLAIN = frozenset(SIMPLE)
_UNCHANGING = (*SIMPLE, *CODE)

Around = tuple[Any, str, FunctionType]
"""A variable: the dict, cell, class or module that holds it, its name, and a function that names it."""


class CachedReach:
    """What a program reaches, the variables around that, and what their values say; the values themselves are not
    kept, but for code."""

    def __init__(
        self, reach: ReachableFunctions, near: dict[FunctionType, None], around: list[Around], values: list[Any]
    ) -> None:
        self.reach = reach
        self.near = near
        self.stored = names_stored(reach.functions)
        self.around = around
        self.keys = frozenset((id(holder), name) for holder, name, _ in around)
        self._kinds = [*map(type, values)]
        self._fixed = [(place, value) for place, value in enumerate(values) if _must_stay(value)]
        self._codes = [(function, function.__code__) for function in reach.functions]
        self._missing = _missing(reach.functions)
        self._places: dict[Any, list[int]] = {}
        self._readers, self._order = _readers(self.around)

    def values(self) -> list[Any] | None:
        """The values of the variables now; None if another program may be reached through them."""
        read: list[Any] = []
        try:
            for holder, reader in self._readers:
                read += reader(holder)
        except KeyError:  # one of them is gone
            return None
        values = [read[place] for place in self._order]
        if not all(map(operator.is_, map(type, values), self._kinds)) and not self._are_of_same_kinds(values):
            return None
        for place, value in self._fixed:
            if values[place] is not value:
                return None
        for function, code in self._codes:
            if function.__code__ is not code:
                return None
        for holder, name in self._missing:
            if name in holder:
                return None
        return values

    def _are_of_same_kinds(self, values: list[Any]) -> bool:
        """Whether all values have the classes that they had, where all plain ones count as one."""
        pairs = zip(map(type, values), self._kinds, strict=True)
        return all(now is kind or (now in _PLAIN and kind in _PLAIN) for now, kind in pairs)

    def places(self, ask: Callable[[Any], bool], values: list[Any]) -> list[int]:
        """Which variables have values for which ``ask`` says yes: found out once, for it may ask for the class of a
        value, or whether it is some piece of code, and for no more; what it says of one plain value holds for all."""
        if ask not in self._places:
            self._places[ask] = [place for place, value in enumerate(values) if ask(value)]
        return self._places[ask]

    def changeable(self, values: list[Any]) -> list[int]:
        """Which variables the program can change: those that it sets, or whose values can be changed in place."""
        if may_change not in self._places:
            self._places[may_change] = [
                place
                for place, (holder, name, _) in enumerate(self.around)
                if may_change(holder, name, values[place], self.stored)
            ]
        return self._places[may_change]

    def in_cells(self) -> list[int]:
        """Which variables are those of closures."""
        if CellType not in self._places:
            self._places[CellType] = [place for place, one in enumerate(self.around) if type(one[0]) is CellType]
        return self._places[CellType]


def may_change(holder: Any, name: str, value: Any, stored: set[str]) -> bool:
    """Whether a program that sets these names can change a variable: it sets it, or changes its value in place."""
    if name in stored or ANY in stored or not isinstance(holder, dict):
        return True
    return not isinstance(value, _UNCHANGING)


_known: dict[Any, CachedReach] = {}
_MOST_KNOWN = 64


def cached_reach(functions: tuple[Any, ...], kinds: tuple[type, ...]) -> tuple[CachedReach, list[Any]]:
    """What is known of a program, and the values of the variables around it; remembered for programs of importable
    parts."""
    known = _known.get((functions, kinds))
    values = None if known is None else known.values()
    if known is not None and values is not None:
        return known, values
    reach = ReachableFunctions()
    for kind in kinds:
        reach.add_own_class(kind)
    for function in functions:
        reach.add(function)
    found = {(id(one[0]), one[1]): (*one, function) for function in reach.functions for one in reach.around(function)}
    around = [(holder, name, function) for holder, name, _, function in found.values()]
    values = [value for _, _, value, _ in found.values()]
    known = CachedReach(reach, reach.near(functions), around, values)
    reach.forget()
    if not any("<locals>" in part.__qualname__ for part in (*functions, *kinds)):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[functions, kinds] = known
    return known, values


def _must_stay(value: Any) -> bool:
    """Whether a program reaches something else once a variable holds another value of the same class."""
    return isinstance(value, (*CODE, MethodType)) or look_up(value, "__wrapped__") is not None


def _readers(around: list[Around]) -> tuple[list[tuple[Any, Callable[[Any], Iterable[Any]]]], list[int]]:
    """How the values of all variables are read, holder by holder, and where each variable's value is among those."""
    held: dict[int, list[int]] = {}
    for place, (holder, _, _) in enumerate(around):
        held.setdefault(id(holder), []).append(place)
    readers = [(around[places[0]][0], _reader([around[place] for place in places])) for places in held.values()]
    read = [place for places in held.values() for place in places]
    order = [0] * len(around)
    for index, place in enumerate(read):
        order[place] = index
    return readers, order


def _reader(variables: list[Around]) -> Callable[[Any], Iterable[Any]]:
    """What reads some variables of one holder; of a dict all at once."""
    holder, names = variables[0][0], [name for _, name, _ in variables]
    if type(holder) is not dict:
        return lambda holder: [Variable(holder, name).get() for name in names]
    read = operator.itemgetter(*names)
    return read if len(names) > 1 else lambda holder: (read(holder),)


def _missing(functions: Iterable[FunctionType]) -> list[tuple[dict[str, Any], str]]:
    """The global variables that code names and that do not exist, nor as builtins."""
    named = [(function.__globals__, name) for function in functions for name in global_names(function.__code__)]
    missing = [one for one in named if one[1] not in one[0] and not hasattr(builtins, one[1])]
    return list({(id(holder), name): (holder, name) for holder, name in missing}.values())


def names_stored(functions: Iterable[FunctionType]) -> set[str]:
    """The names that some functions set, as global variables or as attributes, of a Python module say."""
    found = {name for function in functions for name in stored_names(function.__code__)}
    for function in functions:
        if is_generated(function.__code__):
            found |= {one.root.name for one in function.__globals__.values() if isinstance(one, Variable)}
    return found | {ANY} if any(names_all_globals(function.__code__) for function in functions) else found
