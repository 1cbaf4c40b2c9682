"""Plans a piece of code: how branches and loops are laid out, which variables they use, what is freed where.

The nodes of a function come in, with the graphs inside them; out comes a ``Plan``. A branch or loop whose parts are
written out becomes a block of statements over a copy of its bodies, because one body may stand at several places; any
other stays a call. Graphs that are handed to other functions become functions of their own. An operand keeps its name
inside of a block, a value carried by a loop keeps the variable it starts in, and a new value goes straight to the
variable where it is wanted. Always holds: no variable is overwritten while anybody still needs what it held.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from clew.codegen.block_results import Assign, Finish, Leaving, NextRound, Return, Test, leaving_of
from clew.codegen.inline import tree_before
from clew.codegen.plan import Block, BranchLayout, Context, Lifetimes, LoopLayout, Plan, Side, parts_of_item
from clew.codegen.scope import Locals, needs_name
from clew.codegen.with_blocks import DEEPEST, Blocks, blocks_of
from clew.ir.arguments import Body, is_leaf, leaves, references, with_bodies
from clew.ir.control_flow import Branch, Loop, closing_branch, control_of, ends_of, inputs_of, output_of, returned
from clew.ir.interpreter import last_uses
from clew.ir.node import Node

# ---- variables of branches and loops ---------------------------------------------------------------------------------


class ControlPlanner:
    """Plans branches and loops; whoever derives from it plans the blocks inside of them."""

    def __init__(self, local_names: Locals) -> None:
        self.locals = local_names
        self.plan = Plan()
        self._functions: set[int] = set()

    def block(self, nodes: Any, context: Context) -> None:
        """Plan the statements of a block."""
        raise NotImplementedError

    # ---- branches ------------------------------------------------------------------------------------------------

    def lay_out_branch(self, block: Block, node: Node, branch: Branch, depth: int) -> None:
        """Plan an ``if`` and both of its sides."""
        is_last = closing_branch(node.graph) is node
        finish = block.context.finish if is_last else self._results(block, node, branch)
        if is_last:
            self.plan.silent.add(output_of(node.graph))
        dying = block.lifetimes.frees.get(node, [])
        free = [value for value in dying if self._may_overwrite(block, node, value, branch.operands)]
        taken = set(block.context.taken)
        sides, freed = [], set(dying)
        for body in map(copy.deepcopy, branch.bodies):
            context = Context(set(taken), depth, block.context.indent + 1, finish, set())
            starts = self._enter(block, context, inputs_of(body), branch.operands, free)
            freed &= {
                block.lifetimes.value(value)
                for value, given in zip(branch.operands, inputs_of(body), strict=True)
                if isinstance(value, Node) and given.users and given not in context.kept
            }
            self.block(body.nodes, context)
            block.context.taken |= context.taken
            sides.append(Side(body, starts, finish))
        block.lifetimes.frees[node] = [value for value in dying if value not in freed]
        self.plan.layouts[node] = BranchLayout(branch, sides, is_last)

    def _results(self, block: Block, node: Node, branch: Branch) -> Finish:
        """The variables of the results: those of operands that one side hands through, otherwise their own."""
        items = block.lifetimes.items.get(node)
        shared: set[str] = set()
        wanted: dict[int | None, Node] = {None: node} if items is None else dict(items.items())
        for place, value in wanted.items():
            for name in () if value in block.aimed else self._handed_through(block, node, branch, place):
                if name not in shared and _is_same_variable(name, value.name):
                    shared.add(name)
                    self.locals.rename(value, name)
                    break
        self._rename_twins(block, node)
        if items is None:
            return Assign(whole=self.locals.name(node))
        return Assign(parts={place: self.locals.name(value) for place, value in items.items()})

    def _handed_through(self, block: Block, node: Node, branch: Branch, place: int | None) -> Iterable[str]:
        """The variables of operands that a side returns as this result and that nobody needs afterwards."""
        for body in branch.bodies:
            for number in _returned_inputs(body, place):
                value = block.lifetimes.value(branch.operands[number])
                if self._may_overwrite(block, node, value, branch.operands):
                    yield self.locals.name(value)

    def _may_overwrite(self, block: Block, node: Node, value: Any, given: Any) -> bool:
        """Whether the variable of an operand is free for other values from this node on."""
        if not isinstance(value, Node) or value in block.context.kept or value in self.locals.literals:
            return False
        if value not in block.lifetimes.frees.get(node, ()) or self.locals.name(value) in block.context.finish.names():
            return False
        return sum(block.lifetimes.value(leaf) is value for leaf in leaves(given)) == 1

    def _rename_twins(self, block: Block, node: Node) -> None:
        for user in node.users:
            first = block.lifetimes.first.get(user, user)
            if first is not user:
                self.locals.rename(user, self.locals.name(first))

    def _enter(
        self, block: Block, context: Context, inputs: list[Node], given: Iterable[Any], free: Iterable[Node]
    ) -> list[tuple[str, Any]]:
        """Tie the parameters of a body to what they are given; returns what has to be set before it starts."""
        starts = []
        self.plan.silent.update(inputs)
        for node, value in zip(inputs, given, strict=True):
            value = self.locals.literals.get(value, value) if isinstance(value, Node) else value
            if isinstance(value, Node):
                self.locals.rename(node, self.locals.name(value))
                if block.lifetimes.value(value) not in free:
                    context.kept.add(node)
            elif is_leaf(value):
                self.locals.stand_for(node, value)
                context.kept.add(node)
            else:
                self.locals.claim(node, context.taken)
                starts.append((self.locals.name(node), value))
        return starts

    # ---- loops ---------------------------------------------------------------------------------------------------

    def lay_out_loop(self, block: Block, node: Node, loop: Loop, depth: int) -> None:
        """Plan a ``while`` or ``for``."""
        body, test = copy.deepcopy(loop.body), copy.deepcopy(loop.test)
        items = block.lifetimes.items.get(node)
        count = len(loop.carried)
        inputs = inputs_of(body)
        leaving = self._leaving(block, node, loop)
        dropped = set() if leaving is None else leaving.dropped
        carried = [
            "" if place in dropped else self._carried(block, node, loop, place, inputs[place]) for place in range(count)
        ]
        lists = [self._list(node, items, place) for place in range(count, loop.results)]
        self._rename_twins(block, node)
        finish = NextRound(carried, lists, self.locals.fresh("stop") if loop.breaks else None, leaving)
        context = Context(set(block.context.taken), depth + 1, block.context.indent + 1, finish, set())
        for name, value in zip(carried, inputs, strict=False):
            if name:
                self.locals.rename(value, name)
        starts = self._starts(loop, carried, lists)
        operands = inputs[count + loop.is_for :]
        starts += self._enter(block, context, operands, loop.operands, ())
        context.kept.update(operands)
        self.plan.silent.update(inputs)
        item = self._item(loop, inputs[count], context) if loop.is_for else ""
        whole = self.locals.name(node) if items is None else None
        side = Side(body, starts, finish)
        self.plan.layouts[node] = LoopLayout(loop, side, finish, test, item, [*carried, *lists], whole)
        self.block(body.nodes, context)
        if test is not None:
            self._test(context, test, [*inputs[:count], *operands])
        block.context.taken |= context.taken
        unused = [value for place, value in enumerate(inputs[:count]) if place not in (items or ())]
        block.lifetimes.frees[node] = [*block.lifetimes.frees.get(node, []), *unused]

    def _leaving(self, block: Block, node: Node, loop: Loop) -> Leaving | None:
        """The return inside of a loop, if the branch that asks for it ends the function."""
        around = block.context.finish
        closing = closing_branch(node.graph)
        branch = block.controls.get(closing, (None, 0))[0]
        if not isinstance(branch, Branch) or not all(map(around.is_return, ends_of(branch.bodies[0]))):
            return None
        found = leaving_of(node, loop, around.needed())
        if found is not None:
            self.plan.answered.add(found.branch)
        return found

    def _carried(self, block: Block, node: Node, loop: Loop, place: int, inner: Node) -> str:
        """The variable of a carried value: where it is wanted, where it starts, or one of its own."""
        result = block.lifetimes.items.get(node, {}).get(place)
        start = block.lifetimes.value(loop.carried[place])
        given = (loop.carried, loop.operands, loop.iterable)
        if result is not None and result in block.aimed:
            return self.locals.name(result)
        if self._may_overwrite(block, node, start, given) and (
            _is_same_variable(start.name, inner.name) or _is_same_variable(start.name, getattr(result, "name", "_"))
        ):
            block.lifetimes.frees[node].remove(start)
            if result is not None:
                self.locals.rename(result, self.locals.name(start))
            return self.locals.name(start)
        if result is None:
            self.locals.claim(inner, block.context.taken)
        return self.locals.name(inner if result is None else result)

    def _item(self, loop: Loop, item: Node, context: Context) -> str:
        """What stands between ``for`` and ``in``: one variable, or several where items are known to be tuples.

        They are not freed: the next round sets them anyway, and in a short loop the time would show.
        """
        parts = parts_of_item(loop.iterable, item)
        if not parts:
            self.locals.claim(item, context.taken)
            context.kept.add(item)
            return self.locals.name(item)
        for nodes in parts:
            for node in nodes:
                if node is nodes[0]:
                    self.locals.claim(node, context.taken)
                self.locals.rename(node, self.locals.name(nodes[0]))
            self.plan.silent.update(nodes)
            self.plan.bound.update(nodes)
            context.kept.update(nodes)
        return ", ".join(self.locals.name(nodes[0]) if nodes else self.locals.fresh("_") for nodes in parts)

    def _list(self, node: Node, items: dict[int, Node] | None, place: int) -> str:
        found = (items or {}).get(place)
        return self.locals.fresh(f"{node.name}_outputs") if found is None else self.locals.name(found)

    def _starts(self, loop: Loop, carried: list[str], lists: list[str]) -> list[tuple[str, Any]]:
        """What carried variables and lists are set to before the first round."""
        starts: list[tuple[str, Any]] = [pair for pair in zip(carried, loop.carried, strict=True) if pair[0]]
        return [*starts, *((name, []) for name in lists)]

    def _test(self, around: Context, test: Any, values: list[Node]) -> None:
        """Plan the condition of a ``while``: it reads the same variables as the body and frees none of them."""
        inputs = inputs_of(test)
        self.plan.silent.update(inputs)
        for node, value in zip(inputs, values, strict=True):
            if value in self.locals.literals:
                self.locals.stand_for(node, self.locals.literals[value])
            self.locals.rename(node, self.locals.name(value))
        context = Context(around.taken, around.depth, around.indent, Test(), set(inputs))
        self.block(test.nodes, context)

    # ---- values --------------------------------------------------------------------------------------------------

    def aim(self, block: Block, wanted: Any, name: str) -> None:
        """Let a value have the variable ``name`` if it can, and also the value that it is made of step by step."""
        while self._can_go_to(block, wanted, name):
            self.locals.rename(wanted, name)
            block.aimed.add(wanted)
            wanted = next(self._earlier_versions(block, wanted, name), None)

    def _earlier_versions(self, block: Block, result: Node, name: str) -> Iterator[Node]:
        """Values of the same variable that a branch may hand through, or a loop starts with, and that end there."""
        maker = block.lifetimes.maker.get(result, result)
        control = block.controls.get(maker, (None, 0))[0]
        place = None if maker is result else result.args[1]
        given: Any = ()
        found: list[Any] = []
        if isinstance(control, Branch):
            given = control.operands
            found = [given[number] for body in control.bodies for number in _returned_inputs(body, place)]
        elif isinstance(control, Loop) and place is not None and place < len(control.carried):
            given = (control.carried, control.operands, control.iterable)
            found = [control.carried[place]]
        for value in map(block.lifetimes.value, found):
            ends = isinstance(value, Node) and value in block.lifetimes.frees.get(maker, ())
            once = sum(block.lifetimes.value(leaf) is value for leaf in leaves(given)) == 1
            if ends and once and _is_same_variable(name, value.name):
                yield value

    def _can_go_to(self, block: Block, wanted: Any, name: str) -> bool:
        """Whether a value can be computed right into the variable ``name``, where the end of the block wants it."""
        if not isinstance(wanted, Node) or wanted.op == "placeholder" or wanted in block.aimed | self.plan.bound:
            return False
        lifetimes = block.lifetimes
        if wanted in lifetimes.silent and wanted not in lifetimes.maker:
            return False
        maker = lifetimes.maker.get(wanted, wanted)
        for node in block.nodes:
            reads = node.op == "placeholder" and node not in self.locals.literals and self.locals.name(node) == name
            if reads and lifetimes.last.get(node, -1) > lifetimes.place[maker]:
                return False
        control = block.controls.get(maker, (None, 0))[0]
        return not isinstance(control, Loop) or wanted is maker or name not in self._read_by(control, maker, wanted)

    def _read_by(self, loop: Loop, node: Node, result: Node) -> set[str]:
        """The variables that a loop reads besides the one in which this result starts."""
        carried = [value for place, value in enumerate(loop.carried) if place != result.args[1]]
        read = references((carried, loop.operands, loop.iterable))
        read += [used for part in self.plan.inside[node] for used in part._inputs]
        return {self.locals.name(value) for value in read}


_NUMBER = re.compile(r"_\d+$")
_UNNAMED = frozenset({"getitem", "cond"})


def _is_same_variable(before: str, after: str) -> bool:
    """Whether a new value is called like the variable that it could take over, or has no name that anybody chose."""
    stem = _NUMBER.sub("", after)
    return stem in _UNNAMED or stem == _NUMBER.sub("", before)


def wanted_values(block: Block) -> list[tuple[str, Any]]:
    """What the end of a block wants in which variable; nothing where a branch at the end takes care of it."""
    last = next(iter(reversed(block.nodes)), None)
    if last is None or last.op != "output" or closing_branch(last.graph) in block.controls:
        return []
    return block.context.finish.targets(last.args[0] if last.args else None)


def _returned_inputs(body: Any, place: int | None) -> list[int]:
    """The numbers of the parameters that a body may return as its result, or as one item of it."""
    inputs = inputs_of(body)
    last = closing_branch(body)
    if last is None:
        value = returned(body) if place is None else returned(body)[place]
        return [inputs.index(value)] if isinstance(value, Node) and value in inputs else []
    branch = control_of(last)
    assert isinstance(branch, Branch)
    numbers = [number for inner in branch.bodies for number in _returned_inputs(inner, place)]
    values = [branch.operands[number] for number in numbers]
    return [inputs.index(value) for value in values if isinstance(value, Node) and value in inputs]


# ---- functions -------------------------------------------------------------------------------------------------------

_MOST_INDENTED = 80
"""Python reads no line that is indented by a hundred steps."""


Controls = dict[Node, tuple[Branch | Loop, int]]
"""The branches and loops of a block, each with the depth at which it stands."""


class Planner(ControlPlanner):
    """Plans functions; the names of their nodes go to ``local_names``."""

    def function(self, nodes: Sequence[Node]) -> None:
        """Plan a function over ``nodes`` and all that is inside it."""
        self.locals.add_function(nodes)
        context = Context(set(), 0, 0, Return(), set())
        blocks = blocks_of(nodes)
        controls = self._controls(nodes, blocks, context)
        if controls:
            context.taken = self.locals.taken_by(nodes)
            self._block(nodes, context, blocks, controls)
        else:  # the great majority, and the largest ones
            self.plan.blocks.include(blocks)
            self.plan.frees.update(last_uses(nodes))

    def _inner_function(self, body: Any) -> None:
        """Plan the function for a graph that is handed to another one; once, wherever it appears."""
        if id(body) not in self._functions:
            self._functions.add(id(body))
            self.function(list(body.nodes))

    def block(self, nodes: Any, context: Context) -> None:
        """Plan the statements of a side of a branch, or of one round of a loop."""
        blocks = blocks_of(nodes, context.depth)
        self._block(nodes, context, blocks, self._controls(nodes, blocks, context))

    def _block(self, nodes: Any, context: Context, blocks: Blocks, controls: Controls) -> None:
        self.plan.blocks.include(blocks)
        lifetimes = Lifetimes(nodes, {node: control for node, (control, _) in controls.items()})
        self.plan.silent |= lifetimes.silent
        block = Block(nodes, context, controls, lifetimes)
        for node, (control, _) in controls.items():
            head = control.predicate if isinstance(control, Branch) else control.iterable
            self.plan.inside[node] = tree_before(node, head, self.plan.bound)
        if not isinstance(context.finish, Return) or context.indent:
            self._name(block)
        for node, (control, depth) in controls.items():
            if isinstance(control, Branch):
                self.lay_out_branch(block, node, control, depth)
            else:
                self.lay_out_loop(block, node, control, depth)
        self._note_frees(block)

    def _controls(self, nodes: Iterable[Node], blocks: Blocks, context: Context) -> Controls:
        """The branches and loops that become statements, each with its depth; all other bodies become functions."""
        found = {}
        having = with_bodies(nodes)
        around = _blocks_around(nodes, blocks) if having and (blocks.ends or blocks.watched) else {}
        for node, bodies in having:
            within = around.get(node, 0)
            control = control_of(node)
            depth = context.depth + within
            if control is not None and depth < DEEPEST and _is_written_out(control, context.indent + within):
                found[node] = (control, depth)
            else:
                self.plan.handing.add(node)
                for body in bodies:
                    self._inner_function(body)
        return found

    def _name(self, block: Block) -> None:
        """Give the values of a block variables: those where they are wanted in the end, or their own."""
        for name, wanted in wanted_values(block):
            self.aim(block, wanted, name)
        for node in block.nodes:
            has_name = node.op == "placeholder" or node in block.aimed or node in self.plan.bound
            if not has_name and needs_name(node):
                self.locals.claim(node, block.context.taken)

    def _note_frees(self, block: Block) -> None:
        """Where variables are freed: not what must be kept, nor a variable that just got a new value."""
        frees = block.lifetimes.frees
        for node in block.controls:
            tree = self.plan.inside[node]
            used = [value for part in (*reversed(tree), node) for value in frees.pop(part, [])]
            layout = self.plan.layouts[node]
            is_last = isinstance(layout, BranchLayout) and layout.is_last
            frees[node] = [] if is_last else [value for value in used if value not in tree]
        for node, values in frees.items():
            names = self._names_set_by(node, block)
            may_be_freed = (value for value in values if value not in block.context.kept)
            found = {self.locals.name(value): value for value in may_be_freed}
            self.plan.frees[node] = [value for name, value in found.items() if name not in names]

    def _names_set_by(self, node: Node, block: Block) -> set[str]:
        if node.op == "output":
            return block.context.finish.names()
        layout = self.plan.layouts.get(node)
        if isinstance(layout, BranchLayout):
            return layout.sides[0].finish.names()
        used = block.lifetimes.items.get(node, {}).values()
        return {self.locals.name(value) for value in (node, *used)}


def _blocks_around(nodes: Iterable[Node], blocks: Blocks) -> dict[Node, int]:
    """In how many ``with`` and ``try`` blocks each node stands."""
    around = {}
    within = 0
    for node in nodes:
        within += (node in blocks.ends) + (node in blocks.watched) - (node in blocks.closing)
        around[node] = within
    return around


def _is_written_out(control: Branch | Loop, indent: int) -> bool:
    """Whether the bodies take what they are given and return what is asked for, so that no call is needed."""
    given, item = control.operands, 0
    if isinstance(control, Loop):
        given, item = (*control.carried, *control.operands), int(control.is_for)
        if not all(_is_tuple_of(end, control.returns) for end in ends_of(control.body)):
            return False
    if indent > _MOST_INDENTED or any(isinstance(leaf, Body) for leaf in leaves(given)):
        return False
    return all(_can_be_block(body, len(given) + item, indent) for body in control.bodies)


def _can_be_block(body: Any, count: int, indent: int) -> bool:
    """Whether a body takes so many plain arguments; a branch at its end, which ends it too, must fit as well."""
    inputs = inputs_of(body)
    if len(inputs) != count or any(node.target.startswith("*") or node.kwargs for node in inputs):
        return False
    last = closing_branch(body)
    inner = None if last is None else control_of(last)
    return inner is None or _is_written_out(inner, indent + 1)


def _is_tuple_of(end: Any, count: int) -> bool:
    return len(end) == count if type(end) is tuple else end is None and count == 0
