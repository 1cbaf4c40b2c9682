"""Branches and loops of TensorFlow: they carry tensors, plain numbers among them, and lists of tensors.

In comes ``cond`` or ``while_loop`` with its bodies; out comes Python's branch or loop in the target. Numbers stay
numbers through a loop where they are numbers after each round, and become arrays otherwise; the body is written again
then. Always holds: both sides of a branch give values of one kind.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from clew.ir.control_flow import Branch, Loop, cond, control_of, inputs_of, while_loop
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.translate.control_flow import _Body, translate_control
from clew.translate.refusals import Untranslatable
from clew.translate.rows.tensorflow_layers import Items
from clew.translate.translator import Translator
from clew.translate.values import Array, Number, Opaque, Plain, Spec, Value
from clew.translate.writer import leaves_of, mapped

_NUMBERS = (bool, int, float)


class Region:
    """A body of the target: numbers, arrays and lists from outside are its inputs."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self.body = _Body.empty(translator)
        self.taken: list[Any] = []
        self._known: dict[int, Any] = {}

    def carried(self, value: Any, name: str) -> Any:
        """A value that a loop changes, as it is at the beginning of a round."""
        writer = self.body.writer
        if isinstance(value, Plain):
            return Plain(writer, mapped(value.items, lambda leaf: self._number(leaf, name)), value.dtype)
        if isinstance(value, Items):
            return Items(writer, self.body.graph.placeholder(name), value.spec, value.count)
        if isinstance(value, (*_NUMBERS, Number)):
            return self._number(value, name)
        if isinstance(value, Array):
            return self.body.input(name, value)
        raise Untranslatable("a loop that carries something that is no tensor and no number")

    def _number(self, value: Any, name: str) -> Number:
        plain = value.value if isinstance(value, Number) else value
        return Number(self.body.writer, self.body.graph.placeholder(name), plain)

    def operand(self, value: Any) -> Any:
        """A value that the body only reads."""
        if isinstance(value, Plain):
            return Plain(self.body.writer, mapped(value.items, self.operand), value.dtype)
        if not isinstance(value, Value):
            return value
        if id(value) not in self._known:
            name = f"given_{len(self.taken)}"
            made = (Items(self.body.writer, self.body.graph.placeholder(name), value.spec, value.count)
                    if isinstance(value, Items) else self.body.input(name, value))  # fmt: skip
            if isinstance(made, Array) and isinstance(value, Array) and value.path:
                made.path = ""
            self._known[id(value)] = made
            self.taken.append(value)
        return self._known[id(value)]

    def run(self, graph: Graph, values: Sequence[Any]) -> Any:
        """What a body of the source gives."""
        known = dict(zip(inputs_of(graph), values, strict=True))
        inner = type(self.translator)(self.translator.program, graph, self.body.writer, known)
        inner.modes = list(self.translator.modes)
        return inner.run()


def _flat(value: Any) -> list[Any]:
    """The values of the target that make up one of the source."""
    return leaves_of(value.items) if isinstance(value, Plain) else [value]


def _same(before: Any, after: Any) -> bool:
    """Whether a carried value is of the same kind after a round."""
    if isinstance(before, Plain):
        return isinstance(after, Plain) and mapped(before.items, _nothing) == mapped(after.items, _nothing)
    if isinstance(before, (*_NUMBERS, Number)):
        return isinstance(after, (*_NUMBERS, Number))
    return type(before) is type(after)


def _nothing(leaf: Any) -> None:
    return None


def _as_array(xp: Any, value: Any) -> Any:
    if isinstance(value, Plain):
        return value.array()
    if isinstance(value, (Number, *_NUMBERS)):
        plain = value.value if isinstance(value, Number) else value
        return xp.as_array(
            value, "bool" if isinstance(plain, bool) else "int32" if isinstance(plain, int) else "float32"
        )
    return value


def _back(translator: Translator, node: Node, first: int, value: Any) -> Any:
    """A carried value after a loop or branch, from its place in the tuple on."""
    writer, count = translator.writer, 0

    def item(leaf: Any) -> Any:
        nonlocal count
        made = writer.node("call_function", operator.getitem, (node, first + count))
        count += 1
        if isinstance(leaf, Array):
            return writer.wrap(made, Spec(leaf.spec.shape, leaf.dtype), True)
        if isinstance(leaf, Items):
            return Items(writer, made, leaf.spec, leaf.count)
        if isinstance(leaf, (Number, *_NUMBERS)):
            return Number(writer, made, leaf.value if isinstance(leaf, Number) else leaf)
        return Opaque(writer, made, "nothing is known of what a branch gives")

    return Plain(writer, mapped(value.items, item), value.dtype) if isinstance(value, Plain) else item(value)


# ---- loops -----------------------------------------------------------------------------------------------------------


def loop(translator: Translator, node: Node, args: Any, kwargs: Any) -> Any:
    """A ``while``; ``for`` loops over numbers are as in other programs."""
    told = control_of(node)
    if not isinstance(told, Loop) or told.is_for or told.outputs:
        return translate_control(translator, node)
    before = list(translator.arguments(told.carried))
    operands = list(translator.arguments(told.operands))
    refused, notes = len(translator.program.refusals), dict(translator.program.notes)
    for _ in range(len(before) + 2):
        found = _written(translator, told, before, operands)
        if isinstance(found, list):
            before = found
            del translator.program.refusals[refused:]
            translator.program.notes = notes
            continue
        return found
    raise Untranslatable("a loop changes the kind of a value")


