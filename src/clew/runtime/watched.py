"""Variables around a program, looked at where they are: ``REGISTRY["key"] is what it was`` as one expression.

A variable or an item of one comes in, as a guard has it; out come expressions one of which is true wherever the guard
could fail, or raises one of ``GONE``. They may do so too often: whoever uses them asks the guard itself then. They run
no code of a user's. Where there are none, or where one is true already, the guard has to be asked each time.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType
from typing import Any

from clew.capture.example.elsewhere import Saved
from clew.capture.example.guards import MISSING, Variable
from clew.capture.example.items import ATTRIBUTE, CONTAINS, ITEM, LENGTH, Item, current

Bind = Callable[[Any], str]
"""Gives an object a name that expressions may use, the same one each time."""
GONE = (KeyError, AttributeError, ValueError)
"""What the expressions raise where a variable, an item or the content of a cell is no longer there."""
_USUAL = (object.__getattribute__, type.__getattribute__)


def quick_tests(variable: Variable, bind: Bind) -> list[str]:
    """The expressions for a guard on ``variable``; none where only the guard itself can tell."""
    if type(variable.expected) is Saved or variable.held is not None:
        return []
    tests: list[str] = []
    now = _read(variable, bind, tests)
    if now is None:
        return []
    differs = "!=" if getattr(variable, "way", "") == LENGTH else "is not"
    return [f"{bind(current)}.get() is not None", *tests, f"{now} {differs} {bind(variable.expected)}"]


def _read(variable: Variable, bind: Bind, tests: list[str]) -> str | None:
    """The expression for what a variable is now; it holds if none of ``tests`` is true."""
    if isinstance(variable, Item):
        container = _read(variable.base, bind, tests)
        value = None if container is None else variable.base.get()
        found = None if container is None else _part(variable, value, bind)
        if found is not None:
            tests.append(f"{container} is not {bind(value)}")
        return found
    holder = variable.holder
    if isinstance(holder, CellType):
        return f"{bind(holder)}.cell_contents"
    if type(holder) is dict or isinstance(holder, type):
        table = vars(holder) if isinstance(holder, type) else holder  # ``vars`` follows all changes of a class
        return _item(bind(table), variable.name, variable.name in table, bind)
    if isinstance(holder, dict) or not _has_plain_attributes(holder):
        return None
    return _item(f"{bind(holder)}.__dict__", variable.name, variable.name in vars(holder), bind)


def _part(item: Item, value: Any, bind: Bind) -> str | None:
    """The expression for what an item's container tells, as long as that is ``value``."""
    kind, way = type(value), item.way
    if way == ATTRIBUTE and _has_plain_attributes(value):
        return _item(f"{bind(value)}.__dict__", item.name, item.name in vars(value), bind)
    if way == ITEM and kind is dict:
        return _item(bind(value), item.name, item.name in value, bind)
    if way == CONTAINS and kind in (dict, set):
        return f"({bind(item.name)} in {bind(value)})"
    return f"{bind(len)}({bind(value)})" if way == LENGTH and kind in (dict, list, set) else None


def _has_plain_attributes(value: Any) -> bool:
    """Whether an object has its attributes in a dict, which is found without running code of a user's."""
    return type(value).__getattribute__ in _USUAL and type(getattr(value, "__dict__", None)) is dict


def _item(table: str, key: Any, is_there: bool, bind: Bind) -> str:
    """The expression for an item of a dict: one that is there is looked up, which is quicker than a call."""
    if not is_there:
        return f"{table}.get({bind(key)}, {bind(MISSING)})"
    return f"{table}[{key!r}]" if type(key) is str else f"{table}[{bind(key)}]"
