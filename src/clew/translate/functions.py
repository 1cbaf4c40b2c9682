"""Functions that programs hand to functions: bodies, what they see of the program around them, and loops over them.

In come bodies of the source; out come bodies of the target, written by the translator (``Region``), and loops of
Python's whose results are stacked (``looped``). Always holds: what a body sees of the program around it is an input of
its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clew.ir.arguments import Body as GraphBody
from clew.ir.control_flow import for_loop, inputs_of
from clew.translate.control_flow import _Body
from clew.translate.refusals import Untranslatable
from clew.translate.translator import Translator
from clew.translate.values import Array, Number, Spec, Value
from clew.translate.writer import leaves_of, mapped


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the program: a body and what it sees of the program around it, perhaps transformed."""

    body: Any
    given: tuple[Any, ...] = ()
    transform: str = ""
    options: dict[str, Any] = field(default_factory=dict)


def function_of(value: Any) -> Function:
    """What is called, as a function."""
    if isinstance(value, Function):
        return value
    if isinstance(value, GraphBody) or callable(value):
        return Function(value)
    raise Untranslatable("it is given a function of which nothing is known")


def in_place(translator: Translator, body: Any, values: Sequence[Any]) -> Any:
    """What a body of the source gives for these values, written where the translator is."""
    known = dict(zip(inputs_of(body), values, strict=True))
    inner = type(translator)(translator.program, body, translator.writer, known)
    inner.modes, inner.sizes_differ = list(translator.modes), translator.sizes_differ
    return inner.run()


class Region:
    """A body of the target that is being written: what comes from outside are its inputs."""

    def __init__(self, translator: Translator) -> None:
        self.body = _Body.empty(translator)
        self.inner = type(translator)(translator.program, self.body.graph, self.body.writer, {})
        self.inner.modes, self.inner.sizes_differ = list(translator.modes), translator.sizes_differ
        self.taken: list[Value] = []
        self._known: dict[int, Any] = {}

    def input(self, value: Any, name: str) -> Any:
        """A value from outside, as an input of its own."""
        return self.body.input(name, value) if isinstance(value, Value) else value

    def operand(self, leaf: Any) -> Any:
        """A value from outside that the body only reads; each once."""
        if not isinstance(leaf, Value):
            return function_with(leaf, self.operand) if isinstance(leaf, Function) else leaf
        if id(leaf) not in self._known:
            self._known[id(leaf)] = self.body.input(f"given_{len(self.taken)}", leaf)
            self.taken.append(leaf)
        return self._known[id(leaf)]

    def function(self, function: Function) -> Function:
        """A function as it is inside."""
        return function_with(function, self.operand)


def function_with(function: Function, change: Callable[[Any], Any]) -> Function:
    """A function that sees other values of the program around it."""
    body = function_with(function.body, change) if isinstance(function.body, Function) else function.body
    return replace(function, body=body, given=mapped(function.given, change))


def filled(nest: Any, leaves: Sequence[Any]) -> Any:
    """A nest with other leaves."""
    left = iter(leaves)
    return mapped(nest, lambda leaf: None if leaf is None else next(left))


def present(nest: Any) -> list[Any]:
    """The leaves that are there."""
    return [leaf for leaf in leaves_of(nest) if leaf is not None]


def kept(before: Array, after: Array) -> Array:
    """What is carried after a step, of the kind that it had before."""
    if after.dtype != before.dtype or after.ndim != before.ndim:
        raise Untranslatable("a loop changes the kind of a value")
    return after


def looped(
    translator: Translator, bounds: tuple[Any, ...], carried: Any, operands: Any, step: Callable[..., tuple[Any, Any]]
) -> tuple[Any, list[Any], Any]:
    """A loop over numbers: ``step(region, number, carried, operands)`` gives what is carried on and what is collected.

    Out come the carried values, the collected ones stacked, and the nest of what one step collects.
    """
    writer, xp, as_array = translator.writer, translator.xp, translator.source.as_array
    before = present(carried)
    region = Region(translator)
    inside = [region.input(leaf, f"carried_{place}") for place, leaf in enumerate(before)]
    start = bounds[0] if len(bounds) > 1 else 0
    number = Number(
        region.body.writer, region.body.graph.placeholder("step"), start.value if isinstance(start, Number) else start
    )
    seen = mapped(operands, region.operand)
    region.body.writer.namespace.wanted = None
    after, told = step(region, number, filled(carried, inside), seen)
    inner = region.body.writer.namespace
    ends = [kept(one, as_array(inner, other)) for one, other in zip(before, present(after), strict=True)]
    collected = [as_array(inner, leaf) for leaf in present(told)]
    graph = region.body.close((*ends, *collected))
    iterable = writer.node("call_function", range, bounds)
    made = writer.node(
        "call_function", for_loop, (iterable, graph, tuple(before), tuple(region.taken), len(collected), False)
    )
    items = [
        writer.node("call_function", operator.getitem, (made, place)) for place in range(len(before) + len(collected))
    ]
    rest = [writer.wrap(item, Spec(one.spec.shape, one.dtype), True) for item, one in zip(items, before, strict=False)]
    count = _example(bounds[-1]) - (_example(bounds[0]) if len(bounds) > 1 else 0)
    stacked = []
    for item, one in zip(items[len(before) :], collected, strict=True):
        node = writer.node("call_function", xp.function("stack"), (item,))
        stacked.append(writer.wrap(node, Spec((count, *one.spec.shape), one.dtype), True))
    return filled(carried, rest), stacked, told


def _example(value: Any) -> int:
    return value.value if isinstance(value, Number) else int(value)
