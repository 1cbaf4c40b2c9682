"""Every pass over every architecture of the coverage corpus: ``python -m benchmarks.passes_corpus --workers 8``.

Each pass is run on a copy of one capture of a model, and what it then computes is compared with what the model computes
on another batch, or on the example where a guard refuses that one. ``convert_dtype`` is judged against the model in
double precision, ``place`` against the model on that device; without a GPU that is torch's meta device, and only sizes
and dtypes are compared. Operations that ``clew.profile`` has no formula for are listed.

The outcomes are data: ``benchmarks/passes.json``, written anew after each architecture. What is in there, or in a file
that ``--done`` names, is not run again; ``--slice 2/4`` takes a quarter of the names, and after ``--stop`` seconds
nothing new begins. ``--merge FILE ...`` runs nothing: it adds outcomes of other machines and writes the page,
``docs/passes.md``.
"""

from __future__ import annotations

import argparse
import copy
import functools
import gc
import json
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console

import clew
from benchmarks import machine, passes_page, workers
from benchmarks.coverage import GRACE, SUITES, suite_named
from benchmarks.equality import tensors
from benchmarks.examination import EXAMPLE, VARIATIONS, TimeLimit, first_line, run_once, runnable, time_limit
from clew.errors import GuardError, InteropError

TOLERANCE = 2e-3
"""How far results may be from the original's, in parts of the largest number of the tensor."""
OF_ONE_PASS = 90
"""Seconds that one pass, with its calls, may take."""
Inputs = tuple[Any, Any]


class Trial(NamedTuple):
    """A pass, and the model that it is judged by where that is not the captured one."""

    apply: Callable[[Any, Inputs], Any]
    judge: Callable[[Any], Any] | None = None
    prepared: Callable[[Inputs], Inputs] = copy.deepcopy
    """The inputs as the judge takes them."""


def _in_place(one: Callable[[Any], Any]) -> Trial:
    return Trial(lambda captured, example: one(captured))


def _everything(captured: Any, example: Inputs) -> Any:
    for name in ("remove_dropout", "fold_batch_norm", "constant_folding", "simplify", "common_subexpressions"):
        PASSES[name].apply(captured, example)
    clew.recognize(captured)
    return clew.dead_code(captured)


def _moved(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _moved(item, change) for key, item in value.items()}
    return type(value)(_moved(item, change) for item in value) if isinstance(value, (list, tuple)) else value


def _doubled(value: Any) -> Any:
    return _moved(value, lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)


def _elsewhere() -> str:
    return "cuda" if torch.cuda.is_available() else "meta"


PASSES: dict[str, Trial] = {
    "dead_code": _in_place(clew.dead_code),
    "common_subexpressions": _in_place(clew.common_subexpressions),
    "constant_folding": _in_place(clew.constant_folding),
    "simplify": _in_place(clew.simplify),
    "functionalize": _in_place(clew.functionalize),
    "reinplace": _in_place(clew.reinplace),
    "inline_modules": _in_place(clew.inline_modules),
    "recognize": _in_place(clew.recognize),
    "fold_batch_norm": _in_place(clew.fold_batch_norm),
    "remove_dropout": _in_place(clew.remove_dropout),
    "everything": Trial(_everything),
    "symbolic_types": _in_place(clew.symbolic_types),
    "nested": _in_place(clew.nested),
    "flat": _in_place(lambda captured: clew.flat(clew.nested(captured))),
    "convert_dtype": Trial(
        lambda captured, example: clew.convert_dtype(captured, torch.float64),
        lambda model: copy.deepcopy(model).double(),
        _doubled,
    ),
    "place": Trial(
        lambda captured, example: clew.place(captured, _elsewhere()),
        lambda model: copy.deepcopy(model).to(_elsewhere()),
        lambda inputs: _moved(inputs, lambda tensor: tensor.to(_elsewhere())),
    ),
    "decompose": Trial(lambda captured, example: clew.decompose(captured, *copy.deepcopy(example))),
}


# ---- how far results are apart ---------------------------------------------------------------------------------------


