"""Functions that programs import by their own names, such as ``from time import time``, and what stands for each.

Whoever replaces a function in its home notes here what stands for it; for the time of a capture the same stands in the
modules of the program, under whichever names they have imported it. All of them are looked for at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from clew.capture.symbolic.patches import Patches

Make = Callable[[Any], Any]

_standing: dict[int, tuple[Any, Any]] = {}
"""The original and what stands for it, by the identities of both: another capture may be at work already."""


def noted(make: Make) -> Make:
    """The same maker of replacements, which also notes what it has made."""

    def make_and_note(original: Any) -> Any:
        replacement = make(original)
        _standing[id(original)] = _standing[id(replacement)] = (original, replacement)
        return replacement

    return make_and_note


def replace_in(patches: Patches, namespaces: Iterable[dict[str, Any]]) -> None:
    """Replace all that is noted where the globals of the program's modules hold it."""
    for names in namespaces:
        if not _standing.keys().isdisjoint(map(id, names.values())):
            for name in [name for name, value in names.items() if id(value) in _standing]:
                patches.in_dict(names, name, _replacement)


def _replacement(original: Any) -> Any:
    return _standing[id(original)][1]
