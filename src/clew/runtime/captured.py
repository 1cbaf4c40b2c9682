"""From a capture to a callable: a module for a module, a function for a function, with the original's signature.

Both list the assumptions of the capture as ``guards``. A guard that fails leaves no mark: where the graph acts before
its last guard, what it had done is undone before the error is raised.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.capture.example.guards import Guard, guards_of
from clew.frameworks.torch.rollback import acts_before_guards, protect
from clew.ir.graph import Graph
from clew.runtime.function import GraphFunction
from clew.runtime.module import GraphModule


class Guarded:
    """What captured modules and captured functions have in common."""

    graph: Graph

    @property
    def guards(self) -> list[Guard]:
        """The assumptions, in the order in which they are checked."""
        return guards_of(self.graph)

    def _acts_early(self) -> bool:
        """Whether the graph as it is now acts before its last guard; worked out once for each state of the code."""
        code = self.recompile()  # type: ignore[attr-defined]
        known = self.__dict__.get("_early")
        if known is None or known[0] is not code:
            known = self.__dict__["_early"] = (code, acts_before_guards(self.graph))
        return bool(known[1])


class CapturedModule(Guarded, GraphModule):
    """A module captured from an example."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._acts_early():
            return super().__call__(*args, **kwargs)
        with protect(self.graph, args, kwargs):
            return super().__call__(*args, **kwargs)


class CapturedFunction(Guarded, GraphFunction):
    """A function captured from an example."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._acts_early():
            return super().__call__(*args, **kwargs)
        with protect(self.graph, args, kwargs):
            return super().__call__(*args, **kwargs)


def callable_of(source: Any, constants: dict[str, Any], graph: Graph, name: str) -> Any:
    """A module over the parts of ``source``, or a function if there is none, and the constants that were used."""
    if source is None:
        root = torch.nn.Module()
        for path, value in constants.items():
            object.__setattr__(root, path, value)
        return CapturedFunction(root, graph, name)
    before = vars(source).copy()
    try:
        for path, value in constants.items():
            object.__setattr__(source, path, value)
        return CapturedModule(source, graph, name)
    finally:
        vars(source).clear()
        vars(source).update(before)
