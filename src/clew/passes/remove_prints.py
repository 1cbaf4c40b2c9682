"""Prints, logs and warnings: calls that only tell people something go, with what was computed for them alone.

A graph or a captured program comes in, is changed in place and returned; graphs inside are treated each on its own.
What the program computes stays as it was: only such calls are taken out, and values without an effect that fed them.
"""

from __future__ import annotations

from clew.capture.python.message_calls import is_message
from clew.ir.effects import is_impure
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.passes.program import ProgramT, opened


def remove_prints(program: ProgramT) -> ProgramT:
    """The program without its calls that print, log or warn; it is changed in place and returned."""
    with opened(program) as graphs:
        for graph in graphs:
            _remove_prints(graph)
    return program


def _remove_prints(graph: Graph) -> None:
    shown = [node for node in graph.nodes if node.op == "call_function" and is_message(node.target)]
    waiting: list[Node] = [one for one in shown if not one.users]
    while waiting:
        node = waiting.pop()
        used = node.all_input_nodes
        graph.erase_node(node)
        waiting += [one for one in used if not one.users and not is_impure(one) and one not in waiting]
