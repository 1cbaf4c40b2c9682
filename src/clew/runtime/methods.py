"""Several captured methods of one module, as one module that they share.

The captures come in, one for each method; out comes a module with the original's parameters, and state of its own that
all methods read and write. Each method is an attribute of it: callable, with a graph, code and guards. Importing this
file imports torch.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.capture.example.captured import Captured
from clew.capture.example.slots import ROOT
from clew.errors import CaptureError
from clew.ir.graph import Graph
from clew.ir.guards import referred_paths, rename_attributes
from clew.runtime.captured import CapturedFunction, give_state
from clew.runtime.module import take_over
from clew.runtime.whole_state import complete


class CapturedMethods(torch.nn.Module):
    """A module whose methods were captured from examples. ``methods`` lists them by name."""

    def __init__(self, source: torch.nn.Module, graphs: dict[str, Graph], constants: dict[str, Any]) -> None:
        super().__init__()
        self.training = source.training
        paths = dict.fromkeys(path for graph in graphs.values() for path in referred_paths(graph))
        vars(self).update({path: constants[path] for path in paths if path in constants})
        taken = [path for path in paths if path not in constants and path not in (ROOT, "training")]
        take_over(source, self, taken, as_buffers=False)
        self._names = tuple(graphs)
        self._class_name = type(source).__name__
        for name, graph in graphs.items():
            self.__dict__[name] = CapturedFunction(self, graph, name)

    @property
    def _self(self) -> Any:
        """The object that the graphs write their state to."""
        return self

    @property
    def methods(self) -> dict[str, CapturedFunction]:
        """The captured methods by name."""
        return {name: self.__dict__[name] for name in self._names}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Stands where no forward was captured."""
        raise CaptureError(
            "this module has no captured forward",
            why=f"its captured methods are {', '.join(self._names)}",
            fixes=('give an example for it: clew.trace_module(module, {"forward": args, ...})',),
        )

    def __copy__(self) -> CapturedMethods:
        graphs = {name: method.graph for name, method in self.methods.items()}
        twin = CapturedMethods(self, graphs, {})
        twin._class_name = self._class_name
        return twin

    def _get_name(self) -> str:
        return self._class_name


def methods_of(source: torch.nn.Module, captures: dict[str, Captured]) -> CapturedMethods:
    """One module with all these methods."""
    constants: dict[str, Any] = {}
    for captured in captures.values():
        _rename_constants(captured, constants)
    module = CapturedMethods(source, {name: captured.graph for name, captured in captures.items()}, constants)
    give_state(source, module, dict.fromkeys(path for captured in captures.values() for path in captured.state))
    if "forward" in captures:  # else it is a part of the original, with what that part needs
        complete(source, module, frozenset(dir(module)))
    return module


def _rename_constants(captured: Captured, constants: dict[str, Any]) -> None:
    """Give the constants of one capture names of their own; one that another capture has too is shared."""
    names = {path: _name_of(value, constants) for path, value in captured.constants.items()}
    rename_attributes(captured.graph, lambda path: names.get(path, path))


def _name_of(value: Any, constants: dict[str, Any]) -> str:
    for name, known in constants.items():
        if known is value:
            return name
    name = f"_constant{len(constants)}"
    constants[name] = value
    return name
