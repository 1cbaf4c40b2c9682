"""Functions that programs import by name, such as ``from time import time``, and their replacements.

Whoever replaces a function in its home notes the replacement here; for the time of a capture it stands in the modules
of the program too, under whichever name. Some matter wherever they are called from: these are replaced in all modules
that hold them under their own names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import CellType, FunctionType
from typing import Any

from clew.capture.patches import Patches, held_at

Make = Callable[[Any], Any]

_replacements: dict[int, tuple[Any, Any]] = {}
"""The original and its replacement, by the identities of both: another capture may be at work already."""
_everywhere: dict[str, Any] = {}


_changing: dict[int, Any] = {}
"""Functions that give another value at each call, by their identities."""


def noted(make: Make, everywhere: bool = False, changes: bool = False) -> Make:
    """The same maker of replacements, which also notes what it has made; ``changes`` if the original gives another
    value at each call."""

    def make_and_note(original: Any) -> Any:
        replacement = make(original)
        _replacements[id(original)] = _replacements[id(replacement)] = (original, replacement)
        if changes:
            _changing[id(original)] = original
        if everywhere:
            _everywhere[original.__name__] = original
        return replacement

    return make_and_note


def also_named(name: str, original: Any) -> None:
    """What matters everywhere stands under this name in some modules."""
    _everywhere[name] = original


def is_noted(value: Any) -> bool:
    """Whether a value is replaced wherever a name leads to it."""
    return id(value) in _replacements and any(value is held for held in _replacements[id(value)])


def gives_another(value: Any) -> bool:
    """Whether a function is one that gives another value at each call."""
    return _changing.get(id(value)) is value


def replace_in(patches: Patches, namespaces: Iterable[dict[str, Any]], cells: Iterable[CellType]) -> None:
    """Replace all that is noted where the globals of the program's modules, other dicts, or closures hold it."""
    for cell in cells:
        if id(held_at(cell, "")) in _replacements:
            patches.in_cell(cell, _replacement)
    for names in namespaces:
        if not _replacements.keys().isdisjoint(map(id, names.values())):
            for name in [name for name, value in names.items() if id(value) in _replacements]:
                patches.in_dict(names, name, _replacement)
    replace_in_importers(patches)


def replace_in_classes(patches: Patches, places: Iterable[tuple[type, str]]) -> None:
    """Replace all that is noted where classes hold it, as it is or as a static method."""
    for kind, name in places:
        if id(held_by_class(vars(kind).get(name))) in _replacements:
            patches.on_class(kind, name, _replacement_in_class)


def replace_in_defaults(patches: Patches, functions: Iterable[FunctionType]) -> None:
    """Replace all that is noted among the default values of functions."""
    for function in functions:
        named = function.__kwdefaults__ or {}
        for name in [name for name, value in named.items() if id(value) in _replacements]:
            patches.in_dict(named, name, _replacement)
        if not _replacements.keys().isdisjoint(map(id, function.__defaults__ or ())):
            patches.in_defaults(function, _all_replaced)


def _all_replaced(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_replacements[id(value)][1] if id(value) in _replacements else value for value in values)


def held_by_class(value: Any) -> Any:
    """The function that an attribute of a class gives, if it is no method."""
    return value.__func__ if type(value) is staticmethod else value


def _replacement_in_class(original: Any) -> Any:
    return staticmethod(_replacement(held_by_class(original)))


def replace_in_importers(patches: Patches) -> None:
    """Replace what matters everywhere in all modules that have imported it by name."""
    for names, name in _importers.now():
        if id(names.get(name)) in _replacements:
            patches.in_dict(names, name, _replacement)


class _Importers:
    """The globals of modules that have imported something by name which matters everywhere; modules that were there
    before are not looked at again when others are imported."""

    def __init__(self) -> None:
        self._looked_at: dict[str, Any] = {}
        self._wanted = 0
        self._found: list[tuple[dict[str, Any], str]] = []

    def now(self) -> list[tuple[dict[str, Any], str]]:
        """Those among the modules that there are now."""
        if len(_everywhere) != self._wanted:
            self._looked_at, self._found, self._wanted = {}, [], len(_everywhere)
        if len(sys.modules) != len(self._looked_at):
            known, self._looked_at = self._looked_at, dict(sys.modules)
            for name, module in self._looked_at.items():
                if known.get(name, self) is not module:
                    self._found += _importing(module)
        return self._found


_importers = _Importers()


def _importing(module: Any) -> list[tuple[dict[str, Any], str]]:
    names: Any = getattr(module, "__dict__", None)
    known = names.keys() & _everywhere.keys() if type(names) is dict else ()
    return [(names, name) for name in known if is_noted(names[name])]


def _replacement(original: Any) -> Any:
    return _replacements[id(original)][1]
