"""The table of a source framework: which small function stands for which of its functions.

A row is written ``@table.row("add", "operator.add")`` over a function ``(xp, *args, **kwargs)`` that takes what the
framework's own function takes. Names are those of the framework, ``linalg.norm``, without its package.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from clew.translate.refusals import Untranslatable

Row = Callable[..., Any]


class Table:
    """The rows of one source framework."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self.rows: dict[str, Row] = {}

    def row(self, *names: str) -> Callable[[Row], Row]:
        """Let a function stand for these functions of the framework."""

        def register(function: Row) -> Row:
            for name in names:
                self.rows[name] = function
            return function

        return register

    def add(self, name: str, function: Row) -> None:
        """Let a function stand for one of the framework's."""
        self.rows[name] = function

    def find(self, names: Iterable[str]) -> Row | None:
        """The row of the first of these names that has one."""
        return next((self.rows[name] for name in names if name in self.rows), None)


def taking(*names: str, **defaults: Any) -> Callable[[Row], Row]:
    """Let a row with many arguments take them as one object, by their names."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    parameters += [inspect.Parameter(name, kind, default=value) for name, value in defaults.items()]
    signature = inspect.Signature(parameters)

    def decorate(function: Row) -> Row:
        def row(xp: Any, *args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return function(xp, SimpleNamespace(**bound.arguments))

        return row

    return decorate


def refuse_given(what: str, **given: Any) -> None:
    """Refuse a call with options that a row does not carry over: those that are neither None nor False nor zero."""
    for name, value in given.items():
        if value is not None and value is not False and value != 0:
            raise Untranslatable(f"{what} with {name}={value!r} has no equal")


def axis_of(dim: int, rank: int) -> int:
    """An axis counted from the front."""
    return dim % rank if rank else 0


def axes_of(dim: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; all of them where none is named."""
    if dim is None or dim == () or dim == []:
        return tuple(range(rank))
    return tuple(axis_of(one, rank) for one in (dim if isinstance(dim, (tuple, list)) else (dim,)))


def spread(value: Any, count: int) -> tuple[Any, ...]:
    """A number for each axis, or as many numbers as there are."""
    if isinstance(value, (tuple, list)):
        return tuple(value) * (count if len(value) == 1 else 1)
    return (value,) * count
