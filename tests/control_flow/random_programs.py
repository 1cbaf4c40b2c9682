"""Random programs with control flow: `python -m tests.control_flow.random_programs [--first N] [--count N] [--show]`.

A seed makes the source of a function of two vectors, a number and a box, out of branches, loops, early returns,
in-place operations, lists, attributes, random numbers and errors; most decisions depend on values. The harness of the
footguns judges it: a result, an effect or an error that differs from the original's is a mistake of the capture.
"""

from __future__ import annotations

import argparse
import linecache
import random
import sys
from collections import Counter
from typing import Any

import torch

from tests.control_flow.examination import SUBJECTS, examine
from tests.control_flow.register import Construct
from tests.footguns.harness import WRONG
from tests.footguns.ledger import Case, Inputs

VECTORS = ("x", "y", "a", "b")
CONDITIONS = (
    "{v}.sum() > {w}.sum()",
    "{v}[0] > {n}",
    "({v} > {n}).any()",
    "({v} > {w}).all()",
    "{v}.max().item() > {n}",
    "{n} < {v}.mean() < {n} + 2",
    "not {v}.sum() > {n}",
    "{v}[1] > {n} and {w}[2] < {n}",
    "{v}[1] > {n} or {w}[2] < {n}",
    "k > 2",
    "box.hits > 1",
    "len(parts) > 1",
    "size.item() > k",
    "({v}.sum() > 0) == ({w}.sum() > 0)",
)
STATEMENTS = (
    "{v} = {v} + {w}",
    "{v} = {v} * {n} - {w}",
    "{v} = torch.tanh({w}) + {n}",
    "{v} = {v} if {c} else {w}",
    "{v} = helper({v}, {w})",
    "{v} = {v}.clone()",
    "{v} = {v}.clone().add_({n})",
    "{v}, {w} = {w}, {v}",
    "{v} += {n}",
    "{v}[{i}] = {w}[{j}]",
    "k += 1",
    "k = k + int({c})",
    "k = 3 if {c} else k",
    "box.hits += 1",
    "box.last = {v}.sum()",
    "box.last = None",
    "parts.append({v})",
    "parts.append({v}.sum())",
    "table['k'] = {v}",
    "table[str(k % 2)] = {v} * 2",
    "{v} = sum(parts, {w}) if len(parts) == 1 else {w}",
    "{v} = table.get('k', {w}) - 1",
    "{v} = max({v}, {w}, key=lambda z: z.sum())",
    "{v} = {w} + torch.rand(3)",
    "{v} = {w}[:2].repeat(2)[:3]",
    "assert {v}.sum() > -30, 'too small'",
    "{v}.clamp_(-4, 4)",
    "size = size + 1",
    "{v} = {v} * size",
    "{v} = {v}.relu() if all(z > {n} for z in {w}) else {v}",
)
EXITS = (
    "return {v}",
    "return {v}, k",
    "return {{'v': {v}, 'k': k}}",
    "raise ValueError('stop')",
    "return [*parts, {v}]",
)
HEAD = """\
import torch

def helper(p, q):
    if p.sum() > q.sum():
        return p - q
    return q * 0.5

def program(x, y, size, box):
    k, parts, table = 0, [], {}
    a, b = x * 2 - y, y.clone()
"""


class Box:
    """An argument that carries state."""

    def __init__(self, hits: int) -> None:
        self.hits = hits
        self.last: Any = None


