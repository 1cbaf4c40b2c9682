"""A capture under its framework's own compiler: ``torch.compile``, ``jax.jit`` or ``tf.function`` on top.

A captured callable comes in; one comes out that checks the guards on its inputs in plain Python and hands the rest, the
computation, to the compiler. Compilers put stand-ins in the place of arrays, on which such guards would fail or would
be dropped. Guards on values that are computed stay where they are, and a compiler that cannot check them is refused.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType, MethodType
from typing import Any

from clew.errors import CaptureError
from clew.ir.graph import Graph
from clew.runtime.build import compile_function
from clew.runtime.function import GraphFunction

COMPILERS = {"torch": "compile", "jax": "jit", "tensorflow": "function"}
"""The compiler of each framework, by its name in the framework's package."""

_DECIDES = frozenset({"torch"})
"""Frameworks whose compiler goes on where Python decides by the value of an array."""
_STAGED = frozenset({"tensorflow"})
"""Frameworks whose captures run by other means in the compiler, with its own control flow."""


class NativeFunction:
    """A capture whose computation its framework's compiler runs; ``captured`` is the capture itself."""

    def __init__(self, package: str, captured: Any, static: Iterable[str] = ()) -> None:
        self.captured = captured
        self.__name__ = getattr(captured, "__name__", type(captured).__name__)
        rest = _without_guards(captured.graph)
        if package not in _DECIDES:
            _refuse_guards(package, rest)
        self._root = captured.root if isinstance(captured, GraphFunction) else captured
        if package in _STAGED:
            program = type(captured)(self._root, rest, self.__name__)
        else:
            program = MethodType(_function(rest, self.__name__), self._root)
        self.compiled = _compiler(package)(program, **_static(package, static))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        with self._undoing(args, kwargs):
            failing = self.captured.check(*args, **kwargs)
            if failing is not None:
                return self.captured(*args, **kwargs)  # which says what is wrong
            return self.compiled(*args, **kwargs)

    def _undoing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractContextManager[None]:
        """What the capture itself does so that a failing guard leaves no mark."""
        protection = getattr(self.captured, "protection", None)
        return nullcontext() if protection is None else protection(args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """What the capture has, its graph, code, guards and parameters, is the capture's."""
        if name == "captured":
            raise AttributeError(name)
        return getattr(self.captured, name)

    def __repr__(self) -> str:
        return f"NativeFunction({self.captured!r})"


def _compiler(package: str) -> Any:
    name = COMPILERS.get(package)
    if name is None:
        raise CaptureError(
            f"{package} has no compiler of its own",
            why="return_backend_traced_fn=True asks for one on top of the captured graph",
            fixes=("leave return_backend_traced_fn out: the captured graph runs as it is",),
        )
    return getattr(importlib.import_module(package), name)


def _static(package: str, static: Iterable[str]) -> dict[str, Any]:
    """Only jax has to be told which arguments are constants."""
    names = tuple(static)
    return {"static_argnames": names} if package == "jax" and names else {}


def _function(graph: Graph, name: str) -> FunctionType:
    return compile_function(graph.python_code("self"), name)


def _without_guards(graph: Graph) -> Graph:
    """The program alone."""
    program = copy.deepcopy(graph)
    program.guards = ()
    return program


def _refuse_guards(package: str, graph: Graph) -> None:
    left = next(iter(graph.guards), None)
    if left is not None:
        raise CaptureError(
            f"the captured program decides by a value that it computes: {left}",
            where="" if left.source is None else left.source.describe(),
            why=f"{package}.{COMPILERS[package]} cannot raise an error that depends on the value of an array",
            fixes=("leave return_backend_traced_fn out", f"write the decision with functions of {package}"),
        )
