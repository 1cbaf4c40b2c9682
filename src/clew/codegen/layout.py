"""Plans a piece of code: how branches and loops are laid out, and where variables are set free.

The nodes of a function come in, with the graphs inside them; out comes a ``Plan``. A branch or loop whose parts are
written out becomes a block of statements over a copy of its bodies, because one body may stand at several places; any
other stays a call. Graphs that are handed to other functions become functions of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from clew.codegen.blocks import DEEPEST, Blocks, blocks_of
from clew.codegen.finish import Return
from clew.codegen.inline import tree_before
from clew.codegen.lifetimes import Lifetimes
from clew.codegen.locals import needs_name
from clew.codegen.plan import Block, BranchLayout, Context
from clew.codegen.variables import ControlPlanner, wanted_values
from clew.ir.arguments import Body, leaves, with_bodies
from clew.ir.control_flow import Branch, Loop, closing_branch, control_of, ends_of, inputs_of
from clew.ir.interpreter import last_uses
from clew.ir.node import Node

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
