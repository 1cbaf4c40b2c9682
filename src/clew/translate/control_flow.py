"""Branches and loops: their bodies are translated each into a graph of its own.

A branch whose condition is known while the program is translated is the side that is taken. One on a size or another
plain number stays Python's ``if``, which a compiler answers while it traces. One on data becomes the target's own
(``jax.lax.cond``) where both sides give arrays of the same kinds; otherwise it stays Python's, and then the program
runs as it is but cannot be compiled. Loops stay Python's.
"""

from __future__ import annotations

import copy
import functools
import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clew.capture.control_flow.raising import raise_error
from clew.ir.arguments import all_nodes
from clew.ir.control_flow import Branch, Loop, cond, control_of, for_loop, inputs_of, is_control, while_loop
from clew.ir.graph import Graph
from clew.ir.guards import guard
from clew.ir.node import Node
from clew.translate.refusals import Untranslatable
from clew.translate.values import Array, Chosen, Items, Number, Opaque, Optional, Spec, Value, Zipped
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
    inner = _inside(translator, body, translator.writer, known)
    wanted = translator.xp.wanted
    found = inner.run()
    translator.xp.wanted = wanted
    for place in written_inputs(translator, body):
        translator.replaced(node, operands[place], inner.env[inputs_of(body)[place]])
    return found


def _inside(translator: Translator, body: Graph, writer: Writer, known: dict[Node, Any]) -> Translator:
    """The translator of a body, which may write into the inputs that are given on to the program around it."""
    inner = type(translator)(translator.program, body, writer, known)
    inner.modes, inner.sizes_differ = list(translator.modes), translator.sizes_differ
    inner.writable = {inputs_of(body)[place] for place in written_inputs(translator, body)}
    return inner


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

    def __init__(self, translator: Translator, body: Graph, values: list[Any], only: list[bool],
                 item: int = -1, side: tuple[Any, int] | None = None) -> None:  # fmt: skip
        self._open(translator, side)
        known: dict[Node, Any] = {}
        for place, (node, value) in enumerate(zip(inputs_of(body), values, strict=True)):
            if place == item:
                known[node] = self._taken(self.graph.placeholder(str(node.target)), value)
            else:
                known[node] = self._input(node, value) if only[place] else value
        self._tell_predicates(values, list(known.values()))
        inner = _inside(translator, body, self.writer, known)
        self.inputs, self.inner = inputs_of(body), inner
        self.result = inner.run()

    @classmethod
    def empty(cls, translator: Translator) -> _Body:
        """A body that is written by its owner."""
        made = cls.__new__(cls)
        made._open(translator)
        return made

    def _open(self, translator: Translator, side: tuple[Any, int] | None = None) -> None:
        self.side = side
        """The predicate of the branch that the body is a side of, and which side."""
        self.graph = Graph()
        self.writer = Writer(self.graph, translator.program.namespace, translator.program.notes)
        self.writer.origin = translator.writer.origin

    def again(self, value: Any) -> Array:
        """An attribute of the program, read in the body."""
        made: Array = self.writer.wrap(self.writer.node("get_attr", value.node.target, ()), value.spec, True)
        made.fixed, made.path = value.fixed, value.path
        return made

    def _input(self, node: Node, value: Any) -> Any:
        """An operand as an input; of a nest each value is one."""
        if isinstance(value, (tuple, list, dict)):
            name = str(node.target)
            return mapped(value, lambda leaf: self.input(name, leaf) if _is_dynamic(leaf) else leaf)
        return self.input(str(node.target), value, node.value_type)

    def _tell_predicates(self, values: list[Any], inside: list[Any]) -> None:
        """What was chosen by a predicate around the body is chosen by that which the body is given for it."""
        renamed = {id(one): new for one, new in zip(values, inside, strict=True) if isinstance(new, Value)}
        for new in (leaf for one in inside for leaf in leaves_of(one)):
            chosen = getattr(new, "chosen", None)
            if chosen is not None and id(chosen.predicate) in renamed:
                new.chosen = replace(chosen, predicate=renamed[id(chosen.predicate)])

    def _taken(self, made: Node, value: Any) -> Any:
        """A node that gives a nest like this one: of a tuple each part by itself."""
        if isinstance(value, (tuple, list)):
            parts = [self.writer.node("call_function", _getitem, (made, place)) for place in range(len(value))]
            return type(value)(map(self._taken, parts, value))
        if isinstance(value, dict):
            return {key: self._taken(self.writer.node("call_function", _getitem, (made, key)), one)
                    for key, one in value.items()}  # fmt: skip
        return self._of(made, value) if isinstance(value, Value) else value

    def input(self, name: str, value: Any, kind: Any = None) -> Any:
        """A value from outside as an input of the body."""
        taken = {str(one.target) for one in self.graph.find_nodes(op="placeholder")}
        made = self.graph.placeholder(next(one for one in _numbered(name) if one not in taken))
        made.value_type = kind
        return self._of(made, value)

    def _of(self, made: Node, value: Any) -> Any:
        """A node that gives a value like this one; on a side of the branch that chose it, what it is there."""
        chosen = getattr(value, "chosen", None)
        if chosen is not None and self.side is not None and chosen.predicate is self.side[0]:
            return self._taken(made, chosen.sides[self.side[1]])
        if isinstance(value, Items):
            return Items(self.writer, made, value.specs, value.shares)
        if isinstance(value, Array):
            found = self.writer.wrap(made, value.spec, value.differentiable)
            found.fixed = value.fixed
            return found
        if isinstance(value, Number):
            return Number(self.writer, made, value.value)
        if isinstance(value, Optional):
            return Optional(self.writer, made, value.spec, chosen)
        return Opaque(self.writer, made, value.reason, chosen)

    def close(self, result: Any) -> Graph:
        """The graph, which returns this."""
        self.graph.output(nodes_of(result))
        return self.graph


