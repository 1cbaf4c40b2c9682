"""Layers of torch that no table knows: each call is captured as a program of its own and put in the place of the call.

A graph with calls of modules comes in and is changed in place; constants of the captures, by new paths, come out, and
what could not be entered. The examples for the captures are made from the types that the graph's nodes have. What a
capture assumed of the layer's inputs becomes guards of the graph; attributes keep their paths, under the layer's.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

from clew.capture.current_capture import LOCK
from clew.capture.interrupts import DeferredSignals
from clew.capture.options import Options
from clew.capture.state.slots import ROOT, assign, assign_buffer, has_attribute
from clew.errors import ClewError
from clew.frameworks.torch.unchanged import is_hooked
from clew.ir.arguments import map_arg, nested_graphs
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Guard, guard
from clew.ir.guests import guest
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.passes.program import opened
from clew.translate.refusals import Refusal

_CARRIED = ("size", "structure", "value")


def enter_layers(graph: Graph, constants: dict[str, Any]) -> list[Refusal]:
    """Put the calls that layers make in the place of the calls of layers; what cannot be entered comes out."""
    refusals = []
    with opened(graph) as graphs:
        for each in graphs:
            for node in each.find_nodes(op="call_module"):
                reason = _enter(graph, each, node, constants)
                if reason:
                    kind = type(resolve(graph.owning_module, node.target)).__name__
                    where = "" if node.source is None else node.source.describe()
                    refusals.append(Refusal(f"the layer {kind}", where, reason))
    return refusals


def _enter(graph: Graph, each: Graph, node: Node, constants: dict[str, Any]) -> str:
    """Replace one call; the reason comes out if that cannot be."""
    module = resolve(graph.owning_module, node.target)
    if type(module) is torch.nn.Identity:
        node.replace_all_uses_with(node.args[0])
        each.erase_node(node)
        return ""
    if is_hooked(module):
        return "it has hooks"
    try:
        examples = {one: _example(one) for one in node._inputs}
        args, kwargs = map_arg((node.args, node.kwargs), examples.__getitem__)
        found = guest("torch")
        assert found is not None
        with DeferredSignals(), LOCK, torch.no_grad():
            captured = found.capture(module, args, kwargs, Options.of(leaves="none"))
    except (ClewError, RuntimeError, TypeError, ValueError) as error:
        return f"it cannot be captured: {str(error).partition(chr(10))[0]}"
    return _Splice(each, node, module, constants).put(captured)


def _example(node: Node) -> Any:
    """A tensor like the one that a node gives."""
    kind = node.value_type
    if node.op == "get_attr" and not isinstance(kind, ArrayType):
        return resolve(node.graph.owning_module, node.target)
    if not isinstance(kind, ArrayType):
        raise ValueError(f"what {node.name} gives is not known")
    shape = [one if isinstance(one, int) else 2 for one in kind.shape]
    dtype = getattr(torch, kind.dtype)
    return torch.rand(shape).to(dtype) if dtype.is_floating_point else torch.zeros(shape, dtype=dtype)


class _Splice:
    """The nodes of a captured layer in the place of its call."""

    def __init__(self, graph: Graph, node: Node, module: Any, constants: dict[str, Any]) -> None:
        self.graph = graph
        self.node = node
        self.module = module
        self.constants = constants
        self.own: dict[str, str] = {}
        self.values: dict[Node, Any] = {}

    def put(self, captured: Any) -> str:
        """Copy the captured graph here, and let users use what it gives."""
        inner: Graph = captured.graph
        for name, value in captured.constants.items():
            self.own[name] = f"_constant{len(self.constants)}"
            self.constants[self.own[name]] = value
        guards = inner.guards.entry
        inner.set_guards(())
        for body in nested_graphs(inner):
            for one in body.nodes:
                self._move(one)
        with self.graph.inserting_before(self.node):
            self._inputs(inner)
            for one in guards:
                self._guard(one)
            result = self._copy(inner)
        for user in list(self.node.users):
            user.args = map_arg(user.args, lambda leaf: result if leaf is self.node else leaf)
            user.kwargs = map_arg(user.kwargs, lambda leaf: result if leaf is self.node else leaf)
        self.graph.erase_node(self.node)
        return ""

    def _path(self, path: str) -> str:
        head, _, rest = path.partition(".")
        if head in self.own:
            return f"{self.own[head]}.{rest}" if rest else self.own[head]
        return path if path == ROOT else f"{self.node.target}.{path}"

    def _move(self, one: Node) -> None:
        """Let a node name attributes by their paths from the outermost module."""
        if one.op == "get_attr":
            one.target = self._path(str(one.target))
        elif one.op == "call_function" and one.target in (assign, assign_buffer, has_attribute):
            one.args = (one.args[0], self._path(str(one.args[1])), *one.args[2:])

    def _inputs(self, inner: Graph) -> None:
        given = inspect.signature(self.module.forward).bind(*self.node.args, **self.node.kwargs).arguments
        for one in inner.find_nodes(op="placeholder"):
            name = str(one.target).lstrip("*")
            self.values[one] = given[name] if name in given else one.args[0] if one.args else {}

    def _copy(self, inner: Graph) -> Any:
        for one in inner.nodes:
            if one in self.values:
                continue
            if one.op == "output":
                return map_arg(one.args[0], self.values.__getitem__)
            self._move(one)
            made = self.graph.node_copy(one, self.values.__getitem__)
            made.source, stack = self.node.source, self.node.meta.get("nn_module_stack")
            if stack is not None:
                made.meta["nn_module_stack"] = stack
            self.values[one] = made
        return None

    def _guard(self, one: Guard) -> None:
        if one.kind not in _CARRIED:
            return
        made = self.graph.call_function(guard, (self._expression(one.subject), one.expected), {"test": one.test})
        made.source = self.node.source
        made.meta["guard"] = {"reason": one.reason, "text": one.label}

    def _expression(self, expression: Any) -> Any:
        """A subject of a guard as nodes."""
        if isinstance(expression, Node):
            return self.values[expression]
        if isinstance(expression, Attribute):
            return self.graph.get_attr(self._path(expression.path))
        if not isinstance(expression, Call):
            return expression
        args = tuple(map(self._expression, expression.args))
        if isinstance(expression.function, str):
            return self.graph.call_method(expression.function, args)
        return self.graph.call_function(expression.function, args)
