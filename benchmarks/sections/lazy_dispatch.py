"""How long a LazyGraph takes to find the capture that fits, with 1, 4 and 16 of them.

The call is one that the oldest capture fits, then one that the newest does. Beside it stand that capture called
directly, the original, and ``torch.compile`` with as many graphs of its own.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import torch

import clew
from benchmarks import tools
from benchmarks.figures import Contestant, Effort, Figure, contest
from benchmarks.task import Task

SECTION = "lazy dispatch"
EFFORT = Effort(turns=41, seconds=3.0, turn=0.01)
COUNTS = (1, 4, 16)


def scaled(x: Any, way: str) -> Any:
    """One operation, after a choice by a plain argument."""
    return x + len(way)


class Scaled(torch.nn.Module):
    """The same as a module with parts."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(torch.nn.Identity() for _ in range(20))

    def forward(self, x: Any, way: str) -> Any:
        return x + len(way)


def tasks(quick: bool) -> list[Task]:
    """One task for each number of captures, of a function and of a module."""
    kinds = {"function": lambda: scaled, "module of 20 parts": lambda: Scaled().eval()}
    return [
        Task(f"lazy dispatch: {kind}, {count}", functools.partial(_measure, kind, make(), count, quick))
        for kind, make in kinds.items()
        for count in COUNTS
    ]


def _measure(kind: str, program: Any, count: int, quick: bool) -> list[Figure]:
    x = torch.ones(4)
    ways = [f"way{'s' * place}" for place in range(count)]
    lazy = clew.trace(program)
    for way in ways:
        lazy(x, way)
    if len(lazy.captures) != count:
        raise RuntimeError(f"{count} captures were wanted, and there are {len(lazy.captures)}")
    contestants = [
        Contestant("the original", functools.partial(program, x, ways[-1])),
        Contestant("the capture itself", functools.partial(lazy.captures[-1], x, ways[-1])),
        Contestant("Clew, oldest capture", functools.partial(lazy, x, ways[0])),
        Contestant("Clew, newest capture", functools.partial(lazy, x, ways[-1])),
    ]
    if count > 1:
        turns = itertools.cycle(ways)
        contestants.append(Contestant("Clew, another capture each time", lambda: lazy(x, next(turns))))
    if not quick:
        contestants += _dynamo(program, x, ways)
    title = f"{kind}, {count} capture{'s' if count > 1 else ''}"
    with torch.no_grad():
        return contest(SECTION, title, contestants, EFFORT.quick() if quick else EFFORT)


def _dynamo(program: Any, x: Any, ways: list[str]) -> list[Contestant]:
    """``torch.compile`` with a graph for each way."""
    tools.reset_dynamo()
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 2 * len(ways))
    compiled = torch.compile(program, backend="eager")
    with torch.no_grad():
        for way in ways:
            compiled(x, way)
    return [
        Contestant("torch.compile, oldest graph", functools.partial(compiled, x, ways[0])),
        Contestant("torch.compile, newest graph", functools.partial(compiled, x, ways[-1])),
    ]
