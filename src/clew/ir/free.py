"""Attributes that users put on nodes besides the fields that nodes have: ``node.visited = True``.

Nearly no node has any, so a node spends no room on a dictionary for them: they are kept by the graph, each under its
node, and live as long as the graph. Reading, setting, deleting and ``vars(node)`` work as on any object. Nodes learn to
look there when the first such attribute is set, because a ``__getattr__`` makes every read of any field slower.
"""

from __future__ import annotations

from typing import Any


class FreeAttributes:
    """The part of a node that keeps attributes which are no fields."""

    __slots__ = ()

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The attributes that users have set, of this node alone."""
        FreeAttributes.__getattr__ = _find  # type: ignore[attr-defined]
        kept: dict[str, Any] = self.graph._free_attributes.setdefault(self, {})  # type: ignore[attr-defined]
        return kept

    def __delattr__(self, name: str) -> None:
        if hasattr(type(self), name):
            object.__delattr__(self, name)
        elif name in self.__dict__:
            del self.__dict__[name]
        else:
            raise _missing(self, name)


def _find(node: Any, name: str) -> Any:
    """The free attribute of a node; asked only for what is no field of nodes."""
    kept = {} if name == "graph" else node.graph._free_attributes.get(node, {})
    if name in kept:
        return kept[name]
    raise _missing(node, name)


def _missing(node: Any, name: str) -> AttributeError:
    return AttributeError(f"{type(node).__name__!r} object has no attribute {name!r}", name=name, obj=node)