def distance(expected: Any, actual: Any) -> float:
    """How far results are apart, in parts of the largest number of their tensor; infinite where their forms differ."""
    ours, theirs = tensors(actual), tensors(expected)
    if len(ours) != len(theirs) or any(one.shape != other.shape for one, other in zip(ours, theirs, strict=True)):
        return float("inf")
    return max(map(_apart, theirs, ours), default=0.0)


def _apart(expected: torch.Tensor, actual: torch.Tensor) -> float:
    if expected.dtype != actual.dtype or expected.device != actual.device:
        return float("inf")
    if expected.is_meta:
        return 0.0
    if not expected.is_floating_point():
        return 0.0 if torch.equal(expected, actual) else float("inf")
    one, other = expected.double(), actual.double()
    same = (one == other) | (one.isnan() & other.isnan())
    apart = torch.where(same, torch.zeros_like(one), (one - other).abs())
    finite = one[one.isfinite()]
    scale = max(1e-6, float(finite.abs().max())) if finite.numel() else 1.0
    return float(apart.max()) / scale if apart.numel() else 0.0


# ---- one architecture ------------------------------------------------------------------------------------------------


def examine(suite: Any, chosen: list[str], seconds: int, name: str) -> dict[str, Any]:
    """These passes on one architecture: equal, guarded, unchanged or what went wrong, for each."""
    row: dict[str, Any] = {"name": name, "outcome": "skipped", "passes": {}}
    start = time.monotonic()
    step = ["it did not run from a shrunk configuration in time"]
    try:
        with time_limit(seconds), torch.no_grad():
            prepared = _prepared(suite, name, row, step)
        if prepared is not None:
            with torch.no_grad():
                _run_passes(prepared, chosen, row, start + seconds)
    except TimeLimit as error:
        row["outcome"] = "timeout" if "label" in row else "skipped"
        row["reason"] = f"{step[0]}: {error}"
    except Exception as error:
        row["outcome"] = "failed" if "label" in row else "skipped"
        row["reason"] = f"{step[0]}: {first_line(error)}"
    gc.collect()
    row["seconds"] = round(time.monotonic() - start, 1)
    return row


class _Prepared(NamedTuple):
    """A model that runs, its capture, and the calls that are compared: inputs, and what the model gives for them."""

    found: Any
    captured: Any
    calls: list[tuple[Inputs, Any]]


def _prepared(suite: Any, name: str, row: dict[str, Any], step: list[str]) -> _Prepared | None:
    found = runnable(suite, name, row)
    row.pop("reasons", None)
    if found is None:
        return None
    row["label"] = found.label
    step[0] = "its plain calls"
    example = found.make(EXAMPLE)
    expected = run_once(found.model, example)
    row["unstable"] = distance(expected, run_once(found.model, example)) > TOLERANCE
    calls = [*_other_batch(found), (example, expected)]
    step[0] = "its capture"
    captured = clew.trace(found.model, args=example[0], kwargs=example[1])
    step[0] = "its profile"
    row["unknown"] = _without_formula(captured, example)
    return _Prepared(found, captured, calls)


def _run_passes(prepared: _Prepared, chosen: list[str], row: dict[str, Any], end: float) -> None:
    for label in chosen:
        remaining = min(OF_ONE_PASS, int(end - time.monotonic()))
        if remaining <= 0:
            row["passes"][label] = "timeout: not begun"
            continue
        try:
            with time_limit(remaining):
                row["passes"][label] = _judged(label, prepared)
        except TimeLimit as error:
            row["passes"][label] = f"timeout: {error}"
    row["outcome"] = passes_page.outcome_of(row)


def _judged(label: str, prepared: _Prepared) -> str:
    trial, calls = PASSES[label], prepared.calls
    if label == "decompose":
        return _decomposed(trial, prepared.found)
    if trial.judge is not None:
        try:
            judge = trial.judge(prepared.found.model)
            calls = [(inputs, run_once(judge, trial.prepared(inputs))) for inputs, _ in calls]
        except Exception as error:
            return f"n/a: the model itself does not: {first_line(error)}"
    outcome = _outcome(trial, copy.deepcopy(prepared.captured), calls)
    return _in_double(trial, prepared.found, outcome) if outcome.startswith("WRONG") and not trial.judge else outcome


