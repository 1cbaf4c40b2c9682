"""``diff``: what has changed between two graphs.

Two captured programs or graphs come in, and are not run; a ``Diff`` comes out: nodes that were added, removed, moved,
or that call something else, with other arguments, other sizes, or a module with other settings; guards; and weights
where asked for. Nodes are matched by structure first, then by the module that they call, then by name. It prints as a
table, and as a unified diff of the two texts.
"""

from __future__ import annotations

import bisect
import difflib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy

from clew.errors import ClewError
from clew.ir.arguments import all_nodes, map_arg
from clew.ir.effects import resolve
from clew.ir.format import format_argument, format_target
from clew.ir.graph import Graph
from clew.ir.guests import guest_of
from clew.ir.node import Node
from clew.ir.text import to_text
from clew.ir.types import type_of
from clew.tools.cost_formulas import is_array
from clew.tools.matched_nodes import matched
from clew.tools.tables import table
from clew.tools.verify import program_of
from clew.tools.watching import line_of

ADDED, REMOVED, MOVED = "added", "removed", "moved"
TARGET, ARGUMENTS, TYPE, SETTINGS = "target", "arguments", "type", "settings"
GUARD_ADDED, GUARD_REMOVED, WEIGHT = "guard added", "guard removed", "weight"


@dataclass(frozen=True)
class Change:
    """One thing that has changed: what kind of thing, of which node, weight or guard, and what it was and is."""

    kind: str
    name: str
    before: str
    after: str
    line: str = ""


@dataclass(frozen=True)
class Diff:
    """The changes between two graphs. True if there are any."""

    changes: list[Change]
    texts: tuple[str, str]
    pairs: list[tuple[Node, Node]] = field(default_factory=list, repr=False, compare=False)
    """Nodes of the two graphs that are the same step."""
    marks: dict[Node, list[str]] = field(default_factory=dict, repr=False, compare=False)
    """The kinds of changes of each node that has any."""
    programs: tuple[Any, Any] | None = field(default=None, repr=False, compare=False)
    """What was compared."""

    def __bool__(self) -> bool:
        return bool(self.changes)

    def of(self, kind: str) -> list[Change]:
        """The changes of one kind."""
        return [change for change in self.changes if change.kind == kind]

    def unified(self, context: int = 3) -> str:
        """The two texts as a unified diff."""
        before, after = (text.splitlines() for text in self.texts)
        return "\n".join(difflib.unified_diff(before, after, "before", "after", n=context, lineterm=""))

    def table(self) -> str:
        """One line for each change."""
        return table([asdict(change) for change in self.changes])

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"changes": [asdict(change) for change in self.changes]}

    def view(self, path: Any = None) -> Any:
        """The two side by side, as a picture in which the changes are marked: ``clew.view(after, before=before)``."""
        if self.programs is None:
            raise ClewError("this difference does not know what was compared", fixes=["make it with clew.diff"])
        before, after = self.programs
        return after.graph.view(path, before=before)

    def _repr_html_(self) -> str:
        return str(self.view()._repr_html_())

    def __str__(self) -> str:
        return self.table() if self.changes else "no difference"


def diff(before: Any, after: Any, *, weights: bool = False) -> Diff:
    """What has changed from one captured program or graph to another; ``weights=True`` compares weights, too."""
    programs = program_of(before), program_of(after)
    left, right = (program.graph for program in programs)
    roots = [getattr(program, "root", program) for program in programs]
    pairs = matched(left, right)
    twins = dict(pairs)
    found = [*_nodes(left, right, pairs), *_moved(pairs, right)]
    found += [row for pair in pairs for row in _pair(*pair, twins, roots)]
    marks: dict[Node, list[str]] = {}
    firsts = {second: first for first, second in pairs}
    for node, change in found:
        for one in {node, firsts.get(node, node)}:
            marks.setdefault(one, []).append(change.kind)
    changes = [change for _, change in found]
    place = {node.name: number for number, node in enumerate((*all_nodes(left), *all_nodes(right)))}
    changes.sort(key=lambda change: place.get(change.name, -1))
    changes += _guards(left, right)
    changes += _weights(*roots) if weights else []
    return Diff(changes, (to_text(left), to_text(right)), pairs, marks, programs)


Row = tuple[Node, Change]
"""A change, and the node of the second graph that it is of, or of the first if it is in that alone."""


