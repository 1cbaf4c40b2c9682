"""What takes long to capture, and why: ``python -m benchmarks.capture_time [--suite NAME ...] [--only NAME ...]``.

Architectures of transformers are measured one after the other: the eager call, the first capture and the next one, in
processor time of one process, so that their ratio says more than the seconds. Of the ledger and of control flow the
longest capture of each program counts. Each row is kept at once, and a second run goes on where the first one stopped.
What is above the limit goes to docs/capture_time.md, with the runs of the program that the capture has made.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import clew
from benchmarks import resumable
from benchmarks.coverage import suite_named
from benchmarks.coverage_table import versions
from benchmarks.examination import EXAMPLE, run_once, runnable
from benchmarks.verdicts import suites
from clew.capture.control_flow.body_recorder import Abandon
from clew.capture.recording.run import ExampleRun
from clew.capture.restart import Restart
from tests.footguns.world import quietly

LIMIT = 2.0  # seconds
SECONDS = 600  # the time limit of one architecture
PROGRAMS = ("ledger", "control_flow")
TITLES = {"transformers": "Architectures of transformers", "ledger": "The ledger", "control_flow": "Control flow"}
KINDS = {
    "found": "found state, or a function to rewrite, and started over",
    "piece": "gave up a branch or loop as a piece",
    "failed": "could not be run with another answer",
    "path": "recorded a path",
}
"""What becomes of a run of the program."""

Row = dict[str, Any]


@contextmanager
def counted_runs(counts: Counter[str]) -> Iterator[None]:
    """Count in the body what becomes of each run of a program that is captured."""
    original = ExampleRun.run

    def run(self: ExampleRun, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        kind = "failed"
        try:
            original(self, args, kwargs)
            kind = "path"
        except Abandon:
            kind = "piece"
            raise
        except Restart:
            kind = "found"
            raise
        finally:
            counts[kind] += 1

    ExampleRun.run = run  # type: ignore[method-assign]
    try:
        yield
    finally:
        ExampleRun.run = original  # type: ignore[method-assign]


def prepare() -> Callable[[str], Row]:
    """What a worker does before its first architecture; gives the function that measures one."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    return functools.partial(architecture, suite_named("transformers"))


def architecture(suite: Any, name: str) -> Row:
    """One architecture: its eager call, its first capture and the next, in seconds, and the runs of the first."""
    row: Row = {"name": name, "outcome": "skipped", "seconds": 0}
    with torch.no_grad():
        found = runnable(suite, name, {})
        if found is None:
            return row
        args, kwargs = found.make(EXAMPLE)
        row["eager"] = min(timed(lambda: run_once(found.model, (args, kwargs))) for _ in range(3))
        runs: Counter[str] = Counter()
        with counted_runs(runs):
            row["first"] = timed(lambda: clew.trace(found.model, args=args, kwargs=kwargs))
        row["again"] = timed(lambda: clew.trace(found.model, args=args, kwargs=kwargs))
    return row | {"outcome": "measured", "runs": dict(runs)}


def timed(run: Callable[[], object]) -> float:
    """The processor time of one run, in seconds."""
    start = time.process_time()
    run()
    return round(time.process_time() - start, 4)


def programs(suite: str) -> Iterator[Row]:
    """The longest capture of each program of a suite, in seconds, and its runs."""
    captures: list[Row] = []
    original = clew.trace

    def trace(*args: Any, **options: Any) -> Any:
        runs: Counter[str] = Counter()
        start = time.process_time()
        try:
            with counted_runs(runs):
                return original(*args, **options)
        finally:
            captures.append({"first": round(time.process_time() - start, 4), "runs": dict(runs)})

    clew.trace = trace
    try:
        for judged in getattr(suites, suite)():
            longest: Row = max(captures, key=lambda row: float(row["first"]), default={"first": 0.0, "runs": {}})
            yield {"name": judged.program, "outcome": "measured", **longest}
            captures.clear()
    finally:
        clew.trace = original


