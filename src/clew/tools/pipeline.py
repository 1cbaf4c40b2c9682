"""Pipelines of passes: run one after another, each checked against the program as it was, timed, and shown as a diff.

``Pipeline([...])`` takes passes, functions from a program to a program; called with a captured program of torch it runs
them on it. After each pass the rules of the IR are checked, and where there is an input to run on, the results, the
arguments afterwards and the random state are compared with those of the program before the first pass. ``bisect`` does
the same on a copy, and names the pass and the node where values first differ. Importing this file imports torch.
"""

from __future__ import annotations

import copy
import difflib
import functools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from clew.errors import VerificationError
from clew.ir import verify as rules
from clew.ir.arguments import all_nodes, bodies_of
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.text import to_text
from clew.passes.program import graph_in
from clew.tools.cases import Call
from clew.tools.compare_torch import Observation, Recording, calls_of, copied, first_difference, observe, record
from clew.tools.matched_nodes import is_unfilled
from clew.tools.snapshots import ProgramState, Tolerance, difference

Pass = Callable[[Any], Any]
"""A function from a graph or captured program to one: what it returns goes on, or what it was given if that is None."""


def name_of(one: Pass) -> str:
    """The name of a pass; arguments of a partial are part of it."""
    if isinstance(one, functools.partial):
        given = [*map(repr, one.args), *(f"{key}={value!r}" for key, value in one.keywords.items())]
        return f"{name_of(one.func)}({', '.join(given)})"
    return getattr(one, "__name__", type(one).__name__)


@dataclass(frozen=True)
class Step:
    """What one pass did: how long it took, how many nodes there were before and after, and both texts."""

    name: str
    seconds: float
    nodes: tuple[int, int]
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        """Whether the pass did anything."""
        return self.before != self.after

    @property
    def diff(self) -> str:
        """The lines of the graph that the pass took out and put in."""
        texts = self.before.splitlines(), self.after.splitlines()
        return "\n".join(difflib.unified_diff(*texts, "before", f"after {self.name}", lineterm="", n=1))


class Pipeline:
    """Passes to be run after each other on a captured program.

    Results may differ by ``atol`` and ``rtol`` from those before the first pass; with ``verify=False`` only the rules
    of the IR are checked. ``steps`` tells of the latest run, and so does the pipeline as text.
    """

    def __init__(self, passes: Iterable[Pass], *, verify: bool = True, atol: float = 1e-5, rtol: float = 1e-4) -> None:
        self.passes = tuple(passes)
        self.is_verifying = verify
        self.tolerance = Tolerance(atol, rtol)
        self.steps: list[Step] = []

    def __call__(self, program: Any, inputs: Any = None) -> Any:
        """The program after all passes; ``inputs`` are calls as for ``clew.verify``, by default the example."""
        self.steps = []
        calls = _calls(inputs, program) if self.is_verifying else []
        wanted = [_seen(program, call) for call in calls]
        for one in self.passes:
            program = self._step(one, program)
            for call, before in zip(calls, wanted, strict=True):
                detail = first_difference(before, _seen(program, call), self.tolerance)
                if detail is not None:
                    raise VerificationError(
                        f"after {name_of(one)} the program does something else: {detail}",
                        fixes=("clew.bisect(pipeline, captured, inputs) names the node",),
                    )
        return program

    def _step(self, one: Pass, program: Any) -> Any:
        before, count = to_text(graph_in(program)), _count(program)
        start = time.perf_counter()
        result = one(program)
        seconds = time.perf_counter() - start
        program = program if result is None else result
        rules.verify(graph_in(program))
        after = to_text(graph_in(program))
        self.steps.append(Step(name_of(one), seconds, (count, _count(program)), before, after))
        return program

    def __str__(self) -> str:
        width = max(map(len, map(name_of, self.passes)), default=0)
        if not self.steps:
            return "\n".join(map(name_of, self.passes))
        return "\n".join(
            f"{step.name:<{width}}  {step.nodes[0]:>5} -> {step.nodes[1]:>5} nodes  {step.seconds * 1e3:8.1f} ms"
            f"{'' if step.is_changed else '  the graph is as it was'}"
            for step in self.steps
        )


