"""A lazy graph of a ``torch.nn.Module``, which is one itself.

It has no state but that of the original: both have the same ``__dict__``, so that tables of parameters, parts and hooks
are the same objects. Its methods are the original's, and return the lazy graph where those return the original.
Importing this file imports torch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from clew.runtime.lazy import LazyGraph

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
