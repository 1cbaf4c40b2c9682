"""What the corpora of NumPy, JAX and TensorFlow become elsewhere: ``python -m benchmarks.translate_corpora``.

Each program of the corpora in ``tests/frameworks`` is captured, translated to every other framework, and compared with
the original on its example and on other values and sizes; where it draws random numbers, in shapes and dtypes alone.
Each outcome is appended to a results file at once, and a second run goes on where the first one stopped. The table of
everything in it goes to docs/translated_corpora.md.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn

import clew
from benchmarks import resumable, workers
from benchmarks.examination import first_line
from clew import tree
from clew.errors import GuardError, TranslationError
from clew.translate.check import difference
from clew.translate.program import conversion

FRAMEWORKS = ("numpy", "torch", "jax", "tensorflow")
SOURCES = ("numpy", "jax", "tensorflow")
OUTCOMES = ("translated", "refused", "guarded", "WRONG", "failed")
SECONDS = 120


@dataclass(frozen=True)
class Case:
    """A program of a corpus with its calls, the first of which is the example, and the variables that it keeps."""

    name: str
    function: Any
    calls: tuple[Any, ...]
    variables: tuple[Any, ...] = ()


def _numpy() -> Iterator[Case]:
    import jax

    from tests.frameworks.numpy.algorithms import ALGORITHMS

    jax.config.update("jax_enable_x64", True)
    for name, (function, calls) in ALGORITHMS.items():
        yield Case(name, function, tuple(calls))


def _jax() -> Iterator[Case]:
    from tests.frameworks.jax.programs import PROGRAMS, others

    for name, (function, example) in PROGRAMS.items():
        more = () if name == "repeated_smoothing" else (others(example),)
        yield Case(name, function, (example, *more))


def _tensorflow() -> Iterator[Case]:
    from tests.frameworks.tensorflow import corpus_algorithms, corpus_keras, corpus_networks

    for one in (*corpus_networks.ALL, *corpus_algorithms.ALL, *corpus_keras.programs()):
        calls = [one.call(seed) for seed in range(3)] + ([] if one.specs is None else [one.call(3, 5)])
        yield Case(one.label, one.function, tuple(calls), tuple(one.variables))


CASES: dict[str, Callable[[], Iterator[Case]]] = {"numpy": _numpy, "jax": _jax, "tensorflow": _tensorflow}


_captured: dict[int, Any] = {}
"""The capture of the case that was examined last, by the identity of the case."""


def examine(case: Case, source: str, to: str) -> dict[str, Any]:
    """What becomes of one program in one framework."""
    before = [one.numpy() for one in case.variables]

    def reset() -> None:
        for one, value in zip(case.variables, before, strict=True):
            one.assign(value)

    try:
        if id(case) not in _captured:
            _captured.clear()
            example = copy.deepcopy(case.calls[0]) if source == "numpy" else case.calls[0]
            _captured[id(case)] = (case, clew.trace(case.function, example))
        captured = _captured[id(case)][1]
        reset()
        try:
            made = clew.translate(captured, to)
        except TranslationError:
            refusals = clew.translate(captured, to, dry_run=True)
            if not refusals:
                raise
            return {"outcome": "refused", "reasons": [f"{one.operation}: {one.reason}" for one in refusals]}
        outcomes = [_call(case.function, made, call, source, to) for call in case.calls]
    except Exception as error:
        return {"outcome": "failed", "reasons": [first_line(error)]}
    finally:
        reset()
    found = next((one for one in outcomes if one.startswith("WRONG")), "")
    if found:
        return {"outcome": "WRONG", "reasons": [found]}
    guarded = [one for one in outcomes[1:] if one]
    if outcomes[0]:
        return {"outcome": "failed", "reasons": outcomes[:1]}
    return {"outcome": "translated", "reasons": guarded, "notes": list(getattr(made, "notes", ()))}


def _call(function: Any, made: Any, call: Any, source: str, to: str) -> str:
    """Nothing where both give the same, otherwise what differs, or the guard that refused the call."""
    arrays, convert = conversion(source, to)

    def there(leaf: Any) -> Any:
        return convert(arrays.to_numpy(leaf)) if arrays.is_array(leaf) else leaf

    wanted = tree.flatten(function(*copy.deepcopy(call) if source == "numpy" else call))[0]
    leaves, structure = tree.flatten(copy.deepcopy(call) if source == "numpy" else call)
    try:
        got = tree.flatten(made(*tree.unflatten(list(map(there, leaves)), structure), **_random(made, to)))[0]
    except GuardError as error:
        return f"guarded: {first_line(error)}"
    if len(got) != len(wanted):
        return "WRONG: another number of results"
    for one, other in zip(got, wanted, strict=True):
        if isinstance(other, str):
            if one != other:
                return f"WRONG: {one!r}, not {other!r}"
            continue
        have = numpy.asarray(one.detach() if hasattr(one, "detach") else one)
        want = arrays.to_numpy(other) if arrays.is_array(other) else numpy.asarray(other)
        if getattr(made, "draws", False):
            have, want = numpy.zeros_like(have), numpy.zeros_like(want)
        problem = difference(have, want)
        if problem:
            return f"WRONG: {problem}"
    return ""


def _random(made: Any, to: str) -> dict[str, Any]:
    """What a translated program draws random numbers from."""
    if not getattr(made, "needs_key", False) or to == "torch":
        return {}
    if to == "numpy":
        return {"rng": numpy.random.default_rng(0)}
    if to == "jax":
        import jax

        return {"key": jax.random.key(0)}
    import tensorflow as tf

    return {"generator": tf.random.Generator.from_seed(0)}


def _prepare(source: str) -> Callable[[str], dict[str, Any]]:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    cases = {case.name: case for case in CASES[source]()}

    def run(task: str) -> dict[str, Any]:
        to, name = task.split(" ", 1)
        return {"source": source, "to": to, "program": name, **examine(cases[name], source, to)}

    return run


def _measure(source: str, tasks: list[str], results: Path, console: Console) -> None:
    columns = (TextColumn("{task.fields[name]:<50}"), *Progress.get_default_columns()[:2], MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(tasks), name="")
        for row in workers.run(tasks, functools.partial(_prepare, source), 1, SECONDS):
            if "source" not in row:
                to, name = row["name"].split(" ", 1)
                row = {
                    "source": source,
                    "to": to,
                    "program": name,
                    "outcome": "failed",
                    "reasons": ["it took too long"],
                }
            with results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            progress.update(task, name=f"{source} {row['program'][:30]} {row['outcome']}", advance=1)


def markdown(rows: list[dict[str, Any]]) -> str:
    """The whole page."""
    lines = ["# Translated programs of NumPy, JAX and TensorFlow", ""]
    lines += [
        "The corpora of `tests/frameworks` in every other framework; written by",
        "`python -m benchmarks.translate_corpora`. Translated means: equal on the example and on other values",
        "and sizes, or refused there by a guard. Programs that draw random numbers are compared in shapes and dtypes.",
        "",
        "| from | to | programs | translated | refused | wrong | failed |",
        "|---|---|---|---|---|---|---|",
    ]
    for source in SOURCES:
        for to in FRAMEWORKS:
            part = [row for row in rows if (row["source"], row["to"]) == (source, to)]
            if part:
                count = Counter(row["outcome"] for row in part)
                share = f"{count['translated']} ({count['translated'] / len(part):.0%})"
                lines.append(f"| {source} | {to} | {len(part)} | {share} | {count['refused']} | {count['WRONG']} | "
                             f"{count['failed']} |")  # fmt: skip
    for source in SOURCES:
        part = [row for row in rows if row["source"] == source]
        if part:
            lines += ["", *_programs(source, part)]
    return "\n".join(lines) + "\n"


def _programs(source: str, rows: list[dict[str, Any]]) -> list[str]:
    targets = [to for to in FRAMEWORKS if to != source]
    lines = [f"## From {source}", "", f"| program | {' | '.join(targets)} | what stands in the way |",
             "|---" * (len(targets) + 2) + "|"]  # fmt: skip
    by_name: dict[str, dict[str, Any]] = {}
    for row in rows:
        by_name.setdefault(row["program"], {})[row["to"]] = row
    for name in sorted(by_name):
        cells = [by_name[name].get(to, {}).get("outcome", "") for to in targets]
        reasons = sorted({text for row in by_name[name].values() if row["outcome"] != "translated"
                          for text in row["reasons"][:1]})  # fmt: skip
        lines.append(f"| {name} | {' | '.join(cells)} | {_cell('; '.join(reasons))} |")
    return lines


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")[:160]


def main() -> None:
    """Measure what is not measured yet, then write the table of everything in the results file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.translate_corpora", description=__doc__)
    parser.add_argument("--source", choices=SOURCES, nargs="+", default=list(SOURCES))
    parser.add_argument("--to", choices=FRAMEWORKS, nargs="+", default=list(FRAMEWORKS))
    parser.add_argument("--step", type=int, default=1, help="every Nth program")
    parser.add_argument(
        "--results", type=Path, default=Path("translate_corpora.jsonl"), help="the resumable results file"
    )
    parser.add_argument(
        "--table", type=Path, default=Path("docs/translated_corpora.md"), help="where the table is written"
    )
    chosen = parser.parse_args()
    console = Console()
    for source in chosen.source:
        done = resumable.read(chosen.results, "source", "to", "program")
        names = [case.name for case in CASES[source]()][:: chosen.step]
        tasks = [
            f"{to} {name}" for name in names for to in chosen.to if to != source and (source, to, name) not in done
        ]
        if tasks:
            _measure(source, tasks, chosen.results, console)
    rows = list(resumable.read(chosen.results, "source", "to", "program").values())
    chosen.table.write_text(markdown(rows))
    console.print(markdown(rows).split("## ")[0], markup=False)


if __name__ == "__main__":
    main()
