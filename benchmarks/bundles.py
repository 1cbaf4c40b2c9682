"""Bundles of real models: ``python -m benchmarks.bundles [--standalone] [--workers N] [--slice I/N] [--budget SEC]``.

Each architecture of the coverage run is captured, saved by ``clew.save``, and loaded in a process that cannot import
transformers. There it is called on the example, on other values and on another batch size; what comes out, refusals of
guards included, is compared with what the capture itself gives, and the size of the file with that of the weights. With
``--standalone`` it is written by ``to_python``, and run in a process that cannot import Clew either. Outcomes go to a
results file at once, and a second run goes on where the first one stopped; ``--json`` writes a summary for machines.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.progress import track
from safetensors.torch import load_file, save_file

import clew
from benchmarks import forks, workers
from benchmarks.coverage import SUITES, prepare, suite_named
from benchmarks.day_elsewhere import Absent
from benchmarks.equality import difference, results_of_calls
from benchmarks.examination import EXAMPLE, VARIATIONS, TimeLimit, first_line, runnable, time_limit
from clew.runtime.standalone import WEIGHTS

_BUNDLE, _ARGUMENTS, _RESULT, _ERROR = "model.clew", "arguments.pt", "result.pt", "error.txt"
_CALLS = (EXAMPLE, VARIATIONS["values"], VARIATIONS["batch"])
_SMALL = 64 << 10
"""Bytes that the text and the manifest of a file may have beside 2% of the weights: the models are small."""


class Elsewhere:
    """A process that has never imported transformers, nor can it; it loads each program in a copy of itself."""

    def __init__(self, standalone: bool) -> None:
        self.standalone = standalone
        module = ["benchmarks.standalone_elsewhere"] if standalone else ["benchmarks.bundles", "--serve"]
        command = [sys.executable, "-m", *module]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, folder: str) -> None:
        """Load the bundle of a folder there and call it on the arguments that lie beside it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(folder + "\n")
        self._process.stdin.flush()
        self._process.stdout.readline()


def serve() -> None:
    """Load and call what is asked for on the standard input."""
    torch.set_num_threads(1)
    forks.serve(_load_and_call)


def _load_and_call(folder: Path) -> None:
    assert "transformers" not in sys.modules
    sys.meta_path.insert(0, Absent(["transformers"]))
    try:
        loaded = clew.load(folder / _BUNDLE)
        torch.save(results_of_calls(loaded, torch.load(folder / _ARGUMENTS)), folder / _RESULT)
    except Exception as error:
        (folder / _ERROR).write_text(f"{type(error).__name__}: {error}")


def work(suite: str, seconds: int, standalone: bool) -> Callable[[str], dict[str, Any]]:
    """What a worker does before its first model; gives the function that does one."""
    prepare(suite, seconds)
    return functools.partial(_examine, suite_named(suite), Elsewhere(standalone), seconds)


def _examine(suite: Any, elsewhere: Elsewhere, seconds: int, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "outcome": "skipped"}
    begun = time.monotonic()
    try:
        with time_limit(seconds), torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            found = runnable(suite, name, row)
            if found is not None:
                row["begun"] = True
                _save_and_load(found, elsewhere, Path(folder), row)
    except TimeLimit as error:
        row |= {"outcome": "timeout", "reason": str(error)}
    except Exception as error:
        kind = "refused" if isinstance(error, clew.ClewError) else "failed" if "begun" in row else "skipped"
        row |= {"outcome": kind, "reason": first_line(error)}
    row.pop("begun", None)
    row["seconds"] = round(time.monotonic() - begun, 1)
    return row


def _save_and_load(found: Any, elsewhere: Elsewhere, folder: Path, row: dict[str, Any]) -> None:
    calls = [found.make(variation) for variation in _CALLS]
    captured = clew.trace(found.model, args=calls[0][0], kwargs=calls[0][1])
    torch.save(calls, folder / _ARGUMENTS)
    if elsewhere.standalone:
        captured.to_python(folder)
    else:
        clew.save(captured, folder / _BUNDLE)
    wanted = results_of_calls(captured, calls)
    held = {id(one): one for one in (*captured.parameters(), *captured.buffers())}
    row["weights"] = sum(one.numel() * one.element_size() for one in held.values())
    row["bytes"] = (folder / (WEIGHTS if elsewhere.standalone else _BUNDLE)).stat().st_size
    elsewhere.run(str(folder))
    if (folder / _ERROR).exists() or not (folder / _RESULT).exists():
        row |= {"outcome": "refused elsewhere", "reason": _reason(folder)}
        return
    found_there = torch.load(folder / _RESULT)
    different = difference(wanted, found_there)
    row["outcome"] = "WRONG" if different else "equal"
    row["reason"] = different
    row["calls"] = [one if isinstance(one, str) else "equal" for one in found_there]
    row["is_small"] = row["bytes"] <= row["weights"] * 1.02 + _SMALL


