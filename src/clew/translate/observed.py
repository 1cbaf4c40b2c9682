"""The plain numbers that a program takes out of arrays, as they are for the example of its capture.

A graph of the source comes in, with its root and the example; it is run once, on copies. Goes out: for each node that
gives a plain number, a nest of them, or a whole number as an array without axes, what it gives. The caller puts state
back. Where the example is gone, such numbers are not known.
"""

from __future__ import annotations

import copy
from typing import Any

from clew.errors import ClewError
from clew.ir.graph import Graph
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node
from clew.translate.sources.source import Source

_PLAIN = (bool, int, float)


def observe(graph: Graph, constants: dict[str, Any], args: Any, kwargs: Any, source: Source) -> dict[Node, Any]:
    """What the nodes of a graph and of its bodies give, where that is plain; the first time that they run."""
    run = _Observing(graph, constants, source)
    try:
        run.run(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    except (ClewError, RuntimeError, TypeError, ValueError, AttributeError, KeyError, IndexError, AssertionError):
        return run.found  # what was seen before is as good
    return run.found


class _Observing(Interpreter):
    """Notes the plain values of nodes."""

    def __init__(self, graph: Graph, constants: dict[str, Any], source: Source) -> None:
        super().__init__(graph.owning_module, graph=graph)
        self.constants = constants
        self.source = source
        self.extra_traceback = False
        self.found: dict[Node, Any] = {}

    def _check(self, guards: Any) -> None:
        """The example is what the guards hold for."""

    def fetch_attr(self, target: str) -> Any:
        return self.constants[target] if target in self.constants else super().fetch_attr(target)

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n.op.startswith("call") and _is_plain(value):
            self.found.setdefault(n, value)
        elif self.source.is_array(value) and not tuple(value.shape):
            number = self.source.to_numpy(value)
            if number.dtype.kind in "biu":
                self.found.setdefault(n, number.item())
        return value


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)
