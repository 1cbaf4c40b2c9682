"""Symbolic tracing: a chain of small operations and real models; microseconds per node."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.fx

import clew
from benchmarks.measure import Row, compare

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

from models import zoo


def chain(length: int) -> Any:
    """A function of ``length`` small operations."""

    def run(x: Any) -> Any:
        for _ in range(length):
            x = torch.relu(x + 1)
        return x

    return run


def rows(names: tuple[str, ...] = ("resnet50", "densenet", "vit", "unet")) -> Iterator[Row]:
    """All measurements of this section."""
    programs = {"chain of 1,000 operations": chain(500), "chain of 20,000 operations": chain(10_000)}
    programs |= {name: zoo[name].build() for name in names if name in zoo}
    for what, program in programs.items():
        size = len(clew.symbolic_trace(program).graph.nodes)
        tracers = {
            "clew": lambda program=program: clew.Tracer().trace(program),
            "torch.fx": lambda program=program: torch.fx.Tracer().trace(program),
        }
        yield compare("symbolic tracing", what, size, tracers)
