"""Work on graphs, in microseconds per node, and how the time grows with the size; measured by ``graph_work``."""

from __future__ import annotations

import functools
import math

from benchmarks import graph_work
from benchmarks.figures import Figure
from benchmarks.task import Task

SECTION = "graph work"
SIZES = (1_000, 10_000, 100_000)


def tasks(quick: bool) -> list[Task]:
    """One task for each size."""
    return [
        Task(f"graph work: {size:,} nodes", functools.partial(_measure, size)) for size in SIZES[: 1 if quick else 3]
    ]


def _measure(size: int) -> list[Figure]:
    return [
        _figure(f"{row.what}, {size:,}", name, value)
        for row in graph_work.rows((size,))
        if row.what != "bytes"  # which are part of the section on memory
        for name, value in row.times.items()
    ]


def _figure(program: str, tool: str, value: float) -> Figure:
    if math.isnan(value):
        return Figure(SECTION, program, tool, None, "us per node", "not measured")
    return Figure(SECTION, program, tool, value, "us per node", turns=3)
