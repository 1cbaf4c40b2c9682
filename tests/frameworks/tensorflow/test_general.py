"""Realistic programs of TensorFlow: one capture serves all their inputs, and what is said of each only gets better."""

from __future__ import annotations

import pytest

from tests.frameworks.hard_programs import REFUSED
from tests.frameworks.tensorflow.general import PROGRAMS
from tests.frameworks.tensorflow.test_hard_programs import JUDGE
from tests.frameworks.verdicts import GENERAL, GUARDED, ORDER, verdict

LESS = {
    "any_dtype": GUARDED,
    "any_rank": GUARDED,
    "averaged": GUARDED,
    "calls_a_function": GUARDED,
    "caught_error": REFUSED,
    "cholesky_or_eye": REFUSED,
    "configured": GUARDED,
    "heads_by_number": GUARDED,
    "history_list": GUARDED,
    "masked_average": GUARDED,
    "normalised_in_practice": GUARDED,
    "numpy_inside": GUARDED,
    "outer_and_broadcast": GUARDED,
    "reduced": GUARDED,
    "rows_gathered": REFUSED,
}
"""The programs that are not general, and what becomes of them: take a line away when a capture gets better."""


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 60 and all(len(one.calls) >= 5 for one in PROGRAMS.values())
    assert LESS.keys() <= PROGRAMS.keys() and len(LESS) * 4 <= len(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_verdict(name: str) -> None:
    found, why = verdict(PROGRAMS[name], JUDGE)
    wanted = LESS.get(name, GENERAL)
    assert ORDER.index(found) >= ORDER.index(wanted), why
    assert found == wanted, "this is better now: take the line away"
