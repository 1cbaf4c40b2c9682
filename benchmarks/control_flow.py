"""Branches and loops of graphs against the same Python written by hand: ``python -m benchmarks.control_flow``.

Each program is a graph, as a capture would make it, whose generated code is timed beside a function with the same
statements. The two take turns; what counts is the ratio of the best times per call. Below 1 the graph is faster.
With ``--table``: what becomes of each construct, in Clew and in other tools (``benchmarks/control_flow_table.py``).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table

import clew
from benchmarks import control_flow_page, control_flow_speed, control_flow_table
from benchmarks.measure import best_times


class Program(NamedTuple):
    """A graph as text, the same by hand, and the arguments of a call."""

    name: str
    text: str
    by_hand: Callable[..., Any]
    inputs: tuple[Any, ...]


def branch_by_hand(self: Any, x: Any) -> Any:
    """One ``if``."""
    if x > 0:
        y = x + 1
    else:
        y = x - 1
    return y


def loop_by_hand(self: Any, n: Any) -> Any:
    """A ``for`` over numbers with a branch."""
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total = total + i
    return total


def halving_by_hand(self: Any, x: Any) -> Any:
    """A ``while`` on an array."""
    n = 0
    while x.norm() > 1:
        x = x / 2
        n = n + 1
    return x, n


def scan_by_hand(self: Any, x: Any, h: Any) -> Any:
    """A recurrence over the rows of an array, with a branch on the values, that keeps all states."""
    states = []
    for row in x:
        h = torch.tanh(h) + row
        if h.sum() > 2:
            h = h / 2
        states.append(h)
    return torch.stack(states)


PROGRAMS = [
    Program(
        "if on a number",
        """
        graph(%x) {
          %gt = function operator.gt(%x, 0)
          %cond = function clew.cond(%gt, graph(%x) {
            %add = function operator.add(%x, 1)
            return %add
          }, graph(%x) {
            %sub = function operator.sub(%x, 1)
            return %sub
          }, (%x,))
          return %cond
        }
        """,
        branch_by_hand,
        (3,),
    ),
    Program(
        "for over 1000 numbers, with an if",
        """
        graph(%n) {
          %range_1 = function builtins.range(%n)
          %loop = function clew.for_loop(%range_1, graph(%total, %i) {
            %mod = function operator.mod(%i, 3)
            %eq = function operator.eq(%mod, 0)
            %cond = function clew.cond(%eq, graph(%total, %i) {
              %add = function operator.add(%total, %i)
              return (%add,)
            }, graph(%total, %i) {
              return (%total,)
            }, (%total, %i))
            %total_1 = function operator.getitem(%cond, 0)
            return (%total_1,)
          }, (0,))
          %total = function operator.getitem(%loop, 0)
          return %total
        }
        """,
        loop_by_hand,
        (1000,),
    ),
    Program(
        "while on a tensor, 20 rounds",
        """
        graph(%x) {
          %loop = function clew.while_loop(graph(%x, %n) {
            %norm = method norm(%x)
            %gt = function operator.gt(%norm, 1)
            return %gt
          }, graph(%x, %n) {
            %x_1 = function operator.truediv(%x, 2)
            %n_1 = function operator.add(%n, 1)
            return (%x_1, %n_1)
          }, (%x, 0))
          %x_1 = function operator.getitem(%loop, 0)
          %n = function operator.getitem(%loop, 1)
          return (%x_1, %n)
        }
        """,
        halving_by_hand,
        (torch.full((16,), 2.0**18),),
    ),
    Program(
        "scan over 64 rows, with an if on a tensor",
        """
        graph(%x, %h) {
          %loop = function clew.for_loop(%x, graph(%h, %row) {
            %tanh = function torch.tanh(%h)
            %h_1 = function operator.add(%tanh, %row)
            %sum_1 = method sum(%h_1)
            %gt = function operator.gt(%sum_1, 2)
            %cond = function clew.cond(%gt, graph(%h) {
              %truediv = function operator.truediv(%h, 2)
              return (%truediv,)
            }, graph(%h) {
              return (%h,)
            }, (%h_1,))
            %h_2 = function operator.getitem(%cond, 0)
            return (%h_2, %h_2)
          }, (%h,), outputs=1)
          %states = function operator.getitem(%loop, 1)
          %stack = function torch.stack(%states)
          return %stack
        }
        """,
        scan_by_hand,
        (torch.linspace(-1, 1, 64 * 16).reshape(64, 16), torch.zeros(16)),
    ),
]


def measure(program: Program) -> tuple[float, float]:
    """Seconds per call of the generated function and of the one by hand."""
    graph = clew.parse(program.text)
    generated = clew.GraphModule({}, graph).forward
    by_hand = MethodType(program.by_hand, object())  # the generated function is a method too
    inputs = program.inputs
    alone, _ = best_times([lambda: by_hand(*inputs), lambda: None], calls=1, turns=3)
    calls = max(1, int(0.03 / max(alone, 1e-7)))
    mine, theirs = best_times([lambda: generated(*inputs), lambda: by_hand(*inputs)], calls)
    return mine, theirs


def main() -> None:
    """Print one line for each program, or measure the table of constructs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.control_flow", description=__doc__)
    control_flow_table.add_arguments(parser)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.table:
        control_flow_table.run(chosen)
        return
    table = Table("program", "graph, us per call", "by hand, us per call", "ratio")
    for program in PROGRAMS:
        mine, theirs = measure(program)
        table.add_row(program.name, f"{mine * 1e6:.3f}", f"{theirs * 1e6:.3f}", f"{mine / theirs:.2f}")
    Console().print(table)
    timings = [control_flow_speed.measure(one) for one in control_flow_speed.SUBJECTS]
    control_flow_page.SPEED.write_text(json.dumps(timings, indent=1) + "\n")
    print(control_flow_speed.markdown(timings))


if __name__ == "__main__":
    main()
