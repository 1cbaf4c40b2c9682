"""Symbolic capture, without an example: Clew beside torch.fx on chains and on models that both can trace."""

from __future__ import annotations

import functools
from typing import Any

import torch.fx

import clew
from benchmarks import programs
from benchmarks.figures import Contestant, Effort, Figure, contest
from benchmarks.programs import zoo
from benchmarks.task import Task

SECTION = "symbolic"
EFFORT = Effort(turns=15, seconds=5.0)
MODELS = ("resnet50", "densenet", "vit", "unet")
CHAINS = (1_000, 100_000)


def tasks(quick: bool) -> list[Task]:
    """All programs of this section."""
    chains = [functools.partial(_chain, length, quick) for length in (CHAINS[:1] if quick else CHAINS)]
    models = [functools.partial(_model, name, quick) for name in (MODELS[:1] if quick else MODELS)]
    return [Task(f"symbolic: {work.args[0]}", work) for work in (*chains, *models)]


def _chain(length: int, quick: bool) -> list[Figure]:
    program = programs.chain(length)
    return _measure(program.title, program.callable, length, quick)


def _model(name: str, quick: bool) -> list[Figure]:
    model = zoo[name].build()
    return _measure(f"{name} of the zoo", model, len(clew.symbolic_trace(model).graph.nodes), quick)


def _measure(title: str, program: Any, size: int, quick: bool) -> list[Figure]:
    """The graph alone, and the graph with its generated code."""
    contestants = [
        Contestant("Clew", lambda: clew.Tracer().trace(program) and None),
        Contestant("torch.fx", lambda: torch.fx.Tracer().trace(program) and None),
        Contestant("Clew, with code", lambda: clew.symbolic_trace(program).recompile() and None),
        Contestant("torch.fx, with code", lambda: torch.fx.symbolic_trace(program) and None),
    ]
    return contest(SECTION, title, contestants, EFFORT.quick() if quick else EFFORT, "us per node", size)
