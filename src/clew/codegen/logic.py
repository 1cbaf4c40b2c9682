"""Conditions made of several: a branch that only says whether both, or either, of two values are true.

In come a branch or loop and the value whose truth its head asks for; where a branch right before it makes nothing but
that truth, out comes the expression for it: ``a and b``, ``a or b``. The second value is computed only if the first
does not decide, as in the branch. Such a branch has no statements of its own.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from clew.codegen.inline import tree_before, write_inside
from clew.codegen.plan import BranchLayout, Plan
from clew.codegen.scope import Scope
from clew.ir.control_flow import output_of, returned
from clew.ir.node import Node


class Joined(NamedTuple):
    """A branch that is written as ``and`` or ``or``; ``body`` makes the second value."""

    item: Node
    branch: Node
    word: str
    body: Any
    predicate: Any


def joined(user: Node, value: Any, plan: Plan) -> Joined | None:
    """The branch right before ``user`` whose one result is the ``value`` asked for, if it can be an expression."""
    if not isinstance(value, Node) or user._prev is not value or value.target is not operator.getitem:
        return None
    branch = value._prev
    layout = plan.layouts.get(branch)
    is_alone = value.args == (branch, 0) and list(value.users) == [user] and list(branch.users) == [value]
    if not is_alone or not isinstance(layout, BranchLayout) or layout.is_last or plan.frees.get(branch):
        return None
    for number, word in ((0, "and"), (1, "or")):
        body, other = layout.sides[number].body, layout.sides[1 - number].body
        if _gives(other, bool(number)) and not any(side.starts for side in layout.sides) and _is_expression(body, plan):
            return Joined(value, branch, word, body, layout.branch.predicate)
    return None


def write_joined(found: Joined, plan: Plan, scope: Scope, root: str) -> None:
    """Let the result of the branch be written as an expression where it is used."""
    write_inside(plan.inside[found.branch], scope, root)
    first = joined(found.branch, found.predicate, plan)
    if first is not None:
        write_joined(first, plan, scope, root)
    left = scope.spell(found.predicate) if first is not None else _bare(found.predicate, scope)
    user, value = _asked(found.body)
    second = joined(user, value, plan)
    if second is not None:
        write_joined(second, plan, scope, root)
    else:
        write_inside(tree_before(user, value, plan.bound), scope, root)
    is_same = second is None or second.word == found.word
    right = _bare(value, scope) if is_same else scope.spell(value)
    scope.write_inline(found.item, f"{left} {found.word} {right}", True)


def _bare(value: Any, scope: Scope) -> str:
    return scope.spell_bare(value) if isinstance(value, Node) else scope.spell(value)


def _gives(body: Any, answer: bool) -> bool:
    """Whether a body does nothing but say so."""
    return returned(body) == (answer,) and not _working(body)


def _working(body: Any) -> list[Node]:
    return [node for node in body.nodes if node.op not in ("placeholder", "output")]


def _asked(body: Any) -> tuple[Node, Any]:
    """Who asks for the truth in a body, and of what: ``bool`` around it says nothing more."""
    output, (value,) = output_of(body), returned(body)
    is_bool = isinstance(value, Node) and value.target is bool and len(value.args) == 1 and not value.kwargs
    if is_bool and output._prev is value and list(value.users) == [output]:
        return value, value.args[0]
    return output, value


def _is_expression(body: Any, plan: Plan) -> bool:
    """Whether all that a body does can be written as one expression, and sets no variable free."""
    value = returned(body)
    if not isinstance(value, tuple) or len(value) != 1 or not isinstance(value[0], Node):
        return False
    user, value = _asked(body)
    second = joined(user, value, plan)
    written = [user, *tree_before(user, value, plan.bound)]
    if second is not None:
        written = [user, second.item, second.branch, *plan.inside[second.branch]]
        first = joined(second.branch, second.predicate, plan)
        written += [] if first is None else [first.item, first.branch, *plan.inside[first.branch]]
    freed = [value for node in body.nodes for value in plan.frees.get(node, [])]
    return set(written).issuperset([*_working(body), *freed])


def joined_head(test: Any, plan: Plan) -> Joined | None:
    """The expression that is all of the test of a ``while``."""
    output = output_of(test)
    found = None if output is None else joined(output, returned(test), plan)
    if found is None:
        return None
    written = {found.item, found.branch, *plan.inside[found.branch]}
    first = joined(found.branch, found.predicate, plan)
    written |= set() if first is None else {first.item, first.branch, *plan.inside[first.branch]}
    return found if written.issuperset(_working(test)) else None
