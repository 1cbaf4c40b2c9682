"""Which architectures Clew captures: ``python -m benchmarks.coverage [--suite transformers|zoo] [--only NAME ...]``.

Each architecture that runs eagerly is captured, compared on the example, and then called at another batch size and
another length without a new capture. Each outcome is appended to a results file at once, and a second run goes on where
the first one stopped. The table of everything in the results file goes to docs/coverage.md.
"""

from __future__ import annotations

import argparse
import functools
import logging
import pkgutil
import warnings
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console

from benchmarks import coverage_table, resumable
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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    resumable.add_arguments(parser, "architectures", "coverage.jsonl", "docs/coverage.md")
    parser.add_argument("--suite", choices=SUITES, default="transformers", help="which set of architectures")
    parser.add_argument("--again", nargs="+", metavar="OUTCOME", help="measure those with these outcomes again")
    parser.add_argument("--limit", type=int, help="at most this many architectures in this run")
    parser.add_argument("--seconds", type=int, default=120, help="the time limit of each architecture")
    return parser.parse_args()


def _chosen_names(chosen: argparse.Namespace) -> list[str]:
    """What was asked for, or else what is not measured yet, or has one of the outcomes to measure again."""
    if chosen.only:
        return list(chosen.only)
    done = resumable.read(chosen.results, "suite", "name", suite="transformers")
    again = set(chosen.again or ())
    kept = {name for (suite, name), row in done.items() if suite == chosen.suite and row["outcome"] not in again}
    return [name for name in suite_named(chosen.suite).names() if name not in kept]


def main() -> None:
    """Measure what is not measured yet, then write the table of everything in the results file."""
    chosen = _arguments()
    console = Console()
    names = _chosen_names(chosen)[: chosen.limit]
    work = functools.partial(prepare, chosen.suite, chosen.seconds)
    resumable.measure(names, work, chosen, chosen.seconds + GRACE, {"suite": chosen.suite})
    rows = list(resumable.read(chosen.results, "suite", "name", suite="transformers").values())
    chosen.table.write_text(coverage_table.markdown(rows))
    for suite in SUITES:
        part = [row for row in rows if row.get("suite", "transformers") == suite]
        if part:
            console.print(f"{suite}: {coverage_table.summary(part)}")


if __name__ == "__main__":
    main()