def _reason(folder: Path) -> str:
    return (folder / _ERROR).read_text().split("\n")[0] if (folder / _ERROR).exists() else "the process has ended"


def measure_large() -> None:
    """How much processor time a bundle of a gigabyte takes to load and read, beside safetensors alone, in turns."""
    model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096, bias=False) for _ in range(16)]).requires_grad_(False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clew.save(clew.trace(model, (torch.ones(1, 4096),)), folder / _BUNDLE)
        save_file(model.state_dict(), folder / WEIGHTS)
        clew.load(folder / _BUNDLE)
        for _ in track(range(5), description="loads"):
            alone = _seconds(lambda: load_file(folder / WEIGHTS).values())
            ours = _seconds(lambda: clew.load(folder / _BUNDLE).parameters())
            print(f"safetensors {alone * 1e3:.1f} ms, bundle {ours * 1e3:.1f} ms, ratio {ours / alone:.2f}")


def _seconds(load: Callable[[], Any]) -> float:
    begun = time.process_time()  # the file is in memory, so what else the machine does shall not count
    sum(float(one.flatten()[::1024].sum()) for one in load())  # a number of each page, so that the file is read
    return time.process_time() - begun


def main() -> None:
    """Measure what is not measured yet, then count."""
    chosen = _arguments()
    if chosen.serve or chosen.large:
        serve() if chosen.serve else measure_large()
        return
    rows = [json.loads(line) for line in chosen.results.read_text().splitlines()] if chosen.results.exists() else []
    names = _names(chosen, {row["name"] for row in rows})
    begun = time.monotonic()
    start = functools.partial(work, chosen.suite, chosen.seconds, chosen.standalone)
    found = workers.run(names, start, chosen.workers, chosen.seconds + 20, chosen.budget)
    for row in track(found, total=len(names), description="bundles"):
        rows.append(row)
        with chosen.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
    done = {row["name"] for row in rows}
    left = sum(name not in done for name in names)
    summary = _summary(rows) | {"left": left, "wall": round(time.monotonic() - begun)}
    if chosen.json:
        chosen.json.write_text(json.dumps({**summary, "rows": rows}, indent=1))
    for row in rows:
        if row["outcome"] not in ("equal", "skipped"):
            print(f"{row['name']:<28}{row['outcome']:<20}{row.get('reason', '')[:140]}")
    print(json.dumps(summary, indent=1))


def _names(chosen: argparse.Namespace, known: set[str]) -> list[str]:
    if chosen.only:
        return list(chosen.only)
    part, parts = map(int, chosen.slice.split("/"))
    names = suite_named(chosen.suite).names()[:: chosen.every][part - 1 :: parts]
    return [name for name in names if name not in known][: chosen.limit]


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The outcomes and the reasons of those that are not equal, each with its number."""
    reasons = Counter(row["reason"][:160] for row in rows if row["outcome"] not in ("equal", "skipped"))
    saved = [row for row in rows if "bytes" in row]
    return {
        "outcomes": dict(Counter(row["outcome"] for row in rows)),
        "reasons": dict(reasons.most_common()),
        "saved": len(saved),
        "within 2%": sum(row["bytes"] <= row["weights"] * 1.02 for row in saved),
        "within 2% and 64 kB": sum(bool(row.get("is_small")) for row in saved),
        "most kB beside the weights": max((round((row["bytes"] - row["weights"]) / 1024) for row in saved), default=0),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bundles", description=__doc__)
    parser.add_argument("--suite", choices=SUITES, default="transformers")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--every", type=int, default=1, help="of the architectures only each so-many-th")
    parser.add_argument("--slice", default="1/1", metavar="I/N", help="the I-th of N parts of the architectures")
    parser.add_argument("--seconds", type=int, default=120, help="the time limit of each architecture")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds after which nothing new is begun")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("bundles.jsonl"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="the summary and all rows")
    parser.add_argument("--large", action="store_true", help="only the time to load a bundle of a gigabyte")
    parser.add_argument("--standalone", action="store_true", help="plain Python instead of bundles")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
