"""The ledger itself: every program is deterministic, and most of them are traps for a naive tracer."""

from __future__ import annotations

import importlib

import pytest

from tests.footguns.baking import bake
from tests.footguns.harness import AFTERWARDS, CAPTURE, EQUAL, WRONG, Outcome, classify
from tests.footguns.ledger import Program, all_programs

PROGRAMS = all_programs()
LEAST_PROGRAMS = 220
LEAST_PROGRAMS_OF_A_KIND = 12
LEAST_SHARE_OF_TRAPS = 0.6


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.kind}-{program.name}")
def test_the_original_equals_itself(program: Program) -> None:
    outcomes = classify(program, lambda fn, args, kwargs: fn)
    assert [one for one in outcomes if one.status != EQUAL] == []
    names = [one.call for one in outcomes]
    assert names[:3] == [CAPTURE, "example", "other 1"] and names[-2:] == ["example again", AFTERWARDS]


def test_each_kind_is_a_file_with_several_programs() -> None:
    for kind in {program.kind for program in PROGRAMS}:
        builders = {program.build.__module__ for program in PROGRAMS if program.kind == kind}
        assert builders == {f"tests.footguns.programs.{kind}"}
        assert importlib.import_module(f"tests.footguns.programs.{kind}").__doc__
        assert sum(program.kind == kind for program in PROGRAMS) >= LEAST_PROGRAMS_OF_A_KIND
    assert len(PROGRAMS) >= LEAST_PROGRAMS


def test_programs_are_chosen_by_kind_or_name() -> None:
    assert {program.kind for program in all_programs("loops")} == {"loops"}
    assert [program.name for program in all_programs("branch_on_sum")] == ["branch_on_sum"]
    assert all_programs("no_such_thing") == []


def test_most_programs_are_traps() -> None:
    """Counts only calls that came out wrong: that the naive tracer puts nothing back is another matter."""
    wrong = [program.name for program in PROGRAMS if any(map(_is_wrong_call, classify(program, bake)))]
    assert len(wrong) >= LEAST_SHARE_OF_TRAPS * len(PROGRAMS), f"{len(wrong)} of {len(PROGRAMS)}"


def _is_wrong_call(outcome: Outcome) -> bool:
    return outcome.status == WRONG and outcome.call != CAPTURE
