"""Watching a run: an interpreter that shows each node with its arguments and its value, also inside of control flow.

A captured program comes in; ``run`` does what calling it does. Subclasses override ``seen``, which is told of each
node after it ran, and ``called``, which runs it. Inputs that were passed by name are shown as well. A module that is
itself a captured program is entered, so its nodes are shown too.
"""

from __future__ import annotations

import copy
import os
from typing import Any

from clew.ir.graph import Graph
from clew.ir.guards import guard
from clew.ir.guests import guest_of
from clew.ir.interpreter import Interpreter, last_uses
from clew.ir.node import Node
from clew.tools.cost_formulas import arrays_in
from clew.tools.verify import program_of


class Watching(Interpreter):
    """Runs what a capture gave and shows each node to ``seen``."""

    def __init__(self, captured: Any) -> None:
        super().__init__(program_of(captured))
        self.depth = -1
        """How many branches, loops and modules that are programs of their own the run is inside of."""

    def seen(self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Told of each node after it ran."""

    def called(self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value of a node."""
        inner = self._program_called(node)
        return getattr(self, node.op)(node.target, args, kwargs) if inner is None else inner(*args, **kwargs)

    def run_node(self, n: Node) -> Any:
        """Run a node and show it; guards are checked as ever."""
        if n.target is guard:
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        value = self.called(n, args, kwargs)
        self.seen(n, args, kwargs, value)
        return value

    def _run_all(self) -> Any:
        self.depth += 1
        try:
            for node, value in list(self.env.items()):
                self.seen(node, (), {}, value)
            return super()._run_all()
        finally:
            self.depth -= 1

    def _program_called(self, node: Node) -> Any:
        """What runs the graph of a module that is a captured program itself; None for any other node."""
        if node.op != "call_module":
            return None
        module = self.fetch_attr(str(node.target))
        if not isinstance(getattr(module, "graph", None), Graph):
            return None
        inner = copy.copy(self)
        inner.module, inner.graph = module, module.graph
        inner.user_to_last_uses = last_uses(module.graph.nodes) if self.garbage_collect_values else {}
        return lambda *args, **kwargs: Interpreter.run(inner, *args, **kwargs)


def module_of(node: Node) -> tuple[str, str]:
    """The path and class of the innermost module that a node is inside of; both empty if there is none."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, kind = stack[-1] if stack else ("", "")
    return path, getattr(kind, "__name__", str(kind).rpartition(".")[2])


def line_of(node: Node) -> str:
    """``model.py:12``, the user's line, without the folder; empty if it is not known."""
    return "" if node.source is None else f"{os.path.basename(node.source.filename)}:{node.source.lineno}"


def memory_in(value: Any) -> dict[Any, int]:
    """The memories that the arrays inside a value lie in, each with its size in bytes."""
    found: dict[Any, int] = {}
    for array in arrays_in(value):
        guest = guest_of(array)
        memory = None if guest is None else guest.memory_of(array)
        if memory is not None:
            found[memory[0]] = memory[1]
    return found
