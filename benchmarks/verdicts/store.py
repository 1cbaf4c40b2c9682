"""The stored verdicts of a suite: one JSON line per program, sorted by name; and what has changed since."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from benchmarks.verdicts.suites import EQUAL, REFUSED, WRONG_ANSWER, Judged
from tests.footguns.harness import CAPTURE, GUARDED

FOLDER = Path(__file__).parent
ORDER = (EQUAL, GUARDED, REFUSED, WRONG_ANSWER)
"""From the best to the worst."""

Verdicts = dict[str, dict[str, str]]


def path_of(suite: str, folder: Path = FOLDER) -> Path:
    """Where the verdicts of a suite are kept."""
    return folder / f"{suite}.jsonl"


def read(path: Path) -> Verdicts:
    """By program and call."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {row["program"]: row["calls"] for row in rows}


def write(path: Path, verdicts: Verdicts) -> None:
    """All of them, sorted."""
    lines = [json.dumps({"program": name, "calls": calls}) for name, calls in sorted(verdicts.items())]
    path.write_text("".join(f"{line}\n" for line in lines))


def changes(before: Verdicts, judged: Iterable[Judged]) -> dict[str, list[str]]:
    """What is now otherwise, by what it has become: `newly wrong`, `newly guarded`, ..., one line for each call."""
    found: dict[str, list[str]] = {}
    for one in judged:
        for call, word, was in _changed(before.get(one.program, {}), one.calls):
            reason = f": {one.reasons[call]}" if word == WRONG_ANSWER and one.reasons.get(call) else ""
            found.setdefault(f"newly {word}", []).append(f"{one.program}, {call} ({was} before){reason}")
    return found


def _changed(before: dict[str, str], now: dict[str, str]) -> list[tuple[str, str, str]]:
    """The calls that have another verdict; where one has no match, the capture's verdict stands for it."""
    if not before:
        return [(call, word, "not there") for call, word in now.items() if word == WRONG_ANSWER]
    found = []
    for call, word in now.items():
        was = before.get(call, before.get(CAPTURE, EQUAL if call == CAPTURE else "not judged"))
        if was != word:
            found.append((call, word, was))
    return found


def worst(calls: dict[str, str]) -> str:
    """The verdict on a program."""
    return max(calls.values(), key=ORDER.index)
