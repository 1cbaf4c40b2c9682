"""The same list for all four frameworks: programs are captured and right on every call, or listed as a gap."""

from __future__ import annotations

import pytest

import clew
from tests.frameworks.hard_programs import EQUAL, REFUSED, Judge, Program, lazily
from tests.frameworks.shared import gaps
from tests.frameworks.shared.programs import PROGRAMS
from tests.frameworks.shared.spaces import SPACES

CASES = [(framework, name) for framework in SPACES for name in PROGRAMS]


def program_of(framework: str, name: str) -> Program:
    make, calls = PROGRAMS[name]
    space = SPACES[framework]
    pytest.importorskip(framework)
    assert space.package  # which a program shall not import as it runs
    return Program(lambda world: make(space, world), calls(space))


def judge_of(framework: str) -> Judge:
    space = SPACES[framework]
    return Judge(space.difference, space.copied, lambda: space.seed(3))


@pytest.mark.parametrize(("framework", "name"), CASES, ids=["-".join(case) for case in CASES])
def test_program(framework: str, name: str) -> None:
    """The example is equal, and no call silently different; a listed gap is one."""
    outcomes = judge_of(framework).outcomes(program_of(framework, name), clew.trace)
    if (framework, name) in gaps.PROGRAMS:
        assert outcomes == [REFUSED], "this works now: take the gap away"
    else:
        assert outcomes[0] == EQUAL


@pytest.mark.parametrize("framework", SPACES)
def test_lazy_programs(framework: str) -> None:
    """A lazy graph captures again where a capture does not hold: every call that the framework can do is equal."""
    for name in PROGRAMS:
        if (framework, name) not in gaps.PROGRAMS:
            outcomes = judge_of(framework).outcomes(program_of(framework, name), lazily(clew.trace))
            assert set(outcomes) == {EQUAL}, name


def test_gaps_name_what_is_there() -> None:
    assert set(gaps.PROGRAMS) <= set(CASES)
    assert all(reason for reason in (*gaps.PROGRAMS.values(), *gaps.QUESTIONS.values()))


def test_the_list_is_long() -> None:
    assert len(PROGRAMS) >= 40
    assert not {name for framework, name in gaps.PROGRAMS if framework in ("torch", "numpy")}
