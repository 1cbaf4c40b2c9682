"""Replay: a call of what each tool has captured, beside the same function written by hand.

All tools are captured first and compared with the original once; then they take turns. One operation is called through
``GraphFunction.__call__``, guards included.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from benchmarks import programs, tools
from benchmarks.figures import Contestant, Effort, Figure, contest, failure_of
from benchmarks.programs import Program
from benchmarks.task import Task

SECTION = "replay"
EFFORT = Effort(turns=41, seconds=4.0, turn=0.02)
LIGHT: dict[str, tools.Tool] = {
    "Clew": tools.with_clew,
    "Clew, symbolic": tools.with_clew_symbolic,
    "torch.jit.trace": tools.with_jit_trace,
    "torch.jit.trace, frozen": tools.with_jit_frozen,
    "torch.fx": tools.with_fx,
    "make_fx": tools.with_make_fx,
}
HEAVY: dict[str, tools.Tool] = {
    "torch.export().module()": tools.with_export,
    "torch.compile, back end eager": tools.with_dynamo,
    "torch.compile, inductor": tools.with_inductor,
}
PROGRAMS: dict[str, Callable[[], Program]] = {
    "MLP of 50 layers": programs.mlp,
    "tiny ResNet": programs.tiny_resnet,
    "tiny BERT": programs.tiny_bert,
    "one-op call": programs.smallest,
}


def tasks(quick: bool) -> list[Task]:
    """All programs of this section."""
    return [Task(f"replay: {title}", functools.partial(measure, make, quick)) for title, make in PROGRAMS.items()]


def measure(make: Callable[[], Program], quick: bool) -> list[Figure]:
    """The figures of one program."""
    program = make()
    if program.by_hand is None:
        raise ValueError(f"{program.title} has no function written by hand to be compared with")
    tools.reset_dynamo()
    contestants = [
        Contestant("by hand", functools.partial(program.by_hand, *program.args)),
        Contestant("eager", functools.partial(program.callable, *program.args)),
    ]
    failed: list[Figure] = []
    with torch.no_grad():
        expected = program.callable(*program.args)
        _compare(program.by_hand(*program.args), expected)
        for name, tool in (LIGHT if quick else LIGHT | HEAVY).items():
            try:
                captured = tool(program.callable, program.args)
                _compare(captured(*program.args), expected)
            except Exception as error:  # any error of a tool is a result of this benchmark
                failed.append(Figure(SECTION, program.title, name, None, "us", failure_of(error)))
            else:
                contestants.append(Contestant(name, functools.partial(captured, *program.args)))
        found = contest(SECTION, program.title, contestants, EFFORT.quick() if quick else EFFORT)
    return found + failed


def _compare(result: Any, expected: Any) -> None:
    """What a tool gives has to be right before it is timed."""
    results, wanted = (pytree.tree_leaves(tuple(one) if isinstance(one, tuple) else one) for one in (result, expected))
    torch.testing.assert_close(results, wanted)
