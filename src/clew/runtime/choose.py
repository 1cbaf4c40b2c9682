"""Which framework a program is of, and which callable a captured graph becomes.

A graph becomes a framework's own module where its root is one, and a function otherwise. The files that make them are
imported when they are needed.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from itertools import chain
from types import ModuleType, SimpleNamespace
from typing import Any

from clew.capture.current_capture import LOCK
from clew.capture.interrupts import DeferredSignals
from clew.capture.options import Options
from clew.capture.state.reachable import global_names
from clew.errors import MissingFramework
from clew.ir.arguments import leaves
from clew.ir.graph import Graph
from clew.ir.guests import Guest, guest, module_guest, present
from clew.runtime.function import GraphFunction
from clew.runtime.lazy import LazyGraph

_DEFAULT = "numpy"
_HEAP_TYPE = 1 << 9
"""Set in the flags of classes that Python code defines."""
MODULES = {"torch": "clew.runtime.module"}
CAPTURES = {"torch": "clew.runtime.torch_captured"}
FUNCTIONS = {
    "numpy": "clew.runtime.numpy_captured.ArrayCapture",
    "tensorflow": "clew.runtime.tensorflow_captured.TensorflowCapture",
    "jax": "clew.runtime.numpy_captured.JaxCapture",
}
METHODS = {"torch": "clew.runtime.torch_captured"}
PLAIN = "clew.runtime.function.PlainCapture"
LAZY = {"torch": "clew.runtime.lazy_module"}
"""The files that make modules of each framework, captures of its modules, captures of its functions, and lazy graphs of
its modules; they wait until they are needed."""


def _is_of(value: Any, package: str) -> bool:
    """Whether a value is the package of a framework, or a module in it: ``jax.numpy`` is often named alone."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == package


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
    if package in CAPTURES:
        make = importlib.import_module(CAPTURES[package]).callable_of
        return make(captured.module, captured.constants, captured.graph, name, captured.state, live)
    module, _, kind = FUNCTIONS.get(package, PLAIN).rpartition(".")
    return getattr(importlib.import_module(module), kind)(SimpleNamespace(**captured.constants), captured.graph, name)


def capture_with(
    framework: Guest,
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
    name: str,
    live: bool = False,
) -> tuple[Any, Any]:
    """The callable of a capture, and what was captured. Other threads wait, and so do signals, until it is made."""
    with DeferredSignals(), LOCK:
        captured = framework.capture(fn, args, kwargs, options)
        return make_captured(framework.package, captured, name, live), captured


def make_lazy(fn: Any, capture: Any, limit: int = 16) -> LazyGraph:
    """A lazy graph, which is a module of the framework where the original is one."""
    guest = module_guest(fn)
    if guest is None or guest.package not in LAZY:
        return LazyGraph(fn, capture, limit)
    made: LazyGraph = importlib.import_module(LAZY[guest.package]).lazy_of(fn, capture, limit)
    return made


def make_methods(package: str, module: Any, captures: dict[str, Any]) -> Any:
    """One module with several captured methods."""
    return importlib.import_module(METHODS[package]).methods_of(module, captures)


def framework_of(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], to: str | None = None) -> Guest:
    """The framework of a program: that of its module or arrays, or else one that its function names.

    Where arrays do not tell, a function that names the framework ``to`` is of that one.
    """
    frameworks = sorted(present(), key=lambda framework: framework.package != to) or [_default()]
    return _owner_of(frameworks, fn, args, kwargs)


def _parts(value: Any) -> Iterator[Any]:
    """What an object of a user's class holds in its attributes, nests included."""
    if type(value).__flags__ & _HEAP_TYPE and not isinstance(value, type):
        yield from leaves(list(getattr(value, "__dict__", {}).values()))


def _owner_of(frameworks: list[Guest], fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Guest:
    """NumPy comes last: its arrays may be what a program of another framework starts from."""
    values = [fn, getattr(fn, "__self__", None), *leaves((args, kwargs))]
    owners: list[Guest] = []
    for framework in frameworks:
        if any(framework.owns(part) for part in chain(values, (part for value in values for part in _parts(value)))):
            if framework.package != _DEFAULT and not owners:
                return framework
            owners.append(framework)
    function = getattr(inspect.unwrap(fn), "__func__", fn) if callable(fn) else fn
    around = getattr(inspect.unwrap(function), "__globals__", {}) if callable(function) else {}
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    used = [around[name] for name in global_names(code) if name in around] if code is not None else []
    for named in (used, [] if owners else list(around.values())):
        for framework in frameworks:
            if any(_is_of(value, framework.package) for value in named):
                return framework
    return owners[0] if owners else frameworks[0]
