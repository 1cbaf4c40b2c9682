"""The table of control flow: every construct over Clew, torch.fx, jit.trace, jit.script, export and Dynamo.

``python -m benchmarks.control_flow --table`` measures what is not in the results file yet, one cell after the other in
worker processes with a time limit, appends each at once, and writes docs/control_flow_table.md from the whole file.
``--again clew "clew dynamic" "clew lazy"`` measures the cells of these tools anew, after a change of Clew say.
"""

from __future__ import annotations

import argparse
import functools
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import control_flow_page, control_flow_tools, resumable
from tests.control_flow.register import all_constructs

RESULTS = Path(__file__).with_name("control_flow_table.jsonl")
PAGE = Path("docs/control_flow_table.md")
GRACE = 4  # a cell makes several calls that each have the limit; only one that cannot be stopped gets there


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of a results file by name."""
    return resumable.read(path, "name")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the table."""
    parser.add_argument("--table", action="store_true", help="measure the table instead of the speed")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these programs or constructs alone")
    parser.add_argument("--tools", nargs="+", choices=control_flow_tools.TOOLS, default=control_flow_tools.TOOLS)
    parser.add_argument("--again", nargs="*", metavar="TOOL", default=(), help="measure the cells of these tools anew")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the resumable results file")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the table is written")
    parser.add_argument("--seconds", type=float, default=20.0, help="the time limit of each call and each capture")
    parser.add_argument("--workers", type=int, default=1, help="processes that work side by side")


def run(chosen: argparse.Namespace) -> None:
    """Measure what is missing, then write the page."""
    console = Console()
    work = functools.partial(control_flow_tools.prepare, chosen.seconds)
    resumable.measure(_missing(chosen), work, chosen, GRACE * chosen.seconds)
    rows = _tidy(chosen.results)
    chosen.page.write_text(control_flow_page.markdown(rows))
    for tool in control_flow_tools.TOOLS:
        console.print(f"{tool}: {control_flow_page.summary(rows, tool)}")


def _missing(chosen: argparse.Namespace) -> list[str]:
    known = {name for name in read(chosen.results) if name.partition(":")[0] not in chosen.again}
    programs = [one for one in all_constructs() if not chosen.only or {one.name, one.kind} & set(chosen.only)]
    wanted = [f"{tool}:{program.name}" for tool in chosen.tools for program in programs]
    return [name for name in wanted if name not in known]


def _tidy(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of programs that there are, in the order of the table; the file is left with these alone."""
    known = read(path)
    names = [f"{tool}:{program.name}" for tool in control_flow_tools.TOOLS for program in all_constructs()]
    rows = {name: known[name] for name in names if name in known}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    return rows
