"""From a capture to a callable: a module that holds what the graph refers to, with the original's signature."""

from __future__ import annotations

from typing import Any

import torch

from clew.ir.graph import Graph
from clew.runtime.module import GraphModule


def module_of(source: Any, constants: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    """A GraphModule over the parts of ``source`` and the constants that the program used."""
    root = torch.nn.Module() if source is None else source
    before = vars(root).copy()
    try:
        for path, value in constants.items():
            object.__setattr__(root, path, value)
        return GraphModule(root, graph, name)
    finally:
        vars(root).clear()
        vars(root).update(before)
