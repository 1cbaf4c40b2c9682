"""The judge of the day: each verdict is given where it is due, and nothing that a step does reaches the next one."""

import os
import sys
import time

import pytest
import torch

from benchmarks import day, day_steps, forks
from benchmarks.day_models import SUBJECTS
from clew.errors import GuardError


@pytest.fixture(scope="module")
def case():
    return day_steps.Case(SUBJECTS["sequential"])


def _verdict(case, step, name="again"):
    return day._verdict(case, name, step)


def _raises(error):
    def step(case):
        raise error

    return step


def test_verdicts_by_what_a_step_raises(case):
    assert _verdict(case, lambda case: None) == ["works", ""]
    assert _verdict(case, _raises(day_steps.NotForOriginal("no mask"))) == ["none", "no mask"]
    assert _verdict(case, _raises(day_steps.Wrong("values differ"))) == ["wrong", "values differ"]
    assert _verdict(case, _raises(ValueError("two\nlines"))) == ["refused", "ValueError: two"]


def test_a_guard_is_allowed_only_where_the_original_takes_another_way(case):
    assert _verdict(case, _raises(GuardError("assumed"))) == ["refused", "GuardError: assumed"]
    assert _verdict(case, _raises(GuardError("assumed")), "no_mask") == ["guarded", "GuardError: assumed"]


def test_another_value_structure_or_dtype_is_wrong():
    one = {"a": torch.ones(2)}
    day_steps.same(one, {"a": torch.ones(2)})
    for other in ({"a": torch.zeros(2)}, {"b": torch.ones(2)}, [torch.ones(2)], {"a": torch.ones(2).double()}):
        with pytest.raises(day_steps.Wrong):
            day_steps.same(one, other)


def test_near_values_are_alike_only_where_that_is_asked_for():
    one, other = torch.ones(2, dtype=torch.bfloat16), torch.full((2,), 1.0078125, dtype=torch.bfloat16)
    day_steps.same(one, other, near=True)
    with pytest.raises(day_steps.Wrong):
        day_steps.same(one, other)
    with pytest.raises(day_steps.Wrong):
        day_steps.same(one, 2 * other, near=True)


def test_meta_tensors_are_compared_by_form():
    day_steps.same(torch.empty(2, device="meta"), torch.empty(2, device="meta"))
    with pytest.raises(day_steps.Wrong):
        day_steps.same(torch.empty(2, device="meta"), torch.empty(2))


def test_a_broken_capture_is_found_wrong():
    for step in ("again", "batch_3", "train", "float64", "make_fx"):
        broken = day_steps.Case(SUBJECTS["sequential"])
        broken.captured = lambda *args: broken.program.call(*args) + 1
        assert _verdict(broken, day_steps.STEPS[step], step)[0] == "wrong", step


def test_a_tool_that_fails_on_the_original_does_not_count(case):
    def use(program, inputs):
        raise RuntimeError("no tool")

    assert _verdict(case, lambda case: day_steps.by_tool(case, use)) == ["none", "RuntimeError: no tool"]


def test_a_child_leaves_no_mark_and_gives_plain_data():
    def work():
        os.environ["CLEW_OF_THE_DAY"] = "1"
        return {"found": [1, 2]}

    assert forks.in_child(work, 20, str) == {"found": [1, 2]}
    assert "CLEW_OF_THE_DAY" not in os.environ


def test_a_child_that_dies_or_takes_too_long_is_told_of():
    assert "died" in forks.in_child(lambda: os._exit(3), 20, str)
    assert forks.in_child(lambda: time.sleep(30), 0.2, str) == "over 0 s"
    assert "died" in forks.in_child(lambda: sys.exit(1), 20, str)
