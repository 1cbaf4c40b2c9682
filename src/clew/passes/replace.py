"""replace_pattern: puts one small graph in the place of another wherever that one is found in a large graph.

A pattern and its replacement are functions, modules, graphs or graph modules with the same parameters in the same
order; both may return several values. Afterwards the graph is valid and its code follows.
- Of overlapping matches the earliest is replaced; matches that feed each other all are, each seeing the new values.
- A match is first gathered in one place (``gather``), so no effect is ever reordered; one that cannot be is left alone.
- A path of a submodule or attribute that stands in pattern and replacement means the one that was matched; what else
  the replacement refers to is taken over into the large module (``Adopter``).
- Bodies of branches and loops are searched too; no match reaches from one graph into another.
- Mistakes in pattern or replacement are raised before any node is replaced.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from clew.capture.symbolic.tracer import Tracer
from clew.errors import MissingAttribute, PatternError, ReplacementMismatch
from clew.ir.arguments import is_leaf, leaves, map_arg, nested_graphs
from clew.ir.effects import resolve
from clew.ir.gc_pause import CollectorPaused
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.passes.gather import Gatherer
from clew.passes.match import Accept, InternalMatch, SubgraphMatcher
from clew.passes.pattern_equality import is_state, same_module, same_value

# ---- patterns and their replacements ---------------------------------------------------------------------------------


Program = Callable[..., Any] | Graph | Any
"""What a pattern may be: a function, a module, a graph, or anything that has a graph."""

MatchFilter = Callable[[InternalMatch, Graph, Graph], bool]
ReplacementMaker = Callable[[InternalMatch, Graph, Graph], Any]


class Match(NamedTuple):
    """One place that was replaced."""

    anchor: Node
    """The node of the pattern that the search started from."""
    nodes_map: dict[Node, Any]
    """For each node of the pattern what stood for it in the graph."""


@dataclass
class ReplacedPatterns:
    """One place that was replaced, and by what."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]
    """The nodes that were added to the graph."""


def replace_pattern(
    gm: Any, pattern: Program, replacement: Program, *, where: Callable[..., bool] | None = None
) -> list[Match]:
    """Replace every place in the graph of ``gm`` that looks like ``pattern``; returns those places in order.

    ``where`` is a predicate on what parameters of the pattern stand for, which it takes by their names: nodes, and
    literals as they are. ``clew.explain_match`` tells why nothing is found.
    """
    replaced = replace_pattern_with_filters(gm, pattern, replacement, where=where)
    return [Match(anchor=place.anchor, nodes_map=place.nodes_map) for place in replaced]


