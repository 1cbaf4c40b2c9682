"""The log of a run: a line for each program, so that a run that was broken off goes on where it stood.

Lines are JSON: framework, seed, index, form, the verdict on the program, those on its calls by number, and in which
respect it was wrong. A log may hold several frameworks and seeds; without a file it is kept in memory alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path


class Log:
    """What is known of the programs of one seed."""

    def __init__(self, path: Path | None, framework: str, seed: int) -> None:
        self._path = path
        self._key = {"framework": framework, "seed": seed}
        self.known: set[int] = set()
        self.programs: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.families: Counter[str] = Counter()
        self.judged = 0
        """How many programs this run has judged itself."""
        for line in path.read_text().splitlines() if path is not None and path.exists() else ():
            row = json.loads(line)
            if row.items() >= self._key.items():
                self._count(row["index"], row["verdict"], row["calls"], row["differs"])

    def _count(self, index: int, verdict: str, calls: dict[str, int], differs: str) -> None:
        self.known.add(index)
        self.programs[verdict] += 1
        self.calls.update(calls)
        if differs:
            self.families[differs] += 1

    def add(self, index: int, form: str, verdict: str, calls: Iterable[str], differs: str) -> None:
        """One more program."""
        counted = dict(Counter(calls))
        self.judged += 1
        self._count(index, verdict, counted, differs)
        if self._path is not None:
            row = self._key | {"index": index, "form": form, "verdict": verdict, "calls": counted, "differs": differs}
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")
