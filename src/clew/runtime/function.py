"""GraphFunction: a graph, the object that holds its attributes, and the generated code, callable.

It knows no framework. After an edit of the graph the next call, or the next look at ``code``, uses new code.
"""

from __future__ import annotations

import copy
import inspect
from types import FunctionType
from typing import Any

from clew.codegen.python import PythonCode
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.runtime.build import compile_function
from clew.runtime.failures import note_origin


class GraphFunction:
    """A captured function. Call it like the original; edit its ``graph``; read its ``code``."""

    def __init__(self, root: Any, graph: Graph, name: str = "graph") -> None:
        self.root = root
        self._graph = graph
        self.__name__ = name
        self._compiled: tuple[PythonCode, FunctionType] | None = None
        graph.owning_module = root

    @property
    def graph(self) -> Graph:
        """The graph, free to be edited."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self._graph = graph
        graph.owning_module = self.root
        self._forget()

    @property
    def code(self) -> str:
        """The generated Python."""
        return self.recompile().src

    def recompile(self) -> PythonCode:
        """The code of the graph as it is now; made anew only if the graph has changed."""
        return self._compile()[0]

    def _compile(self) -> tuple[PythonCode, FunctionType]:
        compiled = self._compiled
        if compiled is None:
            code = self._graph.python_code("self")
            compiled = (code, compile_function(code, self.__name__, self._graph._root._prev.source))
            self._compiled = compiled  # both at once: another thread may be calling
            self._graph.on_change(self._forget)
        return compiled

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters of the original."""
        found = inspect.signature(self._compile()[1])
        return found.replace(parameters=list(found.parameters.values())[1:])

    def _forget(self) -> None:
        self._compiled = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        code, function = self._compiled or self._compile()
        try:
            return function(self.root, *args, **kwargs)
        except Exception as error:
            note_origin(error, self.__name__, self._graph, code if self._compiled else None, function)
            raise

    def get_parameter(self, path: str) -> Any:
        """The attribute of the root at a dotted path."""
        return resolve(self.root, path)

    def __repr__(self) -> str:
        return f"GraphFunction({self.__name__}, {len(self._graph.nodes)} nodes)"

    def __getstate__(self) -> dict[str, Any]:
        return {"root": self.root, "graph": self._graph, "name": self.__name__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        GraphFunction.__init__(self, state["root"], state["graph"], state["name"])

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphFunction:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin
