"""What a measurement gives: one figure for each tool, program and section, and how the tools take their turns.

Processor time is measured, of all threads of this process. The tools of one program take turns, so that the moods of
the machine hit them all; a figure is the median of a tool's turns. A tool that fails is a figure without a value, whose
note says why.
"""

from __future__ import annotations

import gc
import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

FOLDERS = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+")
"""Folders in messages, which belong to one machine."""

SCALES = {"us": 1e6, "ms": 1e3, "s": 1.0}


@dataclass(frozen=True)
class Figure:
    """One cell of a table. ``spread`` is the middle half of the turns over the median."""

    section: str
    program: str
    tool: str
    value: float | None
    unit: str
    note: str = ""
    turns: int = 0
    spread: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class Contestant:
    """One tool at work on one program: ``run`` is timed, ``reset`` before each turn is not."""

    tool: str
    run: Callable[[], object]
    reset: Callable[[], object] | None = None
    turns: int | None = None
    """At most so many turns; None for as many as the section has."""


@dataclass(frozen=True)
class Effort:
    """How much time a section may take: turns of each tool, and seconds of each tool in all and of each turn."""

    turns: int
    seconds: float
    turn: float = 0.0
    """How long a turn lasts at least: a quick function is called many times in a turn."""

    def quick(self) -> Effort:
        """The same for a first look."""
        return Effort(min(self.turns, 3), self.seconds / 10, self.turn / 5)


class _Taking:
    """The turns of one contestant so far."""

    def __init__(self, contestant: Contestant, effort: Effort) -> None:
        self.contestant = contestant
        self.left = min(effort.turns, contestant.turns or effort.turns)
        self.calls = 1
        self.times: list[float] = []
        self.failure = ""

    def warm(self, effort: Effort) -> None:
        """One call that does not count: it shows whether the tool works and how often it can be asked."""
        seconds = self._timed(1)
        if effort.turn:
            seconds = min(self._timed(1) for _ in range(3))
        self.calls = max(1, int(effort.turn / max(seconds, 1e-7)))
        whole = max(seconds * self.calls, 1e-6)
        self.left = max(1, min(self.left, int(effort.seconds / whole)))

    def turn(self) -> None:
        """One turn that counts."""
        self.left -= 1
        self.times.append(self._timed(self.calls) / self.calls)

    def _timed(self, calls: int) -> float:
        if self.contestant.reset is not None:
            self.contestant.reset()
        run = self.contestant.run
        if calls == 1:
            gc.collect()
        start = time.process_time()
        for _ in range(calls):
            run()
        return time.process_time() - start

    def attempt(self, step: Callable[[], None]) -> None:
        """Do a step; a tool that fails is out, and its figure says why."""
        try:
            step()
        except Exception as error:  # any error of a tool is a result of this benchmark
            self.failure = failure_of(error)
            self.left = 0


def failure_of(error: Exception) -> str:
    """The first telling line of an error, without the folders of this machine."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return FOLDERS.sub("", f"{type(error).__name__}: {lines[0] if lines else ''}")[:160]


def contest(
    section: str, program: str, contestants: list[Contestant], effort: Effort, unit: str = "us", size: int = 1
) -> list[Figure]:
    """A figure for each contestant, in the ``unit``; one of ``per ...`` is divided by the ``size``."""
    taking = [_Taking(contestant, effort) for contestant in contestants]
    for one in taking:
        one.attempt(lambda one=one: one.warm(effort))  # type: ignore[misc]
    while any(one.left > 0 for one in taking):
        for one in taking:
            if one.left > 0:
                one.attempt(one.turn)
    return [_figure(section, program, one, unit, SCALES[unit.partition(" ")[0]] / size) for one in taking]


def _figure(section: str, program: str, one: _Taking, unit: str, scale: float) -> Figure:
    tool = one.contestant.tool
    if one.failure or not one.times:
        return Figure(section, program, tool, None, unit, one.failure or "not measured")
    middle = statistics.median(one.times)
    spread = 0.0
    if len(one.times) >= 4:
        low, _, high = statistics.quantiles(one.times, n=4)
        spread = (high - low) / middle if middle else 0.0
    return Figure(section, program, tool, middle * scale, unit, "", len(one.times), round(spread, 3))


def value_of(figures: list[Figure], section: str, program: str, tool: str) -> float | None:
    """The value of one cell; None where there is none."""
    found = (one for one in figures if (one.section, one.program, one.tool) == (section, program, tool))
    return next((one.value for one in found), None)


def ratios(figures: list[Figure], section: str, program: str, base: str) -> Iterator[tuple[str, float]]:
    """Each tool's value over that of ``base``."""
    under = value_of(figures, section, program, base)
    for one in figures:
        if (one.section, one.program) == (section, program) and one.value is not None and under:
            yield one.tool, one.value / under
