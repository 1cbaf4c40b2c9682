"""What passes gain, and that they keep what programs do: ``python -m benchmarks.passes [--corpus]``.

Without an option each pass is run on captures of ResNet-50, BERT-base, GPT-2 and ViT-B/16 (random weights), and a call
before and after is timed; batch norm folding stands beside torch.fx's own fuser. A gain below the noise of the machine
is told as none. With ``--corpus`` each pass is run on a copy of one capture of each model of the coverage corpus, and
what it then computes is compared with the original's result on another batch, or on the example where a guard refuses
that one. Each outcome is appended to a results file at once, and a second run goes on where the first one stopped.
Operations that ``clew.profile`` has no formula for are listed.
"""

from __future__ import annotations

import argparse
import copy
import functools
import gc
import json
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch.fx.experimental import optimization

import clew
from benchmarks import programs, workers
from benchmarks.coverage import GRACE, SUITES, suite_named
from benchmarks.equality import tensors
from benchmarks.examination import EXAMPLE, VARIATIONS, TimeLimit, first_line, run_once, runnable, time_limit
from benchmarks.measure import best_times
from clew.errors import GuardError


def _everything(captured: Any) -> None:
    for name in ("remove_dropout", "fold_batch_norm", "constant_folding", "simplify", "common_subexpressions"):
        PASSES[name](captured)
    clew.recognize(captured)
    clew.dead_code(captured)


PASSES: dict[str, Callable[[Any], Any]] = {
    "dead_code": clew.dead_code,
    "common_subexpressions": clew.common_subexpressions,
    "constant_folding": clew.constant_folding,
    "simplify": clew.simplify,
    "functionalize": clew.functionalize,
    "reinplace": clew.reinplace,
    "inline_modules": clew.inline_modules,
    "recognize": clew.recognize,
    "fold_batch_norm": clew.fold_batch_norm,
    "remove_dropout": clew.remove_dropout,
    "everything": _everything,
}
BAD = ("WRONG", "failed")
"""How the outcomes begin that must not be."""
NOISE = 0.03
"""Gains and losses up to this part of the time are none."""
TOLERANCE = 2e-3
"""How far results may be from the original's, in parts of the largest number of the tensor."""


# ---- gains -----------------------------------------------------------------------------------------------------------


def _gpt2() -> tuple[str, Any, tuple[Any, ...]]:
    model = transformers.GPT2Model(transformers.GPT2Config(use_cache=False)).eval()
    return "GPT-2, 64 tokens", model, (torch.randint(0, 50000, (1, 64)),)


def _vit() -> tuple[str, Any, tuple[Any, ...]]:
    return "ViT-B/16", transformers.ViTModel(transformers.ViTConfig()).eval(), (torch.randn(1, 3, 224, 224),)


def _of_programs(make: Callable[[], Any]) -> tuple[str, Any, tuple[Any, ...]]:
    found = make()
    return found.title, found.callable, found.args


MODELS: dict[str, Callable[[], tuple[str, Any, tuple[Any, ...]]]] = {
    "resnet50": functools.partial(_of_programs, programs.resnet50),
    "bert_base": functools.partial(_of_programs, programs.bert_base),
    "gpt2": _gpt2,
    "vit": _vit,
}


def gains(model: Any, args: tuple[Any, ...], turns: int) -> list[dict[str, Any]]:
    """One row for each pass: nodes before and after, how long the pass took, and the time of a call."""
    plain = clew.trace(model, args)
    expected = plain(*args)
    rows = []
    for name, apply in PASSES.items():
        captured = clew.trace(model, args)
        before = clew.to_text(captured.graph)
        start = time.perf_counter()
        apply(captured)
        seconds = time.perf_counter() - start
        row = {"pass": name, "nodes": (len(plain.graph.nodes), len(captured.graph.nodes)), "ms": seconds * 1e3}
        row["distance"] = distance(expected, captured(*args))
        if clew.to_text(captured.graph) != before:
            row["times"] = best_times([functools.partial(one, *args) for one in (plain, captured)], 1, turns)
        rows.append(row)
    return rows


def fuser(model: Any, args: tuple[Any, ...], turns: int) -> dict[str, Any]:
    """Batch norm folding beside torch.fx's own: the time of the transformation, of a call, and the distance."""
    captured = clew.symbolic_trace(model)
    start = time.perf_counter()
    clew.fold_batch_norm(captured)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    theirs = optimization.fuse(model)
    seconds = time.perf_counter() - start
    expected = model(*args)
    calls = best_times([lambda: model(*args), lambda: theirs(*args), lambda: captured(*args)], 1, turns)
    distances = [distance(expected, one(*args)) for one in (theirs, captured)]
    return {"transformation": (seconds, ours), "calls": calls, "distances": distances}


def told(row: dict[str, Any]) -> str:
    """The gain of a pass in words."""
    if "times" not in row:
        return "none: it finds nothing to do"
    before, after = row["times"]
    gain = 1 - after / before
    text = "none" if abs(gain) <= NOISE else f"{'gain' if gain > 0 else 'loss'} of {abs(gain):.0%}"
    return f"{text}: {before * 1e3:.1f} -> {after * 1e3:.1f} ms"


