"""What passes gain: ``python -m benchmarks.passes``.

Each pass is run on captures of ResNet-50, BERT-base, GPT-2 and ViT-B/16 (random weights), and a call before and after
is timed; batch norm folding stands beside torch.fx's own fuser. A gain below the noise of the machine is told as none.
That passes keep what programs do is judged on the coverage corpus, by ``benchmarks.passes_corpus``.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers
from rich.console import Console
from torch.fx.experimental import optimization

import clew
from benchmarks import programs
from benchmarks.measure import best_times
from benchmarks.passes_corpus import PASSES, distance

GAINS = [
    "dead_code",
    "common_subexpressions",
    "constant_folding",
    "simplify",
    "functionalize",
    "reinplace",
    "inline_modules",
    "recognize",
    "fold_batch_norm",
    "remove_dropout",
    "everything",
]
"""The passes that could make a call faster."""
NOISE = 0.03
"""Gains and losses up to this part of the time are none."""


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
    for name in GAINS:
        captured = clew.trace(model, args)
        before = clew.to_text(captured.graph)
        start = time.perf_counter()
        PASSES[name].apply(captured, (args, {}))
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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="which models are timed")
    parser.add_argument("--turns", type=int, default=7, help="how often each call is timed")
    return parser.parse_args()


def main() -> None:
    """Measure gains."""
    _show_gains(_arguments(), Console(width=160))


if __name__ == "__main__":
    main()
