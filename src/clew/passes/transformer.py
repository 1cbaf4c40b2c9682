"""Transformer: a graph is interpreted on proxies and comes out as a new graph.

Override one of the six methods to change how nodes of that opcode are copied; what they do with the proxies is
recorded. The new module shares parameters and submodules with the old one.
"""

from __future__ import annotations

import copy
from typing import Any

from clew.capture.symbolic.proxy import GraphAppendingTracer, Proxy
from clew.capture.symbolic.tracer import Tracer
from clew.ir.graph import Graph
from clew.ir.guards import Guard, guard
from clew.ir.interpreter import Interpreter, last_uses
from clew.runtime.module import GraphModule
from clew.runtime.torch_captured import CapturedModule


class _TransformerTracer(Tracer):
    """Appends to the new graph; all modules stay calls."""

    def __init__(self, graph: Graph, root: Any) -> None:
        super().__init__()
        self.graph = graph
        self.root = root
        self._known_paths = {module: path for path, module in root.named_modules()}

    def path_of_module(self, mod: Any) -> str:
        path = self._known_paths.get(mod)
        return super().path_of_module(mod) if path is None else path

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Makes a new module by interpreting the old one symbolically."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=module.graph._tracer_cls)
        self.new_graph._chosen_codegen = self.graph._chosen_codegen
        self.tracer = _TransformerTracer(self.new_graph, module)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An input of the new graph; its default is kept, and that it is given by keyword only."""
        return Proxy(self.new_graph.create_node("placeholder", target, args, kwargs), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """The reading of the same attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the same submodule."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the same function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the same method."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def body(self, graph: Graph) -> Graph:
        """A nested graph stays one: it is transformed likewise into a graph of its own."""
        inner = copy.copy(self)
        inner.graph = graph
        inner.new_graph = Graph(tracer_cls=graph._tracer_cls)
        inner.new_graph._chosen_codegen = graph._chosen_codegen
        inner.tracer = _TransformerTracer(inner.new_graph, self.module)
        inner.user_to_last_uses = last_uses(graph.nodes) if self.garbage_collect_values else {}
        inner._finish(Interpreter.run(inner, enable_io_processing=False))
        return inner.new_graph

    def run_node(self, n: Any) -> Any:
        """The proxy of a node; the new node takes over its source, types and notes."""
        before = self.new_graph._root._prev
        if n.target is guard:
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            result = self.tracer.create_proxy("call_function", guard, args, kwargs)
        else:
            result = super().run_node(n)
        if isinstance(result, Proxy) and n.op != "output" and result.node._prev is before:
            _take_notes(n, result.node)
        return result

    def _check(self, guards: tuple[Guard, ...]) -> None:
        """What the old graph assumes, the new one assumes."""
        given = {node: self.env[node].node for node in self.graph.find_nodes(op="placeholder") if node in self.env}
        self.new_graph.guards = [one.mapped(lambda leaf: given.get(leaf, leaf)) for one in guards]

    def transform(self) -> GraphModule:
        """The new module."""
        self._finish(super().run(enable_io_processing=False))
        kind = CapturedModule if isinstance(self.module, CapturedModule) else GraphModule
        return kind(self.module, self.new_graph, type(self.module).__name__)

    def _finish(self, result: Any) -> None:
        """Let the new graph return what the old one does."""
        if self.graph.find_nodes(op="output"):
            output = self.new_graph.output(_nodes_of(result))
            _take_notes(self.graph.output_node(), output)


def _nodes_of(value: Any) -> Any:
    tracer = GraphAppendingTracer(Graph())
    return tracer.create_arg(value)


def _take_notes(old: Any, new: Any) -> None:
    new.source = old.source
    new.value_type = new.value_type or old.value_type
    if new.type is None:
        new.type = old.type
    for key, value in old.meta.items():
        new.meta.setdefault(key, value)
