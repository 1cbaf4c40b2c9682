"""From the graphs of a nested form back to one flat graph.

In come the pieces and what is known of the flat graph that they were made of; out comes one graph in which every call
of a piece is replaced by what the piece does. Nodes that are still what they were have their old names, and if nothing
was edited the graph is equal to the one before, in the same order. After edits the order is that of the pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import getitem
from typing import Any

from clew.capture.guards.notes import CHECKS
from clew.errors import GraphError
from clew.ir.arguments import Reference, leaves, map_aggregate, map_arg
from clew.ir.equality import same_graph
from clew.ir.graph import Graph, is_graph
from clew.ir.node import Node
from clew.passes.nest import Chain, body_with, carry_guards, note_like

PieceAt = Callable[[str], "tuple[str, Graph] | None"]
"""The graph that is called at a path of the root and the path of its module; None if no piece is there."""


@dataclass(eq=False)
class _Step(Reference):
    """A node to be."""

    node: Node
    origin: Node | None
    target: Any
    args: Any = ()
    kwargs: Any = None


def flatten(
    root: Graph, piece_at: PieceAt, before: Graph, origins: dict[Chain, dict[str, str]], paths: dict[str, str]
) -> Graph:
    """The flat graph; ``before`` is the one that the pieces were made of, ``paths`` tells what it says for a path."""
    flattening = _Flattening(root, piece_at, before, origins, paths)
    flattening.walk(root, "", (), None)
    return flattening.result()


class _Flattening:
    def __init__(
        self,
        root: Graph,
        piece_at: PieceAt,
        before: Graph,
        origins: dict[Chain, dict[str, str]],
        paths: dict[str, str],
    ) -> None:
        self.root = root
        self.piece_at = piece_at
        self.before = before
        self.origins = origins
        self.paths = paths
        self.steps: list[_Step] = []
        self._nodes_before = {node.name: node for node in before.nodes}
        self._reads: dict[tuple[str, Any], _Step] = {}
        """Reads of attributes and facts, which several pieces may do for themselves."""

    def walk(self, graph: Graph, path: str, chain: Chain, given: dict[Node, Any] | None) -> Any:
        """Note the steps of a graph and of those that it calls; gives what it returns."""
        values: dict[Node, Any] = dict(given or {})
        origins = self.origins.get(chain, {})
        for node in graph.nodes:
            if node in values:
                continue
            if node.op == "output" and given is not None:
                return self._mapped(node.args[0] if node.args else None, values)
            values[node] = self._value(node, path, chain, origins, values)
        return None

    def _value(self, node: Node, path: str, chain: Chain, origins: dict[str, str], values: dict[Node, Any]) -> Any:
        called = self.piece_at(_joined(path, node.target)) if node.op == "call_module" else None
        if called is not None:
            return self._called(node, called, (*chain, node.name), values)
        if node.op == "call_function" and node.target is getitem and isinstance(node.args[0], Node):
            whole, item = values[node.args[0]], node.args[1]
            if type(whole) is tuple and type(item) is int:
                return whole[item]
        origin = self._nodes_before.get(origins.get(node.name, ""))
        step = _Step(node, origin, self._target(node, path))
        step.args, step.kwargs = self._mapped(node.args, values), self._mapped(node.kwargs, values)
        if origin is not None and (node.op == "get_attr" or node.target is getattr or node.target is getitem):
            known = self._reads.setdefault((origin.name, step.target), step)
            if known is not step and known.args == step.args:
                return known
        self._keep_texts(step, path)
        self.steps.append(step)
        return step

    def _called(self, node: Node, called: tuple[str, Graph], chain: Chain, values: dict[Node, Any]) -> Any:
        path, graph = called
        inputs = [one for one in graph.nodes if one.op == "placeholder"]
        named = {str(one.target): one for one in inputs}
        given = dict(zip(inputs, self._mapped(node.args, values), strict=False))
        given |= {named[name]: self._mapped(value, values) for name, value in node.kwargs.items() if name in named}
        for one in inputs:
            if one not in given and one.args:
                given[one] = one.args[0]
        if len(node.args) > len(inputs) or len(given) != len(inputs) or not named.keys() >= node.kwargs.keys():
            raise GraphError(
                f"the call {node.name} of {path} has other arguments than its graph has placeholders",
                why=f"the graph takes {', '.join(named) or 'nothing'}",
                fixes=["let the call give them, in this order"],
            )
        return self.walk(graph, path, chain, given)

    def _target(self, node: Node, path: str) -> Any:
        return self._absolute(path, node.target) if node.op in ("get_attr", "call_module") else node.target

    def _absolute(self, path: str, target: str) -> str:
        """The path from the root of what a module knows under a path of its own."""
        if path and target == "_self":
            return path
        full = _joined(path, target)
        return self.paths.get(full, full)

    def _mapped(self, value: Any, values: dict[Node, Any]) -> Any:
        return map_arg(value, values.__getitem__)

    def _keep_texts(self, step: _Step, path: str) -> None:
        """Bodies get their old paths, and their old names if they are unchanged; so do texts of assumptions."""
        old = step.origin if step.origin is not None and step.origin.target == step.target else None
        if any(is_graph(leaf) for leaf in leaves((step.args, step.kwargs))):
            before = iter([] if old is None else [leaf for leaf in leaves((old.args, old.kwargs)) if is_graph(leaf)])

            def translate(leaf: Any) -> Any:
                return self._body(leaf, next(before, None), path) if is_graph(leaf) else leaf

            step.args, step.kwargs = map_aggregate((step.args, step.kwargs), translate)
        if old is not None and old.op == "call_function" and old.target in CHECKS and len(step.args) == len(old.args):
            step.args = (*step.args[:2], *old.args[2:])

    def _body(self, body: Graph, before: Graph | None, path: str) -> Graph:
        found = body_with(body, lambda target: self._absolute(path, target))
        if before is not None and same_graph(*(body_with(one, str, numbered=True) for one in (found, before))):
            return body_with(before, str)
        return found

    # ---- the graph -------------------------------------------------------------------------------------------------

    def result(self) -> Graph:
        """The graph as it was, if nothing was edited; else in the order of the pieces."""
        places = {node: place for place, node in enumerate(self.before.nodes)}
        known = [step for step in self.steps if step.origin is not None]
        if len(known) == len(self.steps) == len(places) == len({step.origin for step in known}):
            sorted_steps = sorted(self.steps, key=lambda step: places[step.origin])  # type: ignore[index]
            graph = self._written(sorted_steps)
            if graph is not None and same_graph(graph, self.before):
                return graph
        graph = self._written(self.steps)
        assert graph is not None, "pieces name only what comes before"
        return graph

    def _written(self, steps: list[_Step]) -> Graph | None:
        """A graph of the steps in this order; None if one needs another that comes later."""
        graph = Graph(tracer_cls=self.before._tracer_cls, tracer_extras=self.before._tracer_extras)
        names = dict(zip(steps, self._names(graph, steps), strict=True))
        made: dict[Any, Node] = {}

        def translate(leaf: Any) -> Any:
            return made[leaf] if isinstance(leaf, _Step) else leaf

        for step in steps:
            try:
                args, kwargs = map_aggregate(step.args, translate), map_aggregate(step.kwargs, translate)
            except KeyError:
                return None
            node = graph._append_exact(step.node.op, names[step], step.target, args, kwargs, step.node.type)
            is_same = step.origin is not None and step.origin.target == step.target
            note_like(step.origin if is_same and step.origin is not None else step.node, node)
            made[step] = node
        carry_guards(self.root, {step.node: node for step, node in made.items()}, graph)
        return graph

    def _names(self, graph: Graph, steps: list[_Step]) -> Iterator[str]:
        """The old names, each given once; new ones for all other nodes."""
        old: dict[str, _Step] = {}
        for step in steps:
            if step.origin is not None:
                old.setdefault(step.origin.name, step)
        graph._names.reserve_all(old)
        for step in steps:
            is_old = step.origin is not None and old[step.origin.name] is step
            yield step.origin.name if is_old and step.origin else graph._names.create_name(step.node.name)


def _joined(path: str, target: str) -> str:
    return f"{path}.{target}" if path else target
