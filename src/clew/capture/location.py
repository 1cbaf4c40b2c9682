"""Where a value is kept: under a key of a dict, in a variable of a closure, as an attribute, as code of a function.

Comes in: what holds the value, and its name there. Goes out: the value (``get``), another one in its place (``put``),
and the location in the user's words (``label``). Patches, variables around a program, its lifted state and snapshots
stand on this one type. Always holds: to put back what ``get`` gave, ``MISSING`` included, leaves all as it was.
"""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
"""Stands where a variable or an attribute has no value."""
CODE, DEFAULTS = "__code__", "__defaults__"
"""What every function has: it is no attribute of its own dict."""


class Location:
    """One location. ``name`` means nothing for a variable of a closure, whose cell is the holder."""

    __slots__ = ("holder", "name")

    def __init__(self, holder: Any, name: str) -> None:
        self.holder = holder
        self.name = name

    @property
    def key(self) -> tuple[int, Any]:
        """What tells locations apart while their holders are alive."""
        return id(self.holder), self.name

    @property
    def label(self) -> str:
        """The location in the user's words."""
        return self.name

    def get(self) -> Any:
        """What is there now; ``MISSING`` if nothing is."""
        holder = self.holder
        if isinstance(holder, dict):
            return holder.get(self.name, MISSING)
        if isinstance(holder, CellType):
            try:
                return holder.cell_contents
            except ValueError:  # a cell that is not filled yet
                return MISSING
        if isinstance(holder, FunctionType) and self.name in (CODE, DEFAULTS):
            return getattr(holder, self.name)
        return vars(holder).get(self.name, MISSING)

    def put(self, value: Any) -> None:
        """Put something there; ``MISSING`` takes it away."""
        holder, name = self.holder, self.name
        if value is MISSING:
            self._clear()
        elif isinstance(holder, dict):
            holder[name] = value
        elif isinstance(holder, CellType):
            holder.cell_contents = value
        else:
            setattr(holder, name, value)

    def _clear(self) -> None:
        holder, name = self.holder, self.name
        if isinstance(holder, dict):
            holder.pop(name, None)
        elif isinstance(holder, CellType):
            if Location.get(self) is not MISSING:
                del holder.cell_contents
        elif name in vars(holder):
            delattr(holder, name)
