"""Sources of entropy, and generators of random numbers that are made without a seed: no graph could draw the same.

``uuid`` and ``secrets`` come here too. What a module makes as it is imported is made once, and left alone.
"""

from __future__ import annotations

import functools
import os
import random
import sys
import uuid
from collections.abc import Callable
from typing import Any

from clew.capture.python.callers import is_importing
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import current
from clew.capture.symbolic.patches import Patches


def install(patches: Patches) -> None:
    """Let sources of entropy report to the listener."""
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
