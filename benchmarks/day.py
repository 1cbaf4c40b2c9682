"""A day in the life of a capture: ``python -m benchmarks.day [--model NAME ...] [--step NAME ...] [--json FILE]``.

Each model is captured once; then each step that users do next (other sizes, training, moving, saving, compiling, ...)
is done with the capture and with the original, in a process of its own. A step *works* when both do the same, is
*refused* when the capture raises, *wrong* when something else comes out; what the original cannot do does not count,
and a guard counts as *guarded* only in the steps that say so. Compared with the stored ``day.json``.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import logging
import os
import re
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import forks, machine, workers
from benchmarks.day_models import SUBJECTS
from benchmarks.day_steps import (
    MAY_BE_GUARDED,
    OPTIONAL,
    STEPS,
    Case,
    NotForOriginal,
    Wrong,
    WrongByTool,
    elsewhere_server,
)
from benchmarks.examination import first_line
from clew.errors import GuardError

Verdict = list[str]  # the word, and what was said
Row = dict[str, Any]  # a model: its name, its seconds, and under "steps" a verdict for each step
WORKS, GUARDED, REFUSED, WRONG, NONE = "works", "guarded", "refused", "wrong", "none"
SIGNS = {WORKS: "[green]+[/]", GUARDED: "[cyan]g[/]", REFUSED: "[yellow]R[/]", WRONG: "[red]W[/]", NONE: "·"}
STEP_SECONDS, MODEL_SECONDS = 300, 1800  # for a busy machine; a step takes a second or less
STORE = Path(__file__).with_name("day.json")
EXPECTED = Path(__file__).resolve().parents[1] / "tests" / "day" / "expected.json"
EXPECTED_MODELS = ("sequential", "regularised", "mode_branch", "residual_dropout", "small_resnet", "bert")
SLOW = frozenset({"elsewhere", "folder", "export", "compile", "jit_trace", "make_fx", "imports", "threads", "cuda"})


# ---- one model -------------------------------------------------------------------------------------------------------


def prepare(steps: list[str]) -> Callable[[str], Row]:
    """What a worker does before its first model; gives the function that examines one."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    importlib.import_module("torch._dynamo")  # once, instead of in each step that compiles or exports
    elsewhere_server()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what tools say of themselves
    return functools.partial(examine, steps=steps)


def examine(name: str, steps: list[str]) -> Row:
    """All steps of one model, in a child, so that the next model finds a process in which nothing was built."""
    start = time.monotonic()
    work = functools.partial(_examine, name, steps)
    found = forks.in_child(work, MODEL_SECONDS, functools.partial(_all_refused, steps))
    return {"name": name, "steps": found, "seconds": round(time.monotonic() - start, 1)}


def _examine(name: str, steps: list[str]) -> dict[str, Verdict]:
    try:
        case = Case(SUBJECTS[name])
    except Exception as error:
        return _all_refused(steps, f"no capture: {first_line(error)}")
    known = STEPS | OPTIONAL
    return {
        step: forks.in_child(functools.partial(_verdict, case, step, known[step]), STEP_SECONDS, _refused)
        for step in steps
    }


def _all_refused(steps: list[str], why: str) -> dict[str, Verdict]:
    return {step: _refused(why) for step in steps}


def _refused(why: str) -> Verdict:
    return [REFUSED, why]


def _verdict(case: Case, name: str, step: Callable[[Case], None]) -> Verdict:
    """The word for what became of a step, with the reason."""
    try:
        step(case)
    except (NotForOriginal, WrongByTool) as error:
        return [NONE, str(error)]
    except Wrong as error:
        return [WRONG, str(error)]
    except GuardError as error:
        return [GUARDED if name in MAY_BE_GUARDED else REFUSED, first_line(error)]
    except Exception as error:
        return [REFUSED, first_line(error)]
    return [WORKS, ""]


def measure(names: Iterable[str], steps: list[str], count: int = 2, store: Path | None = None) -> dict[str, Row]:
    """The rows of all these models, in the order of the names; stored whenever one is there."""
    names = list(names)
    work = functools.partial(prepare, steps)
    limit = MODEL_SECONDS + STEP_SECONDS
    rows: dict[str, Row] = {}
    for row in workers.run(names, work, count, limit):
        rows[row["name"]] = _whole(row, steps)
        print(f"{len(rows)} of {len(names)}: {row['name']}", file=sys.stderr, flush=True)
        if store is not None:
            _write(store, rows)
    return {name: rows[name] for name in names}


def _whole(row: Row, steps: list[str]) -> Row:
    """The row; where its worker came to an end, all steps are refused for that reason."""
    return row if "steps" in row else {**row, "steps": _all_refused(steps, row["reason"])}


# ---- what is printed -------------------------------------------------------------------------------------------------


def counts(rows: dict[str, Row], steps: Iterable[str]) -> Counter[str]:
    """How many of these steps came to each verdict."""
    wanted = set(steps)
    return Counter(word for row in rows.values() for step, (word, _) in row["steps"].items() if step in wanted)


def summary(found: Counter[str]) -> str:
    """Counts in words, with the share of what works among what counts."""
    counted = sum(found.values()) - found[NONE]
    share = f" ({(found[WORKS] + found[GUARDED]) / counted:.1%} of {counted})" if counted else ""
    parts = [f"{found[word]} {word}" for word in (WORKS, GUARDED, REFUSED, WRONG)]
    return ", ".join(parts) + share


def _matrix(rows: dict[str, Row], steps: list[str]) -> Table:
    table = Table(title="models x steps: + works, g guarded as may be, R refused, W wrong, · not for the original")
    table.add_column("model", no_wrap=True)
    for place, _ in enumerate(steps, 1):
        table.add_column(str(place), justify="center", no_wrap=True, min_width=1)
    for name, row in rows.items():
        table.add_row(name, *(SIGNS[row["steps"][step][0]] for step in steps))
    table.box, table.padding = None, (0, 0, 0, 1)
    return table


