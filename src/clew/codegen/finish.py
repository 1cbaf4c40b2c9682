"""How a block of statements ends: what is done with the values that its graph returns.

A function returns them, a branch assigns them to variables that both sides share, the body of a loop to the variables
that it carries over. In comes the value of the output node, a nest of nodes; out come lines of code. Assignments happen
as if at once: where one variable would be overwritten before another assignment reads it, they are one statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clew.codegen.leaving import Leaving
from clew.codegen.scope import Scope
from clew.ir.arguments import references
from clew.ir.node import Node

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
