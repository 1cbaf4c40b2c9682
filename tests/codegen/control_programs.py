"""Random programs with branches and loops inside each other, and a direct evaluation of them.

The strategy gives graphs over whole numbers whose operations may leave a trace in ``LOG``, so that the order of effects
counts. ``evaluate`` knows nothing of interpreters and generated code: it is the meaning of a graph in short.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

from hypothesis import strategies as st

import clew
from clew.ir.arguments import map_arg
from clew.ir.graph import Graph
from clew.ir.node import Node

LOG: list[int] = []


def note(value: int) -> int:
    """An effect: tells that it was called."""
    LOG.append(value)
    return value + 1


def evaluate(graph: Graph, *inputs: Any) -> Any:
    """What a graph returns, found by going through its nodes."""
    values: dict[Any, Any] = {}
    waiting = list(inputs)
    for node in graph.nodes:
        args, kwargs = map_arg(node.args, values.__getitem__), map_arg(node.kwargs, values.__getitem__)
        if node.op == "placeholder":
            values[node] = waiting.pop(0)
        elif node.op == "output":
            return args[0]
        elif node.target is clew.cond:
            predicate, yes, no, operands = args
            values[node] = evaluate(yes if predicate else no, *operands)
        elif node.target in (clew.while_loop, clew.for_loop):
            values[node] = _loop(node.target is clew.for_loop, *args, **kwargs)
        else:
            values[node] = node.target(*args, **kwargs)
    return None


def _loop(is_for: bool, source: Any, body: Graph, carried: Any, operands: Any, outputs: int = 0, breaks: bool = False):
    lists: list[list[Any]] = [[] for _ in range(outputs)]
    items = iter(source) if is_for else None
    stop = False
    while not stop:
        item = [next(items, None)] if items is not None else []
        if (item == [None]) if is_for else not evaluate(source, *carried, *operands):
            break
        result = evaluate(body, *carried, *item, *operands)
        stop = breaks and result[-1]
        count = len(carried)
        carried = result[:count]
        for values, value in zip(lists, result[count:], strict=False):
            values.append(value)
    return (*carried, *lists)


_PLAIN = [operator.add, operator.sub, operator.xor, operator.and_, operator.gt, operator.eq, max, note]
_NAMES = st.sampled_from([None, None, None, "x", "y", "n", "stop", "add", "self"])


class _Builder:
    """Draws one graph and the graphs inside it."""

    def __init__(self, draw: st.DrawFn, inputs: int, depth: int) -> None:
        self.draw = draw
        self.graph = Graph()
        self.depth = depth
        self.values = [self.graph.placeholder(self.draw(st.sampled_from("xynabc"))) for _ in range(inputs)]

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def value(self) -> Any:
        """A value so far, or a number."""
        place = self.number(0, len(self.values))
        return self.values[place] if place < len(self.values) else self.number(-2, 3)

    def some(self, count: int) -> tuple[Any, ...]:
        return tuple(self.value() for _ in range(count))

    def call(self, target: Any, args: tuple[Any, ...], **kwargs: Any) -> Node:
        return self.graph.create_node("call_function", target, args, kwargs, self.draw(_NAMES))

    def step(self) -> None:
        """One more operation, branch or loop."""
        kind = self.number(0, 9 if self.depth else 4)
        if kind <= 4:
            target = self.draw(st.sampled_from(_PLAIN))
            self.values.append(self.call(target, self.some(1 if target is note else 2)))
        elif kind <= 7:
            count = self.number(0, 3)
            node = self.branch(lambda inner: inner.finish_tuple(count))
            self.take_apart(node, count)
        else:
            self.loop()

    def branch(self, finish: Any) -> Node:
        operands = self.some(self.number(0, 3))
        bodies = [self.body(len(operands), finish) for _ in range(2)]
        if self.number(0, 9) == 0:
            bodies[1] = bodies[0]
        return self.call(clew.cond, (self.value(), *bodies, operands))

    def body(self, inputs: int, finish: Any, pair: int | None = None) -> Graph:
        """A graph of so many inputs, of which the one with the number ``pair`` is a tuple of two numbers."""
        inner = _Builder(self.draw, inputs, self.depth - 1)
        if pair is not None:
            item = inner.values.pop(pair)
            for place in self.draw(st.lists(st.integers(0, 1), max_size=3)):
                inner.values.append(inner.call(operator.getitem, (item, place)))
        for _ in range(self.number(0, 3)):
            inner.step()
        finish(inner)
        return inner.graph

    def finish_tuple(self, count: int, first: Any = None, flag: bool = False) -> None:
        """Return a tuple of so many values, perhaps by way of a branch that returns it."""
        if self.depth and first is None and self.number(0, 3) == 0:
            node = self.branch(lambda inner: inner.finish_tuple(count, None, flag))
            self.graph.output(node)
            return
        values = self.some(count - (first is not None) - flag)
        stop = (self.draw(st.sampled_from([True, False, None])),) if flag else ()
        stop = (self.value(),) if stop == (None,) else stop
        self.graph.output((*(() if first is None else (first,)), *values, *stop))

    def take_apart(self, node: Node, count: int) -> None:
        for place in range(count):
            for _ in range(self.number(0, 2) if self.number(0, 3) == 0 else 1):
                self.values.append(self.call(operator.getitem, (node, place)))
        if count and self.number(0, 9) == 0:
            self.values.append(self.call(operator.getitem, (self.call(list, (node,)), 0)))

    def loop(self) -> None:
        outputs, breaks = self.number(0, 1), self.number(0, 2) == 0
        carried, operands = self.some(self.number(0, 2)), self.some(self.number(0, 2))
        options = {"outputs": outputs, "breaks": breaks}
        if self.number(0, 1):
            count = len(carried) + outputs + breaks
            pairs = self.number(0, 2) == 0
            finish = partial(_Builder.finish_tuple, count=count, flag=breaks)
            body = self.body(len(carried) + 1 + len(operands), finish, len(carried) if pairs else None)
            source: Any = self.call(range, (self.number(0, 3),))
            source = self.call(enumerate, (source, 5)) if pairs else source
            node = self.call(clew.for_loop, (source, body, carried, operands), **options)
        else:
            carried = (0, *carried)
            count = len(carried) + outputs + breaks
            body = self.body(len(carried) + len(operands), lambda inner: inner.finish_round(count, breaks))
            test = self.body(len(carried) + len(operands), _Builder.finish_test)
            node = self.call(clew.while_loop, (test, body, carried, operands), **options)
        self.take_apart(node, len(carried))
        if outputs:
            whole = self.call(operator.getitem, (node, len(carried)))
            self.values.append(self.call(sum, (whole,)))

    def finish_round(self, count: int, flag: bool) -> None:
        """Return the count of rounds, one higher, and other values."""
        rounds = self.call(operator.add, (self.graph.find_nodes(op="placeholder")[0], 1))
        self.finish_tuple(count, rounds, flag)

    def finish_test(self) -> None:
        """Go on for a few rounds at most."""
        rounds = self.graph.find_nodes(op="placeholder")[0]
        self.graph.output(self.call(operator.lt, (rounds, self.number(0, 3))))


@st.composite
def control_programs(draw: st.DrawFn, depth: int = 3) -> tuple[Graph, list[int]]:
    """A graph with branches and loops down to ``depth``, and inputs for it."""
    inputs = [draw(st.integers(-3, 3)) for _ in range(draw(st.integers(1, 3)))]
    builder = _Builder(draw, len(inputs), depth)
    for _ in range(draw(st.integers(1, 4))):
        builder.step()
    builder.finish_tuple(draw(st.integers(0, 4)))
    return builder.graph, inputs
