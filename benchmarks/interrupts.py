"""Interrupts at random moments of a capture: `python -m benchmarks.interrupts [--count N] [--seed N]`.

Each program is captured again and again while a timer raises ``KeyboardInterrupt``, at a moment drawn from the time
that a capture takes. After each, nothing may be left behind: no place is patched, functions are unchanged, state
has its values. Each program runs in a child process, so that a crash is noticed, too.
"""

from __future__ import annotations

import argparse
import builtins
import functools
import math
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import torch

import clew
from benchmarks.forks import in_child
from clew.capture.patches import patched_places


class Program(NamedTuple):
    """A program, its arguments, and the state that it changes."""

    call: Callable[..., Any]
    args: tuple[Any, ...]
    state: Callable[[], Any] = tuple


def _normalised() -> Program:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    return Program(model, (torch.ones(3, 4),), lambda: [tensor.clone() for tensor in model.state_dict().values()])


def _branches() -> Program:
    def program(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            if x.sum() > 0:
                x = x * 2
            else:
                x = x - 1
            while x.sum() < 50:
                x = x * 1.5
        return x

    return Program(program, (torch.ones(2, 3),))


def _counter() -> Program:
    seen: list[int] = []

    def program(x: torch.Tensor) -> torch.Tensor:
        seen.append(len(seen))
        return x.add_(1) * random.random() + torch.rand(3)

    argument = torch.zeros(3)
    return Program(program, (argument,), lambda: (list(seen), argument.clone()))


def _transformer() -> Program:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2)
    return Program(model, (torch.ones(2, 3, 8),), lambda: [tensor.clone() for tensor in model.state_dict().values()])


def _arrays() -> Program:
    def program(x: numpy.ndarray) -> Any:
        total = numpy.zeros_like(x)
        for row in x:
            total = total + numpy.sin(row) if row.sum() > 0 else total
        return total

    return Program(program, (numpy.ones((3, 3)),))


def _written() -> Program:
    kept = numpy.zeros(3)

    def program(x: numpy.ndarray) -> Any:
        kept[:] += x
        return kept * math.pi

    return Program(program, (numpy.ones(3),), kept.copy)


def _bert() -> Program:
    from transformers import BertConfig, BertModel

    numbers = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertModel(BertConfig(vocab_size=30, **numbers)).train()
    return Program(lambda ids: model(ids)[0], (torch.ones(2, 5, dtype=torch.int64),))


def _training() -> Program:
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss

    return Program(program, (torch.ones(2, 3),), lambda: [tensor.clone() for tensor in model.state_dict().values()])


def _closures() -> Program:
    scale = 2.0

    def inner(value: torch.Tensor) -> torch.Tensor:
        nonlocal scale
        scale += 1
        return value * scale

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([inner(row) for row in x])

    return Program(program, (torch.ones(3, 2),), lambda: scale)


def _symbolic() -> Program:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Softmax(-1))
    return Program(model, (torch.ones(1, 2),))


LEFT = ("patched", "replaced", "state")
"""What may be left behind: places in the registry, functions that were replaced, values that were changed."""
PROGRAMS = {
    "batch norm": _normalised, "branches": _branches, "counter": _counter, "transformer": _transformer,
    "arrays": _arrays, "written arrays": _written, "bert": _bert, "training step": _training,
    "closures": _closures, "symbolic": _symbolic,
}  # fmt: skip


def _capture(name: str, program: Program) -> None:
    clew.symbolic_trace(program.call) if name == "symbolic" else clew.trace(program.call, args=program.args)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _watched() -> list[Any]:
    """What a capture replaces, as far as it is easily named: functions of builtins, torch and NumPy."""
    owners = (builtins, math, os, random, time, torch, torch.nn.functional, numpy)
    found: list[Any] = [value for owner in owners for value in vars(owner).values() if callable(value)]
    return [*found, torch.nn.Module.__call__, torch.nn.Module.__call__.__code__, torch.is_grad_enabled()]


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, (torch.Tensor, numpy.ndarray)):
        return bool((left == right).all())
    return bool(left == right)


def left_behind(name: str, count: int, seed: int) -> dict[str, int]:
    """What random interrupts of one program's captures have left, counted; ``interrupted`` are those that came."""
    program, draw, found = PROGRAMS[name](), random.Random(seed), Counter[str]()
    torch.set_num_threads(1)
    for _ in range(2):
        _capture(name, program)
    start = time.perf_counter()
    _capture(name, program)
    takes = time.perf_counter() - start
    watched, state = _watched(), program.state()
    before = signal.signal(signal.SIGALRM, _interrupt)
    for _ in range(count):
        try:
            signal.setitimer(signal.ITIMER_REAL, max(draw.random() * takes * 1.1, 1e-6))
            _capture(name, program)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            found["interrupted"] += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        found["patched"] += patched_places() > 0
        now = _watched()
        found["replaced"] += any(one is not other for one, other in zip(watched, now, strict=True))
        found["state"] += not _same(state, program.state())
        if any(found[what] for what in LEFT):
            break  # what is left behind now would be counted again and again
    signal.signal(signal.SIGALRM, before)
    return dict(found)


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line asks for; the exit status is 1 if anything was left behind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interrupts", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="interrupts of each program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program", choices=list(PROGRAMS), nargs="+", default=list(PROGRAMS))
    options = parser.parse_args(arguments)
    is_clean = True
    for name in options.program:
        told = in_child(functools.partial(left_behind, name, options.count, options.seed), 600, str)
        print(f"{name}: {told}", flush=True)
        is_clean = is_clean and isinstance(told, dict) and not any(told[what] for what in LEFT)
    return int(not is_clean)


if __name__ == "__main__":
    sys.exit(main())
