"""The pipeline in one screen: read this first.

    callable -> capture -> Graph -> passes -> codegen -> callable

``symbolic_trace`` is the whole of it for symbolic capture: a tracer runs the program on proxies, what they record is
the graph, and the graph becomes a callable whose code is generated when it is first needed and follows every edit.
"""

from __future__ import annotations

from typing import Any

from clew.capture.symbolic import Tracer
from clew.runtime.choose import make_callable


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """Capture a module or function without an example input.

    ``concrete_args`` fixes arguments by name (nests of them too, with ``PH`` where something stays an input), which
    makes control flow on them static. The result computes what ``root`` computes; its ``graph`` can be read and edited.
    """
    tracer = Tracer()
    try:
        graph = tracer.trace(root, concrete_args)
        is_module = tracer.root is root
        name = type(root).__name__ if is_module else getattr(root, "__name__", type(root).__name__)
        return make_callable(tracer.root, graph, name)
    finally:
        if tracer.root is root:
            tracer.clear_root()
