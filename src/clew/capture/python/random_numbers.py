"""Random numbers of Python: from the stream behind ``random``, or from a ``random.Random`` around the program.

Whatever draws is handed to the listener of the run, which records the draw or refuses it. A stream that the program
makes itself, from a seed, gives the same numbers at each call, and is left alone.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable
from typing import Any

from clew.capture.example.surroundings import Surroundings
from clew.capture.python.draws import SHARED, recorders
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import current
from clew.capture.symbolic.patches import Patches

_NAMES = tuple(recorders())


def install(patches: Patches) -> None:
    """Let draws from the stream behind ``random`` report to the listener."""
    for name in _NAMES:
        patches.in_dict(vars(random), name, noted(functools.partial(_of_module, name=name), changes=True))


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
