"""Modules that a function closes over, or names as global variables: the root of the function's capture holds them.

In comes the function; out comes a root in which each of these modules is a part, under the name of its variable. So the
graph reads their parameters, buffers and modes wherever they are at a call, and calls their layers, as it does for a
module that is captured itself. They stay the user's own objects: nothing is copied, and a copy of the root is itself.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch

from clew.capture.state.reachable import behind, global_names
from clew.capture.state.surroundings import functions_of
from clew.ir.source import is_installed

_MOST_FUNCTIONS = 64


class ClosedOver(torch.nn.Module):
    """The modules of a function, by the names of the variables that hold them."""

    def __init__(self, modules: dict[str, torch.nn.Module]) -> None:
        super().__init__()
        self._modules.update(modules)

    @property
    def variables_of_function(self) -> tuple[str, ...]:
        """The names of the variables, by which code for people calls the modules."""
        return tuple(self._modules)

    def __deepcopy__(self, memo: dict[int, Any]) -> ClosedOver:
        return self  # a copy of a function is the function, too


def closed_over(fn: Any) -> ClosedOver | None:
    """The root of the capture of a function that names modules; None if it names none."""
    found: dict[str, torch.nn.Module] = {}
    for name, value in _variables(fn):
        if isinstance(value, torch.nn.Module) and not any(value is known for known in found.values()):
            found.setdefault(_free_name(name, found), value)
    return ClosedOver(found) if found else None


def _free_name(name: str, taken: dict[str, Any]) -> str:
    """A name for a part: that of the variable, unless a module has an attribute of that name, or another part."""
    while name in taken or hasattr(torch.nn.Module, name) or name in ("training", "self") or keyword.iskeyword(name):
        name += "_"
    return name


def _variables(fn: Any) -> Iterator[tuple[str, Any]]:
    """The variables that a function, and other functions of the user's that it names, close over or name."""
    waiting = [function for part in behind(fn) for function in functions_of(part)]
    seen: set[FunctionType] = set()
    while waiting and len(seen) < _MOST_FUNCTIONS:
        function = waiting.pop()
        if function in seen or is_installed(function.__code__):
            continue
        seen.add(function)
        held = [*_cells(function), *_globals(function)]
        yield from held
        waiting += [value for _, value in held if type(value) is FunctionType]


def _cells(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it is not filled yet
            continue


def _globals(function: FunctionType) -> Iterator[tuple[str, Any]]:
    around = function.__globals__
    return ((name, around[name]) for name in global_names(function.__code__) if name in around)
