"""Memory: bytes of Python objects for each node of a graph, and the peak of a process that captures a model.

The peak is that of a process of its own for each tool, over the peak of one that has only loaded the model.
"""

from __future__ import annotations

import functools
import gc
import subprocess
import sys
import tracemalloc
from typing import Any

from benchmarks.figures import Figure
from benchmarks.graph_work import GRAPHS, chain
from benchmarks.task import Task

SECTION = "memory"
NODES = 10_000
PEAKS = ("loaded", "eager", "clew", "jit", "fx", "export")
MODELS = {"resnet50": "ResNet-50, 224 px", "bert_base": "BERT-base"}


def tasks(quick: bool) -> list[Task]:
    """Bytes of a graph, and peaks of processes."""
    peaks = [Task(f"memory: {title}", functools.partial(_peaks, name, title)) for name, title in MODELS.items()]
    return [Task("memory: a graph", _bytes_per_node), *([] if quick else peaks)]


def _bytes_per_node() -> list[Figure]:
    program = f"graph of {NODES:,} nodes"
    return [Figure(SECTION, program, name, bytes_per_node(kind), "bytes per node") for name, kind in GRAPHS.items()]


def bytes_per_node(kind: Any, nodes: int = NODES) -> float:
    """What Python allocates for a chain of so many nodes and still holds."""
    chain(kind, 10)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    graph = chain(kind, nodes)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del graph
    return (after - before) / nodes


def _peaks(name: str, title: str) -> list[Figure]:
    found = {tool: _peak(name, tool) for tool in PEAKS}
    base = found.pop("loaded")
    return [
        Figure(SECTION, title, tool, None if peak is None or base is None else peak - base, "MB", _note(peak))
        for tool, peak in found.items()
    ]


def _note(peak: float | None) -> str:
    return "fails" if peak is None else ""


def _peak(name: str, tool: str) -> float | None:
    """The peak of a process in megabytes; None if it failed."""
    command = [sys.executable, "-m", "benchmarks.peak", name, tool]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(finished.stdout.split()[-1]) if finished.returncode == 0 else None
