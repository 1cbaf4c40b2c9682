"""The captures of a lazy graph as they are saved with it: what each relied on, by the paths of the program's parts.

A capture and its pins come in, which name dicts of modules and classes; out comes the same by paths and classes, which
can be found in another process. What cannot be saved so is left out, and captured again there.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from clew.capture.example.captured import Pins

Attribute = tuple[Any, str, Any]
"""An attribute that a capture relied on: the path of a part or a class, its name, its value."""


class Saved(NamedTuple):
    """A capture, and the attributes that it relied on."""

    captured: Any
    attributes: list[Attribute]


class _Trial(pickle.Pickler):
    """Finds out whether something can be pickled, the parts of a program aside, which are pickled anyway."""

    def __init__(self, parts: Mapping[int, Any]) -> None:
        super().__init__(io.BytesIO(), pickle.DEFAULT_PROTOCOL)
        self._ids = parts

    def persistent_id(self, value: Any) -> Any:
        return "part" if id(value) in self._ids else None


def saved(fn: Any, captured: Any, pins: Pins) -> Saved | None:
    """What to save of a capture; None if that cannot be."""
    if pins.held or pins.code or not pins.hold():
        return None
    parts = _parts(fn)
    attributes = [_by_path(parts, *pin) for pin in pins.attributes]
    found = Saved(captured, [one for one in attributes if one is not None])
    if len(found.attributes) < len(attributes):
        return None
    try:
        _Trial({id(part): part for part in (fn, *parts.values())}).dump(found)
    except Exception:  # whatever an object raises that does not want to be pickled
        return None
    return found


def loaded(fn: Any, one: Saved) -> Pins:
    """What a capture that was loaded relies on."""
    parts = _parts(fn)
    return Pins([(vars(parts[at] if type(at) is str else at), name, value) for at, name, value in one.attributes])


def _parts(fn: Any) -> dict[str, Any]:
    owner = getattr(fn, "__self__", fn)
    return dict(owner.named_modules()) if hasattr(owner, "named_modules") else {}


def _by_path(parts: Mapping[str, Any], holder: Any, name: str, value: Any) -> Attribute | None:
    """An attribute by the place of its holder; None if the holder is no part and no class of one."""
    if type(holder) is MappingProxyType:
        kinds = dict.fromkeys(kind for part in parts.values() for kind in type(part).__mro__)
        found: list[Any] = [kind for kind in kinds if name in vars(kind) and vars(kind)[name] is value]
    else:
        found = [path for path, part in parts.items() if vars(part) is holder]
    return (found[0], name, value) if len(found) == 1 else None
