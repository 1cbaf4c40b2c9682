"""A lazy graph of a ``torch.nn.Module``, which is one itself.

It has no state but that of the original: both have the same ``__dict__``, so that tables of parameters, parts and hooks
are the same objects. Its methods are the original's, and return the lazy graph where those return the original.
Importing this file imports torch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from clew.capture.state.slots import ROOT, has_attribute
from clew.errors import BundleError
from clew.ir.arguments import all_nodes
from clew.ir.graph import Graph
from clew.ir.guards import referred_paths
from clew.runtime.lazy import LazyGraph, call_fitting
from clew.runtime.module import take_over

_CONTAINER = ("__len__", "__iter__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__reversed__")
"""Special methods, which are looked for in classes only."""


class LazyModule(LazyGraph, torch.nn.Module):
    """A module that captures itself as it is called. ``fn`` is the original, ``captures`` lists what it has."""

    __slots__ = ()

    def _look_like_original(self) -> None:
        object.__setattr__(self, "__dict__", vars(self.fn))

    def __dir__(self) -> list[str]:
        return sorted({*dir(self.fn), "captures", "fn", "limit"})

    @staticmethod
    def _made_for(fn: Any, capture: Any, limit: int) -> LazyGraph:
        return lazy_of(fn, capture, limit)


def _method_of_original(name: str, kind: type = torch.nn.Module) -> Callable[..., Any]:
    def method(self: LazyModule, *args: Any, **kwargs: Any) -> Any:
        result = getattr(self.fn, name)(*args, **kwargs)
        return self if result is self.fn else result

    return functools.wraps(getattr(kind, name))(method)


def _value_of_original(name: str) -> property:
    return property(lambda self: getattr(self.fn, name))


for _name in dir(torch.nn.Module):
    if not _name.startswith("__") and _name not in dir(LazyGraph) and _name != "forward":
        _is_method = callable(getattr(torch.nn.Module, _name))
        setattr(LazyModule, _name, _method_of_original(_name) if _is_method else _value_of_original(_name))


def lazy_of(fn: torch.nn.Module, capture: Any, limit: int) -> LazyModule:
    """The lazy graph of a module; its class has the original's ``forward``, and makes it a container if that is one."""
    kind = type(fn)
    names = ["forward", *(name for name in _CONTAINER if hasattr(kind, name))]
    methods: dict[str, Any] = {name: _method_of_original(name, kind) for name in names}
    own = type(LazyModule.__name__, (LazyModule,), {"__slots__": (), "__module__": __name__, **methods})
    made: LazyModule = own(fn, capture, limit)
    return made


class SavedModule(torch.nn.Module):
    """The captures of a lazy module as they were saved, over the parts and tensors that they have in common."""

    captures: list[Any]

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        """The result of the capture that the call fits."""
        return call_fitting(self.captures, args, kwargs)

    def __repr__(self) -> str:
        return f"SavedModule({len(self.captures)} captures)"


def holder_of(lazy: Any, graphs: Iterable[Graph]) -> torch.nn.Module | None:
    """What captures of a module have in common: its tensors, and the parts and settings that they name."""
    source = lazy if isinstance(lazy, SavedModule) else lazy.fn
    if not isinstance(source, torch.nn.Module):
        return None
    paths = [path for graph in graphs for path in (*referred_paths(graph), *_written(graph)) if path != ROOT]
    held = [name for name, _ in (*source.named_parameters(remove_duplicate=False), *source.named_buffers())]
    holder = torch.nn.Module()
    holder.training = source.training
    paths = [path for path in paths if has_attribute(source, path)]
    take_over(source, holder, (*dict.fromkeys(paths), *held), as_buffers=False)
    return holder


def _written(graph: Graph) -> Iterator[str]:
    """The paths of the attributes that a graph sets and asks for."""
    for root in (node for node in all_nodes(graph) if node.op == "get_attr" and node.target == ROOT):
        for user in root.users:
            if getattr(user.target, "__module__", None) != has_attribute.__module__ or type(user.args[1]) is not str:
                raise BundleError(f"a capture of the lazy graph hands the module itself to {user.name}")
            yield user.args[1]


def saved_module(holder: torch.nn.Module, captures: list[Any]) -> SavedModule:
    """The module of captures that were loaded over what they have in common."""
    made: Any = holder
    made.__class__ = SavedModule
    vars(made)["captures"] = captures
    return made  # type: ignore[no-any-return]
