"""Wrapper libraries against the graphs captured from them: ``python -m benchmarks.wrappers``.

Each program of einops, array-api-compat and keras (on torch, and in a process of its own on JAX) is captured once; then
the program and its graph take turns. What counts is the ratio of the best times per call: above 1 the graph is faster.
A graph of torch is captured at another batch size than it is measured at, one of JAX holds for one size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import numpy
import torch
from rich.console import Console
from rich.table import Table

import clew
from benchmarks.measure import Row, compare
from benchmarks.wrapped_programs import PROGRAMS, Program

CALLS = 300
_BACKEND = "KERAS_BACKEND"


def measured(name: str, program: Program, captured_at: int = 2, used_at: int = 3) -> Row:
    """The time of a call of a program and of its graph, in microseconds."""
    captured = clew.trace(program.function, args=program.inputs(captured_at))
    given = program.inputs(used_at)
    wanted, found = (_flat(function(*given)) for function in (program.function, captured))
    assert all(map(numpy.array_equal, wanted, found)), name

    def calling(function: Any) -> Any:
        def run() -> None:
            for _ in range(CALLS):
                result = function(*given)
            if hasattr(result, "block_until_ready"):
                result.block_until_ready()

        return run

    contestants = {"clew": calling(captured), "wrapper": calling(program.function)}
    return compare(program.library, name, CALLS, contestants, turns=7)


def _flat(result: Any) -> list[Any]:
    parts = result if isinstance(result, tuple) else (result,)
    return [numpy.asarray(part.detach() if isinstance(part, torch.Tensor) else part) for part in parts]


def rows() -> list[Row]:
    """All programs, those of keras last."""
    os.environ[_BACKEND] = "torch"
    from benchmarks import keras_programs

    found = [measured(name, program) for name, program in {**PROGRAMS, **keras_programs.programs()}.items()]
    return [*found, *_rows_on_jax()]


def _rows_on_jax() -> list[Row]:
    """keras chooses its backend when it is imported, so another one needs another process."""
    environment = {**os.environ, _BACKEND: "jax", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "benchmarks.wrappers", "--jax"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [Row(**row) for row in json.loads(done.stdout.splitlines()[-1])]


def print_rows_on_jax() -> None:
    """Those of keras on JAX, as one line of JSON."""
    from benchmarks import keras_programs

    found = [measured(name, program, used_at=2) for name, program in keras_programs.programs().items()]
    print(json.dumps([asdict(row) for row in found]))


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
    print_rows_on_jax() if "--jax" in sys.argv else main()
