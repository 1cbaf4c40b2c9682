"""Which callable a captured graph becomes: a framework's own module where its root is one, a function otherwise."""

from __future__ import annotations

import importlib
from typing import Any

from clew.ir.graph import Graph
from clew.ir.guests import module_guest
from clew.runtime.function import GraphFunction

MODULES = {"torch": "clew.runtime.module"}
CAPTURES = {"torch": "clew.runtime.captured"}
PLAIN = "clew.runtime.plain"
"""The files that make modules of each framework, and callables of its captures; they wait until they are needed."""


def make_callable(root: Any, graph: Graph, name: str) -> Any:
    """A ``GraphModule`` for a root that is a module of a framework, a ``GraphFunction`` for any other."""
    guest = module_guest(root)
    if guest is None:
        return GraphFunction(root, graph, name)
    return importlib.import_module(MODULES[guest.package]).GraphModule(root, graph, name)


def make_captured(package: str, captured: Any, name: str, live: bool) -> Any:
    """The callable of a capture of a program of the framework ``package``; ``live`` if it works on the original."""
    make = importlib.import_module(CAPTURES.get(package, PLAIN)).callable_of
    return make(captured.module, captured.constants, captured.graph, name, captured.state, live)
