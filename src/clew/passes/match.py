"""SubgraphMatcher: finds the places of a graph that look like a pattern, which is a graph itself.

A match binds every node of the pattern: operations to nodes that do the same, placeholders to whatever stands there (a
node, a literal, a nest of both), the same placeholder always to the same thing. What a match always is:
- closed: its nodes, save those that the pattern returns and reads of attributes, have no users outside;
- convex: no value leaves it, passes through another node and comes back in;
- one-to-one: two operations of the pattern never stand for one node, and no placeholder for an operation of the match.
How a call is spelled does not matter, nor the order of operands that may change places (``spellings``). Candidates are
looked up by what they call, so a search walks the graph once; a miss knows how far it got, for ``explain_match``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew.errors import DeadPattern, EmptyPattern
from clew.ir.arguments import references
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.spellings import Form, any_of, forms_of
from clew.passes.pattern_equality import pairings, same_operation, same_value, shared_operation, unfold


@dataclass
class InternalMatch:
    """One place that looks like the pattern."""

    anchors: list[Node]
    """The nodes of the pattern that the search started from: its last operations."""
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    """For each node of the pattern the node of the graph; for a placeholder it may be a literal or a nest."""
    placeholder_nodes: list[Any] = field(default_factory=list)
    """What the placeholders of the pattern are bound to, in their order; None for one that the pattern never uses."""
    returning_nodes: list[Any] = field(default_factory=list)
    """The nodes of the graph that stand for what the pattern returns, each once."""
    name_node_map: dict[str, Node] = field(default_factory=dict)
    """Nodes of the graph by names that a pattern gave them; free for whoever builds matches of their own."""

    def __copy__(self) -> InternalMatch:
        lists = (list(self.placeholder_nodes), list(self.returning_nodes))
        return InternalMatch(self.anchors, dict(self.nodes_map), *lists, dict(self.name_node_map))

    def operations(self) -> list[Node]:
        """The nodes of the graph that the match takes out, in the order of the pattern.

        A read of an attribute is one only if the pattern returns it; otherwise others may go on reading it there.
        """
        pattern = self.anchors[0].graph
        returned = pattern.output_node().all_input_nodes
        return [
            self.nodes_map[node]
            for node in pattern.nodes
            if node in self.nodes_map
            and node.op not in ("placeholder", "output")
            and node.target is not any_of
            and (node.op != "get_attr" or node in returned)
        ]


@dataclass
class Miss:
    """How far an attempt got, and the first thing that did not fit."""

    bound: dict[Node, Any]
    """What the nodes of the pattern stand for, as far as the attempt got."""
    pattern_node: Node
    node: Any
    """What stands in the graph where the pattern has ``pattern_node``."""
    argument: Any = None
    """The name or position of the argument of both that differs; None where the operation does."""
    wanted: Any = None
    found: Any = None
    reason: str = ""


Accept = Callable[[InternalMatch], bool]


class SubgraphMatcher:
    """A pattern made ready for searching; the options are those of torch.fx.

    ``match_output``: the pattern ends where the graph ends. ``match_placeholder``: the pattern's placeholders stand for
    placeholders only. ``remove_overlapping_matches``: of matches that share nodes, only the first is found.
    ``ignore_literals``: a literal in the pattern stands for any literal.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if not len(pattern.nodes):
            raise EmptyPattern("the pattern is an empty graph", fixes=["give it at least one operation and an output"])
        _refuse_dead_code(pattern)
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = [output] if match_output else []
        self.pattern_anchors += _sinks(pattern, output, match_output)
        if not self.pattern_anchors:
            raise EmptyPattern(
                "the pattern has no operation: it returns only its own inputs",
                why="it would match every value of the graph",
                fixes=["let the pattern call at least one function, method or module"],
            )
        self._bridges = [_bridges(self.pattern_anchors, index) for index in range(len(self.pattern_anchors))]

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """All matches in ``graph``, the earliest first. The graph is left as it is.

        With ``node_name_match`` an anchor of the pattern also accepts any node whose name contains that text.
        """
        position = {node: index for index, node in enumerate(graph.nodes)}
        return self.find(graph, lambda match: is_convex(match, position), node_name_match)

    def nearest_miss(self, graph: Graph) -> Miss | None:
        """The attempt that got furthest in a graph without a match; None if nothing of the pattern is there."""
        return _Search(self, graph).nearest_miss()

    def find(
        self, graph: Graph, accept: Accept, node_name_match: str = "", where: Accept | None = None
    ) -> list[InternalMatch]:
        """The matches that ``accept`` agrees to; a refused one keeps no other from being found.

        Operands that may change places give several matches of the same nodes, of which ``accept`` is asked about the
        first that ``where`` agrees to.
        """
        search = _Search(self, graph, node_name_match)
        matches: list[InternalMatch] = []
        for candidate in search.first_candidates():
            asked: list[set[Node]] = []
            for match in search.matches_at(candidate):
                nodes = set(match.operations())
                if nodes in asked or (where is not None and not where(match)):
                    continue
                asked.append(nodes)
                if not accept(match):
                    continue
                matches.append(match)
                if self.remove_overlapping_matches:
                    search.consumed.update(match.operations())
                    break
        return matches


