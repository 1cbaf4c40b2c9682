"""Branches and loops on data in NumPy programs: they are branches and loops of the graph."""

from __future__ import annotations

import copy
import random
import re
import warnings
from typing import Any

import numpy as np
import pytest

import clew
from clew.errors import CaptureError, GuardError
from tests.frameworks.numpy.comparing import EQUAL, outcome, same
from tests.frameworks.numpy.hard import PROGRAMS
from tests.frameworks.numpy.iterative import ITERATIVE
from tests.frameworks.numpy.test_hard_programs import judge

NARROWER = {
    "flow_errstate_raises": "a call fails on a way that was not recorded",
    "flow_max_of_numbers": "sorted looks at each number",
    "flow_object": "an attribute changes its type",
    "flow_caught_in_loop": "an error that is caught",
    "flow_islice": "an iterator that cannot be set back",
    "flow_logging": "the length of a list of the state",
    "flow_recursion_on_a_number": "a recursion that goes deeper than on the example",
}
"""Programs whose captures refuse some of the calls, and why."""
FLOWS = [name for name in PROGRAMS if name.startswith("flow_")]


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", FLOWS)
def test_one_capture_holds_for_all_calls(name: str) -> None:
    found = judge(PROGRAMS[name], lambda fn, arguments: clew.trace(fn, arguments))
    assert (set(found) == {"equal"}) is (name not in NARROWER)


@pytest.mark.parametrize("options", [{"dynamic": True}, {"control_flow": "guard"}], ids=["dynamic", "guard"])
@pytest.mark.parametrize("name", FLOWS)
def test_other_treatments_are_never_wrong(name: str, options: dict[str, Any]) -> None:
    judge(PROGRAMS[name], lambda fn, arguments: clew.trace(fn, arguments, **options))


@pytest.mark.parametrize("name", ITERATIVE)
def test_algorithms_that_run_until_they_are_done(name: str) -> None:
    function, calls = ITERATIVE[name]
    graph = clew.trace(function, copy.deepcopy(calls[0]))
    assert re.search(r"^ +while ", graph.code, re.MULTILINE)
    assert [outcome(graph, function, call) for call in calls] == [EQUAL] * len(calls)
    assert clew.verify(graph, function, (copy.deepcopy(calls[0]), {})).ok


def test_there_are_enough() -> None:
    assert len(FLOWS) >= 90 and len(ITERATIVE) >= 12


def _halved(x):
    rounds = 0
    while x.max() > 1:
        x = x / 2
        rounds += 1
    return x, rounds


def test_a_guard_is_made_if_asked_for() -> None:
    graph = clew.trace(_halved, (np.full(2, 3.0),), control_flow="guard")
    assert not re.search(r"^ +while ", graph.code, re.MULTILINE)
    assert same(graph(np.full(2, 3.5)), _halved(np.full(2, 3.5)))
    with pytest.raises(GuardError, match=r"x.max\(\) > 1"):
        graph(np.zeros(2))


def test_branches_on_data_are_refused_if_asked_for() -> None:
    with pytest.raises(CaptureError, match="asks for the truth of its data"):
        clew.trace(_halved, (np.ones(2),), control_flow="error")

    def sized(x):
        return x * 2 if len(x) > 2 else x

    assert clew.trace(sized, (np.ones(3),), control_flow="error")(np.ones(4)).tolist() == [2, 2, 2, 2]


def _by_size(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i] * i if i % 2 else x[i]
    return out


@pytest.mark.parametrize("dynamic", [False, True])
def test_loops_over_sizes_are_loops(dynamic: bool) -> None:
    graph = clew.trace(_by_size, (np.ones(3),), dynamic=dynamic)
    assert "for " in graph.code
    for count in (0, 1, 7):
        assert same(graph(np.arange(float(count))), _by_size(np.arange(float(count))))


def test_a_lazy_graph_needs_one_capture_for_all_sizes() -> None:
    lazy = clew.trace(_by_size)
    for count in (3, 4, 5, 6):
        assert same(lazy(np.arange(float(count))), _by_size(np.arange(float(count))))
    assert len(lazy.captures) == 1


def test_an_array_that_is_walked_and_changes_is_no_loop_of_the_graph() -> None:
    def program(x):
        total = 0
        for value in x:
            total = total + value
            x[-1] = 10
        return total

    for dynamic in (False, True):
        graph = clew.trace(program, (np.ones(3),), dynamic=dynamic)
        assert graph(np.full(3, 2.0)) == program(np.full(3, 2.0))
        with pytest.raises(GuardError, match="len"):
            graph(np.ones(4))
    lazy = clew.trace(program)
    for count in (3, 4, 5):
        assert lazy(np.ones(count)) == program(np.ones(count))


def test_capture_leaves_no_mark() -> None:
    generator, held = np.random.default_rng(1), np.zeros(3)

    def program(x):
        while x.sum() < 20:
            x += generator.random() + np.random.rand() + random.random()
            held[0] += 1
        return x

    x, states = np.ones(3), (generator.bit_generator.state, random.getstate(), np.random.get_state()[2])
    graph = clew.trace(program, (x,))
    assert x.tolist() == [1, 1, 1] and held.tolist() == [0, 0, 0]
    assert (generator.bit_generator.state, random.getstate(), np.random.get_state()[2]) == states
    assert "while " in graph.code


def test_a_side_that_never_ends_does_not_stop_the_capture() -> None:
    def program(x):
        if x.sum() > 0:
            return x
        while x.sum() != -3:
            x = x - 1
        return x

    graph = clew.trace(program, (np.full(3, 1.1),))
    assert same(graph(np.full(3, 2.0)), np.full(3, 2.0))


def test_text_in_branches_is_shown_and_kept() -> None:
    def program(x):
        if x.sum() > 0:
            print("positive", x.sum())
            return x
        raise ValueError("negative")

    graph = clew.trace(program, (np.ones(3),))
    assert same(graph(np.full(3, 2.0)), np.full(3, 2.0))
    with pytest.raises(ValueError, match="negative"):
        graph(-np.ones(3))
