"""``split``: a captured program in stages, by the paths of modules or by a number of stages of equal cost.

Out comes a program that runs the stages in order and does what the whole does. ``stages`` has them, each a captured
program of its own with the parts that it needs; ``inputs`` tells for each stage which values it is given, those of
stages further back included; ``shared`` lists the tensors that several stages hold, by the names that they have there.
"""

from __future__ import annotations

import copy
import functools
import importlib
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from clew.errors import GraphError, a_or_an
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.interpreter import Interpreter
from clew.ir.module_calls import ModuleCall, all_calls, calls_at
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.passes.split import STAGE, crossing, open_blocks, split_graph, uses_of_root
from clew.runtime.function import HoldsGraph

_DISTRIBUTED = "clew.tools.distributed"
Costs = list[float]
_TOLERANCE = 1.1
"""A split may be so much worse than the best one if fewer values have to be handed on."""


def split(
    captured: Any,
    at: Sequence[str] | None = None,
    stages: int | None = None,
    balance: str = "parameters",
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """A captured program in stages.

    ``at`` names modules: a stage ends behind each. ``stages`` is a number of stages, made such that the largest has as
    little as can be of what ``balance`` names: "parameters", "memory" (parameters and values) or "time" (measured on
    ``args`` and ``kwargs``).
    """
    if not isinstance(captured, HoldsGraph):
        raise GraphError(f"{a_or_an(captured)} has no graph to split", fixes=["capture it: clew.trace(model, args)"])
    if (at is None) == (stages is None):
        raise GraphError("split() needs either at= or stages=", fixes=["split(captured, stages=2)"])
    graph = captured.graph
    if at is not None:
        places = [_end_of(one, graph) for path in at for one in _calls(graph, path)]
    else:
        places = _balanced(graph, stages, _costs(captured, balance, args, kwargs or {}))
    found = split_graph(graph, [place for place in places if place < len(graph.nodes) - 1])
    made = [captured._part(one, f"{_name(captured)}_{number}") for number, one in enumerate(found.graphs)]
    whole = captured._container({STAGE.format(number): one for number, one in enumerate(made)}, found.whole)
    vars(whole).update({"stages": tuple(made), "inputs": found.inputs, "shared": _shared(made)})
    vars(whole)["pipeline"] = functools.partial(_pipeline, whole)
    return whole


def _pipeline(whole: Any, *args: Any, **options: Any) -> Any:
    """The stages in processes of their own; the file of that waits until it is asked for."""
    if not hasattr(whole, "state_dict"):
        raise GraphError("only stages of torch modules make a pipeline", fixes=["capture a module"])
    return importlib.import_module(_DISTRIBUTED).pipeline(whole, *args, **options)


def _name(captured: Any) -> str:
    return str(getattr(captured, "__name__", None) or type(captured).__name__)


def _calls(graph: Graph, path: str) -> list[ModuleCall]:
    calls = calls_at(graph, path)
    if any(one.graph is not graph for one in calls):
        raise GraphError(
            f"the module {path!r} is called inside of a branch or a loop, which is one node and stays in one stage",
            fixes=["split behind a module around it"],
        )
    return calls if "*" in path else calls[-1:]


def _end_of(call: ModuleCall, graph: Graph) -> int:
    """The place behind all that a call of a module does."""
    return 1 + max(place for place, node in enumerate(graph.nodes) if call.contains(node) or node in call.results)


def _shared(stages: Sequence[Any]) -> list[dict[int, str]]:
    """The tensors that several stages hold: for each the name that it has in each stage."""
    names: dict[int, dict[int, str]] = defaultdict(dict)
    for number, stage in enumerate(stages):
        for kind in ("named_parameters", "named_buffers"):
            for path, tensor in getattr(stage, kind)() if hasattr(stage, kind) else ():
                names[id(tensor)][number] = path
    return [found for found in names.values() if len(found) > 1]


# ---- balance ---------------------------------------------------------------------------------------------------------


def _costs(captured: Any, balance: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Costs:
    kinds: dict[str, Callable[[], Costs]] = {
        "parameters": lambda: _of_tensors(captured, lambda tensor: tensor.numel()),
        "memory": lambda: _of_memory(captured),
        "time": lambda: _of_time(captured, args, kwargs),
    }
    if balance not in kinds:
        raise GraphError(f"balance={balance!r} is nothing to balance by", fixes=[f"one of {', '.join(kinds)}"])
    return kinds[balance]()


def _of_tensors(captured: Any, size: Callable[[Any], float]) -> Costs:
    """For each node the size of the tensors that it is the first to use."""
    graph, root = captured.graph, captured.graph.owning_module
    costs, seen = [0.0] * len(graph.nodes), set()
    for place, path in sorted(uses_of_root(graph)):
        found = resolve(root, path)
        tensors = [*found.parameters(), *found.buffers()] if hasattr(found, "buffers") else [found]
        for tensor in tensors:
            if hasattr(tensor, "numel") and id(tensor) not in seen:
                seen.add(id(tensor))
                costs[place] += size(tensor)
    return costs


def _of_memory(captured: Any) -> Costs:
    """Bytes of the tensors, and of the values as far as their sizes are known."""
    costs = _of_tensors(captured, lambda tensor: tensor.numel() * tensor.element_size())
    return [cost + _bytes(node) for cost, node in zip(costs, captured.graph.nodes, strict=True)]


def _bytes(node: Node) -> float:
    kind = node.value_type
    if not isinstance(kind, ArrayType) or not node.op.startswith("call"):
        return 0.0
    bits = "".join(letter for letter in str(kind.dtype) if letter.isdigit()) or "8"
    count = 1
    for size in kind.shape:
        count *= size if isinstance(size, int) else 1
    return count * int(bits) / 8


class _Timing(Interpreter):
    """Measures how long each node takes."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.times: dict[Node, float] = {}

    def run_node(self, n: Node) -> Any:
        begin = time.perf_counter()
        value = super().run_node(n)
        self.times[n] = min(self.times.get(n, float("inf")), time.perf_counter() - begin)
        return value


def _of_time(captured: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Costs:
    """Seconds of each node, the least of three runs of a copy."""
    if not args and not kwargs:
        raise GraphError(
            'balance="time" needs arguments to run the program on', fixes=["split(captured, stages=2, args=(x,))"]
        )
    twin = copy.deepcopy(captured)
    timing = _Timing(twin)
    for _ in range(3):
        timing.run(*args, **kwargs)
    return [timing.times.get(node, 0.0) for node in twin.graph.nodes]


def _balanced(graph: Graph, stages: int | None, costs: Costs) -> list[int]:
    """The places where stages begin: the costliest as cheap as can be, and then as little as can be handed on."""
    blocked = open_blocks(graph)
    ends = {_end_of(call, graph) for call in all_calls(graph) if call.graph is graph}
    ends = ends or {place for place, node in enumerate(graph.nodes) if node.op.startswith("call")}
    places = sorted(place for place in ends - blocked if place < len(graph.nodes) - 1)
    if not isinstance(stages, int) or stages < 1 or len(places) < stages - 1:
        raise GraphError(
            f"the graph cannot be split into {stages!r} stages",
            why=f"stages begin behind modules, and there are {len(places)} such places",
            fixes=["give a smaller number", "capture with fewer leaves: clew.trace(..., leaves='none')"],
        )
    sums = [0.0, *itertools.accumulate(costs)]
    bounds = [0, *places, len(costs)]
    least = _best(bounds, stages, lambda begin, end: sums[end] - sums[begin], max)[0]
    handed = {place: float(crossing(graph, place)) for place in places}

    def price(begin: int, end: int) -> float:
        too_much = sums[end] - sums[begin] > least * _TOLERANCE
        return float("inf") if too_much else handed.get(end, 0.0)

    return _best(bounds, stages, price, lambda one, other: one + other)[1]


def _best(
    bounds: list[int], stages: int, price: Callable[[int, int], float], join: Callable[[float, float], float]
) -> tuple[float, list[int]]:
    """The cheapest way to cut at so many of these bounds, with its price: by the best ways up to each bound."""
    best: dict[int, tuple[float, list[int]]] = {0: (0.0, [])}
    for stage in range(stages):
        found: dict[int, tuple[float, list[int]]] = {}
        for number in range(stage + 1, len(bounds)):
            ways = (
                (join(cost, price(bounds[before], bounds[number])), [*cuts, bounds[number]])
                for before, (cost, cuts) in best.items()
                if before < number
            )
            found[number] = min(ways, key=lambda way: way[0], default=(float("inf"), []))
        best = found
    cost, cuts = best[len(bounds) - 1]
    return cost, cuts[:-1]