def _is_dynamic(value: Any) -> bool:
    return isinstance(value, Value)


def _numbered(name: str) -> Iterator[str]:
    """A name, and others like it."""
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(1))


def _branch(translator: Translator, node: Node, branch: Branch) -> Any:
    predicate = translator.arguments(branch.predicate)
    operands = list(translator.arguments(branch.operands))
    if isinstance(predicate, Array) and predicate.plain is not None:
        predicate = predicate.plain
    if not isinstance(predicate, Value):
        taken = branch.bodies[0 if predicate else 1]
        _check_aliases(translator, branch.operands, written_inputs(translator, taken))
        return _inlined(translator, taken, operands, node, branch.operands)
    places = sorted({place for body in branch.bodies for place in written_inputs(translator, body)})
    _check_aliases(translator, branch.operands, places)
    if isinstance(predicate, Opaque) and not _is_maybe(predicate):
        raise Untranslatable(predicate.reason or "a branch on a value of which nothing is known")
    only = _are_given(operands)
    bodies = [_Body(translator, body, operands, only, -1, (predicate, k)) for k, body in enumerate(branch.bodies)]
    for body in bodies if places else ():
        body.result = (body.result, *(body.inner.env[body.inputs[place]] for place in places))
    found = _joined(translator, branch, bodies, _spread(operands, only), predicate)
    for place, new in zip(places, found[1:] if places else (), strict=True):
        translator.replaced(node, branch.operands[place], new)
    return found[0] if places else found


def _joined(translator: Translator, branch: Branch, bodies: list[_Body], given: list[Any], predicate: Any) -> Any:
    """The values of a branch whose sides have been translated."""
    if isinstance(predicate, Array):
        return _on_data(translator, predicate, bodies, given)
    raising = [_raises(body) for body in branch.bodies]
    one, other = (body.result for body in bodies)
    one, other = other if raising[0] else one, one if raising[1] else other
    one, other = _truths(bodies[0], one, other, True), _truths(bodies[1], other, one, True)
    return _chosen(translator, predicate, bodies, (one, other), raising, given)


def _on_data(translator: Translator, predicate: Array, bodies: list[_Body], given: list[Any]) -> Any:
    """A branch on data: the target's own where both sides give the same kinds of arrays, else Python's."""
    xp, writer = translator.xp, translator.writer
    raising = [_raises(body.graph) for body in bodies]
    predicate = predicate if predicate.dtype == "bool" else predicate != 0
    checks = any(node.target in (guard, raise_error) for body in bodies for node in all_nodes(body.graph))
    if xp.jits and not checks and _same_kinds(bodies[0].result, bodies[1].result):
        specs = mapped(bodies[0].result, lambda leaf: leaf.spec)
        graphs = [body.close(_strong(body, body.result)) for body in bodies]
        return xp.branch(predicate, graphs, given, specs)
    if xp.jits:
        writer.note("a branch on data stays Python's if: the program runs, but cannot be compiled")
    one, other = (body.result for body in bodies)
    one, other = other if raising[0] else one, one if raising[1] else other
    one, other = _truths(bodies[0], one, other, False), _truths(bodies[1], other, one, False)
    return _chosen(translator, predicate, bodies, (one, other), raising, given)