@dataclass(frozen=True)
class Bisection:
    """Where a pipeline first changes what a program does: the pass, the node, the line, and what differs."""

    name: str
    node: str | None
    line: str
    detail: str

    def __str__(self) -> str:
        place = "" if self.node is None else f", first at node {self.node}"
        return f"{self.name} changes the results{place}{f', {self.line}' if self.line else ''}: {self.detail}"


def bisect(pipeline: Pipeline | Iterable[Pass], program: Any, inputs: Any = None) -> Bisection | None:
    """The pass of a pipeline, and the node, where results first differ from the program's; None if they never do.

    The program stays as it is: a copy goes through the pipeline. Values of nodes that bear the same names before and
    after the pass are compared; of nodes that are new, the first that feeds a wrong result is named.
    """
    chain = pipeline if isinstance(pipeline, Pipeline) else Pipeline(pipeline)
    calls = _calls(inputs, program)
    current = copy.deepcopy(program)
    wanted = [_seen(current, call) for call in calls]
    for one in chain.passes:
        before = copy.deepcopy(current)
        current = chain._step(one, current)
        for call, seen in zip(calls, wanted, strict=True):
            detail = first_difference(seen, _seen(current, call), chain.tolerance)
            if detail is not None:
                node, reason = _first_node(before, current, call, chain.tolerance)
                line = "" if node is None or node.source is None else node.source.describe()
                return Bisection(name_of(one), None if node is None else node.name, line, reason or detail)
    return None


def _calls(inputs: Any, program: Any) -> list[Call]:
    """The calls to compare; a plain tuple stands for one call with these arguments."""
    if inputs is None:
        return calls_of(None, program) if getattr(program, "_example", None) is not None else []
    is_plain = isinstance(inputs, tuple) and not (len(inputs) == 2 and isinstance(inputs[1], dict))
    return calls_of((inputs, {}) if is_plain else inputs, program)


def _seen(program: Any, call: Call) -> Observation:
    """What a run of the program shows, without the state that a pass may have given another form."""
    state = ProgramState(program, program, [])
    try:
        seen = observe(program, copied(call), state, True, False)
    finally:
        state.put_back()
    kept = ("result", "argument", "the random state", "memory")
    return Observation(seen.error, {name: one for name, one in seen.aspects.items() if name.startswith(kept)})


def _count(program: Any) -> int:
    return sum(1 for _ in all_nodes(graph_in(program)))


Place = tuple[Any, ...]
"""Where a node is: the names of the branches and loops around it, each with the number of the body, and its own."""


def _places(graph: Graph, around: Place = ()) -> dict[Node, Place]:
    """The places of the nodes of a graph and of those inside of it: one name may stand in several bodies."""
    found = {}
    for node in graph.nodes:
        found[node] = (*around, node.name)
        for number, body in enumerate(bodies_of(node)):
            found |= _places(body, (*around, node.name, number))
    return found


def _first_node(before: Any, after: Any, call: Call, tolerance: Tolerance) -> tuple[Node | None, str]:
    """The first node after a pass whose value is not what the node of that place had before; else the first new one."""
    was, now = (_recorded(program, call) for program in (before, after))
    if now.failed is not None:
        return now.failed[0], f"it raises {type(now.failed[1]).__name__}: {now.failed[1]}"
    old, places = _places(was.graph), _places(now.graph)
    known = {old[node]: seen for node, seen in was.seen.items() if node in old}
    new: Node | None = None
    for node, seen in now.seen.items():
        place = places.get(node)
        if place not in known:
            new = new or (node if node.op != "placeholder" else None)
        elif not issubclass(known[place].kind, torch.nn.Module) and not is_unfilled(node):
            found = difference(known[place], seen, node.name, tolerance)
            if found is not None:
                return _source_of(node, known, places) or node, found
    return new, "it is new, and no value that was there before differs" if new is not None else ""


def _source_of(node: Node, known: dict[Place, Any], places: dict[Node, Place]) -> Node | None:
    """The first new node among those that a value comes from directly or through other new ones."""
    waiting, found = list(node._inputs), []
    while waiting:
        used = waiting.pop()
        if places.get(used) not in known and used not in found:
            found.append(used)
            waiting += used._inputs
    return min(found, default=None)


def _recorded(program: Any, call: Call) -> Recording:
    return record(program, call, ProgramState(program, program, []))
