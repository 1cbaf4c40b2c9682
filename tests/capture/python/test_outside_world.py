"""No program that looks at the world outside is silently different when it is captured, in any framework."""

from __future__ import annotations

import importlib.util

import pytest

from tests.capture.python.outside import FRAMEWORKS, TOLD, verdict
from tests.capture.python.outside_programs import PROGRAMS, SHOWN

UNTOLD = ("logged_an_object", "logged_by_unknown_logger", "logged_error", "traceback_printed")
"""Programs whose text no node can hold: a warning tells so."""


CELLS = [(name, one) for name in PROGRAMS for one in FRAMEWORKS if PROGRAMS[name].only in ("", one)]


@pytest.mark.parametrize(("name", "framework"), CELLS)
def test_right_or_guarded_or_refused(name: str, framework: str) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    program = PROGRAMS[name]
    fair = ("right", "guarded", "refused", *([TOLD] if program.judged == SHOWN and name in UNTOLD else []))
    assert verdict(program, framework) in fair


@pytest.mark.parametrize("framework", ("torch", "numpy"))
@pytest.mark.parametrize("name", ["time_time", "imported_perf_counter", "random_random", "random_instance_of_seed"])
def test_clocks_and_draws_are_calls_of_the_graph(name: str, framework: str) -> None:
    assert verdict(PROGRAMS[name], framework) == "right"


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", ["expanded_variable", "open_for_reading", "path_read_text", "folder_listed"])
def test_what_can_be_asked_again_is_guarded(name: str, framework: str) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    assert verdict(PROGRAMS[name], framework) == "guarded"


@pytest.mark.parametrize("framework", ("torch", "numpy", "jax"))
@pytest.mark.parametrize("name", ["environ_item", "environ_get", "os_getenv", "imported_environ"])
def test_numbers_in_the_environment_are_read_again(name: str, framework: str) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    assert verdict(PROGRAMS[name], framework) == "right"


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    "name",
    [
        "open_for_writing",
        "path_write_text",
        "environ_set",
        "read_from_input",
        "os_system",
        "signal_sent",
        "signal_ignored",
        "called_at_exit",
        "recursion_limit_set",
    ],
)
def test_acts_are_refused_with_the_line(name: str, framework: str) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    assert verdict(PROGRAMS[name], framework) == "refused"
