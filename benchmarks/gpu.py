"""GPT-2 on a GPU, the original and its capture: ``python -m benchmarks.gpu [--length N] [--calls N] [--small]``.

Half precision, a batch of one. Each is called as it is, replayed from a CUDA graph, and compiled by ``torch.compile``;
the table tells the time until the first result is there, the time of a call, and how far the result is from that of
the original. Rounds of the two take turns, so that both find the same machine. Without a GPU there is nothing to
measure, and the program says so; ``--small`` runs all but the CUDA graphs on the CPU, to try the program itself.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import clew

Call = Callable[[], torch.Tensor]
Made = tuple[Call, float]
"""How to call, and the seconds until the first result was there."""
_ROUNDS, _WARM_UP = 5, 3


def gpt2(small: bool, device: str) -> Any:
    """A GPT-2 with random weights, without a cache, in half precision on a GPU."""
    transformers = importlib.import_module("transformers")
    sizes = {"n_layer": 2, "n_embd": 64, "n_head": 4} if small else {}
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False, **sizes))
    dtype = torch.float16 if device == "cuda" else torch.float32
    return model.eval().to(device=device, dtype=dtype)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _timed(make: Callable[[], Call]) -> Made:
    _wait()
    start = time.perf_counter()
    call = make()
    call()
    _wait()
    return call, time.perf_counter() - start


def _logits(program: Any, ids: torch.Tensor) -> Call:
    def call() -> torch.Tensor:
        result: torch.Tensor = program(input_ids=ids).logits
        return result

    return call


def as_it_is(program: Any, ids: torch.Tensor) -> Call:
    """Called by Python."""
    return _logits(program, ids)


def in_cuda_graph(program: Any, ids: torch.Tensor) -> Call:
    """Replayed from a CUDA graph, recorded after some calls on a stream of their own."""
    call = _logits(program, ids)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay() -> torch.Tensor:
        graph.replay()
        return result

    return replay


def compiled(program: Any, ids: torch.Tensor) -> Call:
    """Compiled as one graph."""
    return _logits(torch.compile(program, fullgraph=True), ids)


def _seconds(programs: dict[str, Call], calls: int) -> dict[str, float]:
    """The time of a call of each: the median of some rounds of many, which take turns."""
    found: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(_ROUNDS):
        for name, call in programs.items():
            _wait()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            _wait()
            found[name].append((time.perf_counter() - start) / calls)
    return {name: statistics.median(times) for name, times in found.items()}


def measure(small: bool, length: int, calls: int) -> Table:
    """The table."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = gpt2(small, device)
    ids = torch.randint(0, 1000, (1, length), device=device)
    start = time.perf_counter()
    captured = clew.trace(model, kwargs={"input_ids": ids})
    seconds = time.perf_counter() - start
    expected = model(input_ids=ids).logits
    ways = {"as it is": as_it_is, "CUDA graph": in_cuda_graph, "torch.compile": compiled}
    if device == "cpu":
        del ways["CUDA graph"]
    table = Table(title=f"GPT-2, batch 1, length {length}, {expected.dtype}; captured in {seconds:.2f} s")
    for title in ("program", "way", "start-up (s)", "a call (us)", "largest difference"):
        table.add_column(title, justify="left" if title in ("program", "way") else "right")
    for way, use in ways.items():
        for row in _rows(use, {"original": model, "capture": captured}, ids, expected, calls):
            table.add_row(row[0], way, *row[1:])
        gc.collect()
    return table


def _rows(
    use: Callable[[Any, torch.Tensor], Call],
    programs: dict[str, Any],
    ids: torch.Tensor,
    expected: torch.Tensor,
    calls: int,
) -> list[tuple[str, ...]]:
    """For each program its name, start-up, time and difference; or what was said instead of a result."""
    made: dict[str, Made] = {}
    said: dict[str, str] = {}
    for name, program in programs.items():
        try:
            made[name] = _timed(functools.partial(use, program, ids))
        except Exception as error:
            said[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
    seconds = _seconds({name: call for name, (call, _) in made.items()}, calls)
    rows = [(name, "-", "-", text) for name, text in said.items()]
    for name, (call, start_up) in made.items():
        difference = (call().float() - expected.float()).abs().max().item()
        rows.append((name, f"{start_up:.2f}", f"{seconds[name] * 1e6:.0f}", f"{difference:.1e}"))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--length", type=int, default=128, help="tokens")
    parser.add_argument("--calls", type=int, default=50, help="calls in each of five rounds")
    parser.add_argument("--small", action="store_true", help="two narrow layers, on the CPU if there is no GPU")
    chosen = parser.parse_args()
    if not torch.cuda.is_available() and not chosen.small:
        print("there is no GPU here: nothing to measure")
        return
    warnings.simplefilter("ignore")
    with torch.no_grad():
        Console(width=140).print(measure(chosen.small, chosen.length, chosen.calls))


if __name__ == "__main__":
    main()