def replace_pattern_with_filters(
    gm: Any,
    pattern: Program,
    replacement: Program | None = None,
    match_filters: list[MatchFilter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: ReplacementMaker | None = None,
    node_name_match: str = "",
    where: Callable[..., bool] | None = None,
) -> list[ReplacedPatterns]:
    """Replace the places that look like ``pattern`` and that all ``match_filters`` accept.

    Filters are called as ``filter(match, graph, pattern_graph)``; a refused match keeps no other from being found. With
    ``replacement_callback``, called in the same way, each place gets a replacement of its own. ``ignore_literals`` lets
    a literal of the pattern stand for any; with ``node_name_match`` the last operation of the pattern also stands for
    nodes whose name contains that text. ``where`` is that of ``replace_pattern``.
    """
    if replacement is None and replacement_callback is None:
        raise ReplacementMismatch(
            "there is nothing to put in the place of the pattern", fixes=["pass replacement or replacement_callback"]
        )
    matcher = SubgraphMatcher(graph_of(pattern), ignore_literals=ignore_literals)
    predicate = None if where is None else predicate_on(matcher, where)
    make = replacement_callback or _always(_checked(matcher, replacement))
    adopter = Adopter(gm, matcher.pattern)
    with _owned_by(gm), CollectorPaused():
        rewritings = [_Rewriting(gm, graph, matcher, adopter) for graph in (gm.graph, *nested_graphs(gm.graph))]
        plans = []
        for rewriting in rewritings:
            matches = rewriting.find(match_filters or [], node_name_match, predicate)
            graphs = [make(match, rewriting.graph, matcher.pattern) for match in matches]
            if replacement_callback is not None:
                graphs = [_checked(matcher, graph) for graph in graphs]
            paths = [rewriting.paths(match, graph) for match, graph in zip(matches, graphs, strict=True)]
            plans.append(list(zip(matches, rewriting.ends, graphs, paths, strict=True)))
        for rewriting, plan in zip(rewritings, plans, strict=True):
            for match, end, graph, known in plan:
                rewriting.insert(match, end, graph, known)
            rewriting.exchange()
        _finish(gm, rewritings, is_module=hasattr(replacement, "named_modules"))
    return [place for rewriting in rewritings for place in rewriting.places]


def keep_origins(places: list[ReplacedPatterns]) -> None:
    """Let what was put in the place of a match have the source, the module and the type of what stood there."""
    for place in places:
        old = place.nodes_map.get(place.anchor)
        if not isinstance(old, Node) or not place.replacements:
            continue
        for node in place.replacements:
            node.source, node.meta = old.source, dict(old.meta)
        place.replacements[-1].value_type = old.value_type


def predicate_on(matcher: SubgraphMatcher, where: Callable[..., bool]) -> Accept:
    """The predicate as a function of a match: parameters of the pattern are handed over by their names."""
    names = [str(node.target) for node in matcher.pattern_placeholder_nodes]
    asked = list(inspect.signature(where).parameters)
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise PatternError(
            f"the predicate has a parameter {unknown[0]!r}, and the pattern has none of that name",
            fixes=[f"the pattern's parameters are {', '.join(names)}"],
        )

    def accept(match: InternalMatch) -> bool:
        bound = dict(zip(names, match.placeholder_nodes, strict=True))
        return bool(where(**{name: bound[name] for name in asked}))

    return accept


@contextmanager
def _owned_by(gm: Any) -> Iterator[None]:
    """Let the graphs inside of the module's graph know for a while whose attributes they refer to."""
    before = [(graph, graph.owning_module) for graph in nested_graphs(gm.graph)]
    for graph, _ in before:
        graph.owning_module = gm
    try:
        yield
    finally:
        for graph, owner in before:
            graph.owning_module = owner


def _finish(gm: Any, rewritings: list[_Rewriting], is_module: bool) -> None:
    """Forget modules that nobody calls any more, check the result, and make the code anew."""
    if is_module:
        doomed = (node for rewriting in rewritings for node in rewriting.doomed)
        forget_modules(gm, {node.target for node in doomed if node.op == "call_module"})
    gm.graph.lint()
    if hasattr(gm, "recompile"):
        gm.recompile()


def _always(graph: Graph) -> ReplacementMaker:
    return lambda match, original_graph, pattern_graph: graph


def _checked(matcher: SubgraphMatcher, program: Program) -> Graph:
    graph = graph_of(program)
    _check_fit(matcher, graph)
    return graph


def graph_of(program: Program) -> Graph:
    """The graph of a pattern or replacement; its owning module is where its paths lead to."""
    if isinstance(program, Graph):
        return program
    graph = getattr(program, "graph", None)
    if isinstance(graph, Graph):
        if graph.owning_module is None:
            graph.owning_module = program
        return graph
    if not callable(program):
        raise PatternError(
            f"a pattern must be a function, a module or a graph, not {type(program).__name__}",
            fixes=["write it as a function of its inputs"],
        )
    tracer = Tracer()
    graph = tracer.trace(program)
    if graph.owning_module is None:
        graph.owning_module = tracer.root
    return graph


# ---- does the replacement fit? ---------------------------------------------------------------------------------------


def _check_fit(matcher: SubgraphMatcher, replacement: Graph) -> None:
    """Raise unless the replacement takes what the pattern takes and returns what it returns."""
    taken = matcher.pattern_placeholder_nodes
    given = [node for node in replacement.nodes if node.op == "placeholder"]
    if len(taken) != len(given):
        raise ReplacementMismatch(
            f"Placeholder count mismatch: the pattern has {len(taken)} inputs ({_names(taken)}), "
            f"the replacement {len(given)} ({_names(given)})",
            why="inputs of the replacement stand for those of the pattern by position",
            fixes=["give both functions the same parameters, even if the replacement does not use all of them"],
        )
    for mine, theirs in zip(taken, given, strict=True):
        if theirs.users and not mine.users:
            raise PatternError(
                f"the replacement uses its input {theirs.name}, but the pattern does not use its input {mine.name}",
                why="nothing in the graph says what it should be bound to",
                fixes=[f"use {mine.name} in the pattern, or do without it in the replacement"],
            )
    _paired_results(matcher, replacement)


def _names(nodes: list[Node]) -> str:
    return ", ".join(node.name for node in nodes) or "none"


def _paired_results(matcher: SubgraphMatcher, replacement: Graph) -> dict[Node, Any]:
    """For each operation that the pattern returns the value in the replacement that takes its place."""
    wanted = [leaf for leaf in leaves(matcher.pattern.output_node().args) if isinstance(leaf, Node)]
    returned = replacement.output_node().args[0]
    offered = list(leaves(returned)) if not is_leaf(returned) else [returned]
    if len(offered) == len(matcher.pattern_returning_nodes):
        wanted = matcher.pattern_returning_nodes
    if len(wanted) != len(offered):
        raise ReplacementMismatch(
            f"Returning nodes count mismatch: the pattern returns {len(wanted)} values, the replacement {len(offered)}",
            why="results of the replacement take the place of those of the pattern by position",
            fixes=["let both return the same number of values"],
        )
    pairs: dict[Node, Any] = {}
    for node, value in zip(wanted, offered, strict=True):
        if pairs.setdefault(node, value) is not value:
            raise ReplacementMismatch(
                f"the pattern returns {node.name} twice, but the replacement returns two different values there",
                fixes=[f"return the same value in both places, or {node.name} only once"],
            )
    return {node: value for node, value in pairs.items() if not _is_returned_input(matcher, replacement, node, value)}


def _is_returned_input(matcher: SubgraphMatcher, replacement: Graph, node: Node, value: Any) -> bool:
    if node.op != "placeholder":
        return False
    inputs = [found for found in replacement.nodes if found.op == "placeholder"]
    if inputs[matcher.pattern_placeholder_nodes.index(node)] is not value:
        raise ReplacementMismatch(
            f"the pattern returns its own input {node.name}, but the replacement returns something else there",
            why="the input is not computed by the pattern, so the replacement cannot take its place",
            fixes=[f"return the input {node.name} from the replacement too", f"do not return {node.name} from either"],
        )
    return True


# ---- the rewriting ---------------------------------------------------------------------------------------------------


class _Form:
    """A replacement taken apart: its inputs, its operations, and what it puts in the place of which result."""

    def __init__(self, replacement: Graph, matcher: SubgraphMatcher) -> None:
        self.replacement = replacement  # kept, so that its identity stays its own
        self.inputs = [node for node in replacement.nodes if node.op == "placeholder"]
        self.steps = [node for node in replacement.nodes if node.op not in ("placeholder", "output")]
        self.results = _paired_results(matcher, replacement)


class _Rewriting:
    """All replacements in one graph: they are inserted one by one, and then old values give way to new ones at once."""

    def __init__(self, gm: Any, graph: Graph, matcher: SubgraphMatcher, adopter: Adopter) -> None:
        self.gm = gm
        self.graph = graph
        self.matcher = matcher
        self.adopter = adopter
        self.ends: list[Node] = []
        self.new_value: dict[Node, Any] = {}
        self.doomed: dict[Node, None] = {}
        self.places: list[ReplacedPatterns] = []
        self.forms: dict[int, _Form] = {}
        """What replacements consist of, by their identity; most often one replacement stands for all matches."""

    def find(self, filters: list[MatchFilter], node_name_match: str, where: Accept | None) -> list[InternalMatch]:
        """The matches to replace, each gathered in one place."""
        gatherer = Gatherer(self.graph)

        def accept(match: InternalMatch) -> bool:
            if not all(accepts(match, self.graph, self.matcher.pattern) for accepts in filters):
                return False
            block = gatherer.gather(match.operations())
            if block is not None:
                self.ends.append(block[-1])
            return block is not None

        return self.matcher.find(self.graph, accept, node_name_match, where)

    def paths(self, match: InternalMatch, replacement: Graph) -> dict[Node, str]:
        """Where the module has what nodes of the replacement refer to, for this match."""
        referring = [node for node in replacement.nodes if node.op in ("get_attr", "call_module")]
        return {node: self.adopter.path_for(node, match) for node in referring}

    def insert(self, match: InternalMatch, end: Node, replacement: Graph, paths: dict[Node, str]) -> None:
        """Add the nodes of the replacement before ``end``, the last node of the match; nobody uses them yet."""
        form = self.forms.get(id(replacement))
        if form is None:
            form = self.forms[id(replacement)] = _Form(replacement, self.matcher)
        values: dict[Node, Any] = dict(zip(form.inputs, match.placeholder_nodes, strict=True))
        added = []
        with self.graph.inserting_before(end):
            for node in form.steps:
                twin = values[node] = self.graph.node_copy(node, values.__getitem__)
                if node in paths:
                    twin.target = paths[node]
                added.append(twin)
        for returned, value in form.results.items():
            self.new_value[match.nodes_map[returned]] = map_arg(value, values.__getitem__)
        old = [found for node, found in match.nodes_map.items() if node.op not in ("placeholder", "output")]
        self.doomed.update(dict.fromkeys(old))
        self.places.append(ReplacedPatterns(match.anchors[0], match.nodes_map, added))

    def exchange(self) -> None:
        """Let everybody use the new values, and take the old nodes out."""
        users = {user: None for node in self.new_value for user in node.users if user not in self.doomed}
        for user in users:
            user.args = map_arg(user.args, self._newest)
            if user.kwargs:
                user.kwargs = map_arg(user.kwargs, self._newest)
        for place in self.places:
            for node in self.matcher.pattern_placeholder_nodes:
                if node in place.nodes_map:
                    place.nodes_map[node] = map_arg(place.nodes_map[node], self._newest)
        self._erase()

    def _newest(self, node: Node) -> Any:
        """What stands for a node in the end: the replacement of a match may be the result of another."""
        passed = []
        value: Any = node
        while isinstance(value, Node) and value in self.new_value:
            passed.append(value)
            value = self.new_value[value]
        if not is_leaf(value):
            value = map_arg(value, self._newest)
        for old in passed:
            self.new_value[old] = value
        return value

    def _erase(self) -> None:
        """Users first; a read of an attribute stays while others use it."""
        for node in sorted(self.doomed, key=lambda node: node._sort_key, reverse=True):
            if node.op != "get_attr" or not node.users:
                self.graph.erase_node(node)


# ---- what a replacement refers to ------------------------------------------------------------------------------------


class Adopter:
    """Finds or makes in ``gm`` what replacements of ``pattern`` refer to; each thing is copied only once."""

    def __init__(self, gm: Any, pattern: Graph) -> None:
        self.gm = gm
        self.named = {(node.op, node.target): node for node in pattern.nodes if node.op in ("get_attr", "call_module")}
        self.copied: dict[tuple[int, str, str], tuple[Any, str]] = {}

    def path_for(self, node: Node, match: InternalMatch) -> str:
        """The path in ``gm`` of what ``node``, a get_attr or call_module node of a replacement, refers to."""
        bound = self._bound(node, match)
        if bound is not None:
            return bound
        root = node.graph.owning_module
        key = (id(root), node.op, node.target)
        if key not in self.copied:
            self.copied[key] = (root, self._adopt(node, root))
        return self.copied[key][1]

    def _bound(self, node: Node, match: InternalMatch) -> str | None:
        """The path that the match found for the node's path, or for that of the module which holds it."""
        path = str(node.target)
        named = self.named.get((node.op, path))
        if named is not None and self._is_another(node, named):
            return None
        if named is not None:
            return str(match.nodes_map[named].target)
        for end in reversed(_ends(path)):
            named = self.named.get(("call_module", path[:end]))
            if named is not None:
                return f"{match.nodes_map[named].target}{path[end:]}"
        return None

    @staticmethod
    def _is_another(node: Node, named: Node) -> bool:
        """Whether a replacement has a module of another kind under the name of one of the pattern's."""
        own, meant = (resolve(one.graph.owning_module, str(one.target)) for one in (node, named))
        return node.op == "call_module" and own is not None and meant is not None and not same_module(own, meant)

    def _adopt(self, node: Node, root: Any) -> str:
        path = str(node.target)
        own, present = resolve(root, path), resolve(self.gm, path)
        if present is not None and (own is None or own is present or self._alike(node, root, own, present)):
            return path
        if own is None:
            raise MissingAttribute(
                f"the replacement refers to {path}, which neither it nor the module has",
                where="" if node.source is None else node.source.describe(),
                fixes=["give the replacement as a module that has it", "add it to the module first"],
            )
        if node.op == "call_module":
            return self._add_module(path, copy.deepcopy(own))
        return self._add_attribute(path, root, copy.deepcopy(own))

    def _alike(self, node: Node, root: Any, own: Any, present: Any) -> bool:
        """Whether what the module has already can be what the replacement means by the same path."""
        if node.op == "call_module":
            return same_module(own, present)
        if is_state(root, node.target) and is_state(self.gm, node.target):
            return type(own) is type(present) and getattr(own, "shape", None) == getattr(present, "shape", None)
        return same_value(own, present)

    def _add_module(self, path: str, module: Any) -> str:
        path = self._free(path)
        if not hasattr(self.gm, "add_submodule"):
            path = self._free(path.replace(".", "_"))
            setattr(self.gm, path, module)
        elif not self.gm.add_submodule(path, module):
            path = self._free(path.replace(".", "_"))
            self.gm.add_submodule(path, module)
        return path

    def _add_attribute(self, path: str, root: Any, value: Any) -> str:
        """Put a parameter, buffer or constant at its path in the replacement, or at the top if nothing holds it."""
        source_path, _, name = path.rpartition(".")
        source = resolve(root, source_path) if source_path else root
        holder = resolve(self.gm, source_path) if source_path else self.gm
        if holder is None:
            holder, path = self.gm, path.replace(".", "_")
        path = self._free(path)
        new_name = path.rpartition(".")[2]
        if name in getattr(source, "_buffers", ()) and hasattr(holder, "register_buffer"):
            lasting = name not in getattr(source, "_non_persistent_buffers_set", ())
            holder.register_buffer(new_name, value, persistent=lasting)
        else:
            setattr(holder, new_name, value)
        return path

    def _free(self, path: str) -> str:
        """The path itself if nothing is there, else one with a number."""
        number, free = 0, path
        while resolve(self.gm, free) is not None:
            number += 1
            free = f"{path}_{number}"
        return free


def forget_modules(gm: Any, paths: set[str]) -> None:
    """Delete submodules that were called by replaced nodes, unless something in the graph still refers to them."""
    if not paths or not hasattr(gm, "delete_submodule"):
        return
    still_used = {str(node.target) for node in gm.graph.nodes if node.op in ("get_attr", "call_module")}
    prefixes = {used[:end] for used in still_used for end in _ends(used)}
    for path in paths:
        if path not in prefixes and not any(path[:end] in still_used for end in _ends(path)):
            gm.delete_submodule(path)


def _ends(path: str) -> list[int]:
    """Where the path and each of the paths above it end."""
    return [index for index, character in enumerate(path) if character == "."] + [len(path)]