def _decomposed(trial: Trial, found: Any) -> str:
    """The outcome of a pass by torch's exporter: on the sizes of the example, and without a cache in the result, which
    it does not take. A model that it does not export itself is not judged."""
    model, example = copy.deepcopy(found.model), found.make(EXAMPLE)
    if getattr(getattr(model, "config", None), "use_cache", False):
        model.config.use_cache = False
    expected = run_once(model, example)
    outcome = _outcome(trial, clew.trace(model, args=example[0], kwargs=example[1]), [(example, expected)])
    if not outcome.startswith((*passes_page.BAD, "refused")):
        return outcome
    try:
        args, kwargs = copy.deepcopy(example)
        exported = torch.export.export(model, args, kwargs, strict=False).run_decompositions().module()
        far = distance(expected, run_once(exported, example))
    except Exception as error:
        return f"n/a: torch does not export the model itself: {first_line(error)}"
    return outcome if far <= TOLERANCE else f"n/a: torch's export of the model itself is {far:.1e} apart"


def _in_double(trial: Trial, found: Any, outcome: str) -> str:
    """The same in double precision: models that choose the largest of nearly equal numbers choose others after a pass
    that rounds otherwise, which says nothing about the pass."""
    model, example = copy.deepcopy(found.model).double(), _doubled(found.make(EXAMPLE))
    try:
        expected = run_once(model, example)
        captured = clew.trace(model, args=example[0], kwargs=example[1])
    except Exception:
        return outcome
    again = _outcome(trial, captured, [(example, expected)])
    return "equal in double precision" if again.startswith("equal") else outcome


def _other_batch(found: Any) -> list[tuple[Inputs, Any]]:
    """A call with another batch and what the original gives for it; none where the original raises."""
    try:
        inputs = found.make(VARIATIONS["batch"])
        return [(inputs, run_once(found.model, inputs))]
    except Exception:
        return []


def _without_formula(captured: Any, example: Inputs) -> list[str]:
    args, kwargs = copy.deepcopy(example)
    try:
        return list(clew.profile(captured, *args, **kwargs).unknown)
    except Exception as error:
        return [f"failed: {first_line(error)}"]


def _outcome(trial: Trial, captured: Any, calls: list[tuple[Inputs, Any]]) -> str:
    before = clew.to_text(captured.graph)
    try:
        program = trial.apply(captured, calls[-1][0])
        clew.verify(program.graph)
        if program is captured and not trial.judge and clew.to_text(captured.graph) == before:
            return "unchanged"
        return _compared(program, calls)
    except GuardError as error:
        return f"guarded: {first_line(error)}"
    except InteropError as error:
        return f"refused: {first_line(error)}"
    except Exception as error:
        return f"failed: {first_line(error)}"


def _compared(program: Any, calls: list[tuple[Inputs, Any]]) -> str:
    """The first call that no guard refuses decides: a second one would bind the program, which takes longest of all."""
    for inputs, expected in calls:
        try:
            far = distance(expected, run_once(program, inputs))
        except GuardError:
            if inputs is calls[-1][0]:
                raise
            continue
        if far > TOLERANCE:
            return f"WRONG: {far:.1e} apart"
        return "equal" if inputs is calls[0][0] else "equal, another batch is guarded"
    return "equal"


# ---- all of them -----------------------------------------------------------------------------------------------------


