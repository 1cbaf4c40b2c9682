"""Gradients of every architecture: ``python -m benchmarks.backward [--step N]``.

Each architecture of transformers that is captured goes through ``clew.backward``; its gradients are compared with those
of autograd, on the whole result of the same call, and once more with half of the memory. Each outcome is appended to a
results file at once, and a second run goes on where the first one stopped. The table of everything in it goes to
docs/gradients.md.
"""

from __future__ import annotations

import argparse
import functools
import gc
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from rich.console import Console

import clew
from benchmarks import resumable
from benchmarks.examination import EXAMPLE, TimeLimit, first_line, runnable, time_limit
from benchmarks.transformers_suite import TransformersSuite
from clew import tree
from clew.errors import BackendError, CaptureError, ClewError

JUDGED = ("equal", "refused", "WRONG", "failed", "timeout")
GRACE = 20


def examine(name: str, seconds: int) -> dict[str, Any]:
    """Everything that is found out about one architecture."""
    row: dict[str, Any] = {"name": name, "outcome": "skipped"}
    start = time.process_time()
    try:
        with time_limit(seconds):
            _examine(name, row)
    except TimeLimit as error:
        row |= {"outcome": "timeout" if "class" in row else "skipped", "reason": str(error)}
    except Exception as error:
        row |= {"outcome": "failed" if "class" in row else "skipped", "reason": first_line(error)}
    gc.collect()
    row["seconds"] = round(time.process_time() - start, 1)
    return row


def _examine(name: str, row: dict[str, Any]) -> None:
    with torch.no_grad():
        found = runnable(TransformersSuite(), name, row)
    if found is None:
        return
    args, kwargs = found.make(EXAMPLE)
    try:
        captured = clew.trace(found.model, args, kwargs)
    except CaptureError as error:
        row["reason"] = f"not captured: {first_line(error)}"
        return
    wanted = _gradients(found.model, found.model, args, kwargs)
    if wanted is None:
        row["reason"] = "no result depends on the parameters"
        return
    row["class"] = type(found.model).__name__
    try:
        made = clew.backward(captured, args, kwargs)
    except BackendError as error:
        row |= {"outcome": "refused", "reason": error.what, "where": error.where}
        return
    row |= {"nodes": len(made.joint.graph.nodes), "saved": made.saved_bytes}
    row["outcome"], row["reason"] = _compared(_gradients(made, found.model, args, kwargs), wanted)
    if row["outcome"] == "equal":
        _with_half(made, found.model, args, kwargs, wanted, row)


def _with_half(made: Any, model: Any, args: Any, kwargs: Any, wanted: Any, row: dict[str, Any]) -> None:
    try:
        half = clew.checkpoint(made, budget=0.5)
    except ClewError as error:
        row["half"] = first_line(error)
        return
    row["half"] = half.saved_bytes
    outcome, reason = _compared(_gradients(half, model, args, kwargs), wanted)
    if outcome != "equal":
        row |= {"outcome": outcome, "reason": f"with half of the memory: {reason}"}


def _tensors(value: Any, seen: dict[int, Any]) -> Iterator[torch.Tensor]:
    """The tensors in a result, also those that objects hold, such as caches; each once."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from _tensors(list(vars(value).values()), seen)


def _gradients(program: Any, model: torch.nn.Module, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """The gradients of all that the result says; None if that depends on no parameter."""
    model.zero_grad()
    torch.manual_seed(0)
    args, kwargs = tree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
    found = list(_tensors(program(*args, **kwargs), {}))
    parts = [one.abs().sum() if one.is_complex() else one.sin().sum() for one in found if one.requires_grad]
    if not parts:
        return None
    torch.stack([one.double() for one in parts]).sum().backward()
    return {name: None if one.grad is None else one.grad.clone() for name, one in model.named_parameters()}


def _compared(found: Any, wanted: dict[str, Any]) -> tuple[str, str]:
    for name, one in wanted.items():
        other = found[name]
        if one is None and (other is None or not other.any()):
            continue
        if one is None or other is None:
            return "WRONG", f"{name} has {'a' if one is None else 'no'} gradient"
        if not torch.allclose(other, one, rtol=1e-4, atol=1e-5 * float(one.abs().max() + 1), equal_nan=True):
            return "WRONG", f"{name} differs by {float((other - one).abs().max()):.2g}"
    return "equal", ""


def _prepare(seconds: int) -> Callable[[str], dict[str, Any]]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    return functools.partial(examine, seconds=seconds)


def summary(rows: list[dict[str, Any]]) -> str:
    """The counts in one line."""
    outcomes = Counter(row["outcome"] for row in rows)
    ran = sum(outcomes[one] for one in JUDGED)
    parts = [f"{one} {outcomes[one]} ({outcomes[one] / ran:.1%})" for one in JUDGED if outcomes[one]]
    skipped = (
        f"; {outcomes['skipped']} do not run, are not captured, or have no gradient" if outcomes["skipped"] else ""
    )
    return f"{ran} architectures: " + ", ".join(parts) + skipped


def markdown(rows: list[dict[str, Any]]) -> str:
    """The whole page."""
    lines = ["# Gradients of architectures", ""]
    lines += ["Small random models of transformers, captured and given to `clew.backward`; written by"]
    lines += ["`python -m benchmarks.backward`. Bytes are those that the forward pass saves for the backward pass.", ""]
    lines += [
        summary(rows),
        "",
        "| architecture | outcome | nodes | bytes saved | with half of it |",
        "|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: row["name"]):
        outcome = f"{row['outcome']}: {row['reason']}" if row.get("reason") else row["outcome"]
        cells = (row["name"], outcome, row.get("nodes", ""), row.get("saved", ""), row.get("half", ""))
        lines.append("| " + " | ".join(_cell(str(cell)) for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return text[:120].replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backward", description=__doc__)
    resumable.add_arguments(parser, "architectures", "backward.jsonl", "docs/gradients.md")
    parser.add_argument("--step", type=int, default=1, help="every Nth architecture")
    parser.add_argument("--again", nargs="+", metavar="OUTCOME", default=[], help="measure these outcomes again")
    parser.add_argument("--seconds", type=int, default=120, help="the time limit of each architecture")
    return parser.parse_args()


def main() -> None:
    """Measure what is not measured yet, then write the table of everything in the results file."""
    chosen = _arguments()
    console = Console()
    done = {name for name, row in resumable.read(chosen.results, "name").items() if row["outcome"] not in chosen.again}
    names = chosen.only or [name for name in TransformersSuite().names()[:: chosen.step] if name not in done]
    resumable.measure(names, functools.partial(_prepare, chosen.seconds), chosen, chosen.seconds + GRACE)
    rows = list(resumable.read(chosen.results, "name").values())
    chosen.table.write_text(markdown(rows))
    console.print(summary(rows))


if __name__ == "__main__":
    main()
