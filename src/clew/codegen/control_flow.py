"""Branches and loops as Python statements: ``if``, ``while`` and ``for``.

In comes a node whose layout the plan has; out come its lines, those of its bodies indented under their heads. Every
line knows the node it comes from, at any depth, and belongs to the node of the outer graph that it is a part of. A
branch that only says whether both, or either, of two values are true has no statements of its own: it becomes ``a and
b`` or ``a or b`` in the head that asks for it, where the second is computed only if the first does not decide.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from clew.codegen.block_results import Finish, Test, moves
from clew.codegen.inline import tree_before, write_inside
from clew.codegen.lines import Commentator, Draft, Line
from clew.codegen.plan import BranchLayout, LoopLayout, Plan, Side
from clew.codegen.scope import Scope
from clew.codegen.statements import is_raise, operand, raises, texts_inside
from clew.ir.arguments import leaves, references
from clew.ir.control_flow import closing_branch, control_of, output_of, returned
from clew.ir.node import Node

# ---- conditions made of several --------------------------------------------------------------------------------------


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
    is_alone = is_alone and sum(leaf is value for leaf in leaves((user.args, user.kwargs))) == 1  # the sides may use it
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


# ---- statements ------------------------------------------------------------------------------------------------------


class ControlWriter:
    """Writes branches and loops; whoever derives from it writes the blocks inside of them."""

    def __init__(self, scope: Scope, root: str, plan: Plan, comments: Commentator) -> None:
        self.scope = scope
        self.root = root
        self.plan = plan
        self.comments = comments
        self._joined: dict[Node, Joined] = {}
        """Branches that are written inside of the head of another one, by what is written there."""
        self.left: dict[str, int | None] = {}
        """How often each context manager that is watched is left, by its variable, which is None from then on; not a
        number where a ``with`` leaves it."""

    def block(self, nodes: Any, finish: Finish, draft: Draft | None = None) -> list[Line]:
        """The statements of a block."""
        raise NotImplementedError

    def skipped(self, nodes: Any, finish: Finish) -> set[Node]:
        """The nodes that have no statement of their own, because they are written inside of another one."""
        plan = self.plan
        for node in nodes if plan.layouts else ():
            layout = plan.layouts.get(node)
            found = joined(node, layout.branch.predicate, plan) if isinstance(layout, BranchLayout) else None
            if found is not None:
                self._joined[found.branch] = found
        heads = [plan.inside[node] for node in nodes if node in plan.layouts] if plan.layouts else []
        last = next(iter(reversed(nodes)), None)
        if last is not None and last.op == "output" and last not in plan.silent:
            heads.append(self._tree_at_end(last, finish))
        heads += [texts_inside(node) for node in nodes if not node.users]
        items = [found.item for found in self._joined.values()]
        return among(nodes, plan.silent, plan.blocks.inline).union(items, *heads)

    def _tree_at_end(self, output: Node, finish: Finish) -> list[Node]:
        """What is written in the condition at the end of a block, which is the last thing that is computed there."""
        value = output.args[0] if output.args else None
        flag = finish.flag_of(value)
        if not isinstance(flag, Node) or finish.lines(value, self.scope):
            return []
        return tree_before(output, flag, self.plan.bound)

    def lines_of(self, node: Node, text: str) -> list[Line]:
        """A statement with its comments."""
        around = self.comments.around(node, self.scope.locals.name(node), text)
        return [Line(line, node, node) for written in around for line in written.split("\n")]

    def free(self, node: Node, freed: list[Node]) -> Iterator[Line]:
        """A line that sets locals free."""
        if freed:
            yield Line(self.freeing(freed).removeprefix(";  "), node, node)

    def freeing(self, freed: list[Node]) -> str:
        """What stands behind a statement to set locals free."""
        if len(freed) == 1 and freed[0] not in self.scope.special:
            return f";  {freed[0].name} = None"
        return f";  {' = '.join(map(self.scope.locals.name, freed))} = None" if freed else ""

    def end(self, node: Node, finish: Finish) -> Iterator[Line]:
        """The end of a block, whose output node this is; there is none behind a ``raise``."""
        if is_raise(node._prev):
            return
        value = node.args[0] if node.args else None
        texts = finish.lines(value, self.scope)
        read = [] if finish.is_return(value) else self.plan.frees.get(node, [])
        needed = self._names_of(finish.flag_of(value))
        freed = [used for used in read if self.scope.locals.name(used) not in needed]
        for place, text in enumerate(texts):
            yield from self.lines_of(node, text + (self.freeing(freed) if place == len(texts) - 1 else ""))
        write_inside(self._tree_at_end(node, finish), self.scope, self.root)
        condition = finish.exit(value, self.scope)
        if condition == "True":
            yield Line("break", node, node)
        elif condition:
            yield Line(f"if {condition}:", node, node)
            yield Line("break", node, node).indented()

    def _names_of(self, value: Any) -> set[str]:
        return {self.scope.locals.name(node) for node in references(value)}

    def control(self, node: Node, finish: Finish) -> Iterator[Line]:
        """The statements of a branch or a loop; ``finish`` ends the block around it."""
        layout = self.plan.layouts[node]
        if node in self._joined:
            return
        write_inside(self.plan.inside[node], self.scope, self.root)
        if isinstance(layout, LoopLayout):
            yield from self._loop(node, layout, finish)
        else:
            yield from self._branch(node, layout, finish)
        items = {found.item for found in self._joined.values()}
        yield from self.free(node, [value for value in self.plan.frees.get(node, []) if value not in items])

    # ---- branches ------------------------------------------------------------------------------------------------

    def _branch(self, node: Node, layout: BranchLayout, finish: Finish) -> Iterator[Line]:
        """An ``if``; where its first side leaves for good, the second one needs no ``else``."""
        ends = [finish if layout.is_last else side.finish for side in layout.sides]
        first, second = (self._side(node, side, end) for side, end in zip(layout.sides, ends, strict=True))
        if node in self.plan.answered:
            yield from second
            return
        self._write_joined(node, layout.branch.predicate)
        condition = self._head(layout.branch.predicate)
        if layout.is_last and _leaves(layout.sides[0].body, ends[0]):
            yield from self._headed(node, f"if {condition}:", first)
            yield from second
        elif first:
            yield from self._headed(node, f"if {condition}:", first)
            yield from self._otherwise(node, second)
        elif second:
            yield from self._headed(node, f"if not {operand(layout.branch.predicate, self.scope)}:", second)
        else:
            yield from self._headed(node, f"if {condition}:", [])

    def _write_joined(self, node: Node, predicate: Any) -> None:
        found = joined(node, predicate, self.plan)
        if found is not None:
            write_joined(found, self.plan, self.scope, self.root)

    def _head(self, value: Any) -> str:
        return self.scope.spell_bare(value) if isinstance(value, Node) else self.scope.spell(value)

    def _headed(self, node: Node, head: str, inside: list[Line]) -> Iterator[Line]:
        yield from self.lines_of(node, head)
        yield from (line.indented() for line in inside or [Line("pass", node, node)])

    def _otherwise(self, node: Node, lines: list[Line]) -> Iterator[Line]:
        """The second side: ``elif`` if it is nothing but another branch."""
        if lines and lines[0].text.startswith("if ") and all(_continues(line.text) for line in lines[1:]):
            yield lines[0]._replace(text=f"el{lines[0].text}")
            yield from lines[1:]
        elif lines:
            yield Line("else:", node, node)
            yield from (line.indented() for line in lines)

    def _side(self, node: Node, side: Side, finish: Finish) -> list[Line]:
        starts = [Line(text, node, node) for text in moves(side.starts, self.scope)]
        inside = [line._replace(node=node) for line in self.block(side.body.nodes, finish)]
        if output_of(side.body) is None:
            inside += [Line(text, node, node) for text in finish.lines(None, self.scope)]
        return starts + inside

    # ---- loops ---------------------------------------------------------------------------------------------------

    def _loop(self, node: Node, layout: LoopLayout, around: Finish) -> Iterator[Line]:
        """What is set before, the head, and one round; a return inside is the end of the block around."""
        for text in moves(layout.side.starts, self.scope):
            yield Line(text, node, node)
        end = replace(layout.end, outer=around)
        inside = [line._replace(node=node) for line in self.block(layout.side.body.nodes, end)]
        head = f"for {layout.item} in {self._head(layout.loop.iterable)}:" if layout.loop.is_for else ""
        if not head:
            head, before = self._test(node, layout.test)
            inside = before + inside
        yield from self._headed(node, head, inside)
        if layout.whole is not None and node.users:
            comma = "," if len(layout.results) == 1 else ""
            yield Line(f"{layout.whole} = ({', '.join(layout.results)}{comma})", node, node)

    def _test(self, node: Node, test: Any) -> tuple[str, list[Line]]:
        """The head of a ``while``, and what is computed in each round before it is known whether to go on."""
        value, output = returned(test), output_of(test)
        tree = tree_before(output, value) if output is not None else []
        others = [inner for inner in test.nodes if inner.op not in ("placeholder", "output")]
        if len(tree) == len(others):
            write_inside(tree, self.scope, self.root)
            return f"while {self._head(value)}:", []
        found = joined_head(test, self.plan)
        if found is not None:
            write_joined(found, self.plan, self.scope, self.root)
            return f"while {self._head(value)}:", []
        before = [line._replace(node=node) for line in self.block(test.nodes, Test())]
        return "while True:", before


def among(nodes: Iterable[Node], *groups: Collection[Node]) -> set[Node]:
    """Those of the nodes that belong to one of the groups, most of which are empty in most code."""
    return {node for group in groups if group for node in nodes if node in group}


def _leaves(body: Any, finish: Finish) -> bool:
    """Whether nothing behind a body can run after it."""
    closing = closing_branch(body)
    if closing is None:
        return raises(body) or finish.leaves(returned(body))
    return all(_leaves(inner, finish) for inner in control_of(closing).bodies)  # type: ignore[union-attr]


def _continues(text: str) -> bool:
    """Whether a line belongs to the branch that began above it."""
    return text.startswith((" ", "elif ", "else:"))