def distance(expected: Any, actual: Any) -> float:
    """How far results are apart, in parts of the largest number of their tensor; infinite where their forms differ."""
    ours, theirs = tensors(actual), tensors(expected)
    if len(ours) != len(theirs) or any(one.shape != other.shape for one, other in zip(ours, theirs, strict=True)):
        return float("inf")
    return max(map(_apart, theirs, ours), default=0.0)


def _apart(expected: torch.Tensor, actual: torch.Tensor) -> float:
    if expected.dtype != actual.dtype:
        return float("inf")
    if not expected.is_floating_point():
        return 0.0 if torch.equal(expected, actual) else float("inf")
    one, other = expected.double(), actual.double()
    same = (one == other) | (one.isnan() & other.isnan())
    apart = torch.where(same, torch.zeros_like(one), (one - other).abs())
    finite = one[one.isfinite()]
    scale = max(1e-6, float(finite.abs().max())) if finite.numel() else 1.0
    return float(apart.max()) / scale if apart.numel() else 0.0


def _show_gains(chosen: argparse.Namespace, console: Console) -> None:
    for name in chosen.models:
        torch.manual_seed(0)
        title, model, args = MODELS[name]()
        console.print(f"\n{title}")
        with torch.no_grad():
            for row in gains(model, args, chosen.turns):
                nodes = f"{row['nodes'][0]} -> {row['nodes'][1]} nodes"
                apart = f"results {row['distance']:.0e} apart" if row["distance"] else "equal to the bit"
                console.print(f"  {row['pass']:<22} {nodes:<20} in {row['ms']:7.1f} ms  {told(row):<34} {apart}")
            if name == "resnet50":
                found = fuser(model, args, chosen.turns)
                (theirs, ours), calls = found["transformation"], [f"{one * 1e3:.1f} ms" for one in found["calls"]]
                console.print(f"  torch.fx fuses in {theirs:.2f} s, Clew folds (traced before) in {ours:.2f} s")
                console.print(f"  a call: eager {calls[0]}, torch.fx {calls[1]}, Clew {calls[2]}")
                console.print("  apart: torch.fx {:.0e}, Clew {:.0e}".format(*found["distances"]))


# ---- the corpus ------------------------------------------------------------------------------------------------------


def examine(suite: Any, chosen: list[str], seconds: int, name: str) -> dict[str, Any]:
    """These passes on one architecture: equal, guarded, unchanged or what went wrong, for each."""
    row: dict[str, Any] = {"name": name, "outcome": "skipped", "passes": {}}
    start = time.process_time()
    try:
        with time_limit(seconds), torch.no_grad():
            _examine(suite, name, chosen, row)
    except TimeLimit as error:
        row["outcome"], row["reason"] = "timeout", str(error)
    except Exception as error:
        row["reason"] = first_line(error)
    gc.collect()
    row["seconds"] = round(time.process_time() - start, 1)
    return row


def _examine(suite: Any, name: str, chosen: list[str], row: dict[str, Any]) -> None:
    found = runnable(suite, name, row)
    if found is None:
        return
    example = found.make(EXAMPLE)
    expected = run_once(found.model, example)
    row["unstable"] = distance(expected, run_once(found.model, example)) > TOLERANCE
    calls = [*_other_batch(found), (example, expected)]
    captured = clew.trace(found.model, args=example[0], kwargs=example[1])
    row["unknown"] = _without_formula(captured, example)
    working = None
    for label in chosen:
        working = copy.deepcopy(captured) if working is None else working
        row["passes"][label] = _outcome(PASSES[label], working, calls)
        if row["passes"][label].startswith("WRONG"):
            row["passes"][label] = _in_double(PASSES[label], found, row["passes"][label])
        if row["passes"][label] != "unchanged":
            working = None
    bad = [one for one in row["passes"].values() if one.startswith(BAD)]
    row["outcome"] = "n/a" if row["unstable"] else bad[0].partition(":")[0] if bad else "equal"


def _in_double(apply: Callable[[Any], Any], found: Any, outcome: str) -> str:
    """The same in double precision: models that choose the largest of nearly equal numbers choose others after a pass
    that rounds otherwise, which says nothing about the pass."""
    model, example = copy.deepcopy(found.model).double(), _doubled(found.make(EXAMPLE))
    captured = clew.trace(model, args=example[0], kwargs=example[1])
    again = _outcome(apply, captured, [(example, run_once(model, example))])
    return "equal in double precision" if again.startswith("equal") else outcome


def _doubled(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: _doubled(item) for key, item in value.items()}
    return type(value)(map(_doubled, value)) if isinstance(value, (list, tuple)) else value


def _other_batch(found: Any) -> list[tuple[Any, Any]]:
    """A call with another batch and what the original gives for it; none where the original raises."""
    try:
        inputs = found.make(VARIATIONS["batch"])
        return [(inputs, run_once(found.model, inputs))]
    except Exception:
        return []