# ---- the page --------------------------------------------------------------------------------------------------------


def seconds_of(row: Row) -> float:
    """What counts as the time of a capture: the next one of an architecture, whose code has been read by then."""
    return float(row.get("again", row.get("first", 0.0)))


def reason(row: Row) -> str:
    """Why a capture takes long: the runs that it makes, and what the program itself takes in them."""
    runs = row["runs"]
    count = sum(runs.values())
    told = [f"{number} {KINDS[kind]}" for kind, number in sorted(runs.items(), key=lambda one: -one[1])]
    text = f"{count} runs: {', '.join(told)}"
    own = count * float(row.get("eager", 0.0)) / (seconds_of(row) or 1.0)
    return f"{text}; {own:.0%} is the program's own time" if own >= 0.2 else text


def markdown(rows: list[Row]) -> str:
    """The whole page."""
    lines = [
        "# Captures that take long",
        "",
        f"Programs whose capture takes more than {LIMIT:g} s of processor time on one thread. Of an architecture it is",
        "the second capture in a process (*first* is the one before, which reads its code too); *eager* is",
        "one call of the model. Each run is one of the whole program: a capture makes one for each answer to what a",
        "library asks, and starts over when it finds something that must be known from the start.",
        f"Made by `python -m benchmarks.capture_time` with {versions()}.",
    ]
    for suite, title in TITLES.items():
        part = [row for row in rows if row["suite"] == suite and row["outcome"] == "measured"]
        late = [row["name"] for row in rows if row["suite"] == suite and row["outcome"] == "timeout"]
        if part:
            lines += ["", f"## {title}", "", *_table(part)]
        if late:
            lines += ["", f"Not measured, since the time for it was over: {', '.join(late)}."]
    return "\n".join(lines) + "\n"


def _table(rows: list[Row]) -> list[str]:
    slow = sorted((row for row in rows if seconds_of(row) > LIMIT), key=seconds_of, reverse=True)
    counted = f"{len(slow)} of {len(rows)} that were measured take more than {LIMIT:g} s."
    if not slow:
        return [counted]
    head = ["| name | eager ms | first s | again s | to eager | why |", "| --- | --- | --- | --- | --- | --- |"]
    return [counted, "", *head, *map(_line, slow)]


def _line(row: Row) -> str:
    if "again" not in row:
        return f"| {row['name']} | | {row['first']:.2f} | | | {reason(row)} |"
    times = f"{1000 * row['eager']:.1f} | {row['first']:.2f} | {row['again']:.2f} | {row['again'] / row['eager']:.0f}x"
    return f"| {row['name']} | {times} | {reason(row)} |"


def main() -> None:
    """Measure what is not measured yet, then write the page of everything in the results file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture_time", description=__doc__)
    resumable.add_arguments(parser, "architectures", "capture_time.jsonl", "docs/capture_time.md")
    parser.add_argument("--suite", nargs="+", choices=TITLES, default=[*TITLES], help="all by default")
    parser.add_argument("--page", action="store_true", help="write the page of what is measured already")
    chosen = parser.parse_args()
    if not chosen.page:
        _measure(chosen)
    rows = list(resumable.read(chosen.results, "suite", "name").values())
    chosen.table.write_text(markdown(rows))


def _measure(chosen: argparse.Namespace) -> None:
    """Measure what has no row yet."""
    done = resumable.read(chosen.results, "suite", "name")
    if "transformers" in chosen.suite:
        known = {name for suite, name in done if suite == "transformers"}
        names = chosen.only or [name for name in suite_named("transformers").names() if name not in known]
        resumable.measure(names, prepare, chosen, SECONDS, {"suite": "transformers"})
    for suite in [one for one in PROGRAMS if one in chosen.suite and not any(known == one for known, _ in done)]:
        _measure_programs(suite, chosen.results)


def _measure_programs(suite: str, results: Path) -> None:
    with quietly(), results.open("a") as file:
        for row in programs(suite):
            file.write(json.dumps({"suite": suite, **row}) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
