"""Whether arguments of nodes from two runs are equal, which nodes only ask, and in which order operands stand.

Nodes are equal if they are one; graphs if they differ in names alone; all else by class and value, where nan is nan
and a zero has a sign. Objects without equality of their own count as equal: each run makes its own.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

from clew.capture.guards.lifting import is_context
from clew.capture.guards.notes import CHECKS, Variable
from clew.capture.recording.nested_programs import OpenBody
from clew.ir.arguments import all_nodes, map_arg
from clew.ir.control_flow import Branch, Loop, closing_branch, control_of, ends_of, inputs_of, output_of
from clew.ir.effects import effect_of, is_impure
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node, set_type
from clew.ir.types import ArrayType, ScalarType


def same_argument(one: Any, other: Any) -> bool:
    """Whether two arguments of nodes are the same, as far as it can be told."""
    if one is other:
        return True
    if isinstance(one, Node) or isinstance(other, Node):
        return False
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(map(same_argument, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same_argument(one[key], other[key]) for key in one)
    if type(one) is not type(other):
        return False
    if isinstance(one, slice):
        return same_argument((one.start, one.stop, one.step), (other.start, other.stop, other.step))
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or repr(one) == repr(other)
    if isinstance(one, Graph):
        return same_body(one, other)
    if isinstance(one, Variable):
        return one.holder is other.holder and one.name == other.name
    return type(one).__eq__ is object.__eq__ or bool(one == other)


def same_body(one: Graph, other: Graph) -> bool:
    """Whether two graphs do the same, whatever their nodes are called, which guards tell in their texts."""
    if len(one.nodes) != len(other.nodes):
        return False
    pairs: dict[Node, Node] = {}
    for left, right in zip(one.nodes, other.nodes, strict=True):
        if left.op != right.op or (left.op != "placeholder" and not same_argument(left.target, right.target)):
            return False
        told = TOLD if is_check(left) else None
        given = map_arg((left.args[:told], left.kwargs), pairs.__getitem__)
        if not same_argument(given, (right.args[:told], right.kwargs)):
            return False
        pairs[left] = right
    return True


PLAIN = (bool, int, float, complex, str, bytes, type(None))


def identity(value: Any) -> Any:
    """A key for a value: plain ones by what they are, those that say when they are equal by that, all others by which
    they are."""
    kind = type(value)
    if kind in PLAIN:
        return kind, repr(value)
    return (kind, value) if kind.__eq__ is not object.__eq__ and _has_hash(value) else id(value)


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


# ---- nodes that only ask, and nodes that may write -------------------------------------------------------------------

_FACTS = ("dtype", "device")
_CALCULATING = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
                operator.add, operator.sub, operator.mul, operator.neg, bool, min, max)  # fmt: skip
_DIVIDING = (operator.floordiv, operator.mod)
TOLD = 2
"""A check has a value and what it expects; the rest of its arguments tells people of it."""


def is_fact(node: Node) -> bool:
    """Whether a node reads a fact about a value, or an item; one of an array may be a copy, or not be there."""
    if node.op != "call_function" or (node.target is not getattr and node.target is not operator.getitem):
        return False
    owner = node.args[0]
    return node.target is getattr or not (isinstance(owner, Node) and isinstance(owner.value_type, ArrayType))


def is_check(node: Node) -> bool:
    """Whether a node is a guard."""
    return node.op == "call_function" and type(node.target) is FunctionType and node.target in CHECKS


def is_size(node: Node) -> bool:
    """Whether a node reads a shape, or one of its sizes."""
    if node.op != "call_function" or node.kwargs or len(node.args) != 2:
        return False
    if node.target is getattr:
        return node.args[1] in ("shape", "ndim")
    is_item = node.target is operator.getitem and type(node.args[1]) is int
    return is_item and isinstance(node.args[0], Node) and node.args[0].target is getattr


def is_calculated(node: Node) -> bool:
    """Whether a call computes with numbers, and cannot fail."""
    if node.op != "call_function" or node.kwargs:
        return False
    if node.target in _DIVIDING:
        return type(node.args[1]) is int and node.args[1] != 0
    return node.target in _CALCULATING


def only_asks(node: Node) -> bool:
    """Whether a node cannot fail, and could as well be made earlier: a fact about a value, a number that is computed of
    such facts, a guard."""
    if is_check(node) or is_size(node):
        return True
    if node.op == "call_function" and node.target is getattr:
        return node.args[1] in _FACTS
    return is_calculated(node) and all(_is_number(one) for one in (node, *node.all_input_nodes))


def _is_number(node: Node) -> bool:
    return isinstance(node.value_type, ScalarType) or is_size(node)


def may_write(node: Node, root: Any) -> bool:
    """Whether a node may change a value that is there already; ``root`` has the modules that it may call."""
    if is_check(node) or is_context(node):
        return False
    return effect_of(node, root) not in (Effect.NONE, Effect.RANDOM)


# ---- the order of operands -------------------------------------------------------------------------------------------
#
# It is a canonical one for operands of branches and loops, and for results of branches: that of the graph around. In
# comes a complete graph, changed in place. Operands get the order in which their values stand, and the parameters of
# bodies follow; results get the order of first use. Always holds: neither depends on which body used a value first or
# on the name of a variable, so the generated code, captured again, gives the same graph.


_OPERANDS = 3
"""Where they stand among the arguments of all three functions."""


def arrange_controls(graph: Graph) -> None:
    """Let bodies read attributes themselves, drop operands that no body reads, and put what is left in order."""
    if not any(map(_sets_attributes, all_nodes(graph))):
        _read_inside(graph)
    _drop_unread(graph)
    _arrange(graph)


def _sets_attributes(node: Node) -> bool:
    """Whether a call may give an attribute of the root another value: then it counts when it is read."""
    if node.op != "call_function" or node.target is getattr:
        return False
    module = str(getattr(node.target, "__module__", ""))
    return node.target is setattr or (module.startswith("clew.") and is_impure(node) and not is_check(node))


def _read_inside(graph: Graph) -> None:
    """Let each body read the attributes of the root that it is given, from outside to inside."""
    for node in graph.nodes:
        control = control_of(node)
        if control is None:
            continue
        count = len(control.operands)
        for body in control.bodies:
            inputs = inputs_of(body)
            for parameter, outer in zip(inputs[len(inputs) - count :], control.operands, strict=True):
                if isinstance(outer, Node) and outer.op == "get_attr" and parameter.users:
                    _replace_by_read(parameter, outer)
            _read_inside(body)


def _replace_by_read(parameter: Node, outer: Node) -> None:
    with parameter.graph.inserting_before(min(parameter.users)):
        made = Graph.create_node(parameter.graph, "get_attr", outer.target, (), {}, parameter.name)
    made.source = outer.source
    if outer.value_type is not None:
        set_type(made, outer.value_type)
    parameter.replace_all_uses_with(made)


def _drop_unread(graph: Graph) -> None:
    """From inside to outside: what no inner body reads may then not be read in the outer one either."""
    for node in graph.nodes:
        control = control_of(node)
        if control is None:
            continue
        for body in control.bodies:
            _drop_unread(body)
        count = len(control.operands)
        rows = [inputs[len(inputs) - count :] for inputs in map(inputs_of, control.bodies)]
        read = [any(row[number].users for row in rows) for number in range(count)]
        if all(read) or len(node.args) <= _OPERANDS:
            continue
        for parameter in [row[number] for row in rows for number in range(count) if not read[number]]:
            parameter.graph.erase_node(parameter)
        args = list(node.args)
        args[_OPERANDS] = tuple(itertools.compress(control.operands, read))
        node.args = tuple(args)
        for value in control.operands:
            if isinstance(value, Node) and value.op == "get_attr" and not value.users:
                graph.erase_node(value)


def _arrange(graph: Graph) -> None:
    """Put operands and results of all branches and loops in order, from outside to inside."""
    place = {node: number for number, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        control = control_of(node)
        if control is not None:
            _arrange_operands(node, control, place)
            if isinstance(control, Branch):
                _arrange_results(node, control, place)
            for body in control.bodies:
                _arrange(body)


def _arrange_operands(node: Node, control: Branch | Loop, place: dict[Node, int]) -> None:
    operands = control.operands
    if len(node.args) <= _OPERANDS or not all(isinstance(value, Node) for value in operands):
        return
    order = sorted(range(len(operands)), key=lambda number: _made_at(operands[number], place))
    if order == list(range(len(operands))):
        return
    for body in control.bodies:
        inputs = inputs_of(body)
        own, last = inputs[len(inputs) - len(operands) :], inputs[-1]
        for parameter in [own[number] for number in order]:
            if parameter is not last:
                last.append(parameter)
            last = parameter
    args = list(node.args)
    args[_OPERANDS] = tuple([operands[number] for number in order])
    node.args = tuple(args)


def _made_at(value: Node, place: dict[Node, int]) -> tuple[int, int]:
    """Where a value comes about: a result of a branch, which may be taken out anywhere later, at that branch."""
    maker = value.args[0] if value.target is operator.getitem else None
    if isinstance(maker, Node) and isinstance(control_of(maker), Branch) and _is_item(value, maker):
        return place[maker], value.args[1]
    return place[value], 0


def _arrange_results(node: Node, branch: Branch, place: dict[Node, int]) -> None:
    """Results that are taken one by one come in the order in which that happens; those that are not come last."""
    ends = [end for body in branch.bodies for end in ends_of(body)]
    counts = {len(end) if type(end) is tuple else 0 for end in ends}
    count = counts.pop()
    if counts or count < 2 or not all(_is_item(user, node) for user in node.users):
        return
    first: dict[int, int] = {}
    for user in node.users:
        first[user.args[1]] = min(place[user], first.get(user.args[1], place[user]))
    order = sorted(range(count), key=lambda number: first.get(number, len(place) + number))
    if order == list(range(count)):
        return
    for output in [output for body in branch.bodies for output in _outputs(body)]:
        output.args = (tuple([output.args[0][number] for number in order]),)
    for user in node.users:
        user.args = (node, order.index(user.args[1]))


def _is_item(user: Node, node: Node) -> bool:
    is_item = user.target is operator.getitem and user.args[0] is node and type(user.args[1]) is int
    return is_item and user.args[1] >= 0


def _outputs(body: Graph) -> Iterator[Node]:
    """The ends of a body, and of the branches with which it closes."""
    closing = closing_branch(body)
    if closing is None:
        yield output_of(body)
        return
    for inner in control_of(closing).bodies:  # type: ignore[union-attr]
        yield from _outputs(inner)


def arrange(body: OpenBody, outer: list[Node], own: Sequence[Node] = ()) -> None:
    """Let a body have these parameters of its own, then one for each of these values, in this order."""
    parameters = [*own, *(body.parameter(node) for node in outer)]
    for parameter in reversed(parameters):
        first = body.graph._root._next
        if first is not parameter:
            first.prepend(parameter)
