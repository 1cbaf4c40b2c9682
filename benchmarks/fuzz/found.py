"""The mistakes that were found, in a file: each a small program, in what respect it was wrong, and by how much.

They are named by the seed and index of the program they were found in. All were mended: a test runs them again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fuzz.program import RandomProgram, from_json

FILE = Path(__file__).parents[1] / "fuzz_found.json"


@dataclass(frozen=True)
class Mistake:
    """A program that was captured wrong, made small."""

    program: RandomProgram
    family: str
    reason: str
    form: str = "trace"


def read(path: Path = FILE) -> dict[tuple[str, int, int], Mistake]:
    """All of them by framework, seed and index."""
    rows = json.loads(path.read_text()) if path.exists() else []
    found = [Mistake(from_json(row["program"]), row["family"], row["reason"], row.get("form", "trace")) for row in rows]
    return {_key(one): one for one in found}


def _key(mistake: Mistake) -> tuple[str, int, int]:
    return mistake.program.framework, mistake.program.seed, mistake.program.index


def add(mistake: Mistake, path: Path = FILE) -> None:
    """Keep one more; one of the same seed and index gives way to it."""
    listed = read(path) | {_key(mistake): mistake}
    rows = [
        {"family": one.family, "reason": one.reason, "form": one.form, "program": one.program.as_json()}
        for _, one in sorted(listed.items())
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n")
