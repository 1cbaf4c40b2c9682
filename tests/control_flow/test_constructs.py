"""Every program of the register is deterministic, goes several ways, and comes out no worse than was measured."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.control_flow import expected
from tests.control_flow.examination import CAPTURED, STATUSES, SUBJECTS, examine
from tests.control_flow.example_programs import all_examples
from tests.control_flow.register import CONSTRUCTS, Construct, all_constructs
from tests.footguns.baking import bake
from tests.footguns.harness import CAPTURE, EQUAL, WRONG, classify

PROGRAMS = all_constructs()
EXPECTED = expected.read()
LEAST_OTHER_INPUTS = 4
LEAST_PROGRAMS_OF_A_CONSTRUCT = 3
SECONDS = 60.0  # for one call, on a busy machine

each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.kind}-{program.name}")


@each_program
def test_the_original_equals_itself_and_goes_several_ways(program: Construct) -> None:
    assert len(program.build().others) >= LEAST_OTHER_INPUTS
    assert [one for one in classify(program, lambda fn, args, kwargs: fn) if one.status != EQUAL] == []
    frozen = classify(program, bake)
    assert any(one.status == WRONG and one.call != CAPTURE for one in frozen), "the example's way is right for all"


@each_program
def test_captured_no_worse_than_measured(program: Construct) -> None:
    finding = examine(program, "trace", seconds=SECONDS)
    before, known = EXPECTED["trace"][program.name], EXPECTED[expected.SHORTCOMINGS].get(program.name, [])
    if finding.status == before == WRONG:
        pytest.xfail(f"known to be wrong: {finding.reason}")
    assert STATUSES.index(finding.status) <= STATUSES.index(before), finding
    if before == CAPTURED:
        assert [word for word in finding.shortcomings if word not in known] == [], finding


@pytest.mark.parametrize("construct", CONSTRUCTS)
@pytest.mark.parametrize("subject", ["dynamic", "lazy"])
def test_other_subjects_no_worse_than_measured(construct: str, subject: str) -> None:
    """One program of each construct; `python -m tests.control_flow --subject lazy` runs all."""
    program = all_constructs(construct)[0]
    finding, before = examine(program, subject, SECONDS, thorough=False), EXPECTED[subject][program.name]
    if finding.status == before == WRONG:
        pytest.xfail(f"known to be wrong: {finding.reason}")
    assert STATUSES.index(finding.status) <= STATUSES.index(before), finding


def test_every_construct_has_several_programs() -> None:
    counts = Counter(program.kind for program in PROGRAMS)
    assert set(counts) == set(CONSTRUCTS)
    assert min(counts.values()) >= LEAST_PROGRAMS_OF_A_CONSTRUCT


def test_something_is_expected_of_every_program() -> None:
    names = {program.name for program in PROGRAMS + all_examples()}
    assert {subject: set(EXPECTED[subject]) for subject in SUBJECTS} == dict.fromkeys(SUBJECTS, names)


def test_programs_are_chosen_by_construct_or_name() -> None:
    assert {program.kind for program in all_constructs("while")} == {"while"}
    assert [program.name for program in all_constructs("square_root")] == ["square_root"]
    assert all_constructs("no_such_thing") == []
