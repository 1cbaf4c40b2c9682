"""A canonical order for operands of branches and loops, and for results of branches: that of the graph around.

In comes a complete graph, changed in place. Operands get the order in which their values stand, and the parameters of
bodies follow; results get the order of first use. Always holds: neither depends on which body used a value first or on
the name of a variable, so the generated code, captured again, gives the same graph.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence

from clew.capture.control_flow.node_equality import is_check
from clew.capture.recording.nested_programs import OpenBody
from clew.ir.arguments import all_nodes
from clew.ir.control_flow import Branch, Loop, closing_branch, control_of, ends_of, inputs_of, output_of
from clew.ir.effects import is_impure
from clew.ir.graph import Graph
from clew.ir.node import Node, set_type

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
    order = sorted(range(len(operands)), key=lambda number: place[operands[number]])
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
