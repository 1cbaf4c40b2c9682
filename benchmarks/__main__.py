"""Measure the speed of Clew beside other tools: ``python -m benchmarks [section ...] [--json FILE] [--table FILE]``.

Sections are capture, symbolic, replay, guards, lazy_dispatch, graph_work, memory and import; all by default. Figures go
to the JSON file as they are measured; a run of some sections keeps the file's figures of the others. The page with the
tables is written from all of them. ``--quick`` takes few turns and small programs: a first look, not a result.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import logging
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import machine, page
from benchmarks.figures import Figure
from benchmarks.task import Task

SECTIONS = {
    "import": "benchmarks.sections.imports",
    "memory": "benchmarks.sections.memory",
    "guards": "benchmarks.sections.guards",
    "lazy_dispatch": "benchmarks.sections.lazy_dispatch",
    "replay": "benchmarks.sections.replay",
    "symbolic": "benchmarks.sections.symbolic",
    "capture": "benchmarks.sections.capture",
    "graph_work": "benchmarks.sections.graph_work",
    "profile": "benchmarks.sections.profile",
}
"""By name, so that a framework is imported only for a section that needs it."""


def main() -> None:
    """Measure the chosen sections, print a table, and write what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"any of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--json", type=Path, help="where the figures are kept")
    parser.add_argument("--table", type=Path, help="write the page with the tables there, say docs/benchmarks.md")
    parser.add_argument("--quick", action="store_true", help="few turns and small programs")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    console = Console()
    results = _Results(chosen.json)
    _measure(chosen.sections or list(SECTIONS), chosen.quick, results, console)
    console.print(_table(results.new))
    if chosen.table is not None:
        chosen.table.write_text(page.markdown(results.machine, results.figures))
        console.print(f"the page is in {chosen.table}")


class _Results:
    """The figures, old and new, and their file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.machine = machine.describe()
        self.new: list[Figure] = []
        known: dict[str, Any] = json.loads(path.read_text()) if path is not None and path.exists() else {}
        self.figures = [Figure(**row) for row in known.get("figures", ())]

    def start(self, section: str) -> None:
        """What was known of a section is measured again."""
        self.figures = [one for one in self.figures if one.section != section]

    def add(self, found: list[Figure]) -> None:
        """Keep figures, in the file too: a long run may be interrupted."""
        self.new += found
        self.figures += found
        if self.path is not None:
            rows = [one.as_json() for one in self.figures]
            self.path.write_text(json.dumps({"machine": self.machine, "figures": rows}, indent=1) + "\n")


def _measure(sections: list[str], quick: bool, results: _Results, console: Console) -> None:
    warnings.simplefilter("ignore")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    modules = [importlib.import_module(SECTIONS[name]) for name in sections]
    work: list[Task] = []
    for module in modules:
        results.start(module.SECTION)
        work += module.tasks(quick)
    gc.collect()
    gc.freeze()  # what the imports have made would otherwise be walked at each collection, in everybody's time
    columns = (TextColumn("{task.description:<44}"), *Progress.get_default_columns()[1:2])
    with Progress(*columns, MofNCompleteColumn(), TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("", total=len(work))
        for task in work:
            progress.update(bar, description=task.title)
            results.add(task.run())
            progress.advance(bar)


def _table(figures: list[Figure]) -> Table:
    table = Table("section", "program", "tool", "value", "turns", "spread", "note")
    for one in figures:
        value = "" if one.value is None else f"{one.value:,.3g}" if one.value < 1e4 else f"{one.value:,.0f}"
        table.add_row(
            one.section, one.program, one.tool, f"{value} {one.unit}", str(one.turns), f"{one.spread:.0%}", one.note
        )
    return table


if __name__ == "__main__":
    main()