def _refuse_dead_code(pattern: Graph) -> None:
    for node in pattern.nodes:
        if node.op != "output" and not node.users and not node.is_impure():
            raise DeadPattern(
                f"node {node.name} of the pattern is dead code: nobody uses it and it has no effect",
                where="" if node.source is None else node.source.describe(),
                fixes=["return it from the pattern", "leave it out, for instance with graph.eliminate_dead_code()"],
            )


def _sinks(pattern: Graph, output: Node, match_output: bool) -> list[Node]:
    """The last operations: those that nothing but the output uses, in its order, then unused ones with effects."""
    used = [node for node in output.all_input_nodes if len(node.users) == 1 and not match_output]
    unused = [node for node in pattern.nodes if not node.users and node is not output]
    return [node for node in [*used, *unused] if node.op != "placeholder"]


def _bridges(anchors: list[Node], index: int) -> list[list[Node]]:
    """Paths in the pattern from nodes that earlier anchors have bound down to the anchor ``index``, the best first."""
    bound = _cone(anchors[:index])
    paths = []
    seen = {anchors[index]}
    pending = [[anchors[index]]]
    while pending:
        path = pending.pop()
        for used in path[0].all_input_nodes:
            if used in bound:
                paths.append([used, *path])
            elif used not in seen:
                seen.add(used)
                pending.append([used, *path])
    return sorted(paths, key=lambda path: (path[0].op in ("placeholder", "get_attr"), len(path)))


def _cone(nodes: list[Node]) -> set[Node]:
    """The nodes and all that they are computed from."""
    cone: set[Node] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node not in cone:
            cone.add(node)
            pending += node.all_input_nodes
    return cone


def is_convex(match: InternalMatch, position: dict[Node, int]) -> bool:
    """True unless a value leaves the match, passes through another node and comes back in."""
    inside = set(match.operations())
    end = max((position[node] for node in inside), default=0)
    pending = [user for node in inside for user in node.users if user not in inside and position[user] < end]
    seen = set(pending)
    while pending:
        for user in pending.pop().users:
            if user in inside:
                return False
            if user not in seen and position[user] < end:
                seen.add(user)
                pending.append(user)
    return True