def _without_formula(captured: Any, example: Any) -> list[str]:
    args, kwargs = copy.deepcopy(example)
    try:
        return list(clew.profile(captured, *args, **kwargs).unknown)
    except Exception as error:
        return [f"failed: {first_line(error)}"]


def _outcome(apply: Callable[[Any], Any], captured: Any, calls: list[tuple[Any, Any]]) -> str:
    before = clew.to_text(captured.graph)
    try:
        apply(captured)
        clew.verify(captured.graph)
        if clew.to_text(captured.graph) == before:
            return "unchanged"
        return _compared(captured, calls)
    except Exception as error:
        return f"failed: {first_line(error)}"


def _compared(captured: Any, calls: list[tuple[Any, Any]]) -> str:
    """The first call that no guard refuses decides: a second one would bind the program, which takes longest of all."""
    for inputs, expected in calls:
        try:
            far = distance(expected, run_once(captured, inputs))
        except GuardError:
            if inputs is calls[-1][0]:
                raise
            continue
        if far > TOLERANCE:
            return f"WRONG: {far:.1e} apart"
        return "equal" if inputs is calls[0][0] else "equal, another batch is guarded"
    return "equal"


def prepare(suite: str, chosen: list[str], seconds: int) -> Callable[[str], dict[str, Any]]:
    """What a worker does before its first task; gives the function that does one."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    return functools.partial(examine, suite_named(suite), chosen, seconds)


def _run_corpus(chosen: argparse.Namespace, console: Console) -> None:
    done = {row["name"]: row for row in _read(chosen.results) if row["suite"] == chosen.suite}
    sample = suite_named(chosen.suite).names()[:: chosen.every]
    names = chosen.only or [name for name in sample if not _is_done(done.get(name), chosen)]
    names = names[: chosen.limit]
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    work = functools.partial(prepare, chosen.suite, chosen.passes, chosen.seconds)
    with Progress(TextColumn("{task.fields[name]:<40}"), *columns, console=console) as progress:
        task = progress.add_task("", total=len(names), name="")
        for row in workers.run(names, work, chosen.workers, chosen.seconds + GRACE):
            with chosen.results.open("a") as file:
                file.write(json.dumps({"suite": chosen.suite, **row}) + "\n")
            progress.update(task, name=f"{row['name'][:28]} {row['outcome']}", advance=1)
    for line in summary(_read(chosen.results)):
        console.print(line)


def _is_done(row: dict[str, Any] | None, chosen: argparse.Namespace) -> bool:
    return row is not None and (row["outcome"] in ("skipped", "timeout") or row["passes"].keys() >= set(chosen.passes))


def _read(path: Path) -> list[dict[str, Any]]:
    """One row for each architecture; what was found of a pass later stands in the place of what was found before."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in (json.loads(line) for line in lines if line.strip()):
        before = rows.get((row["suite"], row["name"]), {}).get("passes", {})
        rows[row["suite"], row["name"]] = {**row, "passes": {**before, **row.get("passes", {})}}
    return list(rows.values())


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """How many architectures there are of each outcome, for each pass, and those that went wrong."""
    counts = Counter(row["outcome"] for row in rows)
    lines = [f"{len(rows)} architectures: " + ", ".join(f"{count} {name}" for name, count in counts.most_common())]
    for label in PASSES:
        found = [row["passes"][label] for row in rows if label in row["passes"] and not row.get("unstable")]
        kinds = Counter(one.partition(":")[0] for one in found)
        lines.append(f"  {label:<22} " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    for row in rows:
        bad = {name: one for name, one in row["passes"].items() if one.startswith(BAD)}
        lines += [f"  {row['name']}, {name}: {one}" for name, one in bad.items() if not row.get("unstable")]
    unknown = Counter(name for row in rows for name in row.get("unknown", ()))
    lines.append("without a formula: " + (", ".join(f"{name} ({count})" for name, count in unknown.items()) or "none"))
    return lines


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="which models are timed")
    parser.add_argument("--turns", type=int, default=7, help="how often each call is timed")
    parser.add_argument("--corpus", action="store_true", help="every pass over the models of the coverage corpus")
    parser.add_argument("--suite", choices=SUITES, default="transformers", help="which set of architectures")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these architectures")
    parser.add_argument("--passes", nargs="+", choices=PASSES, default=list(PASSES), help="these passes on the corpus")
    parser.add_argument("--every", type=int, default=1, help="each so many-th architecture, for a sample")
    parser.add_argument("--limit", type=int, help="at most this many architectures in this run")
    parser.add_argument("--seconds", type=int, default=120, help="the time limit of each architecture")
    parser.add_argument("--workers", type=int, default=1, help="processes that work side by side")
    parser.add_argument("--results", type=Path, default=Path("passes.jsonl"), help="the resumable results file")
    return parser.parse_args()


def main() -> None:
    """Measure gains, or go through the corpus."""
    chosen, console = _arguments(), Console(width=160)
    if chosen.corpus:
        _run_corpus(chosen, console)
    else:
        _show_gains(chosen, console)


if __name__ == "__main__":
    main()
