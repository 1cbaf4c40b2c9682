"""Realistic programs: no capture is worse than it was, and new ones are listed; each is right, or refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.frameworks.numpy.realistic import PROGRAMS
from tests.frameworks.numpy.realistic.__main__ import STORED
from tests.frameworks.numpy.realistic.judge import GENERAL, ORDER, judge

VERDICTS: dict[str, dict[str, str]] = json.loads(STORED.read_text())


@pytest.mark.parametrize("way", ["trace", "dynamic"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_verdict_is_worse(name: str, way: str) -> None:
    found: Any = judge(PROGRAMS[name], way == "dynamic")
    assert ORDER.index(found.kind) >= ORDER.index(VERDICTS[way][name]), found.reasons


def test_most_are_general() -> None:
    counts = {way: sum(kind == GENERAL for kind in found.values()) for way, found in VERDICTS.items()}
    assert len(PROGRAMS) >= 120
    assert all(count >= 0.75 * len(PROGRAMS) for count in counts.values())
    assert all(len(program.calls) >= 5 for program in PROGRAMS.values())
