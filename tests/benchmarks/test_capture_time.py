"""The page of captures that take long: what is above the limit, and the runs of the program that it took."""

from __future__ import annotations

from collections import Counter

import torch

import clew
from benchmarks import capture_time

SLOW = {"suite": "transformers", "name": "slow", "outcome": "measured", "eager": 0.2, "first": 4.0, "again": 3.0}
QUICK = {"suite": "transformers", "name": "quick", "outcome": "measured", "eager": 0.01, "first": 2.5, "again": 1.0}


def counted(program: dict[str, object], **runs: int) -> dict[str, object]:
    return program | {"runs": runs}


def test_what_becomes_of_each_run_is_counted() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x - 1

    runs: Counter[str] = Counter()
    with capture_time.counted_runs(runs):
        clew.trace(program, args=(torch.ones(3),))
    assert runs == {"found": 1, "path": 1}


def test_the_page_has_what_takes_longer_than_the_limit_the_second_time() -> None:
    page = capture_time.markdown([counted(SLOW, path=5, piece=1), counted(QUICK, path=1)])
    assert "1 of 2 that were measured take more than 2 s." in page
    reason = "6 runs: 5 recorded a path, 1 gave up a branch or loop as a piece; 40% is the program's own time"
    assert f"| slow | 200.0 | 4.00 | 3.00 | 15x | {reason} |" in page
    assert "quick" not in page


def test_programs_have_one_time() -> None:
    row = {"suite": "ledger", "name": "long", "outcome": "measured", "first": 2.25, "runs": {"found": 1, "path": 2}}
    page = capture_time.markdown([row])
    assert "## The ledger" in page
    assert "| long | | 2.25 | | | 3 runs: 2 recorded a path, 1 found state, or a function to rewrite" in page
