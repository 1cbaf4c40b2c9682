"""Where the time of a capture goes: the share of each part of Clew, of torch and of Python, by a profiler.

A profiler makes Python calls dearer than they are, so these are hints to what a target misses, not measurements.
"""

from __future__ import annotations

import cProfile
import functools
import pstats
import re
from collections import defaultdict
from collections.abc import Callable

import torch

from benchmarks import programs, tools
from benchmarks.figures import Figure
from benchmarks.programs import Program
from benchmarks.task import Task

SECTION = "profile"
PLACE = re.compile(r".*/clew/(.*)$")
PROGRAMS: dict[str, Callable[[], Program]] = {
    "chain of 1,000": functools.partial(programs.chain, 1_000),
    "tiny BERT": programs.tiny_bert,
}
LEAST = 0.02
"""Parts with a smaller share are put together."""


def tasks(quick: bool) -> list[Task]:
    """One task for each program."""
    return [Task(f"profile: {title}", functools.partial(_measure, title, make)) for title, make in PROGRAMS.items()]


def _measure(title: str, make: Callable[[], Program]) -> list[Figure]:
    program = make()
    profiler = cProfile.Profile()
    with torch.no_grad():
        tools.with_clew(program.callable, program.args)
        profiler.enable()
        for _ in range(3):
            tools.with_clew(program.callable, program.args)
        profiler.disable()
    shares: dict[str, float] = defaultdict(float)
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    whole = sum(own for _, _, own, _, _ in stats.values())
    for (filename, _, name), (_, _, own, _, _) in stats.items():
        shares[_part(filename, name)] += own / whole
    small = sum(share for share in shares.values() if share < LEAST)
    kept = sorted(((share, part) for part, share in shares.items() if share >= LEAST), reverse=True)
    kept.append((small, f"all parts under {LEAST:.0%}"))
    return [Figure(SECTION, title, part, 100 * share, "% of the time") for share, part in kept]


def _part(filename: str, name: str) -> str:
    """The file of Clew, or whose function it is."""
    found = PLACE.match(filename)
    if found:
        return f"clew/{found[1]}"
    if filename == "~":
        return "compile()" if "compile" in name else "torch and Python's own functions in C"
    if "/torch/" in filename:
        return "torch, in Python"
    return "Python's library" if "/lib/python" in filename and "site-packages" not in filename else "the program itself"