def _chosen(translator: Translator, predicate: Any, bodies: Any, results: Any, raising: Any, given: list[Any]) -> Any:
    """The call of Python's branch, and what is known of what it gives."""
    spelled = [mapped(result, lambda leaf: None) if raises else mapped(result, translator.spelled)
               for result, raises in zip(results, raising, strict=True)]  # fmt: skip
    packed = [_packed(body, one, other) for body, one, other in zip(bodies, spelled, reversed(spelled), strict=True)]
    graphs = [body.close(result) for body, result in zip(bodies, packed, strict=True)]
    node = translator.writer.node("call_function", cond, (predicate, *graphs, tuple(given)))
    return _merged(translator, node, results[0], results[1], predicate)


def _packed(body: _Body, result: Any, beside: Any) -> Any:
    """A result in which a nest is one value where the other side has something else, since sides are of one form."""
    if not isinstance(result, (tuple, list, dict)):
        return result
    if type(result) is type(beside) and len(result) == len(beside) and not isinstance(result, dict):
        return type(result)(_packed(body, one, other) for one, other in zip(result, beside, strict=True))
    if isinstance(result, dict) and isinstance(beside, dict) and list(result) == list(beside):
        return {key: _packed(body, one, beside[key]) for key, one in result.items()}
    if type(result) not in (tuple, list, dict):
        return result
    items = list(result.items()) if isinstance(result, dict) else list(result)
    return body.writer.node("call_function", type(result), (items,))


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
    return _merged(translator, node, sides[0].result, sides[1].result, asked)


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


def _are_given(operands: list[Any]) -> list[bool]:
    """Which operands the bodies take as inputs; plain values are known inside."""
    return [any(map(_is_dynamic, leaves_of(one))) for one in operands]


def _spread(operands: list[Any], given: list[bool]) -> list[Any]:
    """The inputs of the bodies one by one: of nests their values."""
    kept = [one for one, keep in zip(operands, given, strict=True) if keep]
    return [leaf for one in kept for leaf in leaves_of(one) if _is_dynamic(leaf)]


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


def _merged(translator: Translator, node: Node, one: Any, other: Any, predicate: Any = None) -> Any:
    """What is known of a result that comes from one of two sides."""
    writer = translator.writer
    taken = other if isinstance(predicate, Number) and not predicate.value else one
    if not isinstance(one, (Value, tuple, list, dict)) and type(one) is type(other) and one == other:
        return one
    if isinstance(one, (tuple, list)) and type(one) is type(other) and len(one) == len(other):
        parts = [
            _merged(translator, writer.node("call_function", _getitem, (node, place)), left, right, predicate)
            for place, (left, right) in enumerate(zip(one, other, strict=True))
        ]
        return tuple(parts) if isinstance(one, tuple) else parts
    if type(one) is dict and type(other) is dict and list(one) == list(other):
        places = {key: writer.node("call_function", _getitem, (node, key)) for key in one}
        return {key: _merged(translator, places[key], one[key], other[key], predicate) for key in one}
    if isinstance(one, Array) and isinstance(other, Array) and one.dtype == other.dtype and one.ndim == other.ndim:
        return writer.wrap(node, Spec(taken.spec.shape, one.dtype), True)
    plain = (Number, bool, int, float)
    if isinstance(one, plain) and isinstance(other, plain):
        return Number(writer, node, taken.value if isinstance(taken, Number) else taken)
    arrays = [side for side in (one, other) if isinstance(side, (Array, Optional))]
    kinds = {(side.spec.dtype, len(side.spec.shape)) for side in arrays}
    chosen = Chosen(predicate, (one, other)) if isinstance(predicate, Value) else None
    if len(kinds) == 1 and all(side is None or isinstance(side, (Array, Optional)) for side in (one, other)):
        return Optional(writer, node, arrays[0].spec, chosen)
    if all(side is None or isinstance(side, plain) or _is_maybe(side) for side in (one, other)):
        return Opaque(writer, node, MAYBE, chosen)
    reason = "it is an array or something else, by a branch: only one kind of value can be carried"
    return Opaque(writer, node, reason, chosen)


