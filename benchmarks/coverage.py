"""Which architectures Clew captures: ``python -m benchmarks.coverage [--suite transformers|zoo] [--only NAME ...]``.

Each architecture that runs eagerly is captured, compared on the example, and then called at another batch size and
another length without a new capture. Each outcome is appended to a results file at once, and a second run goes on where
the first one stopped. The table of everything in the results file goes to docs/coverage.md.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import pkgutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks import coverage_table, workers
from benchmarks.examination import Suite, examine

# By name, so that transformers is imported only where it is asked for.
SUITES = {
    "transformers": "benchmarks.transformers_suite:TransformersSuite",
    "zoo": "benchmarks.zoo_suite:ZooSuite",
}
GRACE = 20  # seconds that a process may go on past the limit before it is ended


def suite_named(name: str) -> Suite:
    """The suite of this name."""
    suite: Suite = pkgutil.resolve_name(SUITES[name])()
    return suite


def prepare(suite: str, seconds: int) -> Callable[[str], dict[str, Any]]:
    """What a worker does before its first task; gives the function that does one."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    return functools.partial(examine, suite_named(suite), seconds=seconds)


def _read(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return {(row.get("suite", "transformers"), row["name"]): row for row in rows}


def _measure(names: list[str], chosen: argparse.Namespace, console: Console) -> None:
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    limit = chosen.seconds + GRACE
    work = functools.partial(prepare, chosen.suite, chosen.seconds)
    with Progress(TextColumn("{task.fields[name]:<40}"), *columns, console=console) as progress:
        task = progress.add_task("", total=len(names), name="")
        for row in workers.run(names, work, chosen.workers, limit):
            with chosen.results.open("a") as file:
                file.write(json.dumps({"suite": chosen.suite, **row}) + "\n")
            progress.update(task, name=f"{row['name'][:28]} {row['outcome']}", advance=1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--suite", choices=SUITES, default="transformers", help="which set of architectures")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these architectures, measured again")
    parser.add_argument("--again", nargs="+", metavar="OUTCOME", help="measure those with these outcomes again")
    parser.add_argument("--results", type=Path, default=Path("coverage.jsonl"), help="the resumable results file")
    parser.add_argument("--limit", type=int, help="at most this many architectures in this run")
    parser.add_argument("--seconds", type=int, default=120, help="the time limit of each architecture")
    parser.add_argument("--workers", type=int, default=1, help="processes that work side by side")
    parser.add_argument("--table", type=Path, default=Path("docs/coverage.md"), help="where the table is written")
    return parser.parse_args()


def _chosen_names(chosen: argparse.Namespace) -> list[str]:
    """What was asked for, or else what is not measured yet, or has one of the outcomes to measure again."""
    if chosen.only:
        return list(chosen.only)
    done = _read(chosen.results)
    again = set(chosen.again or ())
    kept = {name for (suite, name), row in done.items() if suite == chosen.suite and row["outcome"] not in again}
    return [name for name in suite_named(chosen.suite).names() if name not in kept]


def main() -> None:
    """Measure what is not measured yet, then write the table of everything in the results file."""
    chosen = _arguments()
    console = Console()
    names = _chosen_names(chosen)[: chosen.limit]
    _measure(names, chosen, console)
    rows = list(_read(chosen.results).values())
    chosen.table.write_text(coverage_table.markdown(rows))
    for suite in SUITES:
        part = [row for row in rows if row.get("suite", "transformers") == suite]
        if part:
            console.print(f"{suite}: {coverage_table.summary(part)}")


if __name__ == "__main__":
    main()
