"""Which nodes are written inside of the statement that uses them: ``while x.norm() > 1:`` instead of three lines.

In come a node and one of its arguments; out come the nodes right before it that make this argument and nothing else.
They are taken only as long as the expression computes them in the very order in which they stand.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

from clew.codegen.scope import Scope
from clew.codegen.statements import expression, is_operator, makes_statement
from clew.ir.arguments import bodies_of, leaves
from clew.ir.control_flow import is_control
from clew.ir.node import Node

_MOST = 6
"""More operations than that are no longer easy to read in one line."""


def tree_before(user: Node, value: Any, bound: Collection[Node] = ()) -> list[Node]:
    """The nodes that are written where ``user`` has ``value``, the last one first; those ``bound`` have variables."""
    found: list[Node] = []
    waiting: list[tuple[Any, Node]] = [(value, user)]
    node = user._prev
    while waiting and len(found) < _MOST:
        wanted, reader = waiting.pop()
        if wanted is node and node not in bound and can_be_inside(node, reader):
            found.append(node)
            waiting += [(leaf, node) for leaf in leaves((node.args, node.kwargs)) if isinstance(leaf, Node)]
            node = node._prev
    return found


def can_be_inside(node: Node, user: Node) -> bool:
    """Whether a node can be written as a part of the statement of its only user."""
    if node.op in ("placeholder", "output", "root") or node.type is not None or list(node.users) != [user]:
        return False
    if sum(leaf is node for leaf in leaves((user.args, user.kwargs))) != 1 or bodies_of(node):
        return False
    if node.op == "call_method" and node.target in ("__enter__", "__exit__"):
        return False
    return not is_control(node) and not is_item_of_control(node) and not makes_statement(node)


def is_item_of_control(node: Node) -> bool:
    """True for a node that takes apart what a branch or a loop returns: it may have no statement of its own."""
    if node.target is not operator.getitem or not node.args:
        return False
    return isinstance(node.args[0], Node) and is_control(node.args[0])


def write_inside(nodes: list[Node], scope: Scope, root: str) -> None:
    """Let the nodes of a tree be written where they are used."""
    for node in reversed(nodes):
        scope.write_inline(node, expression(node, scope, root), is_operator(node))