def _loop(translator: Translator, node: Node, loop: Loop, own: int | None = None) -> Any:
    """A loop of Python's; what it carries keeps its kind. ``own`` are the values that the source's loop carries."""
    carried, operands = list(translator.arguments(loop.carried)), list(translator.arguments(loop.operands))
    xp, writer = translator.xp, translator.writer
    carried = [_carried(xp, one) for one in carried]
    items = [_item(translator, loop)] if loop.is_for else []
    values = [*carried, *items, *operands]
    places = written_inputs(translator, loop.body)
    kept_places = [place - len(carried) - len(items) for place in places if place >= len(carried) + len(items)]
    for place in places:
        if place < (len(carried) if own is None else own):
            _check_lost(translator, node, loop.carried[place], loop)
    if kept_places:
        return _writing_loop(translator, node, loop, kept_places)
    only = _are_given(values)
    only[: len(carried) + len(items)] = [True] * (len(carried) + len(items))
    values = [
        _number(writer, one) if keep and isinstance(one, (bool, int, float)) else one
        for one, keep in zip(values, only, strict=True)
    ]
    given = tuple(_spread(operands, only[len(carried) + len(items) :]))
    if xp.jits and not loop.is_for and not loop.outputs and not loop.breaks:
        found = _compiled_while(translator, loop, carried, operands)
        if found is not None:
            return found
    body = _Body(translator, loop.body, values, only, len(carried) if loop.is_for else -1)
    result = tuple(body.result) if body.result is not None else ()
    kept = tuple(_kept(body, before, after) for before, after in zip(carried, result, strict=False))
    graph = body.close((*kept, *mapped(result[len(carried) :], translator.spelled)))
    if loop.is_for:
        iterable = translator.arguments(loop.iterable)
        iterable = iterable.node if isinstance(iterable, Value) else nodes_of(iterable)
        args: tuple[Any, ...] = (iterable, graph, tuple(carried), given, loop.outputs, loop.breaks)
        made = writer.node("call_function", for_loop, args)
    else:
        outer = [place for place, _ in enumerate(values) if place < len(carried) or only[place]]
        test = _Body(translator, loop.test, values, [place in outer for place in range(len(values))])
        asks = test.result
        if isinstance(asks, Array) and xp.jits:
            writer.note("a while loop on data stays Python's: the program runs, but cannot be compiled")
        args = (test.close(asks), graph, tuple(carried), given, loop.outputs, loop.breaks)
        made = writer.node("call_function", while_loop, args)
    collected = result[len(carried) : len(carried) + loop.outputs]
    parts = [writer.node("call_function", _getitem, (made, place)) for place in range(loop.results)]
    shares = _shares(body, loop)
    lists = [_collected(writer, *given) for given in zip(parts[len(carried) :], collected, shares, strict=True)]
    return (*(_merged(translator, part, one, one) for part, one in zip(parts, carried, strict=False)), *lists)


def _compiled_while(translator: Translator, loop: Loop, carried: list[Any], operands: list[Any]) -> Any:
    """The target's own loop, where it carries arrays alone that keep their kinds, and tests an array; else None."""
    if not carried or not all(isinstance(one, Array) for one in carried):
        return None
    refusals = list(translator.program.refusals)
    test, asked = _of_state(translator, loop.test, carried, operands)
    body, result = _of_state(translator, loop.body, carried, operands)
    stays = isinstance(result, (tuple, list)) and _same_kinds(tuple(result), tuple(carried))
    plain = any(node.target in (guard, raise_error) for one in (test, body) for node in one.graph.nodes)
    if not isinstance(asked, Array) or asked.ndim or not stays or plain:
        translator.program.refusals[:] = refusals
        return None
    _shares(body, loop)
    asked = asked if asked.dtype == "bool" else asked != 0
    graphs = (test.close(asked), body.close(tuple(_strong(body, list(result)))))
    state = tuple(translator.xp.astype(one, one.dtype) if one.spec.weak else one for one in carried)
    return translator.xp.repeat_while(graphs, _spread(operands, _are_given(operands)), state)


