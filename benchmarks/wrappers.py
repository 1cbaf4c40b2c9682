"""Wrapper libraries against the graphs captured from them: ``python -m benchmarks.wrappers``.

Each program of einops, array-api-compat and keras (on torch) is captured once at one batch size; then the program and
its graph take turns at another. What counts is the ratio of the best times per call: above 1 the graph is faster.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import clew
from benchmarks.measure import Row, compare
from benchmarks.wrapped_programs import PROGRAMS, Program

CALLS = 300


def measured(name: str, program: Program) -> Row:
    """The time of a call of a program and of its graph, in microseconds."""
    captured = clew.trace(program.function, args=program.inputs(2))
    given = program.inputs(3)
    torch.testing.assert_close(captured(*given), program.function(*given), rtol=0, atol=0)

    def calling(function: Any) -> Any:
        def run() -> None:
            for _ in range(CALLS):
                function(*given)

        return run

    contestants = {"clew": calling(captured), "wrapper": calling(program.function)}
    return compare(program.library, name, CALLS, contestants, turns=7)


def rows() -> list[Row]:
    """All programs, those of keras last."""
    os.environ["KERAS_BACKEND"] = "torch"
    from benchmarks import keras_programs

    return [measured(name, program) for name, program in {**PROGRAMS, **keras_programs.programs()}.items()]


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    table = Table("library", "program", "through the wrapper, us", "captured, us", "times faster")
    with torch.no_grad():
        for row in rows():
            times = (f"{row.times[name]:.1f}" for name in ("wrapper", "clew"))
            table.add_row(row.section, row.what, *times, f"{row.ratio():.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
