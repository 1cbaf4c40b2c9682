"""A few models of the day in the life of a capture, held to the verdicts in expected.json.

Nothing may be wrong, and what works must go on working; what is refused today may work tomorrow, and is recorded then
by ``python -m benchmarks.day --write-expected``. All steps run once, in a process of their own.
"""

import functools
import json
from pathlib import Path

import pytest

from benchmarks import day

EXPECTED = json.loads(Path(__file__).with_name("expected.json").read_text())
PLACES = [(model, step) for model, steps in EXPECTED.items() for step in steps]


@functools.cache
def _found():
    steps = list(next(iter(EXPECTED.values())))
    return day.measure(EXPECTED, steps, count=2)


@pytest.mark.parametrize(("model", "step"), PLACES, ids=["-".join(place) for place in PLACES])
def test_a_step_of_the_day(model, step):
    word, message = _found()[model]["steps"][step]
    assert word != day.WRONG, message
    expected = EXPECTED[model][step]
    if expected in (day.WORKS, day.GUARDED):
        assert word in (day.WORKS, expected), message


def test_the_stored_verdicts_are_those_of_the_present_steps():
    quick = {step for step in day.STEPS if step not in day.SLOW}
    assert set(EXPECTED) == set(day.EXPECTED_MODELS)
    assert all(set(steps) == quick for steps in EXPECTED.values())
