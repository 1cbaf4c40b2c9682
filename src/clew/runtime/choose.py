"""Which framework a program belongs to, and which callable its graph becomes: a module where its root is one."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

from clew.errors import MissingFramework
from clew.ir.arguments import leaves
from clew.ir.graph import Graph
from clew.ir.guests import Guest, module_guest, present
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


def framework_of(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Guest:
    """The framework of a program: that of its module or arrays, or else one that its function names."""
    frameworks = list(present())
    values = [fn, getattr(fn, "__self__", None), *leaves((args, kwargs))]
    for framework in frameworks:
        if any(framework.owns(value) for value in values):
            return framework
    named = getattr(inspect.unwrap(fn), "__globals__", {}).values() if callable(fn) else ()
    for framework in frameworks:
        if any(value is sys.modules[framework.package] for value in named):
            return framework
    if not frameworks:
        raise MissingFramework("no framework that Clew knows is imported", fixes=["import torch first"])
    return frameworks[0]
