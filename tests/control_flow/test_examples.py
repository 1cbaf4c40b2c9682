"""The examples of control flow: each goes several ways, and its captures are right or guarded on every input."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.control_flow import expected
from tests.control_flow.examination import STATUSES, examine
from tests.control_flow.example_programs import FOLDER, all_examples
from tests.control_flow.register import Construct
from tests.footguns.baking import bake
from tests.footguns.harness import CAPTURE, EQUAL, WRONG, classify

each_example = pytest.mark.parametrize("program", all_examples(), ids=lambda program: program.name)


@each_example
def test_goes_several_ways(program: Construct) -> None:
    assert len(program.build().others) >= 4
    assert all(one.status == EQUAL for one in classify(program, lambda fn, args, kwargs: fn))
    assert any(one.status == WRONG and one.call != CAPTURE for one in classify(program, bake))


@each_example
def test_no_worse_than_measured(program: Construct) -> None:
    finding = examine(program, "trace", seconds=60.0, thorough=False)
    assert finding.status != WRONG, finding.reason
    assert STATUSES.index(finding.status) <= STATUSES.index(expected.read()["trace"][program.name]), finding.reason


def test_the_examples_run_as_a_script() -> None:
    command = [sys.executable, str(FOLDER / "control_flow"), "decision_tree"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "def forward" in done.stdout and "input 0: the same" in done.stdout
