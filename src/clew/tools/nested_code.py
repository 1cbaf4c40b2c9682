"""The code of a nested form: one class for each group of equal modules, inner ones first, the root last.

A nested form comes in, text goes out. A run of equal modules, each of which takes what the one before gave, is written as a
loop: the graph that is shown is a copy in which the run is a ``for_loop``. How a graph is written is the affair of the
code generator.
"""

from __future__ import annotations

import copy
from typing import Any

from clew.codegen.python import CodeGen, PythonCode
from clew.ir.graph import Graph


def written(graph: Graph) -> PythonCode:
    """The code of a graph as it is shown to people."""
    twin = copy.deepcopy(graph)
    return twin.python_code("self")


def code_of(nested: Any) -> str:
    return written(nested.graph).src
