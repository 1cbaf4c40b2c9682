"""Environment variables: a graph checks at its entrance that those which the program has read are the same.

``os.environ[name]``, ``os.environ.get``, ``os.getenv`` and ``in`` all come to one method of its class; whoever iterates
over all variables is guarded on their names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from clew.capture.patches import Patches
from clew.capture.python.listener import asked_listener, current
from clew.ir.effects import pure


@pure
def environment(name: str) -> str | None:
    """A variable of the environment."""
    return os.environ.get(name)


@pure
def environment_names() -> tuple[str, ...]:
    """The names of all variables of the environment."""
    return tuple(os.environ)


def install(patches: Patches) -> None:
    """Let reads of the environment report to the listener."""
    kind = type(os.environ)
    patches.on_class(kind, "__getitem__", _reading)
    patches.on_class(kind, "__iter__", _listing)
    patches.on_class(kind, "__len__", _counting)


def _is_environment(value: Any) -> bool:
    return value is os.environ or value is getattr(os, "environb", None)


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    def __getitem__(self: Any, key: Any) -> Any:
        listener = current()
        if listener is not None and _is_environment(self) and listener.hears(sys._getframe(1)):
            name = os.fsdecode(key)
            listener.note(environment, (name,), f"os.environ.get({name!r}) ==")
        return original(self, key)

    return __getitem__


def _note_names(self: Any) -> None:
    listener = asked_listener(3)
    if listener is not None and _is_environment(self):
        listener.note(environment_names, (), "the environment has the variables that it had")


def _listing(original: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def __iter__(self: Any) -> Iterator[Any]:
        _note_names(self)
        return original(self)

    return __iter__


def _counting(original: Callable[..., int]) -> Callable[..., int]:
    def __len__(self: Any) -> int:
        _note_names(self)
        return original(self)

    return __len__
