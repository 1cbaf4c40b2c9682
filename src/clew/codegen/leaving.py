"""A ``return`` inside of a loop: the graph carries a flag and a result out of the loop, code just returns.

In comes a loop behind which a branch asks for nothing but such a flag, and returns what was carried with it; out comes
a ``Leaving``, which says what a round returns there. Always holds: the flag is true only in rounds that end the loop,
nobody else reads what is carried for the return, and nothing is computed between the loop and the branch.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from clew.ir.arguments import map_arg, references
from clew.ir.control_flow import Branch, Loop, closing_branch, control_of, ends_of, inputs_of, returned
from clew.ir.node import Node


@dataclass(frozen=True)
class Leaving:
    """What a loop carries for a ``return``: where its flag stands, and what is returned, made of places behind it."""

    branch: Node
    flag: int
    result: Any
    """What the branch returns, a nest of the parameters of its first side."""
    places: dict[Node, int]
    """For each of these parameters where the loop carries it."""

    @property
    def dropped(self) -> set[int]:
        """The places that need no variables."""
        return {self.flag, *self.places.values()}

    def is_return(self, value: Any) -> bool:
        """Whether a round that gives this returns."""
        return value[self.flag] is True

    def value(self, value: Any) -> Any:
        """What a round that gives this returns."""
        return map_arg(self.result, lambda node: value[self.places[node]])


def leaving_of(node: Node, loop: Loop, wanted: Collection[int] | None) -> Leaving | None:
    """The return inside of a loop; of what follows it only the ``wanted`` parts count, all if that is None."""
    closing = closing_branch(node.graph)
    branch = None if closing is None else control_of(closing)
    if not isinstance(branch, Branch) or not loop.breaks or not _is_item(branch.predicate, node):
        return None
    first = branch.bodies[0]
    inputs = inputs_of(first)
    if len(first.nodes) != len(inputs) + 1 or closing_branch(first) is not None:
        return None
    value = returned(first)
    if wanted is not None:
        value = tuple([part if place in wanted else None for place, part in enumerate(value)])
    given = dict(zip(inputs, branch.operands, strict=True))
    used = {one: given[one] for one in references(value)}
    if not all(_is_item(one, node) for one in used.values()):
        return None
    found = Leaving(closing, branch.predicate.args[1], value, {one: part.args[1] for one, part in used.items()})
    return found if _is_all(found, node, loop, branch) else None


def _is_item(value: Any, loop: Node) -> bool:
    """Whether a value is one that the loop carries."""
    return isinstance(value, Node) and value.target is operator.getitem and value.args[0] is loop


def _is_all(found: Leaving, node: Node, loop: Loop, branch: Branch) -> bool:
    """Whether nobody but the branch reads what is carried, and the flag says what it is taken to say."""
    items = [user for user in node.users if _is_item(user, node)]
    taken = [item for item in items if item.args[1] in found.dropped]
    if len(items) != len(node.users) or any(list(item.users) != [found.branch] for item in taken):
        return False
    second = inputs_of(branch.bodies[1])
    read = [one for one, given in zip(second, branch.operands, strict=True) if given in taken and one.users]
    carried = [inputs_of(body)[place] for body in loop.bodies for place in found.dropped]
    if read or branch.predicate in branch.operands or any(one.users for one in carried):
        return False
    between = node._next
    while between is not found.branch:
        if between not in items:
            return False
        between = between._next
    is_fresh = loop.carried[found.flag] is False and max(found.dropped) < len(loop.carried)
    return is_fresh and all(_is_end(found, end) for end in ends_of(loop.body))


def _is_end(found: Leaving, value: Any) -> bool:
    """Whether a round returns and ends the loop, or carries nothing for a return."""
    if not isinstance(value, tuple):
        return False
    if value[found.flag] is True:
        return value[-1] is True
    return value[found.flag] is False and all(value[place] is None for place in found.places.values())
