"""ONNX beside torch's own exporter: ``python -m benchmarks.onnx [--step N]``.

Each architecture of transformers that runs is captured as exporters see it, and written by ``clew.to_onnx``, which lets
onnxruntime run the file on the example; and the original is written by ``torch.onnx.export``, whose file is run on the
example, too. Each outcome is appended to a results file at once, and a second run goes on where the first one stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import logging
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime
import torch

import clew
from benchmarks import resumable
from benchmarks.examination import EXAMPLE, TimeLimit, first_line, runnable, time_limit
from benchmarks.transformers_suite import TransformersSuite
from clew import tree

NEAR, GRACE = 1e-3, 20


def examine(name: str, seconds: int) -> dict[str, Any]:
    """What becomes of one architecture, by Clew and by torch."""
    row: dict[str, Any] = {"name": name, "outcome": "skipped"}
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = runnable(TransformersSuite(), name, row)
        if found is None:
            return row
        with tempfile.TemporaryDirectory() as folder:
            for way, write in (("outcome", _by_clew), ("torch", _by_torch)):
                args, kwargs = found.make(EXAMPLE)
                path = str(Path(folder) / f"{way}.onnx")
                row |= _judged(way, functools.partial(write, found.model, args, kwargs, path), seconds)
    return row


def _judged(way: str, write: Callable[[], str], seconds: int) -> dict[str, Any]:
    begun = time.monotonic()
    reason = "reason" if way == "outcome" else f"{way} reason"
    try:
        with time_limit(seconds):
            outcome, why = write(), ""
    except TimeLimit as error:
        outcome, why = "timeout", str(error)
    except Exception as error:
        outcome, why = "refused" if isinstance(error, clew.ClewError) else "failed", first_line(error)
    return {way: outcome, reason: why, f"{way} seconds": round(time.monotonic() - begun, 1)}


def _by_clew(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], path: str) -> str:
    with clew.exporting():
        captured = clew.trace(model, args, kwargs)
    written = clew.to_onnx(captured, path, args, kwargs)
    return "equal" if written.checked else "written"


def _by_torch(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], path: str) -> str:
    made = torch.onnx.export(model, args, kwargs=kwargs, dynamo=True, verbose=False)
    assert made is not None
    made.save(path)
    session = onnxruntime.InferenceSession(path)
    given = [leaf for leaf in tree.flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
    names = [one.name for one in session.get_inputs()]
    if len(names) > len(given):
        return "other inputs"
    named = {str(key): value for key, value in kwargs.items() if isinstance(value, torch.Tensor)}
    feed = {name: (named[name] if name in named else given[place]).numpy() for place, name in enumerate(names)}
    results = session.run(None, feed)
    wanted = [leaf for leaf in tree.flatten(model(*args, **kwargs))[0] if isinstance(leaf, torch.Tensor)]
    for found, value in zip(results, wanted, strict=False):
        if not torch.allclose(torch.as_tensor(found).to(value.dtype), value, NEAR, NEAR, equal_nan=True):
            return "WRONG"
    return "equal"


def prepare(seconds: int) -> Callable[[str], dict[str, Any]]:
    """What a worker does before its first architecture; gives the function that does one."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    onnxruntime.set_default_logger_severity(4)
    return functools.partial(examine, seconds=seconds)


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of everything that was measured."""
    judged = sorted((row for row in rows if row["outcome"] != "skipped"), key=lambda row: row["name"])
    lines = ["# ONNX of architectures", "", "Written by `python -m benchmarks.onnx`.", ""]
    for way in ("outcome", "torch"):
        counts = Counter(row[way] for row in judged).most_common()
        told = ", ".join(f"{kind} {count}" for kind, count in counts)
        lines.append(f"- {'Clew' if way == 'outcome' else 'torch.onnx.export'}: {told}")
    lines += ["", "| architecture | Clew | torch.onnx.export |", "|---|---|---|"]
    for row in judged:
        ours, theirs = (": ".join(filter(None, pair)) for pair in (_told(row, "outcome"), _told(row, "torch")))
        lines.append(f"| {row['name']} | {ours} | {theirs} |")
    return "\n".join(lines) + "\n"


def _told(row: dict[str, Any], way: str) -> tuple[str, str]:
    reason = str(row.get("reason" if way == "outcome" else f"{way} reason", ""))
    return row[way], reason[:160].replace("|", "/")


def main() -> None:
    """Measure what is not measured yet, then write the table of everything in the results file."""
    parser = argparse.ArgumentParser(description=__doc__)
    resumable.add_arguments(parser, "architectures", "onnx.jsonl", "docs/onnx_architectures.md")
    parser.add_argument("--step", type=int, default=1, help="every Nth architecture")
    parser.add_argument("--seconds", type=int, default=120, help="the time limit of each exporter")
    chosen = parser.parse_args()
    done = resumable.read(chosen.results, "name")
    names = chosen.only or [name for name in TransformersSuite().names()[:: chosen.step] if name not in done]
    resumable.measure(names, functools.partial(prepare, chosen.seconds), chosen, 2 * chosen.seconds + GRACE)
    chosen.table.write_text(markdown(list(resumable.read(chosen.results, "name").values())))


if __name__ == "__main__":
    main()
