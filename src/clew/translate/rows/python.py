"""Plain Python in a program of any framework: its operators on numbers and lists, ``math``, ``range`` and ``len``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from clew.capture.control_flow.regions import first_item, has_items, rest_of
from clew.translate.refusals import Untranslatable
from clew.translate.rows.table import Table
from clew.translate.values import Array, Number, Opaque, Value

_MATH = (math.sqrt, math.floor, math.ceil, math.log, math.exp, math.prod, math.pow, math.sin, math.cos, math.isqrt)
_BUILTINS = (max, min, int, float, range, bool, round, sum, list, reversed, has_items, rest_of, first_item)


def _on_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    def row(xp: Any, *args: Any) -> Any:
        if any(isinstance(one, Array) for one in args):
            raise Untranslatable(f"{function.__name__} of an array")
        return xp.writer.plain(function, *args)

    return row


def not_row(xp: Any, x: Any) -> Any:
    """Python's "not"; of an array without axes, its opposite."""
    if isinstance(x, Array):
        return xp.logical_not(x)
    return xp.writer.plain(operator.not_, x) if isinstance(x, Value) else not x


def truth(xp: Any, x: Any) -> Any:
    """Python's truth; of an array without axes, whether it is not zero."""
    if isinstance(x, Array):
        return x if x.dtype == "bool" else x != 0
    return xp.writer.plain(operator.truth, x) if isinstance(x, Value) else bool(x)


def identity(xp: Any, *args: Any) -> Any:
    """Questions that are answered while the program is translated, where that can be."""
    raise Untranslatable("it asks which object a value is")


def length(xp: Any, x: Any) -> Any:
    """The first size, or the length of a nest."""
    if isinstance(x, Array):
        return x.size(0)
    if isinstance(x, Number):
        return xp.writer.plain(len, x)
    if isinstance(x, Opaque):
        raise Untranslatable(x.reason or "nothing is known of the object whose length it takes")
    return len(x)


def kind(xp: Any, x: Any) -> Any:
    """The class of a nest."""
    if isinstance(x, (tuple, list, dict)):
        return type(x)
    raise Untranslatable("it asks for the class of a value")


def attempted(xp: Any, function: Any, *args: Any) -> Any:
    """A calculation with numbers that did not fail during the capture; where it fails, the translation does too."""
    if any(isinstance(one, Array) for one in args) or getattr(function, "__module__", "") != "_operator":
        raise Untranslatable("it catches the error of a call")
    return xp.writer.operate(function, *args)


def add_python(table: Table) -> None:
    """Let a table know plain Python, but for what it has rows for already."""
    rows: dict[str, Callable[..., Any]] = {f"math.{one.__name__}": _on_numbers(one) for one in _MATH}
    for one in _BUILTINS:
        module = getattr(one, "__module__", "builtins")
        rows[f"{module}.{one.__name__}"] = _on_numbers(one)
    rows |= {
        "builtins.type": kind,
        "clew.capture.bytecode.try_blocks.attempt": attempted,
        "operator.not_": not_row,
        "operator.truth": truth,
        "builtins.len": length,
        "__len__": length,
    }
    rows |= dict.fromkeys(("operator.is_", "operator.is_not", "operator.contains"), identity)
    table.rows = rows | table.rows
