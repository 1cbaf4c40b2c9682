"""Python's random numbers: from the stream behind ``random``, or from a ``random.Random`` around the program.

Draws go to the run's listener, which records or refuses them. Sources of entropy (``uuid``, ``secrets``) and
generators without a seed are refused: no graph could draw the same. What a module makes as it is imported is made
once, and left alone.
"""

from __future__ import annotations

import functools
import os
import random
import sys
import uuid
from collections.abc import Callable
from typing import Any

from clew.capture.patches import Patches
from clew.capture.python.callers import is_importing
from clew.capture.python.draws import SHARED, recorders
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import current
from clew.capture.state.surroundings import Surroundings

_NAMES = tuple(recorders())


def install(patches: Patches) -> None:
    """Let draws from the stream behind ``random``, and sources of entropy, report to the listener."""
    for name in _NAMES:
        patches.in_dict(vars(random), name, noted(functools.partial(_of_module, name=name), changes=True))
    for home, name in ((os, "urandom"), (os, "getrandom"), (random, "_urandom"), (uuid, "uuid1"), (uuid, "uuid4")):
        if hasattr(home, name):
            patches.in_dict(vars(home), name, noted(_refusing, changes=True))
    patches.on_class(random.Random, "__init__", _seeding)


def _refusing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        listener = current()
        if listener is not None and listener.hears(sys._getframe(1)):
            raise listener.refusal("entropy of the system")
        return original(*args, **kwargs)

    return refuse


def _seeding(original: Callable[..., Any]) -> Callable[..., Any]:
    """``random.Random`` without a seed."""

    def __init__(self: Any, x: Any = None) -> None:
        listener = current()
        if listener is not None and x is None and listener.hears(sys._getframe(1)) and not is_importing():
            raise listener.refusal(
                "a generator of Python without a seed", "it gives other values at each call of the original"
            )
        original(self, x)

    return __init__


def install_in(patches: Patches, surroundings: Surroundings) -> None:
    """Let draws from the streams of a program report too, if it has any."""
    for name in _NAMES if surroundings.python_streams() else ():
        patches.on_class(random.Random, name, functools.partial(_of_stream, name=name), inherited=True)


def _of_module(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """What stands for a function of ``random``."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        listener = current()
        if listener is None or not listener.hears(sys._getframe(1)):
            return original(*args, **kwargs)
        return listener.draw(name, None, original, args, kwargs)

    return function


def _of_stream(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """What stands for a method of ``random.Random``."""

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        listener = None if self is SHARED else current()
        if listener is None or not listener.has_stream(self):
            return original(self, *args, **kwargs)
        return listener.draw(name, self, functools.partial(original, self), args, kwargs)

    return method
