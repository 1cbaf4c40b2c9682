"""What checkpointing saves on a transformer of twelve layers: ``python -m benchmarks.checkpoint [budget ...]``.

A GPT-2 with random weights, in training, goes through ``clew.backward`` and ``clew.checkpoint``. Out comes a table: for
each budget the bytes that are saved for the backward pass, how many nodes are computed again, and the processor time of
a step. Beside it is what autograd itself saves, counted by its hooks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import GPT2Config, GPT2LMHeadModel

import clew
from clew.errors import BackendError

LAYERS, WIDTH, ROWS, LENGTH, WORDS = 12, 128, 4, 64, 500
BUDGETS = (1.0, 0.75, 0.5, 0.35, 0.25)


def model() -> GPT2LMHeadModel:
    """The transformer."""
    config = GPT2Config(n_layer=LAYERS, n_head=4, n_embd=WIDTH, vocab_size=WORDS, n_positions=2 * LENGTH,
                        bos_token_id=0, eos_token_id=0)  # fmt: skip
    return GPT2LMHeadModel(config)


def saved_by_autograd(program: torch.nn.Module, given: dict[str, Any]) -> int:
    """The bytes that autograd saves, without parameters, buffers and arguments."""
    found: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        found[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = program(**given).loss
    there = [*program.parameters(), *program.buffers(), *filter(torch.is_tensor, given.values())]
    known = {tensor.untyped_storage()._cdata for tensor in there}
    del loss
    return sum(storage.nbytes() for place, storage in found.items() if place not in known)


def seconds_of(program: Callable[..., Any], given: dict[str, Any], repeats: int = 5) -> float:
    """The processor time of a step, the least of some."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        program(**given).loss.backward()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint", description=__doc__)
    parser.add_argument("budgets", nargs="*", type=float, default=BUDGETS)
    torch.manual_seed(0)
    program = model()
    tokens = torch.randint(0, WORDS, (ROWS, LENGTH))
    given = {"input_ids": tokens, "labels": tokens, "use_cache": False}
    plain = clew.backward(program, (), given)
    table = Table("budget", "bytes saved", "nodes computed again", "seconds a step")
    table.add_row("autograd", f"{saved_by_autograd(program, given):,}", "", f"{seconds_of(program, given):.3f}")
    for budget in parser.parse_args().budgets:
        try:
            made = clew.checkpoint(plain, budget=budget)
        except BackendError as error:
            table.add_row(f"{budget:g}", error.what)
            continue
        again = len(made.backward.graph.nodes) - len(plain.backward.graph.nodes)
        table.add_row(f"{budget:g}", f"{made.saved_bytes:,}", str(again), f"{seconds_of(made, given):.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
