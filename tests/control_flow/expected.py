"""What is expected of each program of the register: the statuses of the last measurement, kept as data.

`python -m tests.control_flow --write` measures and writes them; the tests hold every program to a status that is no
worse, and the table of the documents is made of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.control_flow.examination import Finding

FILE = Path(__file__).with_name("expected.json")
SHORTCOMINGS = "shortcomings"


def read(path: Path = FILE) -> dict[str, dict[str, Any]]:
    """The status of each program by subject and name; the shortcomings of captured ones by name."""
    found: dict[str, dict[str, Any]] = json.loads(path.read_text())
    return found


def write(subject: str, findings: list[Finding], path: Path = FILE) -> None:
    """Puts findings in the place of the old ones; what is known of other programs and subjects stays."""
    known = read(path) if path.exists() else {}
    known[subject] = known.get(subject, {}) | {one.name: one.status for one in findings}
    if subject == "trace":
        fresh = known.get(SHORTCOMINGS, {}) | {one.name: one.shortcomings for one in findings}
        known[SHORTCOMINGS] = {name: words for name, words in fresh.items() if words}
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
