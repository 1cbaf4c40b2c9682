"""The frameworks that Clew knows, announced by the names of their packages.

Importing this room imports no framework. A framework's folder is imported when one of its values first turns up in a
graph, which means that the user has imported the framework; its ``wake`` function then answers with its guest.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from clew.ir.guests import Guest, register

PACKAGES = ("torch", "jax", "tensorflow", "numpy")
PARTS = {"jaxlib": "jax"}
"""Packages whose values belong to a framework of another name."""


def _waker(package: str) -> Callable[[], Guest]:
    """A function that imports the folder of ``package`` and gives its guest."""

    def wake() -> Guest:
        folder = importlib.import_module(f"{__name__}.{package}")
        return cast(Guest, folder.wake())

    return wake


for _package in PACKAGES:
    register(_package, _waker(_package))
for _part, _package in PARTS.items():
    register(_part, _waker(_package))
