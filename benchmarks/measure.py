"""Timing that survives a noisy machine: the contestants take turns, and what counts is the ratio of their best times.

Processor time is measured, so other programs on the machine disturb less; the garbage collector runs between turns.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of a result: what was measured, at which size, and the microseconds per unit of each contestant."""

    section: str
    what: str
    size: int
    times: dict[str, float]

    def ratio(self) -> float:
        """How many times faster Clew is than the other contestant."""
        (other,) = (name for name in self.times if name != "clew")
        return self.times[other] / self.times["clew"]


def compare(section: str, what: str, size: int, contestants: dict[str, Callable[[], object]], turns: int = 5) -> Row:
    """The best of some turns of each contestant, in microseconds per unit of ``size``."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(turns):
        for name, run in contestants.items():
            gc.collect()
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return Row(section, what, size, {name: seconds / size * 1e6 for name, seconds in best.items()})


def best_times(contestants: list[Callable[[], Any]], calls: int, turns: int = 15) -> list[float]:
    """The best time of each in seconds per call; they take turns, so that the machine's moods hit all."""
    best = [float("inf")] * len(contestants)
    for _ in range(turns):
        for place, run in enumerate(contestants):
            gc.collect()
            start = time.process_time()
            for _ in range(calls):
                run()
            best[place] = min(best[place], (time.process_time() - start) / calls)
    return best
