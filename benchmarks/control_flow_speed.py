"""Captured control flow against the Python it was captured from, in time per call.

Each function is captured from its example, and the two take turns on the same arguments in one process; what counts is
the ratio of their best times. Below 1 the capture is faster. ``statements`` says what the generated code runs on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

import clew
from benchmarks.measure import best_times


class Subject(NamedTuple):
    """A function, the arguments that it is captured on, and those of the timed calls."""

    title: str
    function: Callable[..., Any]
    example: tuple[Any, ...]
    inputs: tuple[Any, ...]


class Timing(NamedTuple):
    """Seconds per call of the capture and of the original, and the statements of the generated code."""

    title: str
    captured: float
    original: float
    statements: str


def branch(x: torch.Tensor) -> torch.Tensor:
    """One branch on a sum."""
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


def ladder(x: torch.Tensor) -> torch.Tensor:
    """Four branches on one value."""
    peak = x.max()
    if peak > 100:
        return x / 100
    elif peak > 10:
        return x / 10
    elif peak > 1:
        return x
    return x * 10


def halving(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    """A loop of as many rounds as the norm asks for."""
    n = 0
    while x.norm() > 1:
        x = x / 2
        n += 1
    return x, n


def newton(a: torch.Tensor) -> torch.Tensor:
    """A square root to some digits."""
    guess = a
    while (guess * guess - a).abs() > 1e-3:
        guess = (guess + a / guess) / 2
    return guess


def repeated(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """A loop over a traced number."""
    for _ in range(n.item()):
        x = torch.tanh(x) + 1
    return x


def scan(x: torch.Tensor) -> torch.Tensor:
    """A recurrence over rows with a branch."""
    h = torch.zeros(16)
    for row in x:
        h = torch.tanh(h) + row
        if h.sum() > 2:
            h = h / 2
    return h


LONG = torch.full((16,), 2.0**18)
WAVE = torch.linspace(-1, 1, 64 * 16).reshape(64, 16)
SUBJECTS = [
    Subject("one `if`", branch, (torch.ones(16),), (-torch.ones(16),)),
    Subject("`if` / `elif` ladder", ladder, (torch.ones(16),), (torch.ones(16) * 50,)),
    Subject("`while`, 20 rounds", halving, (LONG / 2**12,), (LONG,)),
    Subject("`while`, Newton", newton, (torch.tensor(9.0),), (torch.tensor(900.0),)),
    Subject("`for` over a traced number, 50 rounds", repeated, (LONG, torch.tensor(3)), (LONG, torch.tensor(50))),
    Subject("`for` over 64 rows, with an `if`", scan, (WAVE,), (-WAVE,)),
]


def measure(subject: Subject) -> Timing:
    """Capture one function and time it beside the original."""
    captured = clew.trace(subject.function, args=subject.example)
    inputs, function = subject.inputs, subject.function
    try:
        torch.testing.assert_close(captured(*inputs), function(*inputs))
    except clew.GuardError:
        inputs = subject.example  # guarded: only the example's way can be timed
    alone, _ = best_times([lambda: function(*inputs), lambda: None], calls=1, turns=3)
    calls = max(1, int(0.03 / max(alone, 1e-7)))
    mine, theirs = best_times([lambda: captured(*inputs), lambda: function(*inputs)], calls)
    note = "" if inputs is subject.inputs else "guarded, on the example: "
    return Timing(subject.title, mine, theirs, note + _statements(captured.code))


def _statements(code: str) -> str:
    """The loops and branches of generated code, guards aside."""
    kinds = {ast.While: "while", ast.For: "for", ast.If: "if"}
    found = [word for node in ast.walk(ast.parse(code)) for kind, word in kinds.items() if type(node) is kind]
    guards = code.count("require(") + code.count("require_array(")
    found = [word for word in found if word != "if"] + ["if"] * max(0, found.count("if") - guards)
    return ", ".join(f"{found.count(word)} {word}" for word in dict.fromkeys(found)) or "none"


def markdown(timings: list[Timing]) -> str:
    """The timings as a table."""
    lines = [
        "| program | capture, us | original, us | ratio | statements in the code |",
        "| --- | --- | --- | --- | --- |",
    ]
    for one in timings:
        times = f"{one.captured * 1e6:.1f} | {one.original * 1e6:.1f} | {one.captured / one.original:.2f}"
        lines.append(f"| {one.title} | {times} | {one.statements} |")
    return "\n".join(lines)
