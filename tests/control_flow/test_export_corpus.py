"""torch's corpus of hard cases: every case captured, or guarded, or refused as was measured; none wrong."""

from __future__ import annotations

import pytest

from tests.control_flow.export_corpus import SUBJECTS, WORDS, corpus, judge, read, verdict_of_a_stranger
from tests.control_flow.register import Construct
from tests.footguns.harness import EQUAL, WRONG, Outcome, classify

CASES = corpus()
EXPECTED = read()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("subject", ["trace", "lazy"])
def test_no_worse_than_measured(case: Construct, subject: str) -> None:
    word, reason = judge(case, subject)
    assert word != "wrong", reason
    assert WORDS.index(word) <= WORDS.index(EXPECTED[subject][case.name]), reason


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_original_equals_itself(case: Construct) -> None:
    assert [one for one in classify(case, lambda fn, args, kwargs: fn) if one.status != EQUAL] == []


def test_something_is_known_of_every_case() -> None:
    names = {case.name for case in CASES}
    assert {subject: set(EXPECTED[subject]) for subject in EXPECTED} == dict.fromkeys(SUBJECTS, names)


def test_none_is_wrong() -> None:
    assert not any("wrong" in EXPECTED[subject].values() for subject in SUBJECTS if subject != "export")


@pytest.mark.parametrize(
    ("call", "silent", "word"),
    [
        ("capture", False, "refused"),
        ("example", False, "refused"),
        ("other 1", False, "guarded"),
        ("other 1", True, "wrong"),
    ],
)
def test_errors_of_other_tools_are_refusals(call: str, silent: bool, word: str) -> None:
    assert verdict_of_a_stranger([Outcome("p", "k", call, WRONG, "why", silent)])[0] == word
    assert verdict_of_a_stranger([Outcome("p", "k", "other 2", EQUAL)]) == ("captured", "")
