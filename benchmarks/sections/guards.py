"""What a guard costs when it holds: a function with fifty guards of one kind beside the same without them.

The guards are those of real captures; the function without them is the same graph with its guards erased. Given is the
difference over the number of guards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

import clew
from benchmarks.figures import Contestant, Effort, Figure, contest, value_of
from benchmarks.task import Task
from clew.capture.guards.notes import CHECKS

SECTION = "guards"
EFFORT = Effort(turns=41, seconds=3.0, turn=0.01)
COUNT = 50

BODIES = {
    "argument is a tensor": "x{0} + 1",
    "number": "x + 1 if a{0} == 3 else x - 1",
    "flag": "x + 1 if a{0} else x - 1",
    "text": "x + 1 if a{0} == 'relu' else x - 1",
    "size of a tensor": "x{0} + 1 if x{0}.shape[0] == 4 else x{0} - 1",
    "rank of a tensor": "x{0} + 1 if x{0}.dim() == 1 else x{0} - 1",
    "dtype of a tensor": "x{0} + 1 if x{0}.dtype == torch.float32 else x{0} - 1",
    "device of a tensor": "x{0} + 1 if x{0}.device.type == 'cpu' else x{0} - 1",
}
VALUES: dict[str, Any] = {"number": 3, "flag": True, "text": "relu"}


def tasks(quick: bool) -> list[Task]:
    """One task for each kind of guard."""
    return [Task(f"guards: {kind}", functools.partial(_measure, kind, quick)) for kind in BODIES]


def _measure(kind: str, quick: bool) -> list[Figure]:
    function, args = _program(kind)
    captured = clew.trace(function, args=args)
    guards = [node for node in captured.graph.nodes if node.op == "call_function" and node.target in CHECKS]
    count = len(guards)
    bare = clew.trace(function, args=args)
    for node in list(bare.graph.nodes):
        if node.op == "call_function" and node.target in CHECKS:
            bare.graph.erase_node(node)
    bare.graph.eliminate_dead_code()
    contestants = [
        Contestant("with", functools.partial(captured, *args)),
        Contestant("without", functools.partial(bare, *args)),
    ]
    found = contest(SECTION, kind, contestants, EFFORT.quick() if quick else EFFORT)
    with_guards, without = (value_of(found, SECTION, kind, tool) for tool in ("with", "without"))
    if with_guards is None or without is None:
        return found
    cost = (with_guards - without) / count * 1e3
    return [Figure(SECTION, kind, "Clew", cost, "ns per guard", f"{count} guards", found[0].turns)]


def _program(kind: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of fifty arguments that makes one assumption about each, and an example."""
    body = BODIES[kind]
    is_plain = kind in VALUES
    names = ["x", *(f"{'a' if is_plain else 'x'}{place}" for place in range(COUNT))]
    lines = [f"def program({', '.join(names)}):", *(f"    y = {body.format(place)}" for place in range(COUNT))]
    names_of: dict[str, Any] = {"torch": torch}
    exec("\n".join([*lines, "    return y"]), names_of)
    example = (torch.ones(4), *(VALUES.get(kind, torch.ones(4)) for _ in range(COUNT)))
    return names_of["program"], example