class _Search:
    """One walk over one graph; ``values`` are the bindings of the attempt under way, undone along ``trail``."""

    def __init__(self, matcher: SubgraphMatcher, graph: Graph, node_name_match: str = "") -> None:
        self.matcher = matcher
        self.name = node_name_match
        self.anchors = matcher.pattern_anchors
        self.consumed: set[Node] = set()
        self.values: dict[Node, Any] = {}
        self.taken: set[Node] = set()
        self.trail: list[Node] = []
        self.forms: dict[Node, tuple[Form, ...]] = {}
        self.miss: Miss | None = None
        self.differences: list[tuple[int, _Step]] | None = None
        """While the nearest miss is looked for: literals that differ, and how much was bound before."""
        self.position = {node: place for place, node in enumerate(graph.nodes)}
        self.returned = _with_alternatives(matcher.pattern_returning_nodes)
        self.index = self._index(self.anchors)

    def _forms(self, node: Node) -> tuple[Form, ...]:
        found = self.forms.get(node)
        if found is None:
            found = self.forms[node] = forms_of(node)
        return found

    def _keys(self, node: Node) -> list[Any]:
        """What the node calls: two nodes that do the same have at least one of these in common."""
        return [_key(node), *{form.operation: None for form in self._forms(node)}]

    def _index(self, anchors: list[Node]) -> dict[Any, list[Node]]:
        """The nodes of the graph that an anchor may stand for, by what they call."""
        wanted = [one for anchor in anchors for one in _alternatives(anchor)]
        index: dict[Any, list[Node]] = {key: [] for one in wanted for key in self._keys(one)}
        for node in self.position:
            keys = self._keys(node)
            for key in keys:
                if key in index:
                    index[key].append(node)
            if self.name and self.name in node.name and node.op not in ("placeholder", "output"):
                for others in [found for other, found in index.items() if other not in keys]:
                    others.append(node)
        return index

    def _indexed(self, anchor: Node) -> list[Node]:
        found = [self.index[key] for one in _alternatives(anchor) for key in self._keys(one)]
        return found[0] if len(found) == 1 else sorted({node for nodes in found for node in nodes}, key=self._place)

    def _place(self, node: Node) -> int:
        return self.position[node]

    def first_candidates(self) -> Iterator[Node]:
        for node in self._indexed(self.anchors[0]):
            if node not in self.consumed:
                yield node

    def matches_at(self, candidate: Node) -> Iterator[InternalMatch]:
        """The matches whose first anchor is ``candidate``."""
        self._undo(0)
        for _ in self._unify(self.anchors[0], candidate):
            yield from self._continue(1)

    def _continue(self, index: int) -> Iterator[InternalMatch]:
        """Bind the anchors from ``index`` on in all possible ways."""
        if index == len(self.anchors):
            if self._is_sound():
                yield self._finished()
            return
        anchor = self.anchors[index]
        for node in self._candidates(anchor, self.matcher._bridges[index]):
            mark = len(self.trail)
            for _ in self._unify(anchor, node):
                yield from self._continue(index + 1)
            self._undo(mark)

    def _candidates(self, anchor: Node, bridges: list[list[Node]]) -> list[Node]:
        """Nodes that ``anchor`` may stand for: reached from something bound, or else all that call the same."""
        for start, *steps in bridges:
            if not isinstance(self.values.get(start), Node) or any(step.target is any_of for step in steps):
                continue
            reached = {self.values[start]: None}
            for step in steps:
                users = [user for node in reached for user in node.users if self._may_be(step, user)]
                reached = dict.fromkeys(users)
            return sorted(reached, key=self._place)
        return self._indexed(anchor)

    def _may_be(self, pattern_node: Node, node: Node) -> bool:
        if node in self.taken or node in self.consumed or node not in self.position:
            return False
        return self._as_written(pattern_node, node) or shared_operation(self._forms(pattern_node), self._forms(node))

    def _as_written(self, pattern_node: Node, node: Node) -> bool:
        return self._by_name(pattern_node, node) or same_operation(pattern_node, node, self.matcher.ignore_literals)

    def _by_name(self, pattern_node: Node, node: Node) -> bool:
        return bool(self.name) and self.name in node.name and pattern_node in self.anchors

    def _undo(self, mark: int) -> None:
        while len(self.trail) > mark:
            value = self.values.pop(pattern_node := self.trail.pop())
            if self._is_taken_by(pattern_node):
                self.taken.discard(value)
        while self.differences and self.differences[-1][0] > mark:
            self.differences.pop()

    def _is_taken_by(self, pattern_node: Node) -> bool:
        if pattern_node.op == "placeholder":
            return self.matcher.match_placeholder
        return pattern_node.target is not any_of

    def _unify(self, pattern_value: Any, value: Any) -> Iterator[None]:
        """Bind what is in ``pattern_value`` so that it becomes ``value``, in all ways there are, one at a time."""
        choices: list[tuple[int, _Pending]] = [(len(self.trail), (_Step(pattern_value, value), None))]
        while choices:
            mark, pending = choices.pop()
            self._undo(mark)
            while pending is not None:
                step, pending = pending
                ways = self._ways(step)
                if not ways:
                    self._note_miss(step)
                    break
                ahead = [_linked(way, pending) for way in ways]
                choices += [(len(self.trail), other) for other in reversed(ahead[1:])]
                pending = ahead[0]
            else:
                yield

    def _ways(self, step: _Step) -> list[list[_Step]]:
        """What is left to be done for a step, in each of the ways that it can be taken; none if it cannot."""
        if isinstance(step.left, Node):
            return self._bind(step.left, step.right)
        if isinstance(step.right, Node):
            return []
        more = unfold(step.left, step.right, step.loose, self.matcher.ignore_literals)
        if more is None and self.differences is not None and not references((step.left, step.right)):
            self.differences.append((len(self.trail), step))
            return [[]]
        return [] if more is None else [[_Step(*pair, step.owner, step.name) for pair in more]]

    def _bind(self, pattern_node: Node, value: Any) -> list[list[_Step]]:
        if pattern_node in self.values:
            return [[]] if same_value(self.values[pattern_node], value) else []
        if pattern_node.target is any_of:
            self._set(pattern_node, value)
            return [[_Step(one, value)] for one in pattern_node.args]
        if pattern_node.op == "placeholder" and not self.matcher.match_placeholder:
            self._set(pattern_node, value)
            return [[]]
        if not isinstance(value, Node) or not self._may_be(pattern_node, value):
            return []
        self.taken.add(value)
        self._set(pattern_node, value)
        if pattern_node.op == "placeholder":
            return [[]]
        owner = (pattern_node, value)
        forms = self._forms(pattern_node), self._forms(value)
        found = pairings(pattern_node, value, *forms, self._as_written(pattern_node, value))
        if not found:
            self._note_miss(_Step(pattern_node, value), reason="their arguments are given in ways that do not compare")
        return [[_Step(*pair, owner, name) for name, pair in way] for way in found]

    def _set(self, pattern_node: Node, value: Any) -> None:
        self.values[pattern_node] = value
        self.trail.append(pattern_node)

    def _note_miss(self, step: _Step, reason: str = "") -> None:
        """Remember how far this attempt got, if none got further."""
        steps = [step, *(other for _, other in self.differences or ())]
        differing = {one.owner[0] for one in steps if one.owner and not isinstance(one.left, Node)}
        bound = {node: value for node, value in self.values.items() if node not in differing}
        if self.miss is not None and len(_operations(bound)) <= len(_operations(self.miss.bound)):
            return
        pattern_node, node = step.owner or (step.left, step.right)
        name = None if step.owner is None else step.name
        self.miss = Miss(bound, pattern_node, node, name, step.left, step.right, reason)

    def _is_sound(self) -> bool:
        """Closed, and no placeholder bound to what the match takes out."""
        for pattern_node, value in self.values.items():
            if pattern_node.op == "placeholder":
                if any(node in self.taken and node.op not in ("get_attr", "placeholder") for node in references(value)):
                    return False
            elif pattern_node.op in ("get_attr", "output") or pattern_node in self.returned:
                continue
            elif isinstance(value, Node) and pattern_node.target is not any_of:
                outside = [user for user in value.users if user not in self.taken]
                if outside:
                    reason = f"its value is used outside of the match too, by %{outside[0].name}"
                    self._note_miss(_Step(pattern_node, value), reason)
                    return False
        return True

    def _finished(self) -> InternalMatch:
        matcher = self.matcher
        return InternalMatch(
            anchors=copy.copy(self.anchors),
            nodes_map=dict(self.values),
            placeholder_nodes=[self.values.get(node) for node in matcher.pattern_placeholder_nodes],
            returning_nodes=[self.values.get(node) for node in matcher.pattern_returning_nodes],
        )

    def nearest_miss(self) -> Miss | None:
        """Of all attempts, started at any operation of the pattern, that which got furthest."""
        for candidate in self.first_candidates():
            for _ in self.matches_at(candidate):
                pass
        self.differences = []
        operations = [node for node in self.matcher.pattern.nodes if node.op.startswith("call")]
        self.index = self._index(operations)
        for node in reversed(operations):
            for candidate in self._indexed(node):
                self._undo(0)
                for _ in self._unify(node, candidate):
                    users = [user for user in node.users if user.op != "output"]
                    if self.differences:
                        self._note_miss(self.differences[0][1])
                    elif users:
                        self._note_miss(_Step(users[0], candidate, False, (users[0], None), ""))
                    break
        return self.miss


