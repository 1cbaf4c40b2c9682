"""torch.fx._graph_pickler: modules saved with what torch's compiler notes on their nodes, fake tensors among it.

In comes a module of Clew's, out go bytes, and from them the module again: torch.fx's own pickler, which saves the graph
node by node. The attributes of a module and its guards are saved as Clew has them.
"""

from __future__ import annotations

from typing import Any

from clew.fx.torch_source import define_beside
from clew.ir.guards import attached, detached
from clew.runtime.module import GraphModule, base_class


class _GraphModulePickleData:
    """What is saved of a module."""

    def __init__(self, gm: GraphModule, options: Any) -> None:
        self.kind = base_class(type(gm))
        self.name = type(gm).__name__
        self.state = gm._state_to_save()
        self.guards = detached(gm.graph.guards.entry)
        self.graph = _GraphPickleData(gm.graph, options)  # type: ignore[name-defined]  # noqa: F821 (torch's own)

    @classmethod
    def reduce_helper(cls, pickler: Any, obj: GraphModule) -> tuple[Any, ...]:
        """How the pickler saves a module."""
        return cls.unpickle, (cls(obj, pickler.options), pickler._unpickle_state)

    def unpickle(self, unpickle_state: Any) -> GraphModule:
        """The module again; as with ``pickle``, nothing is traced or run."""
        graph = self.graph.unpickle(None, unpickle_state)
        graph.guards = attached(self.guards, {node.name: node for node in graph.find_nodes(op="placeholder")})
        return self.kind._from_saved(self.state, graph, self.name)


define_beside(globals())
