"""From a capture to a callable: a module that holds what the graph refers to, with the original's signature."""

from __future__ import annotations

from typing import Any

import torch

from clew.capture.example.guards import Guard, guards_of
from clew.frameworks.torch.rollback import acts_before_guards, protect
from clew.ir.graph import Graph
from clew.runtime.module import GraphModule


class CapturedModule(GraphModule):
    """A module captured from an example: ``guards`` lists what it assumes; a guard that fails leaves no mark."""

    @property
    def guards(self) -> list[Guard]:
        """The assumptions, in the order in which they are checked."""
        return guards_of(self.graph)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "_acts_early" not in self.__dict__ or self.__dict__["_acts_for"] is not self.recompile():
            self.__dict__["_acts_early"] = acts_before_guards(self.graph)
            self.__dict__["_acts_for"] = self.recompile()
        if not self.__dict__["_acts_early"]:
            return super().__call__(*args, **kwargs)
        with protect(self.graph, args, kwargs):
            return super().__call__(*args, **kwargs)


def module_of(source: Any, constants: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    """A GraphModule over the parts of ``source`` and the constants that the program used."""
    root = torch.nn.Module() if source is None else source
    before = vars(root).copy()
    try:
        for path, value in constants.items():
            object.__setattr__(root, path, value)
        return CapturedModule(root, graph, name)
    finally:
        vars(root).clear()
        vars(root).update(before)