class _Step(NamedTuple):
    """A value of the pattern that is to become one of the graph, and the calls whose argument they are."""

    left: Any
    right: Any
    loose: bool = False
    owner: tuple[Node, Any] | None = None
    name: Any = None


_Pending = tuple[_Step, Any] | None
"""What is left to be done: a chain, so that two ways share what both have ahead."""


def _linked(steps: list[_Step], rest: _Pending) -> _Pending:
    for step in steps:
        rest = (step, rest)
    return rest


def _operations(bound: dict[Node, Any]) -> list[Node]:
    return [node for node in bound if node.op.startswith("call") and node.target is not any_of]


def _alternatives(node: Any) -> list[Node]:
    """The operations that a node of a pattern may stand for: itself, or those of its alternatives."""
    if not isinstance(node, Node) or node.op == "placeholder":
        return []
    return [one for value in node.args for one in _alternatives(value)] if node.target is any_of else [node]


def _with_alternatives(nodes: list[Node]) -> set[Node]:
    return {*nodes, *(one for node in nodes for one in _alternatives(node))}


def _key(node: Node) -> Any:
    """What the node calls, as far as two nodes that do the same are sure to agree on it."""
    if node.op not in ("call_function", "call_method"):
        return node.op
    try:
        hash(node.target)
    except TypeError:  # a callable without a hash is like itself only
        return node.op, id(node.target)
    return node.op, node.target