def prepare(suite: str, chosen: list[str], seconds: int) -> Callable[[str], dict[str, Any]]:
    """What a worker does before its first task; gives the function that does one."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.backends.cudnn.allow_tf32 = False
    return functools.partial(examine, suite_named(suite), chosen, seconds)


def read(path: Path) -> dict[str, Any]:
    """The outcomes in a file: the machine, and a row for each architecture by its name."""
    empty: dict[str, Any] = {"machine": {}, "rows": {}}
    return json.loads(path.read_text()) if path.exists() else empty


def merged(before: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """A row with what was found of other passes before."""
    return {**row, "passes": {**before.get("passes", {}), **row.get("passes", {})}}


def write(path: Path, found: dict[str, Any]) -> None:
    """The outcomes as a file, whole or not at all: one line for each architecture."""
    rows = sorted((name, _shortened(row)) for name, row in found["rows"].items())
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows)
    text = f'{{"machine": {json.dumps(found["machine"])},\n"rows": {{\n{lines}\n}}}}\n'
    beside = path.with_suffix(".part")
    beside.write_text(text)
    beside.replace(path)


def _shortened(value: Any) -> Any:
    """A row without what is empty, and with the beginnings of what errors say."""
    if isinstance(value, dict):
        kept = {key: _shortened(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if key == "passes" or item not in ("", [], False)}
    return value[:_MOST_TEXT] if isinstance(value, str) else value


_MOST_TEXT = 160


def _measure(chosen: argparse.Namespace, console: Console) -> None:
    found = read(chosen.results)
    found["machine"] = machine.describe() | {"device of place": _elsewhere()}
    names = list(_open_names(chosen, found))
    console.print(f"{len(names)} architectures are open")
    work = functools.partial(prepare, chosen.suite, chosen.passes, chosen.seconds)
    for row in workers.run(names, work, chosen.workers, chosen.seconds + GRACE, chosen.stop):
        name = row.pop("name")
        found["rows"][name] = merged(found["rows"].get(name, {}), {"suite": chosen.suite, "passes": {}, **row})
        write(chosen.results, found)
        console.print(f"{name:<40} {row['outcome']:<8} {row.get('seconds', 0):6.1f} s  {row.get('reason', '')[:100]}")
    for line in passes_page.summary(found["rows"], list(PASSES)):
        console.print(line)


def _open_names(chosen: argparse.Namespace, found: dict[str, Any]) -> Iterator[str]:
    done = dict(found["rows"])
    for path in chosen.done:
        done.update(read(path)["rows"])
    part, parts = map(int, chosen.slice.split("/"))
    for name in chosen.only or suite_named(chosen.suite).names()[part - 1 :: parts]:
        row = done.get(name)
        wanted = row is None or row["outcome"] in chosen.again or not _is_done(row, chosen.passes)
        if chosen.only or wanted:
            yield name


def _is_done(row: dict[str, Any], chosen: list[str]) -> bool:
    return row["outcome"] in ("skipped", "timeout") or row["passes"].keys() >= set(chosen)


def _merge(chosen: argparse.Namespace) -> None:
    found = read(chosen.results)
    for path in chosen.merge:
        other = read(path)
        found["machine"] = other["machine"]
        made = ", ".join(f"{name} {other['machine'][name]}" for name in ("Python", "torch", "transformers"))
        for name, row in other["rows"].items():
            new = merged(found["rows"].get(name, {}), {"made": made, **row})
            found["rows"][name] = {**new, "outcome": passes_page.outcome_of(new)}
    write(chosen.results, found)
    chosen.page.write_text(passes_page.markdown(found, list(PASSES)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes_corpus", description=__doc__)
    parser.add_argument("--suite", choices=SUITES, default="transformers", help="which set of architectures")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these architectures, measured again")
    parser.add_argument(
        "--again", nargs="+", default=[], metavar="OUTCOME", help="measure those with these outcomes again"
    )
    parser.add_argument("--passes", nargs="+", choices=PASSES, default=list(PASSES), help="these passes")
    parser.add_argument("--slice", default="1/1", metavar="N/M", help="the N-th of M parts of the names")
    parser.add_argument("--seconds", type=int, default=240, help="the time limit of each architecture")
    parser.add_argument("--stop", type=float, default=math.inf, help="begin nothing new after so many seconds")
    parser.add_argument("--workers", type=int, default=1, help="processes that work side by side")
    parser.add_argument("--results", type=Path, default=Path("benchmarks/passes.json"), help="where outcomes are kept")
    parser.add_argument("--done", nargs="+", type=Path, default=[], help="further files of outcomes, only read")
    parser.add_argument("--merge", nargs="+", type=Path, help="add these files of outcomes and write the page")
    parser.add_argument("--page", type=Path, default=Path("docs/passes.md"), help="where the page is written")
    return parser.parse_args()


def main() -> None:
    """Go through the corpus, or merge what other machines found."""
    chosen = _arguments()
    if chosen.merge is not None:
        _merge(chosen)
    else:
        _measure(chosen, Console(width=160))


if __name__ == "__main__":
    main()
