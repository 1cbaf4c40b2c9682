"""Interpreters for looking into a run: a log, a recorder, observers for quantization, the first NaN, a comparison.

A captured program comes in; each of these runs it as a call would and keeps what it was made to see, also inside of
branches and loops. Values are seen as they were when they were made: what is kept is copied, so that later writes do
not change it. ``find_nan`` and ``compare`` name the node and the user's line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy

from clew import tree
from clew.errors import ClewError
from clew.ir.format import format_argument, format_target
from clew.ir.graph import Graph
from clew.ir.guests import guest_of, present
from clew.ir.node import Node
from clew.ir.types import type_of
from clew.tools.cost_formulas import arrays_in, is_array
from clew.tools.matched_nodes import is_unfilled, matched
from clew.tools.tables import Row, table
from clew.tools.watching import Watching, line_of, module_of


class Logger(Watching):
    """Writes a line for each node that runs: its name, what it does, the type of its value, the user's line."""

    def __init__(self, captured: Any, write: Callable[[str], Any] = print) -> None:
        super().__init__(captured)
        self.write = write

    def seen(self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Write the line of a node."""
        call = format_target(node.target) if node.op != "placeholder" else "input"
        given = "" if node.op == "placeholder" else format_argument(node.args).replace("%", "")
        line = f"  # {line_of(node)}" if line_of(node) else ""
        self.write(f"{'  ' * self.depth}{node.name}: {type_of(value)} = {call}{given}{line}")


class Selective(Watching):
    """Watches the nodes that meet conditions, those of ``graph.find``; all of them if there are none."""

    def __init__(self, captured: Any, **conditions: Any) -> None:
        super().__init__(captured)
        self.chosen = set(self.graph.find(**conditions)) if conditions else None

    def watches(self, node: Node) -> bool:
        """Whether a node is one of those that are watched."""
        return node.op != "output" and (self.chosen is None or node in self.chosen)


class Recorder(Selective):
    """Keeps the values of nodes: ``recorder.values[name]`` lists one for each time that the node ran.

    Conditions are those of ``graph.find``: ``Recorder(captured, module="layers.*")``.
    """

    def __init__(self, captured: Any, **conditions: Any) -> None:
        super().__init__(captured, **conditions)
        self.recorded: dict[Node, list[Any]] = {}

    @property
    def values(self) -> dict[str, list[Any]]:
        """The values by the names of nodes; inside of branches and loops a name may be that of another node too."""
        return {node.name: values for node, values in self.recorded.items()}

    def seen(self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Keep a copy of a value."""
        if self.watches(node):
            self.recorded.setdefault(node, []).append(copied(value))


def copied(value: Any) -> Any:
    """A nest with copies of its arrays."""
    return tree.tree_map(lambda leaf: guest_of(leaf).copy_of(leaf) if is_array(leaf) else leaf, value)  # type: ignore


def _numbers(array: Any) -> Any:
    """The numbers of an array, of NumPy's; None for one that holds no data."""
    guest = guest_of(array)
    return guest.as_numpy(array) if guest is not None and guest.has_data(array) else None


# ---- observers -------------------------------------------------------------------------------------------------------

BINS = 2048


@dataclass
class Range:
    """What was seen of the numbers of a value."""

    minimum: float = math.inf
    maximum: float = -math.inf
    count: int = 0
    total: float = 0.0
    limit: float = 1.0
    """The histogram reaches from minus to plus this number; it doubles when larger numbers come."""
    histogram: Any = field(default_factory=lambda: numpy.zeros(BINS, dtype=numpy.int64), repr=False)

    @property
    def mean(self) -> float:
        """The mean of all numbers."""
        return self.total / self.count if self.count else math.nan

    @property
    def largest(self) -> float:
        """The largest magnitude."""
        return max(abs(self.minimum), abs(self.maximum)) if self.count else 0.0

    def add(self, numbers: Any) -> None:
        """Count an array in; numbers that are not finite are left out."""
        numbers = numpy.asarray(numbers, dtype=numpy.float64).ravel()
        numbers = numbers[numpy.isfinite(numbers)]
        if not numbers.size:
            return
        self.minimum, self.maximum = min(self.minimum, float(numbers.min())), max(self.maximum, float(numbers.max()))
        self.count += numbers.size
        self.total += float(numbers.sum())
        while self.largest > self.limit:
            halves = self.histogram.reshape(-1, 2).sum(1)
            self.histogram = numpy.pad(halves, BINS // 4)
            self.limit *= 2
        self.histogram += numpy.histogram(numbers, BINS, (-self.limit, self.limit))[0]

    def quantile(self, share: float) -> float:
        """The magnitude below which a share of the numbers is, as exactly as the histogram tells."""
        folded = self.histogram[BINS // 2 :] + self.histogram[: BINS // 2][::-1]
        place = int(numpy.searchsorted(numpy.cumsum(folded), share * self.count))
        return min(self.largest, (place + 1) * self.limit / (BINS // 2))


class Observer(Selective):
    """Keeps the ranges and histograms of what passes through a program, over all its runs.

    ``observer.values[name]`` is that of the value of a node, ``observer.inputs[path]`` that of what a module is called
    with: what a quantizer needs of a layer. Conditions are those of ``graph.find``.
    """

    def __init__(self, captured: Any, **conditions: Any) -> None:
        super().__init__(captured, **conditions)
        self.values: dict[str, Range] = {}
        self.inputs: dict[str, Range] = {}

    def seen(self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Count the numbers of a node in."""
        if not self.watches(node):
            return
        for array in arrays_in(value):
            self._add(self.values, node.name, array)
        if node.op == "call_module":
            for array in arrays_in((args, kwargs)):
                self._add(self.inputs, str(node.target), array)

    def _add(self, ranges: dict[str, Range], name: str, array: Any) -> None:
        numbers = _numbers(array)
        if numbers is not None and numbers.dtype.kind in "iuf":
            ranges.setdefault(name, Range()).add(numbers)

    def table(self) -> str:
        """One line for each value."""
        shown = [(f"input of {path}", one) for path, one in self.inputs.items()]
        return table([_range_row(name, one) for name, one in (*self.values.items(), *shown)], _COLUMNS)


_COLUMNS = ("minimum", "mean", "maximum", "99.9%", "count")


def _range_row(name: str, one: Range) -> Row:
    return {
        "value": name,
        "minimum": f"{one.minimum:.4g}",
        "mean": f"{one.mean:.4g}",
        "maximum": f"{one.maximum:.4g}",
        "99.9%": f"{one.quantile(0.999):.4g}",
        "count": one.count,
    }


# ---- the first NaN ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NotFinite:
    """The first value that is not finite: which node made it, of what, and on which line."""

    node: Node
    what: str
    count: int
    round: int
    """How often the node had run before, for one inside of a loop."""
    inputs: dict[str, str]
    """The types and ranges of what the node was given."""

    @property
    def line(self) -> str:
        """The user's line."""
        return "" if self.node.source is None else self.node.source.describe()

    def __str__(self) -> str:
        lines = [f"{self.node.name} has {self.count} {self.what}: {self.node.format_node()}"]
        lines += [f"  in module {module_of(self.node)[0]}"] if module_of(self.node)[0] else []
        lines += [f"  in round {self.round + 1}"] if self.round else []
        lines += [f"  at {self.line}"] if self.line else []
        return "\n".join([*lines, *(f"  given {name}: {told}" for name, told in self.inputs.items())])


class _NanFinder(Watching):
    def __init__(self, captured: Any, inf: bool) -> None:
        super().__init__(captured)
        self.inf = inf
        self.findings: list[NotFinite] = []
        self.rounds: dict[Node, int] = {}

    def seen(self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        if self.findings or node.op == "output":
            return
        for array in arrays_in(value):
            numbers = _numbers(array)
            what, count = _not_finite(numbers, self.inf)
            if count:
                given = zip(node.all_input_nodes, (self.env.get(used) for used in node.all_input_nodes), strict=True)
                told = {used.name: _told(held) for used, held in given if is_array(held)}
                self.findings.append(NotFinite(node, what, count, self.rounds.get(node, 0), told))
                return
        self.rounds[node] = self.rounds.get(node, 0) + 1


def _not_finite(numbers: Any, inf: bool) -> tuple[str, int]:
    if numbers is None or numbers.dtype.kind not in "fc":
        return "", 0
    count = int(numpy.isnan(numbers).sum())
    if count or not inf:
        return "NaN", count
    return "inf", int(numpy.isinf(numbers).sum())


def _told(array: Any) -> str:
    numbers = _numbers(array)
    if numbers is None or not numbers.size or numbers.dtype.kind == "c":
        return str(type_of(array))
    return f"{type_of(array)} from {numbers.min():.4g} to {numbers.max():.4g}"


def find_nan(captured: Any, /, *args: Any, inf: bool = False, **kwargs: Any) -> NotFinite | None:
    """Call a captured program and tell which node first gave a NaN, or with ``inf=True`` an infinite number too.

    None if there is none. An error that the program raises behind the first NaN is left aside.
    """
    finder = _NanFinder(captured, inf)
    try:
        finder.run(*args, **kwargs)
    except Exception:
        if not finder.findings:
            raise
    return finder.findings[0] if finder.findings else None


# ---- two programs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two nodes that are the same step, and how far apart their values are."""

    left: Node
    right: Node
    absolute: float
    relative: float
    """The norm of the difference over the norm of the first value."""
    differs: bool
    why: str = ""


@dataclass(frozen=True)
class Comparison:
    """The values of two programs, node by node, in the order of the second. True if none differs."""

    pairs: list[Pair]
    only_left: list[str]
    only_right: list[str]

    @property
    def first(self) -> Pair | None:
        """The first pair that differs by more than was allowed."""
        return next((pair for pair in self.pairs if pair.differs), None)

    def __bool__(self) -> bool:
        return self.first is None

    def table(self, only_different: bool = False) -> str:
        """One line for each pair."""
        rows = [pair for pair in self.pairs if pair.differs or not only_different]
        return table([_pair_row(pair) for pair in rows], ("largest", "relative"))

    def __str__(self) -> str:
        first = self.first
        lines = [f"{len(self.pairs)} nodes compared, {sum(pair.differs for pair in self.pairs)} differ"]
        if first is not None:
            names = first.left.name if first.left.name == first.right.name else f"{first.left.name}, {first.right.name}"
            lines.append(f"first at {names}: {first.why}")
            lines += [f"  at {first.right.source.describe()}"] if first.right.source is not None else []
        lines += [f"only in the first: {', '.join(self.only_left)}"] if self.only_left else []
        lines += [f"only in the second: {', '.join(self.only_right)}"] if self.only_right else []
        return "\n".join(lines)


def _pair_row(pair: Pair) -> Row:
    return {
        "first": pair.left.name,
        "second": pair.right.name,
        "largest": f"{pair.absolute:.3g}",
        "relative": f"{pair.relative:.3g}",
        "differs": "differs" if pair.differs else "",
        "line": line_of(pair.right),
    }


def compare(left: Any, right: Any, /, *args: Any, atol: float = 0.0, rtol: float = 0.0, **kwargs: Any) -> Comparison:
    """Call two captured programs with copies of the same arguments, and compare the values of nodes that are the same
    step: of the same structure, else of the same name. Numbers may differ by ``atol + rtol * abs(first)``. Both draw
    the same random numbers; what ``empty`` gives is not compared."""
    runs = [Recorder(left), Recorder(right)]
    for run in runs:
        given, named = copied((args, kwargs))
        put_back = [one.random_state() for one in present()]
        try:
            run.run(*given, **named)
        finally:
            for each in put_back if run is runs[0] else ():
                each()
    nodes: list[tuple[Node, Node]] = matched(runs[0].graph, runs[1].graph)
    kept = [run.recorded for run in runs]
    pairs = [pair for pair in nodes if pair[0] in kept[0] and pair[1] in kept[1] and not is_unfilled(pair[1])]
    found = [_compared(one, other, kept[0][one], kept[1][other], atol, rtol) for one, other in pairs]
    alone = [
        [node.name for node in _computed(run.graph) if node not in {pair[side] for pair in nodes}]
        for side, run in enumerate(runs)
    ]
    return Comparison(found, *alone)


def _computed(graph: Graph) -> Iterator[Node]:
    return (node for node in graph.nodes if node.op not in ("placeholder", "output", "get_attr"))


def _compared(left: Node, right: Node, ours: list[Any], theirs: list[Any], atol: float, rtol: float) -> Pair:
    if len(ours) != len(theirs):
        return Pair(left, right, math.inf, math.inf, True, f"one ran {len(ours)} times, the other {len(theirs)}")
    absolute = relative = 0.0
    why = ""
    for one, other in zip(ours, theirs, strict=True):
        found = _distance(one, other, atol, rtol)
        absolute, relative, why = max(absolute, found[0]), max(relative, found[1]), why or found[2]
    return Pair(left, right, absolute, relative, bool(why), why)


def _distance(one: Any, other: Any, atol: float, rtol: float) -> tuple[float, float, str]:
    """The largest difference of two values, the relative one, and in what they differ by more than is allowed."""
    arrays, others = list(arrays_in(one)), list(arrays_in(other))
    if len(arrays) != len(others):
        return math.inf, math.inf, f"one has {len(arrays)} arrays, the other {len(others)}"
    absolute = relative = 0.0
    for first, second in zip(arrays, others, strict=True):
        if type_of(first) != type_of(second):
            return math.inf, math.inf, f"{type_of(first)} and {type_of(second)}"
        ours, theirs = _wide(first), _wide(second)
        if ours is None or theirs is None:
            raise ClewError("values without data cannot be compared", fixes=["give arguments that hold numbers"])
        with numpy.errstate(invalid="ignore"):
            same = (ours == theirs) | (numpy.isnan(ours) & numpy.isnan(theirs))
            apart = numpy.where(same, 0.0, numpy.abs(ours - theirs))
            wrong = ~(same | (apart <= atol + rtol * numpy.abs(ours)))
        absolute = max(absolute, float(numpy.nan_to_num(apart, nan=numpy.inf).max(initial=0.0)))
        relative = max(relative, float(numpy.linalg.norm(apart) / max(float(numpy.linalg.norm(ours)), 1e-300)))
        if wrong.any():
            return absolute, relative, f"{int(wrong.sum())} of {wrong.size} numbers, by at most {absolute:.3g}"
    return absolute, relative, ""


def _wide(array: Any) -> Any:
    numbers = _numbers(array)
    if numbers is None:
        return None
    return numbers.astype(numpy.complex128 if numbers.dtype.kind == "c" else numpy.float64)
