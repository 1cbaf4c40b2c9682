"""The figures of `measure`, on small sources that are counted by hand, and on the project itself."""

from __future__ import annotations

import pytest

from tests.architecture import measure
from tests.architecture.measure import (
    QUESTIONS,
    attributes_of_classes,
    files_opened,
    single_importers,
    sources_of,
    table,
)
from tests.architecture.project import ROOT

SOURCES = {
    "clew.__init__": "from clew.a import f",
    "clew.a": "from clew.b import g\nfrom clew.c import h",
    "clew.b": "def f():\n    from clew.c import h",
    "clew.c": "",
    "clew.d": "",
}


def test_files_with_a_single_importer_are_counted_wherever_the_import_stands() -> None:
    assert single_importers(SOURCES) == ["clew.a", "clew.b"]


def test_attributes_are_fields_and_what_methods_assign() -> None:
    text = "class A:\n    x: int\n    y = 1\n    def f(self):\n        self.x = self.z = 1\n        other.w = self.v\n"
    assert attributes_of_classes({"clew.a": text, "clew.b": "class B: pass"}) == {"a.A": 2, "b.B": 0}


def test_the_columns_of_the_table_are_aligned() -> None:
    assert table({"old": {"lines": "10"}, "now": {"lines": "9", "new": "1"}}).splitlines() == [
        "       old  now",
        "lines  10   9",
        "new         1",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "expected", "room_without_part"),
    [
        ("a torch call becomes a node", "ir/node.py", "codegen"),
        ("a line of code is written", "codegen/python.py", "capture"),
    ],
)
def test_the_files_of_a_question_are_those_on_the_way_to_its_answer(
    question: str, expected: str, room_without_part: str
) -> None:
    found = files_opened(ROOT, question)
    assert expected in found and set(found) <= {
        name.removeprefix("clew.").replace(".", "/") + ".py" for name in sources_of(ROOT)
    }
    assert not any(name.startswith(f"{room_without_part}/") for name in found)
    assert len(found) < 20


def test_a_program_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUESTIONS, "a division", "1 / 0")
    monkeypatch.setattr(measure, "WATCH", "")
    with pytest.raises(RuntimeError, match="'a division' failed:(?s:.*)ZeroDivisionError"):
        files_opened(ROOT, "a division")