def _nodes(left: Graph, right: Graph, pairs: list[tuple[Node, Node]]) -> Iterator[Row]:
    """Nodes that only one of the graphs has."""
    known = {node for pair in pairs for node in pair}
    for node in all_nodes(left):
        if node not in known:
            yield node, Change(REMOVED, node.name, _call(node), "", line_of(node))
    for node in all_nodes(right):
        if node not in known:
            yield node, Change(ADDED, node.name, "", _call(node), line_of(node))


def _call(node: Node) -> str:
    given = format_argument(node.args).replace("%", "")
    named = "".join(f", {key}={format_argument(value).replace('%', '')}" for key, value in node.kwargs.items())
    return f"{format_target(node.target)}{given[:-1].rstrip(',')}{named})"


def _moved(pairs: list[tuple[Node, Node]], right: Graph) -> Iterator[Row]:
    """The nodes that stand elsewhere: the fewest that must be moved to get from one order to the other."""
    rows = [(one, other) for one, other in pairs if other.graph is right]
    staying = _longest_rising([one._sort_key for one, _ in rows])
    for place, (one, other) in enumerate(rows):
        if place not in staying and other.op != "output":
            places = f"behind {one.prev.name}", f"behind {other.prev.name}"
            yield other, Change(MOVED, other.name, *places, line_of(other))


def _longest_rising(numbers: list[int]) -> set[int]:
    """The places of a longest rising subsequence."""
    ends: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for place, number in enumerate(numbers):
        length = bisect.bisect_left(ends, number)
        before.append(places[length - 1] if length else -1)
        ends[length:], places[length:] = [number, *ends[length + 1 :]], [place, *places[length + 1 :]]
    found, place = set(), places[-1] if places else -1
    while place >= 0:
        found.add(place)
        place = before[place]
    return found


def _pair(one: Node, other: Node, twins: dict[Node, Node], roots: list[Any]) -> Iterator[Row]:
    """What has changed of a node."""
    found = {
        TARGET: (format_target(one.target), format_target(other.target)),
        ARGUMENTS: (_arguments(one, twins), _arguments(other, {})),
        TYPE: (str(one.value_type or ""), str(other.value_type or "")),
        SETTINGS: (_settings(one, roots[0]), _settings(other, roots[1])),
    }
    for kind, (before, after) in found.items():
        if before != after:
            yield other, Change(kind, other.name, before, after, line_of(other))


def _arguments(node: Node, twins: dict[Node, Node]) -> str:
    args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda used: twins.get(used, used))
    return f"{format_argument(args)} {format_argument(kwargs)}".replace("%", "").removesuffix(" {}")


def _settings(node: Node, root: Any) -> str:
    """The class of the module that a node calls, and its plain attributes."""
    module = resolve(root, str(node.target)) if node.op == "call_module" else None
    if module is None:
        return ""
    plain = {key: value for key, value in vars(module).items() if not key.startswith("_") and _is_plain(value)}
    return f"{type(module).__name__}({', '.join(f'{key}={value}' for key, value in plain.items())})"


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return isinstance(value, (int, float, str, bool, type(None)))


def _guards(left: Graph, right: Graph) -> Iterator[Change]:
    before, after = ([str(one) for one in graph.guards] for graph in (left, right))
    for text in dict.fromkeys(before):
        if text not in after:
            yield Change(GUARD_REMOVED, "", text, "")
    for text in dict.fromkeys(after):
        if text not in before:
            yield Change(GUARD_ADDED, "", "", text)


def _weights(left: Any, right: Any) -> Iterator[Change]:
    before, after = _state(left), _state(right)
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name), after.get(name)
        shown = ["" if value is None else str(type_of(value)) for value in (one, other)]
        if one is None or other is None or shown[0] != shown[1]:
            yield Change(WEIGHT, name, *shown)
        else:
            ours, theirs = (guest_of(value).as_numpy(value) for value in (one, other))  # type: ignore[union-attr]
            if not numpy.array_equal(ours, theirs, equal_nan=ours.dtype.kind in "fc"):
                apart = numpy.abs(ours.astype(numpy.float64) - theirs.astype(numpy.float64)).max()
                yield Change(WEIGHT, name, shown[0], f"differs by at most {apart:.3g}")


def _state(root: Any) -> dict[str, Any]:
    """The arrays that a module holds, by path."""
    named: list[Any] = [getattr(root, method, dict)() for method in ("named_parameters", "named_buffers")]
    return {name: value for found in named for name, value in dict(found).items() if is_array(value)}