def _by_step(rows: dict[str, Row], before: dict[str, Row], steps: list[str]) -> Table:
    table = Table(title="by step; in brackets the change since day.json, for the models in both")
    for title in ("", "step", WORKS, GUARDED, REFUSED, WRONG, "none"):
        table.add_column(title, justify="left" if title == "step" else "right")
    for place, step in enumerate(steps, 1):
        new, change = counts(rows, [step]), _change(rows, before, step)
        cells = [f"{new[word]} ({change[word]:+d})" if change[word] else str(new[word]) for word in SIGNS]
        table.add_row(str(place), step, *cells)
    table.box = None
    return table


def _change(rows: dict[str, Row], before: dict[str, Row], step: str) -> Counter[str]:
    """How many more came to each verdict than before, of the models that were tried both times."""
    both = [name for name in rows if step in before.get(name, {"steps": ()})["steps"]]
    found = counts({name: rows[name] for name in both}, [step])
    found.subtract(counts({name: before[name] for name in both}, [step]))
    return found


_VARYING = re.compile(r"\w+(\.\w+)+|'[^']*'|\"[^\"]*\"|\b0x[0-9a-f]+|\d+(\.\d+)?(e-?\d+)?|(/[\w.+-]+)+")


def _groups(rows: dict[str, Row], word: str) -> list[tuple[str, list[str]]]:
    """Messages of this verdict that differ in names and numbers only, the most frequent first, with where they came."""
    places: dict[str, list[str]] = defaultdict(list)
    shown: dict[str, str] = {}
    for name, row in rows.items():
        for step, (found, message) in row["steps"].items():
            if found == word:
                kind = _VARYING.sub("_", message)[:120]
                places[kind].append(f"{name}/{step}")
                shown.setdefault(kind, message)
    return sorted(((shown[kind], where) for kind, where in places.items()), key=lambda group: -len(group[1]))


def _print_groups(rows: dict[str, Row], word: str, console: Console, limit: int) -> None:
    for message, where in _groups(rows, word)[:limit]:
        more = f" and {len(where) - 4} more" if len(where) > 4 else ""
        console.print(f"{len(where):4d} {word}: {message[:220]}", markup=False, highlight=False, soft_wrap=True)
        console.print(f"       {', '.join(where[:4])}{more}", markup=False, highlight=False, soft_wrap=True)


def report(rows: dict[str, Row], before: dict[str, Row], steps: list[str], limit: int) -> None:
    """Print the tables, the messages and the total."""
    console = Console(width=max(160, Console().width))
    console.print(_matrix(rows, steps))
    console.print(_by_step(rows, before, steps), soft_wrap=True)
    for word in (WRONG, REFUSED):
        _print_groups(rows, word, console, limit)
    console.print(f"{len(rows)} models, {len(steps)} steps: {summary(counts(rows, steps))}", highlight=False)


# ---- what is stored --------------------------------------------------------------------------------------------------


def _write(path: Path, rows: dict[str, Row]) -> None:
    """Store the verdicts, one step a line."""
    models = [f'"{name}": {{\n{_lines(rows[name]["steps"])}\n}}' for name in SUBJECTS if name in rows]
    head = f'{{"machine": {json.dumps(machine.describe())},\n"rows": {{\n'
    path.write_text(head + ",\n".join(models) + "\n}}\n")


def _lines(steps: dict[str, Verdict]) -> str:
    return ",\n".join(f" {json.dumps(step)}: {json.dumps(verdict)}" for step, verdict in steps.items())


def _read(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    return {name: {"name": name, "steps": steps} for name, steps in json.loads(path.read_text())["rows"].items()}


def write_expected() -> None:
    """Record the verdicts that the test holds to."""
    steps = [step for step in STEPS if step not in SLOW]
    rows = measure(EXPECTED_MODELS, steps)
    words = {name: {step: verdict[0] for step, verdict in row["steps"].items()} for name, row in rows.items()}
    EXPECTED.write_text(json.dumps(words, indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.day", description=__doc__)
    parser.add_argument("--model", nargs="+", choices=SUBJECTS, metavar="NAME", help="these models only")
    parser.add_argument("--step", nargs="+", choices=[*STEPS, *OPTIONAL], metavar="NAME", help="these steps only")
    parser.add_argument("--json", type=Path, help="where the verdicts are stored")
    parser.add_argument("--before", type=Path, default=STORE, help="the verdicts to compare with")
    parser.add_argument("--workers", type=int, default=2, help="processes that work side by side")
    parser.add_argument("--messages", type=int, default=40, help="how many kinds of messages are printed")
    parser.add_argument("--write-expected", action="store_true", help="record the verdicts that tests/day holds to")
    return parser.parse_args()


def main() -> None:
    """Measure, print, store."""
    chosen = _arguments()
    if chosen.write_expected:
        write_expected()
        return
    steps = chosen.step or list(STEPS)
    start = time.monotonic()
    before = _read(chosen.before)
    rows = measure(chosen.model or SUBJECTS, steps, chosen.workers, chosen.json)
    report(rows, before, steps, chosen.messages)
    print(f"{time.monotonic() - start:.0f} s; slowest: {_slowest(rows)}")


def _slowest(rows: dict[str, Row]) -> str:
    ordered = sorted(rows.values(), key=lambda row: -row.get("seconds", 0))
    return ", ".join(f"{row['name']} {row.get('seconds', 0):.0f} s" for row in ordered[:4])


if __name__ == "__main__":
    main()
