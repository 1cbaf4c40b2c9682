"""A few random programs with control flow; the command of the module runs more."""

from __future__ import annotations

import pytest

from tests.control_flow.examination import examine
from tests.control_flow.random_programs import Writer, program_of
from tests.footguns.harness import EQUAL, WRONG, classify

SEEDS = (0, 1, 2, 3, 4, 7, 8, 9)


@pytest.mark.parametrize("seed", SEEDS)
def test_captures_of_random_programs_are_never_wrong(seed: int) -> None:
    finding = examine(program_of(seed), seconds=60.0, thorough=False)
    assert finding.status != WRONG, f"{finding.reason}\n{Writer(seed).source()}"


def test_random_programs_are_deterministic() -> None:
    for seed in range(100, 130):
        outcomes = classify(program_of(seed), lambda fn, args, kwargs: fn)
        assert all(one.status == EQUAL for one in outcomes)
        assert Writer(seed).source() == Writer(seed).source()
