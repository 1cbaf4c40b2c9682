"""Which framework a program is of, and which callable a captured graph becomes.

A graph becomes a framework's own module where its root is one, and a function otherwise.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

from clew.capture.example.reach import global_names
from clew.errors import MissingFramework
from clew.ir.arguments import leaves
from clew.ir.graph import Graph
from clew.ir.guests import Guest, guest, module_guest, present
from clew.runtime.function import GraphFunction

_DEFAULT = "numpy"
MODULES = {"torch": "clew.runtime.module"}
CAPTURES = {"torch": "clew.runtime.captured", "numpy": "clew.runtime.arrays"}
PLAIN = "clew.runtime.plain"
"""The files that make modules of each framework, and callables of its captures; they wait until they are needed."""


def framework_of(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Guest:
    """The framework of a program: that of its module or arrays, or else one that its function names.

    NumPy comes last: its arrays may be what a program of another framework starts from.
    """
    frameworks = list(present()) or [_default()]
    values = [fn, getattr(fn, "__self__", None), *leaves((args, kwargs))]
    owners = [framework for framework in frameworks if any(framework.owns(value) for value in values)]
    if owners and owners[0].package != _DEFAULT:
        return owners[0]
    function = getattr(inspect.unwrap(fn), "__func__", fn) if callable(fn) else fn
    around = getattr(inspect.unwrap(function), "__globals__", {}) if callable(function) else {}
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    used = [around[name] for name in global_names(code) if name in around] if code is not None else []
    for named in (used, [] if owners else list(around.values())):
        for framework in frameworks:
            if any(value is sys.modules[framework.package] for value in named):
                return framework
    return owners[0] if owners else frameworks[0]


def _default() -> Guest:
    """NumPy, which Clew itself depends on, where the user has imported no framework."""
    importlib.import_module(_DEFAULT)
    found = guest(_DEFAULT)
    if found is None:
        raise MissingFramework("no framework that Clew knows is imported", fixes=["import numpy or torch first"])
    return found


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
