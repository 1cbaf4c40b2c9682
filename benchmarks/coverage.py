"""Which architectures of transformers Clew captures: ``python -m benchmarks.coverage [--only NAME ...]``.

Each architecture that runs eagerly from a shrunk random configuration is captured, compared on the example, and
then called at another batch size and another length without a new capture. Each outcome is appended to a results file
at once, and a second run goes on where the first one stopped. The table goes to docs/coverage.md.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import logging
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

import clew
from benchmarks import architectures, coverage_table
from benchmarks.equality import difference, tensors
from benchmarks.example_inputs import STEP, Recipe, recipes
from clew.errors import CaptureError, GuardError

BATCH, LENGTH = 2, 12
VARIATIONS = {"values": (BATCH, LENGTH, 0), "batch": (3, LENGTH, 0), "one": (1, LENGTH, 0), "length": (BATCH, 17, 0)}
VARIATIONS["size"] = (BATCH, LENGTH, STEP)


class TimeLimit(BaseException):
    """One architecture took too long; not an Exception, so that no model swallows it."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeLimit in the body when it has run for this long."""

    def ring(number: int, frame: Any) -> None:
        raise TimeLimit(f"over {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def examine(name: str, seconds: int) -> dict[str, Any]:
    """Everything that is found out about one architecture, as one line of the results."""
    row: dict[str, Any] = {"name": name, "outcome": "skipped"}
    try:
        with time_limit(seconds), torch.no_grad():
            _examine(name, row)
    except TimeLimit as error:
        row["outcome"] = "timeout" if "class" in row else "skipped"
        row["reason"] = f"time limit: {error}"
    except Exception as error:
        row["outcome"] = "failed" if "nodes" in row else "skipped"
        _note(row, error)
    return row


def _examine(name: str, row: dict[str, Any]) -> None:
    found = _runnable(name, row)
    if found is None:
        return
    model, recipe = found
    inputs = recipe.make(model, BATCH, LENGTH)
    row["class"] = type(model).__name__
    row["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    row["inputs"] = {key: list(value.shape) for key, value in inputs.items()}
    row["eager_ms"] = _best_ms(lambda: _run(model, inputs))
    _look_for_blindness(_run(model, inputs), _run(model, recipe.make(model, BATCH, LENGTH, seed=1)), row)
    captured = _captured(model, inputs, row)
    if captured is None:
        return
    row["capture_ms"] = _best_ms(lambda: clew.trace(model, kwargs=inputs))
    row["nodes"] = len(list(captured.graph.nodes))
    row["guards"] = [str(guard).splitlines()[0] for guard in captured.guards]
    row["example"] = _same(model, captured, inputs, row)
    for variation, (batch, length, grow) in VARIATIONS.items():
        row[variation] = _vary(model, captured, recipe.make(model, batch, length, grow, seed=1), row)
    row["outcome"] = _outcome(row)


def _runnable(name: str, row: dict[str, Any]) -> tuple[nn.Module, Recipe] | None:
    """The first shrunk model and recipe of inputs that run eagerly; the reasons why not are kept in the row."""
    reasons = []
    for level in architectures.LEVELS:
        try:
            model = architectures.build(name, level)
        except Exception as error:
            reasons.append(f"{level}: build: {_first_line(error)}")
            continue
        for recipe in recipes(model):
            try:
                _run(model, recipe.make(model, BATCH, LENGTH))
                return model, recipe
            except Exception as error:
                reasons.append(f"{level}: {','.join(recipe.names)} {recipe.layout}: {_first_line(error)}")
    row["reason"] = reasons[0] if reasons else "no recipe"
    row["reasons"] = reasons[:12]
    return None


def _look_for_blindness(one: Any, other: Any, row: dict[str, Any]) -> None:
    """Note where a comparison would say little: results that are not finite, or the same for other inputs."""
    values = [tensor for tensor in tensors(one) if tensor.is_floating_point()]
    if not any(bool(torch.isfinite(tensor).any()) for tensor in values):
        row["blind"] = "no finite number in the result"
    elif not difference(one, other):
        row["blind"] = "the same result for other inputs"


def _captured(model: nn.Module, inputs: dict[str, Any], row: dict[str, Any]) -> Any:
    try:
        return clew.trace(model, kwargs=inputs)
    except CaptureError as error:
        row["outcome"] = "refused"
        _note(row, error)
    except Exception as error:
        row["outcome"] = "failed"
        _note(row, error)
    return None


def _same(model: nn.Module, captured: Any, inputs: dict[str, Any], row: dict[str, Any]) -> str:
    """``equal``, ``guarded``, ``WRONG`` or ``failed``: the captured graph beside the model on these inputs."""
    expected = _run(model, inputs)
    try:
        actual = _run(captured, inputs)
    except GuardError as error:
        _note(row, error)
        return "guarded"
    except Exception as error:
        _note(row, error)
        return "failed"
    different = difference(expected, actual)
    if different:
        row["reason"] = f"differs at {different}"
        return "WRONG"
    return "equal"


def _vary(model: nn.Module, captured: Any, inputs: dict[str, Any], row: dict[str, Any]) -> str:
    """The same at other sizes; ``n/a`` where the model itself does not take them, or nothing varies."""
    shapes = {key: list(value.shape) for key, value in inputs.items()}
    if shapes == row["inputs"] and "values" in row:
        return "n/a"
    try:
        _run(model, inputs)
    except Exception:
        return "n/a"
    found = _same(model, captured, inputs, row)
    return "general" if found == "equal" else found


def _outcome(row: dict[str, Any]) -> str:
    found = [row["example"], *(row[variation] for variation in VARIATIONS)]
    for outcome in ("WRONG", "failed", "guarded"):
        if outcome in found:
            return outcome
    return "general"


def _run(model: Any, inputs: dict[str, Any]) -> Any:
    """One call with its own copy of the inputs and a fixed seed."""
    torch.manual_seed(7)
    return model(**copy.deepcopy(inputs))


def _best_ms(run: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return round(best * 1000, 2)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def _note(row: dict[str, Any], error: Exception) -> None:
    """Keep what an error says, where in the user's code it is, and where it was raised."""
    row["reason"] = _first_line(error)
    row["where"] = str(getattr(error, "where", "")).strip()
    row["why"] = str(getattr(error, "why", ""))
    frames = traceback.extract_tb(error.__traceback__)
    row["frames"] = [f"{Path(frame.filename).name}:{frame.lineno} {frame.line}" for frame in frames[-6:]]


def _read(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return {row["name"]: row for row in rows}


def _run_all(names: list[str], path: Path, seconds: int, console: Console) -> None:
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(TextColumn("{task.fields[name]:<28}"), *columns, console=console) as progress:
        task = progress.add_task("", total=len(names), name="")
        for name in names:
            progress.update(task, name=name)
            row = examine(name, seconds)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            gc.collect()
            progress.advance(task)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these architectures, measured again")
    parser.add_argument("--results", type=Path, default=Path("coverage.jsonl"), help="the resumable results file")
    parser.add_argument("--limit", type=int, help="at most this many architectures in this run")
    parser.add_argument("--seconds", type=int, default=60, help="the time limit of each architecture")
    parser.add_argument("--table", type=Path, default=Path("docs/coverage.md"), help="where the table is written")
    return parser.parse_args()


def main() -> None:
    """Measure what is not measured yet, then write the table of everything in the results file."""
    chosen = _arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    done = _read(chosen.results)
    names = chosen.only or [name for name in architectures.names() if name not in done]
    console = Console()
    _run_all(names[: chosen.limit], chosen.results, chosen.seconds, console)
    rows = list(_read(chosen.results).values())
    chosen.table.write_text(coverage_table.markdown(rows))
    console.print(coverage_table.summary(rows))


if __name__ == "__main__":
    main()