def _written(translator: Translator, told: Loop, before: list[Any], operands: list[Any]) -> Any:
    """The loop with these carried values; a list of others if these change their kind."""
    xp, writer = translator.xp, translator.writer
    regions = [Region(translator) for _ in range(2)]
    inside = []
    for region in regions:
        carried = [region.carried(one, f"carried_{place}") for place, one in enumerate(before)]
        inside.append([*carried, *(mapped(one, region.operand) for one in operands)])
    test = regions[0].run(told.test, inside[0])
    found = regions[1].run(told.body, inside[1])
    after = list(found or ())
    stop = after.pop() if told.breaks else None
    kinds = [_same(one, other) for one, other in zip(before, after, strict=True)]
    if not all(kinds):
        return [one if same else _as_array(xp, one) for one, same in zip(before, kinds, strict=True)]
    inner = regions[1].body.writer.namespace
    kept = [leaf for one, other in zip(before, after, strict=True) for leaf in _kept(inner, one, other)]
    ends = [*kept, *([] if stop is None else [_truth(inner, stop)])]
    graphs = [regions[0].body.close(_truth(regions[0].body.writer.namespace, test)), regions[1].body.close(tuple(ends))]
    start = [leaf for one in before for leaf in _flat(one)]
    if isinstance(test, Array) and xp.jits:
        writer.note("a while loop on data stays Python's: the program runs, but cannot be compiled")
    made = writer.node("call_function", while_loop,
                       (*graphs, tuple(start), tuple(regions[1].taken), 0, told.breaks))  # fmt: skip
    results, place = [], 0
    for one, other in zip(before, after, strict=True):
        shown = other if isinstance(other, Items) else one
        results.append(_back(translator, made, place, shown))
        place += len(_flat(one))
    return tuple(results)


def _truth(xp: Any, value: Any) -> Any:
    """What Python asks: a number, or an array without axes."""
    return value.items if isinstance(value, Plain) else value


def _kept(xp: Any, before: Any, after: Any) -> list[Any]:
    if not isinstance(before, Array):
        return _flat(after)
    if after.dtype != before.dtype or after.ndim != before.ndim:
        raise Untranslatable("a loop changes the dtype or rank of a value")
    return [after]


# ---- branches --------------------------------------------------------------------------------------------------------


def branch(translator: Translator, node: Node, args: Any, kwargs: Any) -> Any:
    """An ``if``."""
    told = control_of(node)
    if not isinstance(told, Branch):
        return translate_control(translator, node)
    predicate = translator.arguments(told.predicate)
    operands = list(translator.arguments(told.operands))
    predicate = predicate.items if isinstance(predicate, Plain) else predicate
    if not isinstance(predicate, Value):
        return _inlined(translator, told.bodies[0 if predicate else 1], operands)
    if not isinstance(predicate, (Array, Number)):
        raise Untranslatable("a branch on a value of which nothing is known")
    regions = [Region(translator) for _ in range(2)]
    found = [region.run(body, [mapped(one, region.operand) for one in operands])
             for region, body in zip(regions, told.bodies, strict=True)]  # fmt: skip
    is_several = isinstance(found[0], tuple)
    pairs = list(zip(*(one if is_several else (one,) for one in found), strict=True))
    sides = [tuple(_alike(region.body.writer.namespace, pair, place) for pair in pairs)
             for place, region in enumerate(regions)]  # fmt: skip
    sides = [tuple(_closer(regions, pair)) for pair in zip(*sides, strict=True)]
    graphs = [region.body.close(tuple(leaf for pair in sides for leaf in _flat(pair[place])))
              for place, region in enumerate(regions)]  # fmt: skip
    if isinstance(predicate, Array) and translator.xp.jits:
        translator.writer.note("a branch on data stays Python's if: the program runs, but cannot be compiled")
    made = translator.writer.node("call_function", cond, (predicate, *graphs, _taken(regions)))
    results, first = [], 0
    for one, _ in sides:
        results.append(_back(translator, made, first, one))
        first += len(_flat(one))
    return tuple(results) if is_several else results[0]


def _inlined(translator: Translator, body: Graph, values: list[Any]) -> Any:
    wanted = translator.xp.wanted
    inner = type(translator)(
        translator.program, body, translator.writer, dict(zip(inputs_of(body), values, strict=True))
    )
    inner.modes = list(translator.modes)
    found = inner.run()
    translator.xp.wanted = wanted
    return found


def _taken(regions: list[Region]) -> tuple[Any, ...]:
    """The values from outside: both sides read the same ones, in one order."""
    one, other = (region.taken for region in regions)
    if [id(value) for value in one] != [id(value) for value in other]:
        raise Untranslatable("the sides of a branch read different values")
    return tuple(one)


def _alike(xp: Any, pair: tuple[Any, Any], place: int) -> Any:
    mine, other = pair[place], pair[1 - place]
    return mine if _same(mine, other) else _as_array(xp, mine)


def _closer(regions: list[Region], pair: Sequence[Any]) -> Sequence[Any]:
    """Two values that Python's branch may give: arrays of one dtype and rank, or numbers."""
    one, other = pair
    if isinstance(one, Array) and isinstance(other, Array) and (one.dtype, one.ndim) == (other.dtype, other.ndim):
        return pair
    if not isinstance(one, (Array, Opaque)) and _same(one, other):
        return pair
    raise Untranslatable("the sides of a branch give values of different kinds")


CONTROL: dict[Any, Callable[..., Any]] = {cond: branch, while_loop: loop}
"""What translates a branch or a loop."""
