"""explain_match: why a pattern is found in a graph, or what keeps it from being found.

A captured program and a pattern come in, as for ``replace_pattern``; out comes a ``MatchReport``: the places that match
or the nearest miss, which is the attempt that bound most operations of the pattern, with the first thing that differs
and the source lines of both. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clew.ir.arguments import nested_graphs
from clew.ir.format import format_target
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.spellings import any_of, forms_of
from clew.passes.match import Accept, InternalMatch, Miss, SubgraphMatcher, is_convex
from clew.passes.replace import Program, graph_of, predicate_on


@dataclass(frozen=True)
class MatchReport:
    """What the search for a pattern came to; printed, it says so in words."""

    matches: list[InternalMatch]
    miss: Miss | None
    """The nearest miss; None if there are matches, or if no operation of the pattern is in the graph."""
    text: str

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.matches)


def explain_match(gm: Any, pattern: Program, where: Callable[..., bool] | None = None) -> MatchReport:
    """Tell where ``pattern`` is found in the graph of ``gm``, or what the nearest miss is; true if it is found."""
    graph = gm if isinstance(gm, Graph) else gm.graph
    matcher = SubgraphMatcher(graph_of(pattern))
    predicate = None if where is None else predicate_on(matcher, where)
    matches: list[InternalMatch] = []
    refusals: list[str] = []
    for one in (graph, *nested_graphs(graph)):
        found, refused = _search(matcher, one, predicate)
        matches += found
        refusals += refused
    if matches:
        return MatchReport(matches, None, _told_matches(matches))
    if refusals:
        return MatchReport([], None, "\n".join(dict.fromkeys(refusals)))
    misses = [miss for one in (graph, *nested_graphs(graph)) if (miss := matcher.nearest_miss(one)) is not None]
    nearest = max(misses, key=lambda miss: len(_bound(miss)), default=None)
    return MatchReport([], nearest, _told_miss(matcher, graph, nearest))


def _search(matcher: SubgraphMatcher, graph: Graph, predicate: Accept | None) -> tuple[list[InternalMatch], list[str]]:
    position = {node: index for index, node in enumerate(graph.nodes)}
    refused: list[str] = []

    def accept(match: InternalMatch) -> bool:
        if is_convex(match, position):
            return True
        refused.append(f"{_place(match)}: a value leaves the match, passes another node and comes back in")
        return False

    def holds(match: InternalMatch) -> bool:
        if predicate is None or predicate(match):
            return True
        refused.append(f"{_place(match)}: the nodes match, and the predicate refuses them")
        return False

    return matcher.find(graph, accept, where=holds), refused


def _place(match: InternalMatch) -> str:
    return _described(match.operations()[-1])


def _told_matches(matches: list[InternalMatch]) -> str:
    count = "1 place matches" if len(matches) == 1 else f"{len(matches)} places match"
    return "\n".join([f"{count}:", *(f"  {_place(match)}" for match in matches)])


def _told_miss(matcher: SubgraphMatcher, graph: Graph, miss: Miss | None) -> str:
    operations = [node for node in matcher.pattern.nodes if node.op.startswith("call") and node.target is not any_of]
    if miss is None:
        names = ", ".join(dict.fromkeys(f"`{operation_name(node)}`" for node in operations))
        return f"nothing matches: the graph of {len(graph.nodes)} nodes has none of the operations {names}"
    count = f"nothing matches; the nearest miss has {len(_bound(miss))} of {len(operations)} nodes: {_difference(miss)}"
    lines = [count, f"  pattern: {_described(miss.pattern_node)}"]
    if isinstance(miss.node, Node):
        lines.append(f"  graph:   {_described(miss.node)}")
    elif _bound(miss):
        lines.append(f"  graph:   {_described(next(iter(_bound(miss).values())))}")
    return "\n".join(lines)


def _bound(miss: Miss) -> dict[Node, Any]:
    whole = miss.bound.items()
    return {node: value for node, value in whole if node.op.startswith("call") and node.target is not any_of}


def _difference(miss: Miss) -> str:
    name = operation_name(miss.pattern_node)
    if miss.reason:
        return f"`{name}` fits, but {miss.reason}"
    if miss.node is None:
        inner = operation_name(miss.wanted) if isinstance(miss.wanted, Node) else ""
        goes_on = ", ".join(f"`{operation_name(user)}`" for user in miss.found.users) or "nothing"
        return f"the pattern goes on with `{inner or name}`, the graph with {goes_on}"
    if miss.argument is None:
        return f"`{name}` is wanted, and `{operation_name(miss.node)}` is there"
    parameter = f"`{miss.argument}`" if isinstance(miss.argument, str) else f"argument {miss.argument}"
    return f"`{name}` differs in {parameter}: {_shown(miss.wanted)} is wanted, and {_shown(miss.found)} is there"


def _shown(value: Any) -> str:
    if isinstance(value, Node):
        return f"%{value.name}" if value.op in ("placeholder", "get_attr") else f"`{operation_name(value)}`"
    return repr(value)


def operation_name(node: Any) -> str:
    """What a node does, in the word that all its spellings share."""
    if not isinstance(node, Node):
        return repr(node)
    forms = forms_of(node)
    return forms[0].operation if forms else format_target(node.target)


def _described(node: Node) -> str:
    where = "" if node.source is None else f"  ({node.source.describe()})"
    return f"{node.format_node()}{where}"
