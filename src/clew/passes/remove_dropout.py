"""Dropout removal: dropout that is off in evaluation mode leaves the program, which from then on refuses to train.

A graph or a captured program comes in, is changed in place and returned; graphs inside are treated too. A call of a
dropout layer in evaluation mode, or of a function with ``training=False`` or the flag of such a layer, gives its input
itself, so that is what takes its place. Attention gets a chance of zero. For each flag that this relies on the graph
gets a guard: a call in training mode raises ``GuardError`` instead of leaving out noise that the original has.
"""

from __future__ import annotations

import torch
from torch.nn.modules import dropout

from clew.frameworks.torch.effects import named_arguments, part_effect
from clew.frameworks.torch.unchanged import is_hooked
from clew.ir.control_flow import choose
from clew.ir.graph import Graph
from clew.ir.guards import Guard
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.passes.modes import is_flag
from clew.passes.program import ProgramT, Root, add_guards, graph_in, mode_guard, opened, put_in_place

_FUNCTIONS = frozenset(
    {torch.dropout, torch.alpha_dropout, torch.feature_dropout, torch.feature_alpha_dropout}
    | {getattr(torch.nn.functional, name) for name in "dropout dropout1d dropout2d dropout3d".split()}
    | {torch.nn.functional.alpha_dropout, torch.nn.functional.feature_alpha_dropout}
)
_REASON = "remove_dropout left out dropout that is off in evaluation mode"


def remove_dropout(program: ProgramT) -> ProgramT:
    """The program without dropout that is off; it is changed in place and returned."""
    graph = graph_in(program)
    root = Root(graph)
    guards: list[Guard] = []
    with opened(program) as graphs:
        for each in graphs:
            guards += _choices(each) + _functions(each)
            for node in each.find_nodes(op="call_module"):
                if _is_off(root.get(node.target)):
                    guards.append(mode_guard(f"{node.target}.training", node.source, _REASON))
                    put_in_place(node, _input_of(node))
        add_guards(graph, guards)
    return program


def _is_off(module: object) -> bool:
    """Whether a module is torch's own dropout, has no hooks, and is in evaluation mode."""
    if not isinstance(module, dropout._DropoutNd) or module.training:
        return False
    return part_effect(module) is not Effect.UNKNOWN and not is_hooked(module)


def _input_of(node: Node) -> object:
    return node.args[0] if node.args else node.kwargs["input"]


def _functions(graph: Graph) -> list[Guard]:
    """Take out calls of functions whose flag is off."""
    guards = []
    for node in graph.find_nodes(op="call_function"):
        if _is_in(node.target, _FUNCTIONS):
            named = named_arguments(node.target, node.args, node.kwargs)[0]
            flag = named.get("training", named.get("train"))
            if flag is not False and not is_flag(flag):
                continue
            if isinstance(flag, Node):
                guards.append(mode_guard(flag.target, node.source, _REASON))
            put_in_place(node, _input_of(node))
            _drop(flag)
    return guards


def _choices(graph: Graph) -> list[Guard]:
    """Settle ``p if self.training else 0.0``: which chance attention gets."""
    guards = []
    for node in graph.find_nodes(op="call_function", target=choose):
        flag, chance = node.args[0], node.args[-1]
        if is_flag(flag) and len(node.args) == 3 and type(chance) in (int, float) and not chance:
            guards.append(mode_guard(flag.target, node.source, _REASON))
            put_in_place(node, chance)
            _drop(flag)
    return guards


def _drop(flag: object) -> None:
    """Erase the reading of a flag that nobody asks for any more."""
    if isinstance(flag, Node) and not flag.users:
        flag.graph.erase_node(flag)


def _is_in(target: object, functions: frozenset[object]) -> bool:
    try:
        return target in functions
    except TypeError:  # a callable without a hash
        return False
