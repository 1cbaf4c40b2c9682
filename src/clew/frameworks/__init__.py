"""The frameworks that Clew knows, announced by the names of their packages.

Importing this room imports no framework. A framework's folder is imported when one of its values first turns up in a
graph, which means that the user has imported the framework. Its own frames are hidden then, so that a node's source
line is the user's, and its guest answers from now on, the same one for all threads.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable

from clew.ir.guests import Guest, register
from clew.ir.source import hide_folder

PACKAGES = {"torch": "TorchGuest", "jax": "JaxGuest", "tensorflow": "TensorflowGuest", "numpy": "NumpyGuest"}
"""The class of each framework's guest, in the file ``guest`` of its folder."""
SYMBOLIC = "torch"
"""The framework with a tracer of its own that works on proxies: torch.fx."""
PARTS = {"jaxlib": "jax"}
"""Packages whose values belong to a framework of another name."""

_waking = threading.RLock()
_guests: dict[str, Guest] = {}


def _waker(package: str) -> Callable[[], Guest]:
    """A function that imports the folder of ``package`` and gives its guest."""

    def wake() -> Guest:
        with _waking:
            if package not in _guests:
                kind = getattr(importlib.import_module(f"{__name__}.{package}.guest"), PACKAGES[package])
                hide_folder(os.path.dirname(os.path.abspath(str(sys.modules[package].__file__))) + os.sep)
                made: Guest = kind()
                made.prepare()
                _guests[package] = made
            return _guests[package]

    return wake


for _package in PACKAGES:
    register(_package, _waker(_package), is_symbolic=_package == SYMBOLIC)
for _part, _package in PARTS.items():
    register(_part, _waker(_package))
