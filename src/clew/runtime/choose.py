"""Which callable a captured graph becomes: a framework's own module where its root is one, a function otherwise."""

from __future__ import annotations

import importlib
from typing import Any

from clew.ir.graph import Graph
from clew.ir.guests import module_guest
from clew.runtime.function import GraphFunction

MODULES = {"torch": "clew.runtime.module"}
"""The file that defines GraphModule for each framework; it imports the framework, so it waits until it is needed."""


def make_callable(root: Any, graph: Graph, name: str) -> Any:
    """A ``GraphModule`` for a root that is a module of a framework, a ``GraphFunction`` for any other."""
    guest = module_guest(root)
    if guest is None:
        return GraphFunction(root, graph, name)
    return importlib.import_module(MODULES[guest.package]).GraphModule(root, graph, name)
