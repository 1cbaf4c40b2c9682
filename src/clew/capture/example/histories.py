"""Lists that a program only appends to, as it does with a history of its losses.

Such a list is longer at each call, and a guard on its length would hold for one call only. So while the program runs a
``History`` stands in the place of the list, and tells whether anything but appending was done to it: if not, neither
the length nor the items matter, and the graph appends to whatever list is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class History(list[Any]):
    """A list that knows whether anybody looked at it; ``original`` is the list that it stands for."""

    __slots__ = ("original", "seen")

    def __init__(self, original: list[Any], items: list[Any]) -> None:
        list.__init__(self, items)
        self.original = original
        self.seen = False

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return list


_APPENDING = frozenset({"append", "extend", "__iadd__"})
_OBJECT = frozenset({"__class__", "__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__", "__dir__",
                     "__doc__", "__init_subclass__", "__subclasshook__", "__class_getitem__"})  # fmt: skip


def _looking(method: Callable[..., Any]) -> Callable[..., Any]:
    def look(self: History, *args: Any, **kwargs: Any) -> Any:
        self.seen = True
        return method(self, *args, **kwargs)

    return look


for _name in dir(list):
    if _name not in _APPENDING | _OBJECT and callable(getattr(list, _name)):
        setattr(History, _name, _looking(getattr(list, _name)))
