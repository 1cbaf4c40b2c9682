"""Calls that are taken apart: a function without a row as steps for which there are rows.

Comes in: what a source gives for a call (``Apart``), whose steps name functions of its table, in data that knows no
framework. Goes out: the values of the call, written row by row. What the taking apart assumed of sizes becomes guards.
Always holds: each step gives the dtype and the shape that the source gives for the example, or the call is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.ir.guards import Call
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.translate.refusals import Untranslatable
from clew.translate.values import Array, Number, Value
from clew.translate.writer import mapped

if TYPE_CHECKING:
    from clew.translate.translator import Translator


NO_ROW = "no row stands for it"


@dataclass(frozen=True)
class Given:
    """A value that a call is given: an array or a number, by its place among them."""

    place: int


@dataclass(frozen=True)
class Result:
    """What a step gives, by its place among the steps."""

    place: int


@dataclass(frozen=True)
class Size:
    """A size of an array that a call is given."""

    array: Given
    axis: int


@dataclass(frozen=True)
class Step:
    """A call of one of the source's functions, by its names; ``kind`` is what it gives for the example."""

    names: tuple[str, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    kind: ArrayType | None


@dataclass(frozen=True)
class Apart:
    """A call as steps, what it returns, and what it relies on: expressions over sizes that are true."""

    steps: tuple[Step, ...]
    result: Any
    conditions: tuple[Any, ...]


def in_parts(translator: Translator, node: Node, error: Untranslatable) -> Any:
    """The values of a call, by the steps that the source takes it apart into; the error where it knows none."""
    given: list[tuple[Any, Any]] = []

    def template(leaf: Any) -> Any:
        if not isinstance(leaf, Node):
            return leaf
        return _template(translator, translator.arguments(leaf), leaf.value_type, given, error)

    args, kwargs = mapped((node.args, node.kwargs), template)
    kinds = [(kind, getattr(value, "fixed", False), getattr(value, "value", None)) for value, kind in given]
    apart = translator.source.taken_apart(node, args, kwargs, kinds)
    if apart is None:
        raise error
    try:
        return run_apart(translator, apart, [value for value, _ in given], translator.source.names(node)[0])
    except Untranslatable as other:
        raise (other if str(error) == NO_ROW else error) from error


def _template(translator: Translator, value: Any, kind: Any, given: list[tuple[Any, Any]], error: Any) -> Any:
    """An argument in which arrays and whole numbers stand by their places."""
    if isinstance(value, (tuple, list)):
        kinds = getattr(kind, "items", None)
        kinds = kinds if kinds is not None and len(kinds) == len(value) else (None,) * len(value)
        items = [_template(translator, one, of, given, error) for one, of in zip(value, kinds, strict=True)]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, Number) and type(value.value) is not int:
        return translator.writer.fixed(value, "the call is taken apart for this number")
    if isinstance(value, Number) or (isinstance(value, Array) and isinstance(kind, ArrayType)):
        given.append((value, kind))
        return Given(len(given) - 1)
    if isinstance(value, Value):
        raise error
    return value


def run_apart(translator: Translator, apart: Apart, given: list[Any], what: str) -> Any:
    """The values of a call that was taken apart."""
    xp, writer = translator.xp, translator.writer
    outer = xp.wanted

    def sized(leaf: Any) -> Any:
        return given[leaf.array.place].size(leaf.axis) if isinstance(leaf, Size) else given[leaf.place]

    for condition in apart.conditions:
        writer.require(_computed(condition, sized), True, f"{what} was taken apart for sizes like the example's")
    results: list[Any] = []

    def known(leaf: Any) -> Any:
        if isinstance(leaf, Given):
            return given[leaf.place]
        return results[leaf.place] if isinstance(leaf, Result) else leaf

    try:
        for step in apart.steps:
            results.append(_stepped(translator, step, mapped(step.args, known), mapped(step.kwargs, known), what))
    finally:
        xp.wanted = outer
    return mapped(apart.result, known)


def _stepped(translator: Translator, step: Step, args: Any, kwargs: Any, what: str) -> Any:
    xp = translator.xp
    row = translator.source.table.find(step.names)
    if row is None:
        raise Untranslatable(f"{NO_ROW}, and none for {step.names[0]}, which is a part of it")
    xp.wanted = translator.wanted(step.kind)
    try:
        value = translator._run(row, args, kwargs)
        translator._check(step.kind, value)
    except Untranslatable as error:
        raise Untranslatable(f"{step.names[0]}, which is a part of it: {error}") from error
    return value


def _computed(expression: Any, sized: Callable[[Any], Any]) -> Any:
    if isinstance(expression, Call):
        return expression.function(*(_computed(one, sized) for one in expression.args))
    return sized(expression) if isinstance(expression, (Size, Given)) else expression