def _of_state(translator: Translator, graph: Graph, carried: list[Any], operands: list[Any]) -> tuple[_Body, Any]:
    """A body that takes the operands and then all that is carried as one tuple; and what it gives."""
    body = _Body.empty(translator)
    known: dict[Node, Any] = {}
    inputs = inputs_of(graph)
    for node, value, keep in zip(inputs[len(carried) :], operands, _are_given(operands), strict=True):
        known[node] = body._input(node, value) if keep else value
    state = body.graph.placeholder("state")
    for place, (node, value) in enumerate(zip(inputs, carried, strict=False)):
        known[node] = body._of(body.writer.node("call_function", _getitem, (state, place)), value)
    body.inputs, body.inner = inputs, _inside(translator, graph, body.writer, known)
    return body, body.inner.run()


def _shares(body: _Body, loop: Loop) -> list[bool]:
    """Whether what a loop collects may lie in memory from outside or in what it carries; refused if the loop writes
    to what it carries or collects besides."""
    results: Any = next(iter(loop.body.find_nodes(op="output"))).args[0] or ()
    count = len(loop.carried)
    bases = [{body.inner._base(leaf) for leaf in leaves_of(one) if isinstance(leaf, Node)} for one in results]
    for place in written_inputs(body.inner, loop.body):
        own = {body.inputs[place]} | (bases[place] if place < count else set())
        if any(own & found for at, found in enumerate(bases) if at != place):
            raise Untranslatable("a loop writes to an array that it carries or collects besides")
    outer = set(body.inputs).union(*bases[:count])
    return [bool(outer & found) for found in bases[count : count + loop.outputs]]


def _collected(writer: Writer, node: Node, one: Any, shares: bool) -> Any:
    """The list that a loop collects, by what one round gives."""
    if isinstance(one, Array):
        return Items(writer, node, [one.spec], shares)
    if isinstance(one, (Number, bool, int, float)):
        return Number(writer, node, [one.value if isinstance(one, Number) else one])
    return Opaque(writer, node, "a list that a loop collects, of other things than arrays and numbers")


def _check_aliases(translator: Translator, given: Sequence[Any], places: Sequence[int]) -> None:
    """Refuse a body that writes into one of the arrays that it is given, and is given a part of it besides."""
    bases = [translator._base(one) if isinstance(one, Node) else None for one in given]
    for place in places:
        if bases[place] is not None and sum(one is bases[place] for one in bases) > 1:
            raise Untranslatable("a branch or loop writes into an array that it is given twice, or a part of")


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
    _check_aliases(translator, (*loop.operands, *loop.carried), places)
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
    for one, new in zip(written, found[count:], strict=False):
        translator.replaced(node, one, new)
    return (*found[:count], *found[count + len(written) :])


def _carry(graph: Graph, places: list[int], count: int, is_body: bool) -> None:
    """Let inputs of a body be carried values behind the others; a body also returns them, before what it collects."""
    inputs = inputs_of(graph)
    chosen = [inputs[place] for place in places]
    anchor = next((one for one in inputs[count:] if one not in chosen), None)
    if anchor is not None:
        for one in chosen:
            anchor.prepend(one)
    if is_body:
        output = next(iter(graph.find_nodes(op="output")))
        before: Any = output.args[0] or ()
        output.args = ((*before[:count], *chosen, *before[count:]),)


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
    return _item_of(translator.writer, translator.arguments(loop.iterable))


def _item_of(writer: Writer, iterable: Any) -> Any:
    if isinstance(iterable, Array):
        return Array(writer, iterable.node, Spec(iterable.spec.shape[1:], iterable.dtype), True)
    if isinstance(iterable, Items):
        return Array(writer, iterable.node, iterable.specs[0], True)
    if isinstance(iterable, Zipped):
        return tuple(_item_of(writer, one) for one in iterable.parts)
    told = iterable.value if isinstance(iterable, Number) else iterable
    if isinstance(told, (range, list, tuple)) and not any(isinstance(one, Value) for one in told):
        return Number(writer, None, next(iter(told), 0))  # type: ignore[arg-type]
    raise Untranslatable("a loop over something that is no range, no array and no list of those")