class Writer:
    """Writes the statements of one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0

    def fill(self, template: str) -> str:
        """A template with variables, numbers and a condition in its holes."""
        pick = self.random.choice
        condition = pick(CONDITIONS).format(v=pick(VECTORS), w=pick(VECTORS), n=pick((-1, 0, 1, 2)))
        numbers = {"n": pick((-1, 0, 1, 2, 0.5)), "i": pick((0, 1, 2)), "j": pick((0, 1, 2))}
        return template.format(v=pick(VECTORS), w=pick(VECTORS), c=f"({condition})", **numbers)

    def block(self, depth: int, indent: str, in_loop: bool) -> None:
        """Some statements; at the deepest level plain ones."""
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if depth == 0 or kind < 0.5:
                self.lines.append(indent + self.fill(self.random.choice(STATEMENTS)))
            elif kind < 0.8:
                self.branch(depth, indent, in_loop)
            else:
                self.loop(depth, indent)
        if self.random.random() < 0.15:
            word = self.random.choice(("break", "continue")) if in_loop else self.fill(self.random.choice(EXITS))
            self.lines.append(indent + word)

    def branch(self, depth: int, indent: str, in_loop: bool) -> None:
        """An `if` with up to two other sides."""
        for place in range(self.random.randint(1, 3)):
            is_else = place > 0 and self.random.random() < 0.5
            head = "else:" if is_else else ("elif " if place else "if ") + self.fill("{c}:")
            self.lines.append(indent + head)
            self.block(depth - 1, indent + "    ", in_loop)
            if is_else:
                return

    def loop(self, depth: int, indent: str) -> None:
        """A loop of a few rounds: over a range, the numbers of a vector, or while something holds."""
        self.loops += 1
        counter = f"i{self.loops}"
        inner = indent + "    "
        kind = self.random.choice(("range", "rows", "while", "number"))
        if kind == "while":
            self.lines += [f"{indent}{counter} = 0", f"{indent}while {counter} < 3 and {self.fill('{c}')}:"]
            self.lines.append(f"{inner}{counter} += 1")
        elif kind == "number":
            self.lines.append(f"{indent}for {counter} in range(size.item() % 3):")
        else:
            over = "range(2)" if kind == "range" else self.fill("{v}")
            self.lines.append(f"{indent}for {counter} in {over}:")
        self.block(depth - 1, inner, True)

    def source(self) -> str:
        """The whole program."""
        self.block(2, "    ", False)
        self.block(1, "    ", False)
        self.lines.append("    return a, b, x + y, k, parts, table")
        return HEAD + "\n".join(self.lines) + "\n"


def program_of(seed: int) -> Construct:
    """The program of a seed, with six inputs."""
    source, name = Writer(seed).source(), f"<random program {seed}>"
    namespace: dict[str, Any] = {"__name__": f"random_program_{seed}"}
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), namespace)

    def call(place: int) -> Any:
        def make() -> Inputs:
            chosen = random.Random(1000 * seed + place)
            x, y = (torch.tensor([float(chosen.randint(-3, 3)) for _ in range(3)]) for _ in range(2))
            return (x, y, torch.tensor(chosen.randint(0, 4)), Box(chosen.randint(0, 3))), {}

        return make

    def build() -> Case:
        return Case(make=lambda: namespace["program"], example=call(0), others=[call(place) for place in range(1, 6)])

    return Construct(f"seed_{seed}", "random", build)


def main(arguments: list[str] | None = None) -> int:
    """Runs some seeds; prints what came out wrong, and how many came to each status."""
    parser = argparse.ArgumentParser(prog="python -m tests.control_flow.random_programs", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100, help="how many seeds")
    parser.add_argument("--subject", choices=SUBJECTS, default="trace")
    parser.add_argument("--thorough", action="store_true", help="look at gradients and generated code too")
    parser.add_argument("--show", action="store_true", help="print the source of the first seed and leave")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if options.show:
        print(Writer(options.first).source())
        return 0
    found: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        finding = examine(program_of(seed), options.subject, thorough=options.thorough)
        found[finding.status] += 1
        if finding.status == WRONG:
            print(f"WRONG seed {seed}: {finding.reason}", flush=True)
    print(f"{options.count} random programs against {options.subject}: {dict(found)}")
    return int(found[WRONG] > 0)


if __name__ == "__main__":
    sys.exit(main())
