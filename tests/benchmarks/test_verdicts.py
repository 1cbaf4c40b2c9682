"""Stored verdicts: written sorted, read back, and compared by what each call has become."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.verdicts import __main__ as command
from benchmarks.verdicts import store, suites
from benchmarks.verdicts.suites import Judged


def test_written_and_read(tmp_path: Path) -> None:
    path = store.path_of("ledger", tmp_path)
    verdicts = {"b": {"capture": "equal"}, "a": {"capture": "refused"}}
    store.write(path, verdicts)
    assert store.read(path) == verdicts
    assert path.read_text().splitlines()[0] == '{"program": "a", "calls": {"capture": "refused"}}'
    assert store.read(tmp_path / "nothing.jsonl") == {}


def test_changes_by_what_they_became() -> None:
    before = {"p": {"capture": "equal", "example": "equal", "other 1": "guarded"}, "q": {"capture": "refused"}}
    now = [
        Judged("p", {"capture": "equal", "example": "wrong", "other 1": "equal"}, {"example": "other values"}),
        Judged("q", {"capture": "equal", "example": "equal"}),
        Judged("new", {"example": "wrong"}),
        Judged("new and right", {"example": "equal"}),
    ]
    found = store.changes(before, now)
    assert found["newly wrong"] == [
        "p, example (equal before): other values",
        "new, example (not there before)",
    ]
    assert "p, other 1 (guarded before)" in found["newly equal"]
    assert "q, capture (refused before)" in found["newly equal"]
    assert store.changes(before, [Judged("p", before["p"]), Judged("q", before["q"])]) == {}


def test_newly_refused() -> None:
    before = {"p": {"capture": "equal", "example": "equal"}}
    assert store.changes(before, [Judged("p", {"capture": "refused"})]) == {
        "newly refused": ["p, capture (equal before)"]
    }


def test_rows_of_models() -> None:
    row = {"name": "a", "outcome": "guarded", "example": "equal", "values": "general", "batch": "guarded", "one": "n/a"}
    assert suites.of_model(row) == {"example": "equal", "values": "equal", "batch": "guarded"}
    assert suites.of_model({"name": "a", "outcome": "skipped"}) == {}
    assert suites.of_model({"name": "a", "outcome": "timeout"}) == {}
    assert suites.of_model({"name": "a", "outcome": "refused"}) == {"capture": "refused"}
    assert suites.of_model({"name": "a", "outcome": "failed"}) == {"capture": "wrong"}


def test_the_command_fails_on_what_is_newly_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(store, "path_of", lambda suite: tmp_path / f"{suite}.jsonl")
    monkeypatch.setattr(suites, "ledger", lambda: iter([Judged("p", {"example": "equal"})]))
    assert command.main(["--suite", "ledger", "--write"]) == 0
    assert command.main(["--suite", "ledger", "--compare"]) == 0
    monkeypatch.setattr(suites, "ledger", lambda: iter([Judged("p", {"example": "wrong"}, {"example": "why"})]))
    assert command.main(["--suite", "ledger", "--compare"]) == 1
    assert "newly wrong: 1\n    p, example (equal before): why" in capsys.readouterr().out


@pytest.mark.parametrize("suite", command.USUAL)
def test_nothing_is_stored_as_wrong(suite: str) -> None:
    stored = store.read(store.path_of(suite))
    assert len(stored) > 300
    wrong = {name for name, calls in stored.items() if store.worst(calls) == "wrong"}
    assert wrong <= {"shared/numpy/prints", "shared/torch/prints"}, wrong
