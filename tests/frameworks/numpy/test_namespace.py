"""Every function of NumPy's that takes arrays: captured as itself, and equal on other values."""

from __future__ import annotations

import warnings

import pytest

import clew
from tests.frameworks.numpy.comparing import EQUAL, outcome
from tests.frameworks.numpy.namespace import LEFT_OUT, arguments, cases, form_of, program

CASES = list(cases())


def test_the_walk_is_long() -> None:
    assert len(CASES) > 400
    assert all(LEFT_OUT.values())


@pytest.mark.parametrize(("home", "name"), CASES, ids=[f"{home}.{name}" for home, name in CASES])
def test_captured_and_equal(home: str, name: str) -> None:
    form = form_of(home, name)
    assert form is not None, "no arguments are known for it"
    function = program(home, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = clew.trace(function, arguments(form, 1))
        assert [outcome(graph, function, arguments(form, seed)) for seed in (1, 2)] == [EQUAL] * 2
