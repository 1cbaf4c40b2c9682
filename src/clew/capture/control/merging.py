"""Two branches whose bodies make the same calls become one, if they differ in what is handed to them or written out.

In come two nodes that call ``cond`` at the same place of two recordings of one program. Out come bodies for one node,
and the pairs of values that it is given: what a body of the first recording uses, and what the other uses at the same
place, ``None`` and a mask say. Always holds: given the first of each pair the bodies do what those of the first node
did, given the second what those of the second did. ``Unmergeable`` is raised where no such bodies are.
"""

from __future__ import annotations

from typing import Any

from clew.capture.control.reads import is_check
from clew.capture.control.same import PLAIN, same_argument, same_body
from clew.ir.arguments import rebuilt_tuple
from clew.ir.control_flow import Branch, control_of, inputs_of
from clew.ir.graph import Graph
from clew.ir.node import Node, set_type

Pair = tuple[Any, Any]
"""What is handed to the one and to the other: a node of the graph around, or a constant."""


class Unmergeable(Exception):
    """The bodies of two branches do not make the same calls."""


class Merged:
    """The bodies of one branch that stands for two."""

    def __init__(self, left: Branch, right: Branch) -> None:
        self._pairs: dict[Any, Pair] = {}
        self._sides: list[_Side] = []
        for bodies in zip(left.bodies, right.bodies, strict=True):
            side = _Side(self, bodies, (left, right))
            self._sides.append(side)
        for side in self._sides:
            side.add_missing()
        self.bodies = [side.graph for side in self._sides]

    @property
    def pairs(self) -> list[Pair]:
        """What the branch is given, in the order of the parameters of its bodies."""
        return list(self._pairs.values())

    def place_of(self, pair: Pair) -> Any:
        """The key of a pair, which is one operand however often it is used."""
        key = tuple((type(one), repr(one)) if type(one) in PLAIN else id(one) for one in pair)
        self._pairs.setdefault(key, pair)
        return key

    def keys(self) -> list[Any]:
        """The keys of all pairs."""
        return list(self._pairs)


class _Side:
    """One body for two that are on the same side of the branches."""

    def __init__(self, merged: Merged, bodies: tuple[Graph, Graph], branches: tuple[Branch, Branch]) -> None:
        self._merged = merged
        self.graph = Graph()
        self._outer = [
            dict(zip(inputs_of(body), branch.operands, strict=True))
            for body, branch in zip(bodies, branches, strict=True)
        ]
        self._twins: dict[Node, Node] = {}
        self._made: dict[Node, Node] = {}
        self._parameters: dict[Any, Node] = {}
        rows = [[node for node in body.nodes if node.op != "placeholder"] for body in bodies]
        if len(rows[0]) != len(rows[1]):
            raise Unmergeable
        for left, right in zip(*rows, strict=True):
            self._write(left, right)

    def _write(self, left: Node, right: Node) -> None:
        if left.op != right.op or not same_argument(left.target, right.target) or left.source != right.source:
            raise Unmergeable
        one, other = control_of(left), control_of(right)
        if isinstance(one, Branch) and isinstance(other, Branch):
            args, kwargs = self._branch(one, other), {}
        else:
            told = 2 if is_check(left) else None
            args = (*self._joined(left.args[:told], right.args[:told]), *(left.args[told:] if told else ()))
            kwargs = self._joined(left.kwargs, right.kwargs)
        made = self.graph.create_node(left.op, left.target, args, kwargs, left.name, left.type)
        made.source = left.source
        made.meta = dict(left._meta or {})
        if left.value_type == right.value_type and left.value_type is not None:
            set_type(made, left.value_type)
        self._twins[left], self._made[left] = right, made

    def _branch(self, left: Branch, right: Branch) -> tuple[Any, ...]:
        inner = Merged(left, right)
        operands = tuple(self._joined(*pair) for pair in inner.pairs)
        return (self._joined(left.predicate, right.predicate), *inner.bodies, operands)

    def _joined(self, left: Any, right: Any) -> Any:
        """Two arguments as one of the new body."""
        if isinstance(left, Node) or isinstance(right, Node):
            if isinstance(left, Node) and left in self._made:
                if self._twins[left] is not right:
                    raise Unmergeable
                return self._made[left]
            return self._parameter(self._outside(0, left), self._outside(1, right))
        if isinstance(left, tuple) and type(left) is type(right) and len(left) == len(right):
            return rebuilt_tuple(left, [self._joined(*pair) for pair in zip(left, right, strict=True)])
        if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
            return [self._joined(*pair) for pair in zip(left, right, strict=True)]
        if isinstance(left, dict) and isinstance(right, dict) and list(left) == list(right):
            return {key: self._joined(left[key], right[key]) for key in left}
        if isinstance(left, Graph) and isinstance(right, Graph):
            if same_body(left, right):
                return left
            raise Unmergeable
        if same_argument(left, right):
            return left
        return self._parameter(self._outside(0, left), self._outside(1, right))

    def _outside(self, number: int, value: Any) -> Any:
        """What stands for a value in the graph around: what was handed in, or a constant."""
        if not isinstance(value, Node):
            if type(value) not in PLAIN:
                raise Unmergeable
            return value
        if value not in self._outer[number]:
            raise Unmergeable
        return self._outer[number][value]

    def _parameter(self, left: Any, right: Any) -> Node:
        key = self._merged.place_of((left, right))
        known = self._parameters.get(key)
        if known is None:
            known = self._parameters[key] = self._add(key)
        return known

    def _add(self, key: Any) -> Node:
        pair = self._merged._pairs[key]
        name = next((one.name for one in pair if isinstance(one, Node)), "value")
        latest = next(reversed(self._parameters.values()), self.graph._root)
        with self.graph.inserting_before(latest._next):
            made = Graph.create_node(self.graph, "placeholder", name)
        types = [one.value_type if isinstance(one, Node) else None for one in pair]
        if types[0] is not None and types[0] == types[1]:
            set_type(made, types[0])
        return made

    def add_missing(self) -> None:
        """Give the body parameters for what only the other body uses, all in the same order."""
        wanted = self._merged.keys()
        for key in wanted:
            if key not in self._parameters:
                self._parameters[key] = self._add(key)
        before: Node = self.graph._root
        for key in wanted:
            before.append(self._parameters[key])
            before = self._parameters[key]
