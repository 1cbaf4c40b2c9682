"""The programs of the register that can be said with NumPy: each comes out no worse there than was measured."""

from __future__ import annotations

import pytest

from tests.control_flow import expected
from tests.control_flow.examination import STATUSES
from tests.control_flow.numpy_twins import SUBJECT, all_twins, examine_twin
from tests.control_flow.register import CONSTRUCTS
from tests.footguns.harness import WRONG

EXPECTED = expected.read()[SUBJECT]
SECONDS = 60.0  # for one call, on a busy machine


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_a_twin_comes_out_no_worse_than_measured(construct: str) -> None:
    names = [name for name, twin in all_twins().items() if twin.kind == construct]
    for finding in [examine_twin(name, SECONDS) for name in names]:
        assert finding is not None and finding.status != WRONG, finding
        assert STATUSES.index(finding.status) <= STATUSES.index(EXPECTED[finding.name]), finding


def test_most_programs_have_a_twin() -> None:
    assert set(all_twins()) == set(EXPECTED)
    assert len(EXPECTED) > 250
