"""Run the benchmarks: ``python -m benchmarks [section ...] [--json FILE]``; sections are graph_work and symbolic."""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import graph_work, symbolic
from benchmarks.measure import Row

SECTIONS = {"graph_work": graph_work.rows, "symbolic": symbolic.rows}


def main() -> None:
    """Measure the chosen sections, print a table, and write the rows if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="which sections to run; all by default")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    chosen = parser.parse_args()
    console = Console()
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    console.print(f"{versions}, processor time, best of several turns")
    found: list[Row] = []
    for section in chosen.sections or SECTIONS:
        with console.status(f"{section} ..."):
            for row in SECTIONS[section]():
                console.log(f"{row.what} at {row.size}: {row.ratio():.1f}x")
                found.append(row)
    console.print(_table(found))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([vars(row) for row in found], indent=2))


def _table(rows: list[Row]) -> Table:
    table = Table("section", "what", "size", "clew, us", "torch.fx, us", "times faster")
    for row in rows:
        times = (f"{row.times[name]:.2f}" for name in ("clew", "torch.fx"))
        table.add_row(row.section, row.what, f"{row.size:,}", *times, f"{row.ratio():.1f}")
    return table


if __name__ == "__main__":
    main()
