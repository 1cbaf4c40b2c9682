"""The limits on files, functions and classes hold for Clew, and each is shown to notice what breaks it."""

from __future__ import annotations

import pytest

from tests.architecture.limits import (
    IDEAS,
    LIMITS,
    broken,
    lines_of_files,
    lines_of_functions,
    parameters_of_functions,
    read_exceptions,
    satellites,
    tightened,
    untyped_collaborators,
)
from tests.architecture.measure import single_importers, sources_of
from tests.architecture.project import ROOT


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    return sources_of(ROOT)


@pytest.mark.parametrize("limit", LIMITS)
def test_clew_keeps_its_limits(limit: str, sources: dict[str, str]) -> None:
    most, measure = LIMITS[limit]
    assert broken(measure(sources), most, read_exceptions()[limit]) == []


def test_reasons_are_given_only_for_files_with_a_single_importer(sources: dict[str, str]) -> None:
    names = {name.removeprefix("clew.") for name in single_importers(sources)}
    assert sorted(IDEAS.keys() - names) == []


def test_what_is_over_or_has_grown_or_needs_no_exception_is_told() -> None:
    figures = {"small": 5, "new": 9, "kept": 12, "lower": 10, "grown": 13, "mended": 8}
    exceptions = {"kept": 12, "lower": 11, "grown": 12, "mended": 9, "gone": 9}
    assert broken(figures, 8, exceptions) == [
        "new: 9, more than 8",
        "grown: 13, more than 12",
        "mended: an exception that is no longer needed",
        "gone: an exception that is no longer needed",
    ]
    assert tightened(figures, 8, exceptions) == {"kept": 12, "lower": 10, "grown": 12}


def test_lines_and_parameters_are_counted() -> None:
    text = "class A:\n    def f(self, a, /, b, *c, d, **e):\n        def g():\n            pass\n        return g\n"
    assert lines_of_files({"clew.a": text}) == {"a": 5}
    assert lines_of_functions({"clew.a": text}) == {"a.A.f": 4, "a.A.f.g": 2}
    assert parameters_of_functions({"clew.a": text}) == {"a.A.f": 5, "a.A.f.g": 0}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(recorder: Any, run: Any | None): pass", 2),
        ("class A:\n    def f(self):\n        self.state: Any = None", 1),
        ("def f(recorder: Recorder, value: Any, state=None): pass", 0),
    ],
)
def test_collaborators_without_a_type_are_counted(text: str, count: int) -> None:
    assert untyped_collaborators({"clew.a": text}) == {"a": count}


def test_a_satellite_is_told_from_files_that_each_framework_has() -> None:
    text = "from clew.frameworks.torch import effects\nfrom clew import part\nfrom clew.ir import text"
    names = ("frameworks.torch.effects", "part", "config")
    assert satellites({"clew.main": text} | {f"clew.{name}": "" for name in names}) == {"part": 1}
