"""Benchmarks that can be stopped and go on: one row of results for each name, kept as soon as it is there.

In come names and a function of a worker (``workers``). The rows go to a file with one JSON object a line, in which the
last row of a key counts; whatever has a row there need not be measured again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks import workers

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser, what: str, results: str, table: str) -> None:
    """The options that such benchmarks have in common; ``what`` is measured, in the plural."""
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"these {what}, measured again")
    parser.add_argument("--results", type=Path, default=Path(results), help="the resumable results file")
    parser.add_argument("--workers", type=int, default=1, help="processes that work side by side")
    parser.add_argument("--table", type=Path, default=Path(table), help="where the table is written")


def read(path: Path, *fields: str, **defaults: str) -> dict[Any, Row]:
    """The rows of a results file by one field, or by a tuple of several; ``defaults`` stand for those left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    found = {}
    for row in (json.loads(line) for line in lines if line.strip()):
        key = tuple(row.get(field, defaults[field]) if field in defaults else row[field] for field in fields)
        found[key if len(fields) > 1 else key[0]] = row
    return found


def measure(
    names: Sequence[str],
    prepare: Callable[[], Callable[[str], Row]],
    chosen: argparse.Namespace,
    limit: float,
    marks: Mapping[str, Any] | None = None,
    told: Callable[[Row], str] = lambda row: f"{row['name'][:28]} {row['outcome']}",
) -> None:
    """Measure these names, each for at most ``limit`` seconds; every row gets the ``marks``, and the bar shows it."""
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(TextColumn("{task.fields[name]:<40}"), *columns, console=Console()) as progress:
        task = progress.add_task("", total=len(names), name="")
        for row in workers.run(names, prepare, chosen.workers, limit):
            with chosen.results.open("a") as file:
                file.write(json.dumps({**(marks or {}), **row}) + "\n")
            progress.update(task, name=told(row), advance=1)
