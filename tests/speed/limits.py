"""The limits of the counts, which stand in a file of their own so that they can be tightened: limits.json."""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).with_name("limits.json")
LIMITS: dict[str, float] = json.loads(FILE.read_text()) if FILE.exists() else {}
SLACK = 1.04
"""What a limit lies above the count that it was set after."""
WIDE = {"capture: bytes per op": 1.12}
"""More for counts in which caches have a share."""


def write(found: dict[str, float]) -> None:
    """Set the limits after what was counted."""
    limits = {name: round(value * WIDE.get(name, SLACK), 2) for name, value in found.items()}
    FILE.write_text(json.dumps(limits, indent=2) + "\n")
