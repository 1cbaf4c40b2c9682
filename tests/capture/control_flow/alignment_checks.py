"""A check for tests: what an alignment has written, specialised to one answer, is the recording with that answer.

`checked_alignments` lets every alignment that is written inside it be checked so, node by node; guards on sizes that
only the other recording has are the one thing that may be there besides. What only asks may be asked earlier: it is
known by what it asks, not by its place. Two questions that became one are not recognised: values tell there.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from clew.capture.control_flow.alignment import Alignment
from clew.capture.control_flow.node_comparison import is_check, only_asks
from clew.ir.arguments import map_aggregate
from clew.ir.control_flow import cond
from clew.ir.graph import Graph
from clew.ir.node import Node


class _Rows:
    """The calls of a program with one answer, each by what it does and by the numbers of the calls that it needs."""

    def __init__(self, answer: bool, chosen: set[Node], left_out: set[Node], depth: int = 0) -> None:
        self.depth = depth
        self.answer = answer
        self.chosen = chosen
        self.left_out = left_out
        self.rows: list[Any] = []
        self.checks: set[Any] = set()
        self.known: dict[Node, Any] = {}

    def value(self, nest: Any) -> Any:
        return map_aggregate(nest, self._leaf)

    def _leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, Node):
            return self.known.get(leaf, leaf)
        return str(leaf) if isinstance(leaf, Graph) else (type(leaf), repr(leaf))

    def add(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node in self.chosen:
                self._choose(node)
            elif node.target is operator.getitem and node.args[0] in self.chosen:
                self.known[node] = self.known[node.args[0]][node.args[1]]
            elif node.target is cond and node not in self.left_out:
                sides = [self._side(body, node.args[3]) for body in node.args[1:3]]
                self._note(node, (node.op, node.target, self.value(node.args[0]), *sides))
            elif node not in self.left_out and node.op not in ("placeholder", "get_attr"):
                self._note(node, (node.op, node.target, self.value(node.args), self.value(node.kwargs)))

    def _note(self, node: Node, row: Any) -> None:
        if not only_asks(node):
            self.rows.append(row)
            self.known[node] = f"%{len(self.rows)} at {self.depth}"
        elif is_check(node):
            self.checks.add(repr(row))
        else:
            self.known[node] = row

    def _side(self, body: Graph, operands: Any) -> Any:
        """What a body does with what it is given, whatever its nodes are called and in which order it is given that."""
        inner = _Rows(self.answer, self.chosen, self.left_out, self.depth + 1)
        parameters = [node for node in body.nodes if node.op == "placeholder"]
        inner.known = self.known | dict(zip(parameters, self.value(operands), strict=True))
        inner.add([node for node in body.nodes if node.op not in ("placeholder", "output")])
        return inner.rows, sorted(inner.checks), inner.value(body.output_node().args[0])

    def _choose(self, node: Node) -> None:
        body = node.args[1 if self.answer else 2]
        parameters = [inner for inner in body.nodes if inner.op == "placeholder"]
        self.known |= dict(zip(parameters, self.value(node.args[3]), strict=True))
        self.add([inner for inner in body.nodes if inner.op not in ("placeholder", "output")])
        self.known[node] = self.value(body.output_node().args[0])


def _check(alignment: Alignment, written: list[Node], first: Node) -> None:
    if first.target is operator.or_:  # what a library skips by itself and under a tool became one question: other calls
        return
    asked = {first, *(node for node in written if node.name.startswith(("answer", "is_causal")))}
    own = {node for choice in alignment.choices.values() for node in [alignment._written[choice].args[0]]}
    chosen = {node for node in written if node.target is cond and (node in own or _is_ours(node, asked, alignment))}
    for number, recording in enumerate(alignment.recordings):
        alone = [one for one in alignment.shared if one.twins[0] is one.twins[1]]
        foreign = {alignment._written[one] for one in alone if one.twins[0].graph is not recording.graph}
        found, wanted = _Rows(number == 0, chosen, foreign), _Rows(number == 0, set(), set())
        found.add(written)
        wanted.known |= recording.outer
        wanted.add(recording.graph.nodes)
        assert found.rows == wanted.rows
        assert found.checks == wanted.checks


def _is_ours(node: Node, asked: set[Node], alignment: Alignment) -> bool:
    return node.args[0] in asked and node not in alignment._written.values()


@contextmanager
def checked_alignments() -> Iterator[list[Alignment]]:
    """Check each alignment that is written; they come in a list."""
    seen: list[Alignment] = []
    write = Alignment.write

    def checked(self: Alignment, predicate: Node, *args: Any) -> None:
        before = set(self.graph.nodes)
        write(self, predicate, *args)
        _check(self, [node for node in self.graph.nodes if node not in before], predicate)
        seen.append(self)

    with mock.patch.object(Alignment, "write", checked):
        yield seen
