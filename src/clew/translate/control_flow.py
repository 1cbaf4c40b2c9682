"""Branches and loops: their bodies are translated each into a graph of its own.

A branch whose condition is known while the program is translated is the side that is taken. One on a size or another
plain number stays Python's ``if``, which a compiler answers while it traces. One on data becomes the target's own
(``jax.lax.cond``) where both sides give arrays of the same kinds; otherwise it stays Python's, and then the program
runs as it is but cannot be compiled. Loops stay Python's.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clew.capture.control_flow.raising import raise_error
from clew.ir.control_flow import Branch, Loop, cond, control_of, for_loop, inputs_of, is_control, while_loop
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.translate.refusals import Untranslatable
from clew.translate.values import Array, Number, Opaque, Optional, Spec, Value
from clew.translate.writer import Writer, leaves_of, mapped, nodes_of

if TYPE_CHECKING:
    from clew.translate.translator import Translator


_getitem = operator.getitem


def translate_control(translator: Translator, node: Node) -> Any:
    """The values of a branch or loop."""
    control = control_of(node)
    if control is None:
        raise Untranslatable("a branch or loop whose parts are not written out")
    if isinstance(control, Branch):
        return _branch(translator, node, control)
    return _loop(translator, node, control)


def _inlined(translator: Translator, body: Graph, values: list[Any], node: Node, operands: Sequence[Any]) -> Any:
    """A body in the place of its node."""
    known = dict(zip(inputs_of(body), values, strict=True))
    inner = type(translator)(translator.program, body, translator.writer, known)
    inner.modes = list(translator.modes)
    places = written_inputs(translator, body)
    inner.writable = {inputs_of(body)[place] for place in places}
    wanted = translator.xp.wanted
    found = inner.run()
    translator.xp.wanted = wanted
    for place in places:
        translator.replaced(node, operands[place], inner.env[inputs_of(body)[place]])
    return found


def written_inputs(translator: Translator, body: Graph) -> list[int]:
    """The places of the inputs that a body writes to, itself or in bodies of its own."""
    inputs, source = inputs_of(body), translator.source
    found: set[int] = set()

    def mark(value: Any) -> None:
        while isinstance(value, Node) and value not in inputs:
            shares = value.op.startswith("call") and (source.written(value) or source.may_share(value))
            value = next((one for one in value._inputs), None) if shares else None
        if isinstance(value, Node):
            found.add(inputs.index(value))

    for node in body.nodes:
        if node.op.startswith("call") and not is_control(node) and source.written(node) is not None:
            mark(source.target(node))
        control = control_of(node) if is_control(node) else None
        if control is None:
            continue
        outer = [*getattr(control, "carried", ()), *([None] if getattr(control, "is_for", False) else []),
                 *control.operands]  # fmt: skip
        for inner in control.bodies:
            for place in written_inputs(translator, inner):
                mark(outer[place] if place < len(outer) else None)
    return sorted(found)


class _Body:
    """A body that has been translated: its graph, which operands it takes, what it returns."""

    result: Any
    inner: Translator
    inputs: list[Node]

    def __init__(self, translator: Translator, body: Graph, values: list[Any], only: list[bool]) -> None:
        self._open(translator)
        known: dict[Node, Any] = {}
        for place, (node, value) in enumerate(zip(inputs_of(body), values, strict=True)):
            known[node] = self._input(node, value) if only[place] else value
        inner = type(translator)(translator.program, body, self.writer, known)
        inner.modes = list(translator.modes)
        self.inputs = inputs_of(body)
        inner.writable = {self.inputs[place] for place in written_inputs(translator, body)}
        self.inner = inner
        refused = len(translator.program.refusals)
        self.result = inner.run()
        self.refused = len(translator.program.refusals) > refused

    @classmethod
    def empty(cls, translator: Translator) -> _Body:
        """A body that is written by its owner."""
        made = cls.__new__(cls)
        made._open(translator)
        return made

    def _open(self, translator: Translator) -> None:
        self.graph = Graph()
        self.writer = Writer(self.graph, translator.program.namespace, translator.program.notes)
        self.writer.origin = translator.writer.origin

    def again(self, value: Any) -> Array:
        """An attribute of the program, read in the body."""
        made: Array = self.writer.wrap(self.writer.node("get_attr", value.node.target, ()), value.spec, True)
        made.fixed, made.path = value.fixed, value.path
        return made

    def _input(self, node: Node, value: Any) -> Any:
        return self.input(str(node.target), value, node.value_type)

    def input(self, name: str, value: Any, kind: Any = None) -> Any:
        """A value from outside as an input of the body."""
        made = self.graph.placeholder(name)
        made.value_type = kind
        if isinstance(value, Array):
            found = self.writer.wrap(made, value.spec, value.differentiable)
            found.fixed = value.fixed
            return found
        if isinstance(value, Number):
            return Number(self.writer, made, value.value)
        if isinstance(value, Optional):
            return Optional(self.writer, made, value.spec)
        return Opaque(self.writer, made, value.reason)

    def close(self, result: Any) -> Graph:
        """The graph, which returns this."""
        self.graph.output(nodes_of(result))
        return self.graph


def _is_dynamic(value: Any) -> bool:
    return isinstance(value, Value)


def _branch(translator: Translator, node: Node, branch: Branch) -> Any:
    predicate = translator.arguments(branch.predicate)
    operands = list(translator.arguments(branch.operands))
    if not isinstance(predicate, Value):
        return _inlined(translator, branch.bodies[0 if predicate else 1], operands, node, branch.operands)
    if isinstance(predicate, Opaque) and not _is_maybe(predicate):
        raise Untranslatable(predicate.reason or "a branch on a value of which nothing is known")
    operands, only = _flat_operands(operands)
    bodies = [_Body(translator, body, operands, only) for body in branch.bodies]
    places = sorted({place for body in branch.bodies for place in written_inputs(translator, body)})
    for body in bodies if places else ():
        body.result = (body.result, *(body.inner.env[body.inputs[place]] for place in places))
    found = _joined(translator, branch, bodies, operands, only, predicate)
    for place, new in zip(places, found[1:] if places else (), strict=True):
        translator.replaced(node, branch.operands[place], new)
    return found[0] if places else found


def _joined(
    translator: Translator, branch: Branch, bodies: list[_Body], operands: list[Any], only: list[bool], predicate: Any
) -> Any:
    """The values of a branch whose sides have been translated."""
    given = [one for one, keep in zip(operands, only, strict=True) if keep]
    xp, writer = translator.xp, translator.writer
    raising = [_raises(body) for body in branch.bodies]
    if any(raising) and isinstance(predicate, Array) and xp.jits:
        raise Untranslatable("a branch on data raises an error")
    if isinstance(predicate, Array):
        predicate = predicate if predicate.dtype == "bool" else predicate != 0
        if xp.jits and _same_kinds(bodies[0].result, bodies[1].result):
            specs = mapped(bodies[0].result, lambda leaf: leaf.spec)
            graphs = [body.close(_strong(body, body.result)) for body in bodies]
            return xp.branch(predicate, graphs, given, specs)
        if xp.jits:
            writer.note("a branch on data stays Python's if: the program runs, but cannot be compiled")
    one, other = (body.result for body in bodies)
    one, other = other if raising[0] else one, one if raising[1] else other
    one, other = (
        _truths(bodies[0], one, other, not isinstance(predicate, Array)),
        _truths(bodies[1], other, one, not isinstance(predicate, Array)),
    )
    results = (mapped(result, lambda leaf: None) if raises else result
               for result, raises in zip((one, other), raising, strict=True))  # fmt: skip
    graphs = [body.close(mapped(result, translator.spelled)) for body, result in zip(bodies, results, strict=True)]
    node = writer.node("call_function", cond, (predicate, *graphs, tuple(given)))
    return _merged(translator, node, one, other)


def _truths(body: _Body, result: Any, beside: Any, plain: bool) -> Any:
    """A result in which truth values are of the kind that both sides can have: plain ones, or arrays."""
    if isinstance(result, (tuple, list)) and type(result) is type(beside) and len(result) == len(beside):
        return type(result)(_truths(body, one, other, plain) for one, other in zip(result, beside, strict=True))
    if plain and _is_truth(beside) and isinstance(result, Array) and not result.ndim:
        return body.writer.namespace.truth(result)
    if not plain and isinstance(result, bool) and isinstance(beside, Array) and beside.dtype == "bool":
        return body.writer.namespace.as_array(result, "bool")
    return result


def _is_truth(value: Any) -> bool:
    return isinstance(value.value if isinstance(value, Number) else value, bool)


def run_both_ways(translator: Translator, row: Any, args: Any, kwargs: Any, asked: Optional | Number) -> Any:
    """What a row gives where an argument is an array or None, or a truth value that it has to know: a branch, with the
    row on both sides."""
    values = list(dict.fromkeys(leaf for leaf in leaves_of((args, kwargs)) if isinstance(leaf, Value)))
    given = [one for one in values if not isinstance(one, Array) or one.node.op != "get_attr"]
    sides = []
    for is_array in (True, False):
        body = _Body.empty(translator)
        known = {one: body.input(f"value_{place}", one) for place, one in enumerate(given)}
        known |= {one: body.again(one) for one in values if one not in known}
        if isinstance(asked, Number):
            known[asked] = is_array
        else:
            known[asked] = Array(body.writer, known[asked].node, asked.spec, True) if is_array else None
        filled = mapped((args, kwargs), functools.partial(_known, known))
        namespace = body.writer.namespace
        namespace.wanted = translator.xp.wanted
        inner = type(translator)(translator.program, body.graph, body.writer, {})
        try:
            body.result = inner._run(row, *filled)
        except Untranslatable:
            if is_array or isinstance(asked, Number):
                raise
            return _run_with_array(translator, row, args, kwargs, asked)
        sides.append(body)
    writer = translator.writer
    is_there: Any = asked
    if isinstance(asked, Optional):
        is_there = writer.node("call_function", operator.is_not, (asked, None))
    graphs = [body.close(mapped(body.result, translator.spelled)) for body in sides]
    node = writer.node("call_function", cond, (is_there, *graphs, tuple(given)))
    return _merged(translator, node, sides[0].result, sides[1].result)


def _known(known: dict[Any, Any], leaf: Any) -> Any:
    return known[leaf] if isinstance(leaf, Value) else leaf


def _run_with_array(translator: Translator, row: Any, args: Any, kwargs: Any, asked: Optional) -> Any:
    """What a row gives that takes no None in this place: a guard says that there is an array."""
    writer = translator.writer
    is_there = Number(writer, writer.node("call_function", operator.is_not, (asked, None)), True)
    writer.require(is_there, True, "the call takes an array here, and not None")
    array = Array(writer, asked.node, asked.spec, True)
    given, named = mapped((args, kwargs), lambda leaf: array if leaf is asked else leaf)
    return translator._run(row, given, named)


def _raises(body: Graph) -> bool:
    """Whether a body always ends with an error."""
    return any(node.target is raise_error for node in body.find_nodes(op="call_function"))


def _flat_operands(operands: list[Any]) -> tuple[list[Any], list[bool]]:
    """Which operands the bodies take; plain values are known inside, and nests of values are refused."""
    only = []
    for one in operands:
        if isinstance(one, (tuple, list, dict)) and any(map(_is_dynamic, leaves_of(one))):
            raise Untranslatable("a nest of values goes into a branch or loop")
        only.append(_is_dynamic(one))
    return operands, only


def _same_kinds(one: Any, other: Any) -> bool:
    """Whether two results are nests of arrays of the same dtypes and shapes."""
    if isinstance(one, Array) and isinstance(other, Array):
        return one.dtype == other.dtype and one.spec.shape == other.spec.shape
    if isinstance(one, (tuple, list)) and type(one) is type(other) and len(one) == len(other):
        return all(map(_same_kinds, one, other))
    return False


def _strong(body: _Body, result: Any) -> Any:
    """Results whose dtypes do not give way, so that both sides give the same."""
    xp = body.writer.namespace
    return mapped(result, lambda leaf: xp.astype(leaf, leaf.dtype) if leaf.spec.weak else leaf)


MAYBE = "it is a plain value or None, by a branch"


def _is_maybe(value: Any) -> bool:
    return isinstance(value, Opaque) and value.reason == MAYBE


def _merged(translator: Translator, node: Node, one: Any, other: Any) -> Any:
    """What is known of a result that comes from one of two sides."""
    writer = translator.writer
    if isinstance(one, (tuple, list)) and type(one) is type(other) and len(one) == len(other):
        parts = [
            _merged(translator, writer.node("call_function", _getitem, (node, place)), left, right)
            for place, (left, right) in enumerate(zip(one, other, strict=True))
        ]
        return tuple(parts) if isinstance(one, tuple) else parts
    if isinstance(one, Array) and isinstance(other, Array) and one.dtype == other.dtype and one.ndim == other.ndim:
        return writer.wrap(node, Spec(one.spec.shape, one.dtype), True)
    plain = (Number, bool, int, float)
    if isinstance(one, plain) and isinstance(other, plain):
        return Number(writer, node, one.value if isinstance(one, Number) else one)
    if one is None and other is None:
        return None
    arrays = [side for side in (one, other) if isinstance(side, (Array, Optional))]
    kinds = {(side.spec.dtype, len(side.spec.shape)) for side in arrays}
    if len(kinds) == 1 and all(side is None or isinstance(side, (Array, Optional)) for side in (one, other)):
        return Optional(writer, node, arrays[0].spec)
    if all(side is None or isinstance(side, plain) or _is_maybe(side) for side in (one, other)):
        return Opaque(writer, node, MAYBE)
    return Opaque(writer, node, "it is an array or something else, by a branch: only one kind of value can be carried")


def _loop(translator: Translator, node: Node, loop: Loop, own: int | None = None) -> Any:
    """A loop of Python's; what it carries keeps its kind. ``own`` are the values that the source's loop carries."""
    if loop.outputs:
        raise Untranslatable("a loop that collects a list")
    carried, operands = list(translator.arguments(loop.carried)), list(translator.arguments(loop.operands))
    xp, writer = translator.xp, translator.writer
    carried = [_carried(xp, one) for one in carried]
    items = [_item(translator, loop)] if loop.is_for else []
    values = [*carried, *items, *operands]
    values, only = _flat_operands(values)
    places = written_inputs(translator, loop.body)
    kept_places = [place - len(carried) - len(items) for place in places if place >= len(carried) + len(items)]
    for place in places:
        if place < (len(carried) if own is None else own):
            _check_lost(translator, node, loop.carried[place], loop)
    only[: len(carried) + len(items)] = [True] * (len(carried) + len(items))
    values = [
        one if _is_dynamic(one) or not keep else _number(writer, one) for one, keep in zip(values, only, strict=True)
    ]
    given = tuple(one for one, keep in zip(operands, only[len(carried) + len(items) :], strict=True) if keep)
    if kept_places:
        return _writing_loop(translator, node, loop, kept_places)
    body = _Body(translator, loop.body, values, only)
    result = tuple(body.result) if body.result is not None else ()
    kept = tuple(_kept(body, before, after) for before, after in zip(carried, result, strict=False))
    graph = body.close((*kept, *mapped(result[len(carried) :], translator.spelled)))
    if loop.is_for:
        iterable = translator.arguments(loop.iterable)
        iterable = iterable.node if isinstance(iterable, Value) else nodes_of(iterable)
        args: tuple[Any, ...] = (iterable, graph, tuple(carried), given, 0, loop.breaks)
        made = writer.node("call_function", for_loop, args)
    else:
        outer = [place for place, _ in enumerate(values) if place < len(carried) or only[place]]
        test = _Body(translator, loop.test, values, [place in outer for place in range(len(values))])
        asks = test.result
        if isinstance(asks, Array) and xp.jits:
            writer.note("a while loop on data stays Python's: the program runs, but cannot be compiled")
        args = (test.close(asks), graph, tuple(carried), given, 0, loop.breaks)
        made = writer.node("call_function", while_loop, args)
    return tuple(
        _merged(translator, writer.node("call_function", _getitem, (made, place)), one, one)
        for place, one in enumerate(carried)
    )


def _check_lost(translator: Translator, node: Node, value: Any, loop: Loop) -> None:
    """Refuse a loop that writes into the array that it starts with, if anybody can still see that array."""
    base = translator._base(value)
    others = [one for one in (*loop.carried, *loop.operands) if isinstance(one, Node) and one is not value]
    if translator._is_input(value) and base not in translator.writable:
        raise Untranslatable("a loop writes into an input")
    if any(translator._base(one) is base for one in others) or sum(one is value for one in loop.carried) > 1:
        raise Untranslatable("a loop writes into an array that it is given twice")
    for one in translator.graph.nodes:
        if one < node and translator._base(one) is base and any(user > node for user in one.users):
            raise Untranslatable("a loop writes into an array that is used afterwards")


def _writing_loop(translator: Translator, node: Node, loop: Loop, places: list[int]) -> Any:
    """A loop that writes into arrays around it: it carries them, and the program goes on with what they are then."""
    written = [loop.operands[place] for place in places]
    rest = [one for place, one in enumerate(loop.operands) if place not in places]
    if loop.breaks:
        raise Untranslatable("a loop that writes into arrays around it, and is left early")
    body, first = copy.deepcopy(loop.body), len(loop.carried) + loop.is_for
    bodies = [(body, True)] if loop.test is None else [(copy.deepcopy(loop.test), False), (body, True)]
    count = len(loop.carried)
    for graph, is_body in bodies:
        _carry(graph, [first - (0 if is_body else loop.is_for) + place for place in places], count, is_body)
    carried = (*loop.carried, *written)
    wide = replace(loop, test=bodies[0][0] if loop.test is not None else None, body=body, carried=carried,
                   operands=tuple(rest))  # fmt: skip
    found = _loop(translator, node, wide, count)
    for one, new in zip(written, found[count:], strict=True):
        translator.replaced(node, one, new)
    return found[:count]


def _carry(graph: Graph, places: list[int], count: int, is_body: bool) -> None:
    """Let inputs of a body be carried values behind the others; a body also returns them."""
    inputs = inputs_of(graph)
    chosen = [inputs[place] for place in places]
    anchor = next((one for one in inputs[count:] if one not in chosen), None)
    if anchor is not None:
        for one in chosen:
            anchor.prepend(one)
    if is_body:
        output = next(iter(graph.find_nodes(op="output")))
        before = output.args[0]
        output.args = ((*(before or ()), *chosen),)


def _carried(xp: Any, value: Any) -> Any:
    if isinstance(value, (Array, Number, bool, int, float)):
        return value
    raise Untranslatable("a loop that carries something that is no array and no number")


def _number(writer: Writer, value: Any) -> Any:
    """A plain number as one of the running program, since a loop changes it."""
    return Number(writer, None, value)  # type: ignore[arg-type]


def _kept(body: _Body, before: Any, after: Any) -> Any:
    """A carried value after one round, of the kind that it had before."""
    if isinstance(before, Array):
        if not isinstance(after, Array) or after.ndim != before.ndim:
            raise Untranslatable("a loop changes the kind of a value")
        return body.writer.namespace.cast(after, before.dtype) if after.dtype == before.dtype else _differs()
    if isinstance(after, (Number, bool, int, float)):
        return after
    raise Untranslatable("a loop changes the kind of a value")


def _differs() -> Any:
    raise Untranslatable("a loop changes the dtype of a value")


def _item(translator: Translator, loop: Loop) -> Any:
    """What the body of a ``for`` is given, as far as it is known."""
    iterable = translator.arguments(loop.iterable)
    if isinstance(iterable, Array):
        made = Array(translator.writer, iterable.node, Spec(iterable.spec.shape[1:], iterable.dtype), True)
        return made
    told = iterable.value if isinstance(iterable, Number) else iterable
    if isinstance(told, (range, list)):
        return Number(translator.writer, None, next(iter(told), 0))  # type: ignore[arg-type]
    raise Untranslatable("a loop over something that is no range and no array")
