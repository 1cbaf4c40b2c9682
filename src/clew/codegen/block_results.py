"""How a block of statements ends: what is done with the values that its graph returns.

A function returns them, a branch assigns them to variables that both sides share, the body of a loop to the variables
that it carries over. In comes the value of the output node, a nest of nodes; out come lines of code. Assignments happen
as if at once: where one variable would be overwritten before another assignment reads it, they are one statement.

A ``return`` inside of a loop is a flag and a result that the graph carries out of the loop; where a branch behind the
loop asks for nothing but that flag, ``leaving_of`` finds it and the code just returns.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from clew.codegen.scope import Scope
from clew.ir.arguments import map_arg, references
from clew.ir.control_flow import Branch, Loop, closing_branch, control_of, ends_of, inputs_of, returned
from clew.ir.node import Node

# ---- a return inside of a loop ---------------------------------------------------------------------------------------


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


# ---- the ends of blocks ----------------------------------------------------------------------------------------------


Returning = Callable[[Any], str]
"""How a function writes its return statement for the value of the output node."""


class Finish:
    """The end of a block."""

    def targets(self, value: Any) -> list[tuple[str, Any]]:
        """The variables that are set at the end, and what each is set to."""
        return []

    def names(self) -> set[str]:
        """All variables that are set at the end."""
        return set()

    def leaves(self, value: Any) -> bool:
        """Whether nothing that stands behind the block can run after it."""
        return False

    def is_return(self, value: Any) -> bool:
        """Whether the end is that of the function."""
        return False

    def needed(self) -> set[int] | None:
        """Which parts of the values are needed if the end is that of the function; None for all."""
        return None

    def lines(self, value: Any, scope: Scope) -> list[str]:
        """The statements that use the values."""
        return moves(self.targets(value), scope)

    def flag_of(self, value: Any) -> Any:
        """The part of the value that says whether the loop around goes on or ends."""
        return None

    def exit(self, value: Any, scope: Scope) -> str:
        """The condition on which the loop around ends here, after all else; ``True``, or nothing if it does not."""
        return ""


@dataclass
class Return(Finish):
    """The values are the result of the function."""

    returning: Returning | None = None

    def leaves(self, value: Any) -> bool:
        """A return is the end."""
        return True

    def is_return(self, value: Any) -> bool:
        """Always."""
        return True

    def lines(self, value: Any, scope: Scope) -> list[str]:
        """The return statement."""
        assert self.returning is not None
        return [self.returning(value)]


@dataclass
class Assign(Finish):
    """The values go to variables: all of them as one nest to ``whole``, or some items of a tuple to ``parts``."""

    whole: str | None = None
    parts: dict[int, str] = field(default_factory=dict)

    def names(self) -> set[str]:
        """The variables of the branch."""
        return {*self.parts.values(), *([] if self.whole is None else [self.whole])}

    def targets(self, value: Any) -> list[tuple[str, Any]]:
        """The variables of the branch and their values."""
        if self.whole is not None:
            return [(self.whole, value)]
        return [(name, value[place]) for place, name in sorted(self.parts.items())]


@dataclass
class NextRound(Finish):
    """The values are those of the next round of a loop, items for its lists, and perhaps a flag that ends it."""

    carried: list[str]
    lists: list[str]
    flag: str | None = None
    """A variable for the flag, where the one that has it gets another value; None if the body gives no flag."""
    leaving: Leaving | None = None
    """What is carried for a return, without variables of its own: their names are empty."""
    outer: Finish | None = None
    """How the block around the loop ends, which is what a return does."""

    def names(self) -> set[str]:
        """The carried variables and the lists."""
        return {*self.carried, *self.lists} - {""}

    def targets(self, value: Any) -> list[tuple[str, Any]]:
        """The carried variables and their new values; none where the function returns."""
        pairs = () if self.is_return(value) else zip(self.carried, value or (), strict=False)
        return [(name, part) for name, part in pairs if name]

    def is_return(self, value: Any) -> bool:
        """Whether the loop ends with a return there."""
        return self.leaving is not None and self.leaving.is_return(value)

    def needed(self) -> set[int] | None:
        """What is carried for a return."""
        return set() if self.leaving is None else self.leaving.dropped

    def leaves(self, value: Any) -> bool:
        """Only when the loop ends here for certain."""
        return self.flag_of(value) is True

    def lines(self, value: Any, scope: Scope) -> list[str]:
        """Items are collected before variables change, because they may be made of these."""
        if self.leaving is not None and self.outer is not None and self.is_return(value):
            return self.outer.lines(self.leaving.value(value), scope)
        items = zip(self.lists, (value or ())[len(self.carried) :], strict=False)
        appended = [f"{name}.append({scope.spell(item)})" for name, item in items]
        pairs = self.targets(value)
        if self._loses_flag(value, scope):
            pairs.append((str(self.flag), self.flag_of(value)))
        return [*appended, *moves(pairs, scope)]

    def exit(self, value: Any, scope: Scope) -> str:
        """The flag, if there is one; a return needs none."""
        stop = not self.is_return(value) and self.flag_of(value)
        if not isinstance(stop, Node):
            return "True" if stop else ""
        return str(self.flag) if self._loses_flag(value, scope) else scope.spell_bare(stop)

    def flag_of(self, value: Any) -> Any:
        """The last value, if there is a flag."""
        return False if self.flag is None else value[-1]

    def _loses_flag(self, value: Any, scope: Scope) -> bool:
        """Whether the variable that has the flag is given its value for the next round before the flag is read."""
        names = {scope.locals.name(node) for node in references(self.flag_of(value))}
        return any(name in names and scope.spell(new) != name for name, new in self.targets(value))


class Test(Finish):
    """The value says whether there is another round of the loop."""

    def leaves(self, value: Any) -> bool:
        """Only when there is none for certain."""
        return not isinstance(value, Node) and not value

    def flag_of(self, value: Any) -> Any:
        """The value itself."""
        return value

    def exit(self, value: Any, scope: Scope) -> str:
        """The opposite of the value."""
        if not isinstance(value, Node):
            return "" if value else "True"
        return f"not {scope.spell(value)}"


def moves(pairs: list[tuple[str, Any]], scope: Scope) -> list[str]:
    """Assignments of values to variables; none for a variable that has its value already."""
    written = [(name, scope.spell(value), _reads(value, scope)) for name, value in pairs]
    written = [(name, text, reads) for name, text, reads in written if name != text]
    names = [name for name, _, _ in written]
    if any(name in reads for place, name in enumerate(names) for _, _, reads in written[place + 1 :]):
        return [f"{', '.join(names)} = {', '.join(text for _, text, _ in written)}"]
    return [f"{name} = {text}" for name, text, _ in written]


def _reads(value: Any, scope: Scope) -> set[str]:
    """The variables that an expression reads; a node that is written out in its place reads none of its own."""
    return {scope.locals.name(node) for node in references(value)}
