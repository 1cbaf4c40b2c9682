"""A sample of the operators that torch lists for its own tests: captured and equal, or guarded, never wrong.

``python -m benchmarks.opinfo`` tries all of them.
"""

from __future__ import annotations

import pytest

from benchmarks.opinfo import EQUAL, GUARDED, LEFT_OUT, REFUSED, WRONG, operators, rows

STEP = 30


def test_a_sample_of_all_operators() -> None:
    found = list(rows(step=STEP))
    assert [row for row in found if row[1] in (WRONG, REFUSED)] == []
    assert sum(row[1] in (EQUAL, GUARDED) for row in found) >= 20
    assert sum(row[1] == LEFT_OUT for row in found) <= 2


@pytest.mark.parametrize("name", ["nn.functional.scaled_dot_product_attention", "linalg.lstsq", "index_put", "where"])
def test_operators_that_are_hard(name: str) -> None:
    assert {row[1] for row in rows(only=name)} <= {EQUAL, GUARDED}


def test_the_list_is_torchs_own() -> None:
    assert len(operators()) > 600
