"""Variables around a program, looked at where they are: ``REGISTRY.get("key") is what it was`` as one expression.

A variable or an item of one comes in, as a guard has it; out come expressions one of which is true wherever the guard
could fail. They may be true too often: whoever uses them asks the guard itself then. They run no code of a user's, and
raise nothing. Where there are none, or where one is true already, the guard has to be asked each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.capture.example.elsewhere import Saved
from clew.capture.example.guards import MISSING, Variable
from clew.capture.example.items import ATTRIBUTE, CONTAINS, ITEM, LENGTH, Item, current

Bind = Callable[[Any], str]
"""Gives an object a name that expressions may use, the same one each time."""
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
    if isinstance(variable.holder, dict):
        return f"{bind(variable.holder)}.get({bind(variable.name)}, {bind(MISSING)})"
    if isinstance(variable.holder, type):  # what ``vars`` gives follows all changes of the class
        return f"{bind(vars(variable.holder))}.get({bind(variable.name)}, {bind(MISSING)})"
    return None


def _part(item: Item, value: Any, bind: Bind) -> str | None:
    """The expression for what an item's container tells, as long as that is ``value``."""
    kind, way = type(value), item.way
    if way == ATTRIBUTE and kind.__getattribute__ in _USUAL and type(getattr(value, "__dict__", None)) is dict:
        return f"{bind(value)}.__dict__.get({bind(item.name)}, {bind(MISSING)})"
    if way == ITEM and kind is dict:
        return f"{bind(value)}.get({bind(item.name)}, {bind(MISSING)})"
    if way == CONTAINS and kind in (dict, set):
        return f"({bind(item.name)} in {bind(value)})"
    return f"{bind(len)}({bind(value)})" if way == LENGTH and kind in (dict, list, set) else None
